package lint_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// required are the modules that the root may require directly. Whatever needs more is a nested module.
var required = []string{
	"github.com/HdrHistogram/hdrhistogram-go", // bench/load and cmd
	"github.com/loov/hrtime",                  // bench and cmd
	"github.com/stretchr/testify",             // tests
	"go.uber.org/goleak",                      // tests
	"golang.org/x/sys",
	"pgregory.net/rapid", // tests
}

// goMod is what go mod edit says about a go.mod.
type goMod struct {
	Module  struct{ Path string }
	Require []struct {
		Path     string
		Indirect bool
	}
	Replace []struct{ Old struct{ Path string } }
	Exclude []struct{ Path string }
}

// complaints says what there is that the root's go.mod must not have.
func (m *goMod) complaints() (complaints []string) {
	if m.Module.Path != module {
		complaints = append(complaints, "the module's path is "+m.Module.Path)
	}
	for _, r := range m.Require {
		if !r.Indirect && !slices.Contains(required, r.Path) {
			complaints = append(complaints, "go.mod requires "+r.Path+": what needs more than the six is a nested module")
		}
	}
	for _, r := range m.Replace {
		complaints = append(complaints, "go.mod replaces "+r.Old.Path+": whoever uses the module would get something else")
	}
	for _, e := range m.Exclude {
		complaints = append(complaints, "go.mod excludes "+e.Path)
	}
	return complaints
}

func TestGoMod_Complains(t *testing.T) {
	var m goMod
	assert.Len(t, m.complaints(), 1)
	m.Module.Path = module
	assert.Empty(t, m.complaints())
	m.Require = append(m.Require, struct {
		Path     string
		Indirect bool
	}{"example.com/x", true})
	assert.Empty(t, m.complaints())
	m.Require[0].Indirect = false
	assert.Len(t, m.complaints(), 1)
	m.Replace = append(m.Replace, struct{ Old struct{ Path string } }{})
	assert.Len(t, m.complaints(), 2)
}

func TestGoMod(t *testing.T) {
	mods := goTool[goMod](t, "mod", "edit", "-json")
	require.Len(t, mods, 1)
	complain(t, mods[0].complaints())
}
