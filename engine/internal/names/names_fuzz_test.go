package names_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leatlog/leat/engine/internal/names"
)

var rule = regexp.MustCompile(`\A[a-zA-Z0-9._-]{1,249}\z`)

// FuzzCheck compares with the rule as a regular expression, and looks whether what is allowed is a file beside the others.
func FuzzCheck(f *testing.F) {
	for _, name := range append([]string{"", ".", "..", "...", "orders", strings.Repeat("x", 249), strings.Repeat("x", 250)}, traversal...) {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		err := names.Check(name)
		if want := rule.MatchString(name) && name != "." && name != ".."; (err == nil) != want {
			t.Fatalf("Check(%q) = %v, want allowed = %v", name, err, want)
		}
		if err != nil {
			if text := err.Error(); text == "" || len(text) > 400 || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) {
				t.Fatalf("the text for %q is %q", name, text)
			}
			return
		}
		base := filepath.Join("base", "topics")
		path := filepath.Join(base, name)
		if filepath.Dir(path) != base || filepath.Base(path) != name || !filepath.IsLocal(name) {
			t.Fatalf("%q is allowed and leads to %q", name, path)
		}
	})
}
