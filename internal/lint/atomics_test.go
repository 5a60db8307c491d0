package lint_test

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// explored are the packages that the explorer runs (package internal/explore): they take atomics, mutexes, parking, yielding
// and time from internal/atomicx, where the explorer can see them. With each are the exceptions.
var explored = map[string][]string{
	"ring":    nil,
	"cursor":  nil,
	"segment": {"time.Time", "time.Unix"}, // for the user's eyes
	"engine/internal/partition": {
		"sync.Pool",                  // of requests, each of which has one owner at a time
		"time.Timer",                 // runs out while nobody waits for it, and asks for retention to
		"time.AfterFunc",             // be applied: no part of a protocol
		"time.Duration", "time.Hour", // are numbers
	},
}

// unseen are the packages and functions that the explorer cannot see.
var unseen = map[string][]string{
	"sync":        nil, // all of it
	"sync/atomic": nil,
	"time":        nil,
	"runtime":     {"Gosched", "Goexit", "LockOSThread"},
}

// direct complains about what a file of an explored package takes from elsewhere.
func direct(f *file) (complaints []string) {
	allowed, ok := explored[f.dir()]
	if !ok || f.test() {
		return nil
	}
	for pkg, names := range unseen {
		local := f.imported(pkg)
		if local == "" {
			continue
		}
		if local == "." || local == "_" {
			complaints = append(complaints, fmt.Sprintf("%s imports %s as %s", f.name, pkg, local))
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && x.Obj == nil &&
				(names == nil || slices.Contains(names, sel.Sel.Name)) && !slices.Contains(allowed, pkg+"."+sel.Sel.Name) {
				complaints = append(complaints,
					fmt.Sprintf("%s uses %s.%s: the explorer cannot see it", f.at(sel), pkg, sel.Sel.Name))
			}
			return true
		})
	}
	return complaints
}

// raw complains about calls of the functions of sync/atomic, in tests too: they mix with plain access by accident, and are not
// aligned on 32-bit platforms.
func raw(f *file) (complaints []string) {
	local := f.imported("sync/atomic")
	if local == "" {
		return nil
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && x.Obj == nil {
				complaints = append(complaints,
					fmt.Sprintf("%s calls %s.%s: use a type of internal/atomicx", f.at(call), local, sel.Sel.Name))
			}
		}
		return true
	})
	return complaints
}

// words are the atomic types.
var words = []string{"Uint64", "Int64", "Uint32", "Int32", "Uintptr", "Bool", "Pointer", "Value", "PaddedUint64"}

// atomicType reports whether a field of type e is an atomic word, or some of them.
func atomicType(f *file, e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.ParenExpr:
		return atomicType(f, x.X)
	case *ast.ArrayType:
		return atomicType(f, x.Elt)
	case *ast.MapType:
		return atomicType(f, x.Value)
	case *ast.StarExpr:
		return atomicType(f, x.X)
	case *ast.IndexExpr: // Pointer[T]
		return atomicType(f, x.X)
	case *ast.Ident:
		return f.dir() == "internal/atomicx" && slices.Contains(words, x.Name)
	case *ast.SelectorExpr:
		if p, ok := x.X.(*ast.Ident); ok && slices.Contains(words, x.Sel.Name) {
			return p.Name == f.imported("sync/atomic") || p.Name == f.imported(module+"/internal/atomicx")
		}
	}
	return false
}

// silent complains about atomic fields without a comment. What the comment says is for review; that there is one is not.
func silent(f *file) (complaints []string) {
	if f.test() || f.dir() == "internal/atomicx" && strings.HasSuffix(f.name, "_explore.go") { // shims of the words themselves
		return nil
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		s, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range s.Fields.List {
			// The padded forms in atomicx are the one word that they embed.
			if !atomicType(f, field.Type) || len(field.Names) == 0 && f.dir() == "internal/atomicx" {
				continue
			}
			if len(strings.Fields(field.Doc.Text()+field.Comment.Text())) < 3 {
				complaints = append(complaints,
					f.at(field)+": an atomic field says who writes it, who reads it and what a store publishes")
			}
		}
		return true
	})
	return complaints
}

func TestDirect_Complains(t *testing.T) {
	const source = `package p
import (
	. "sync/atomic"
	"runtime"
	"sync"
	clock "time"
)
type x struct { mu sync.Mutex; pool sync.Pool; t clock.Time }
func f(time struct{ Now int }) { runtime.Gosched(); runtime.GC(); clock.Now(); _ = time.Now }
`
	got := strings.Join(direct(parse(t, "engine/internal/partition/x.go", source)), "\n")
	for _, name := range []string{"sync.Mutex", "time.Time", "time.Now", "runtime.Gosched", "imports sync/atomic as ."} {
		assert.Equal(t, 1, strings.Count(got, name), "%s in:\n%s", name, got)
	}
	assert.NotContains(t, got, "sync.Pool")
	assert.NotContains(t, got, "runtime.GC")
	assert.Contains(t, strings.Join(direct(parse(t, "ring/x.go", source)), "\n"), "sync.Pool")
	assert.Empty(t, direct(parse(t, "ring/x_test.go", source)))
	assert.Empty(t, direct(parse(t, "engine/x.go", source)))
}

func TestRaw_Complains(t *testing.T) {
	const source = `package p
import a "sync/atomic"
var x uint64
var y a.Uint64
func f() { a.AddUint64(&x, 1); y.Add(1) }
`
	got := raw(parse(t, "engine/x_test.go", source))
	assert.Len(t, got, 1)
	assert.Contains(t, got[0], "engine/x_test.go:5 calls a.AddUint64")
}

func TestSilent_Complains(t *testing.T) {
	const source = `package p
import (
	"sync/atomic"
	"github.com/leatlog/leat/internal/atomicx"
)
type s struct {
	a atomicx.Uint64 // written by nobody, read by nobody
	// b is written by nobody.
	b atomic.Bool
	c atomicx.Uint64
	d [4]atomicx.PaddedUint64
	e *atomicx.Pointer[int]
	f, g []atomic.Int64 // yes
	_ atomicx.Pad
	h atomicx.Mutex
	i uint64
	atomicx.Uint32
	inner struct { j atomic.Value }
}
`
	got := silent(parse(t, "engine/x.go", source))
	var lines []string
	for _, c := range got {
		lines = append(lines, c[:strings.Index(c, ": ")])
	}
	want := []string{"engine/x.go:10", "engine/x.go:11", "engine/x.go:12", "engine/x.go:13", "engine/x.go:17", "engine/x.go:18"}
	assert.Equal(t, want, lines)
	assert.Empty(t, silent(parse(t, "engine/x_test.go", source)))
	inside := "package atomicx\ntype s struct {\n\tx Uint64\n\ty Pad\n\tUint32\n}\n"
	assert.Len(t, silent(parse(t, "internal/atomicx/x.go", inside)), 1)
	assert.Empty(t, silent(parse(t, "internal/atomicx/x_explore.go", inside)))
}

func TestAtomicsComeFromAtomicx(t *testing.T) {
	for _, f := range goFiles(t) {
		complain(t, direct(f))
		complain(t, raw(f))
	}
}

func TestAtomicFieldsSayWho(t *testing.T) {
	for _, f := range goFiles(t) {
		complain(t, silent(f))
	}
}
