package lint_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxLines is how long a file may be without saying why.
const maxLines = 500

// ascii complains about the first character of each line that is not ASCII.
func ascii(name, text string) (complaints []string) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		for _, r := range line {
			if r >= 0x80 {
				complaints = append(complaints, fmt.Sprintf("%s:%d: %q is not ASCII", name, n, r))
				break
			}
		}
	}
	return complaints
}

var longFile = regexp.MustCompile(`(?m)^// long file: \S+( \S+){3}`)

// long complains about a file that is long and does not say why.
func long(f *file) []string {
	if n := strings.Count(f.text, "\n"); n > maxLines && !f.test() && !longFile.MatchString(f.text) {
		return []string{fmt.Sprintf("%s has %d lines; split it, or give the reason in a comment \"long file: ...\"", f.name, n)}
	}
	return nil
}

var looseEnd = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`)

// loose complains about notes of work that is not done: they belong into an issue.
func loose(name, text string) (complaints []string) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		if m := looseEnd.FindString(line); m != "" {
			complaints = append(complaints, fmt.Sprintf("%s:%d: %s", name, n, m))
		}
	}
	return complaints
}

func TestForm_Complains(t *testing.T) {
	assert.Empty(t, ascii("x", "a\n~\n"))
	assert.Equal(t, []string{`x:2: '\u00e9' is not ASCII`}, quoted(ascii("x", "a\ncaf\u00e9 \u00e9\nb\n")))

	body := strings.Repeat("var _ = 0\n", maxLines)
	assert.Empty(t, long(parse(t, "x.go", "package p\n"+body[:len(body)-10])))
	assert.Len(t, long(parse(t, "x.go", "package p\n"+body)), 1)
	assert.Len(t, long(parse(t, "x.go", "package p\n// long file: yes\n"+body)), 1, "that is no reason")
	assert.Empty(t, long(parse(t, "x.go", "package p\n// long file: one table, which nobody reads\n"+body)))
	assert.Empty(t, long(parse(t, "x_test.go", "package p\n"+body)))

	assert.Len(t, loose("x", "// TO"+"DO: more\n// MASTO"+"DON\n"), 1)
}

// quoted replaces what is not ASCII by its escape.
func quoted(list []string) (escaped []string) {
	for _, s := range list {
		escaped = append(escaped, strings.ReplaceAll(s, "\u00e9", `\u00e9`))
	}
	return escaped
}

func TestGoFilesAreNotLong(t *testing.T) {
	for _, f := range goFiles(t) {
		complain(t, long(f))
	}
}

func TestSourceIsASCII(t *testing.T) {
	walk(t, func(name string) {
		// Assembly is not: its names have a middle dot.
		if !slices.Contains([]string{".go", ".md", ".mod", ".sh", ".json", ".yml", ".yaml"}, path.Ext(name)) {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		require.NoError(t, err)
		complain(t, ascii(name, string(text)))
		complain(t, loose(name, string(text)))
	})
}
