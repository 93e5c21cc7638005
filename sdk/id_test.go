package sdk_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/sdk"
)

var (
	caseSensitive = sdk.IDRules{Plain: sdk.AlphaNumeric, Escape: '_', Separator: '-', Max: 100}
	caseFolding   = sdk.IDRules{Plain: sdk.LowerNumeric, Escape: 'x', Separator: '.', Max: 66}
	unbounded     = sdk.IDRules{Plain: sdk.AlphaNumeric, Escape: '~', Separator: ':'}
)

func TestNativeID(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rules sdk.IDRules
		parts []string
		want  string
	}{
		{"plain parts are readable", caseSensitive, []string{"mh", "run1", "Mara", "1"}, "mh-run1-Mara-1"},
		{"separators inside parts are escaped", caseSensitive, []string{"a-b", "c"}, "a_2db-c"},
		{"escapes inside parts are escaped", caseSensitive, []string{"a_b"}, "a_5fb"},
		{"upper case is escaped where the backend folds it", caseFolding, []string{"Mara"}, "x4dara"},
		{"an escape that is a letter", caseFolding, []string{"max"}, "max78"},
		{"empty parts keep their place", caseSensitive, []string{"", "a", ""}, "-a-"},
		{"a single empty part", caseSensitive, []string{""}, "_"},
		{"no parts", caseSensitive, nil, ""},
		{"emoji", unbounded, []string{"🍵"}, "~f0~9f~8d~b5"},
		{"a star and dots", unbounded, []string{"*", ".."}, "~2a:~2e~2e"},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, sdk.NativeID(tt.rules, tt.parts...)) })
	}
	long := sdk.NativeID(caseSensitive, strings.Repeat("a", 101))
	assert.Len(t, long, 66)
	assert.True(t, strings.HasPrefix(long, "_h"))
}

func TestDifferentPartsNeverShareAnID(t *testing.T) {
	part := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-cA-C_x.~:h0-9-]{0,6}`),
		rapid.Just(strings.Repeat("long",
			30)))
	parts := rapid.SliceOfN(part, 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		a, b := parts.Draw(t, "a"), parts.Draw(t, "b")
		for _, rules := range []sdk.IDRules{caseSensitive, caseFolding, unbounded} {
			requireInjective(t, rules, a, b)
		}
	})
}

func FuzzNativeID(f *testing.F) {
	f.Add("a\x00b", "a-b")
	f.Add("_2d", "-")
	f.Add("", "\x00")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, rules := range []sdk.IDRules{caseSensitive, caseFolding, unbounded} {
			requireInjective(t, rules, strings.Split(a, "\x00"), strings.Split(b, "\x00"))
		}
	})
}

func requireInjective(t require.TestingT, rules sdk.IDRules, a, b []string) {
	x, y := sdk.NativeID(rules, a...), sdk.NativeID(rules, b...)
	require.Equal(t, slices.Equal(a, b), x == y, "%q and %q", a, b)
	for i := range len(x) {
		require.True(t, rules.Plain(x[i]) || x[i] == rules.Escape || x[i] == rules.Separator, "byte %q of %q", x[i], x)
	}
	if rules.Max > 0 {
		require.LessOrEqual(t, len(x), rules.Max)
	}
}
