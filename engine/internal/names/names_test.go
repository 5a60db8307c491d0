package names_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/names"
)

func TestCheck_Allowed(t *testing.T) {
	for _, name := range []string{
		"a", "Z", "7", "-", "_", "...", "....", ".a", "a.", "..a", "a..", "a..b", "-rf", "--", "_all", "0", "-1",
		"orders", "Orders", "ORDERS", "orders.eu-west_1", "con", "NUL", strings.Repeat("x", names.MaxLen),
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
	} {
		assert.NoError(t, names.Check(name), "%q", name)
	}
}

// TestCheck_DotAndUnderscore: no two names are the same for us, so both of such a pair are allowed.
func TestCheck_DotAndUnderscore(t *testing.T) {
	assert.NoError(t, names.Check("orders.eu"))
	assert.NoError(t, names.Check("orders_eu"))
}

func TestCheck_Refused(t *testing.T) {
	long := strings.Repeat("x", names.MaxLen+1)
	for _, c := range []struct {
		name   string
		reason names.Reason
		at     int
		text   string
	}{
		{"", names.Empty, 0, `name is empty`},
		{".", names.Directory, 0, `name "." is that of a directory`},
		{"..", names.Directory, 0, `name ".." is that of a directory`},
		{long, names.TooLong, 0, `name "` + long[:64] + `"... is 250 bytes long: at most 249 are allowed`},
		{"a b", names.Character, 1, `name "a b" has byte " " at 1: only a-z, A-Z, 0-9, '.', '_' and '-' are allowed`},
		{"a/b", names.Character, 1, `name "a/b" has byte "/" at 1: only a-z, A-Z, 0-9, '.', '_' and '-' are allowed`},
		{"a\n", names.Character, 1, `name "a\n" has byte "\n" at 1: only a-z, A-Z, 0-9, '.', '_' and '-' are allowed`},
		{"\u00e9t\u00e9", names.Character, 0, `name "\u00e9t\u00e9" has byte "\xc3" at 0: only a-z, A-Z, 0-9, '.', '_' and '-' are allowed`},
	} {
		err := names.Check(c.name)
		var e *names.Error
		require.ErrorAs(t, err, &e, "%q", c.name)
		assert.Equal(t, names.Error{Name: c.name, Reason: c.reason, At: c.at}, *e)
		assert.EqualError(t, err, c.text)
	}
}

// TestCheck_EachByte: of the 256 bytes exactly 65 are allowed, wherever they stand.
func TestCheck_EachByte(t *testing.T) {
	const all = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	for b := range 256 {
		c := string([]byte{byte(b)})
		for _, name := range []string{"x" + c, c + "x", "x" + c + "x"} {
			assert.Equal(t, strings.Contains(all, c), names.Check(name) == nil, "%q", name)
		}
	}
}

// traversal are names with which somebody tries to reach another file, another command or another line of a log.
var traversal = []string{
	"/", "\\", "a/", "/a", "//", "./a", "../a", "a/..", "a/../b", "..\\a", "a\\..\\b", "../../etc/passwd", "/etc/passwd",
	"....//", "..;/", ".\x00", "..\x00", "a\x00.log", "%2e%2e%2f", "..%2f", "%2e%2e", "..%c0%af", "\xc0\xae\xc0\xae/",
	"\uff0e\uff0e\uff0f", "\u2024\u2024", "C:", "c:a", "C:\\a", "\\\\host\\share", "a:stream", "~", "~root", "$HOME", "`id`",
	"$(id)", "a;b", "a|b", "a&b", "a>b", "*", "?", "a*", "[a]", "{a}", "'", "\"", "a\nb", "a\rb", "a\tb", " ", " a", "a ",
	"\x1b[31m", "\x7f", "\u202egnp.exe", "\ufeffa", "a\u00a0", "\xff", "\xed\xa0\x80", "a,b", "a=b", "a@b", "a#b", "a+b", "a!b",
}

func TestCheck_Traversal(t *testing.T) {
	for _, name := range traversal {
		var e *names.Error
		if assert.ErrorAs(t, names.Check(name), &e, "%q", name) {
			assert.Equal(t, names.Character, e.Reason, "%q", name)
		}
	}
}

// TestError_IsOneShortLine: a name that somebody else chose cannot fill a log or forge a line in it.
func TestError_IsOneShortLine(t *testing.T) {
	bad := append([]string{strings.Repeat("\n", 1<<20), strings.Repeat("\x00", names.MaxLen)}, traversal...)
	for _, name := range bad {
		text := names.Check(name).Error()
		assert.Less(t, len(text), 400)
		for _, c := range text {
			assert.True(t, ' ' <= c && c <= '~', "%q has %q", text, c)
		}
	}
}

// TestError_Wraps: the engine puts its own error around, and callers find both.
func TestError_Wraps(t *testing.T) {
	outer := errors.New("engine: bad name")
	err := errors.Join(outer, names.Check(".."))
	var e *names.Error
	assert.ErrorIs(t, err, outer)
	assert.ErrorAs(t, err, &e)
}

func TestCheck_DoesNotAllocate(t *testing.T) {
	bad := 0
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if names.Check("orders.eu-west_1") != nil {
			bad++
		}
	}))
	assert.Zero(t, bad)
}
