package lint_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root   = "../.."
	module = "github.com/leatlog/leat"
)

// file is a Go file of the repository, nested modules included.
type file struct {
	name string // from the root, with slashes
	text string
	fset *token.FileSet
	ast  *ast.File
}

func (f *file) test() bool  { return strings.HasSuffix(f.name, "_test.go") }
func (f *file) dir() string { return path.Dir(f.name) }
func (f *file) at(n ast.Node) string {
	return f.name + ":" + strconv.Itoa(f.fset.Position(n.Pos()).Line)
}

// imported returns the name that f has for the package of that path, or "" if it does not import it.
func (f *file) imported(pkg string) string {
	for _, spec := range f.ast.Imports {
		if p, _ := strconv.Unquote(spec.Path.Value); p == pkg {
			if spec.Name != nil {
				return spec.Name.Name
			}
			return path.Base(pkg)
		}
	}
	return ""
}

func parse(t *testing.T, name, text string) *file {
	t.Helper()
	f := &file{name: name, text: text, fset: token.NewFileSet()}
	var err error
	f.ast, err = parser.ParseFile(f.fset, name, text, parser.ParseComments)
	require.NoError(t, err)
	return f
}

// walk calls visit for each file of the repository, but not for what begins with a dot or lies in a testdata folder.
func walk(t *testing.T, visit func(name string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if name != root && (strings.HasPrefix(base, ".") || d.IsDir() && base == "testdata") {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() {
			rel, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			visit(filepath.ToSlash(rel))
		}
		return nil
	}))
}

// goFiles returns all Go files of the repository.
func goFiles(t *testing.T) (files []*file) {
	t.Helper()
	walk(t, func(name string) {
		if strings.HasSuffix(name, ".go") {
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
			require.NoError(t, err)
			files = append(files, parse(t, name, string(text)))
		}
	})
	require.NotEmpty(t, files)
	return files
}

// goTool runs the go command in the root and decodes its output, one or more JSON values.
func goTool[T any](t *testing.T, args ...string) (list []T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, "go %v", args)
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var v T
		require.NoError(t, d.Decode(&v))
		list = append(list, v)
	}
	return list
}

// complain fails the test with each complaint.
func complain(t *testing.T, complaints []string) {
	t.Helper()
	for _, c := range complaints {
		t.Error(c)
	}
}
