package sdk_test

import (
	"errors"
	"testing"

	"github.com/memhost/memhost/abi/wirejson"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/sdk"
)

func TestEachRowGivesTheRowsInOrder(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       []string
	}{
		{"no row", "", nil},
		{"two rows", "[1]\n[\"a\\nb\"]\n", []string{"[1]", `["a\nb"]`}},
		{"a row without columns", "[]\n", []string{"[]"}},
		{"no newline at the end", "[1]\n[2]", []string{"[1]", "[2]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			require.NoError(t, sdk.EachRow([]byte(tt.body), func(row []byte) error {
				got = append(got, string(row))
				return nil
			}))
			assert.Equal(t, tt.want, got)
		})
	}
	enough := errors.New("enough")
	seen := 0
	require.ErrorIs(t, sdk.EachRow([]byte("[1]\n[2]\n"), func([]byte) error { seen++; return enough }), enough)
	assert.Equal(t, 1, seen, "the first error ends it")
}

func TestEachColumnStandsBeforeEveryValue(t *testing.T) {
	var name string
	var at []int
	require.NoError(t, sdk.EachColumn([]byte(`["Oslo",{"skipped":[1,2]},null]`), func(i int,
		d *wirejson.Decoder) (err error) {
		at = append(at, i)
		if i == 0 {
			name, err = d.Str()
			return err
		}
		return d.Skip()
	}))
	assert.Equal(t, "Oslo", name)
	assert.Equal(t, []int{0, 1, 2}, at)
	require.Error(t, sdk.EachColumn([]byte(`{"no":"row"}`), func(int, *wirejson.Decoder) error { return nil }))
}
