package lint_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// layers says who may import whom: a package imports only packages of rows above its own. A package without a row has that of
// the nearest folder above it. A row may name packages that are not there yet.
var layers = [][]string{
	{"internal/atomicx", "internal/mutant", "segment/frame", "segment/vfs"},
	{"ring", "cursor", "segment", "internal/check", "internal/explore", "internal/testkit"},
	{"segment/disk"},
	{"engine/internal"}, // parts that know nothing of each other, and ...
	{"engine/internal/group", "engine/internal/storage"},
	{"engine/internal/partition"}, // ... those made of them
	{"engine/internal/delivery"},
	{"engine"},
	{"engine/enginetest", "bench/baseline", "bench/load/number"},
	{"bench/load/compare", "bench/load/export", "bench/load/report", "bench/load/slo", "bench/load/stream", "bench/load/sweep"},
	{"bench/load"},
	{"bench/load/target", "bench/load/tool"},
	{"bench"},
	{"cmd"},
}

// apart are the three ideas of the bottom, which do not know each other; nor does what lies in their folders.
var apart = []string{"ring", "cursor", "segment"}

// testsOnly are packages, of this module and others, that no package imports except in its tests, with the exceptions.
var testsOnly = map[string][]string{
	module + "/internal/check":    nil,
	module + "/internal/explore":  nil,
	module + "/internal/lint":     nil,
	module + "/internal/testkit":  nil,
	module + "/engine/enginetest": nil,
	"github.com/stretchr/testify": {"engine/enginetest"},
	"pgregory.net/rapid":          {"engine/enginetest"},
	"go.uber.org/goleak":          {"engine/enginetest", "internal/testkit"},
	"github.com/loov/hrtime":      {"bench", "cmd"}, // it calibrates at import
	"github.com/HdrHistogram":     {"bench/load", "cmd"},
	"testing":                     {"engine/enginetest", "internal/explore", "internal/testkit"},
}

// pkg is what go list says about a package.
type pkg struct {
	ImportPath string
	Imports    []string
}

// layer returns the row of the package whose path in the module is p.
func layer(p string) (int, bool) {
	for ; p != "." && p != "/"; p = path.Dir(p) {
		for i, row := range layers {
			if slices.Contains(row, p) {
				return i, true
			}
		}
	}
	return 0, false
}

// in reports whether package p is root, or lies in its folder.
func in(p, root string) bool { return p == root || strings.HasPrefix(p, root+"/") }

// imports complains about each import of p that is against the rules.
func imports(p pkg) (complaints []string) {
	from := strings.TrimPrefix(p.ImportPath, module+"/")
	fromLayer, ok := layer(from)
	if !ok && from != "internal/lint" {
		complaints = append(complaints, from+" has no row in the table of layers")
	}
	for _, imp := range p.Imports {
		for only, except := range testsOnly {
			excepted := slices.ContainsFunc(except, func(e string) bool { return in(from, e) })
			if in(imp, only) && !in(p.ImportPath, only) && !excepted {
				complaints = append(complaints, fmt.Sprintf("%s imports %s, which is for tests", from, imp))
			}
		}
		to, ours := strings.CutPrefix(imp, module+"/")
		if !ours {
			continue
		}
		if toLayer, ok := layer(to); ok && toLayer >= fromLayer {
			complaints = append(complaints,
				fmt.Sprintf("%s imports %s: a package imports only what lies in a row above its own", from, to))
		}
		for _, a := range apart {
			for _, b := range apart {
				if a != b && in(from, a) && in(to, b) {
					complaints = append(complaints, fmt.Sprintf("%s imports %s: %v do not know each other", from, to, apart))
				}
			}
		}
	}
	return complaints
}

func TestImports_Complains(t *testing.T) {
	for _, x := range []struct {
		from, to string
		wrong    string
	}{
		{"ring", "internal/atomicx", ""},
		{"ring", "sync/atomic", ""},
		{"internal/atomicx", "ring", "row above"},
		{"ring", "cursor", "row above"},
		{"cursor", "segment/frame", "do not know each other"},
		{"segment/disk", "ring", "do not know each other"},
		{"segment/disk", "segment", ""},
		{"segment", "segment/disk", "row above"},
		{"segment", "segment/frame", ""},
		{"engine/internal/partition", "ring", ""},
		{"engine/internal/partition", "engine/internal/dispatch", ""},
		{"engine/internal/dispatch", "engine/internal/partition", "row above"},
		{"engine/internal/dispatch", "engine/internal/retention", "row above"},
		{"engine/internal/anything", "segment", ""},
		{"engine/internal/partition", "engine", "row above"},
		{"engine", "engine/internal/partition", ""},
		{"engine", "bench/load", "row above"},
		{"engine", "engine/enginetest", "for tests"},
		{"bench/load", "engine", ""},
		{"bench/load", "bench", "row above"},
		{"cmd/leatload", "bench/load", ""},
		{"cmd/leatload", "cmd/leatdump", "row above"},
		{"bench", "cmd/leatload", "row above"},
		{"engine", "internal/explore", "for tests"},
		{"somewhere", "sync", "no row"},
		{"engine", "github.com/stretchr/testify/assert", "for tests"},
		{"engine/enginetest", "github.com/stretchr/testify/assert", ""},
		{"engine", "testing", "for tests"},
		{"engine", "testing/synctest", "for tests"},
		{"segment", "github.com/loov/hrtime", "for tests"},
		{"bench/load", "github.com/loov/hrtime", ""},
		{"bench/baseline", "github.com/HdrHistogram/hdrhistogram-go", "for tests"},
	} {
		to := x.to
		if _, ours := layer(to); ours {
			to = module + "/" + to
		}
		got := strings.Join(imports(pkg{ImportPath: module + "/" + x.from, Imports: []string{to}}), "\n")
		if x.wrong == "" {
			assert.Empty(t, got)
		} else {
			assert.Contains(t, got, x.wrong, "%s imports %s", x.from, x.to)
		}
	}
}

func TestImportDirection(t *testing.T) {
	for _, tags := range []string{"", "explore"} {
		list := goTool[pkg](t, "list", "-e", "-tags", tags, "-json=ImportPath,Imports", "./...")
		require.NotEmpty(t, list)
		for _, p := range list {
			complain(t, imports(p))
		}
	}
}
