package wasmbin

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRenameChangesNamesAndNothingElse(t *testing.T) {
	b := []byte("\x00asm\x01\x00\x00\x00" +
		"\x01\x05\x01\x60\x01\x7e\x00" + // type: (i64) -> ()
		"\x02\x12\x02\x03env\x01a\x00\x00\x03env\x01m\x02\x00\x01" + // a func and a memory
		"\x03\x02\x01\x00" + "\x07\x0a\x02\x01x\x00\x01\x02me\x02\x00" +
		"\x0a\x04\x01\x02\x00\x0b" + "\x00\x03\x02ab")
	same, err := Rename(b, func(m, n string) (string, string) { return m, n }, func(n string) string { return n })
	require.NoError(t, err)
	assert.Equal(t, b, same)

	renamed, err := Rename(b, func(m, n string) (string, string) {
		return strings.Repeat(m, 50), n + "!"
	}, func(n string) string { return "was." + n })
	require.NoError(t, err)
	was, err := Parse(b)
	require.NoError(t, err)
	now, err := Parse(renamed)
	require.NoError(t, err)
	for i := range was.Imports {
		was.Imports[i].Module, was.Imports[i].Name = strings.Repeat("env", 50), was.Imports[i].Name+"!"
	}
	assert.Equal(t, was.Imports, now.Imports)
	for i := range was.Exports {
		was.Exports[i].Name = "was." + was.Exports[i].Name
	}
	assert.Equal(t, was.Exports, now.Exports)
	assert.Equal(t, was.Functions, now.Functions)
	assert.Equal(t, was.Customs[0].Data, now.Customs[0].Data)

	_, err = Rename(b[:40], nil, nil)
	assert.ErrorContains(t, err, "truncated")
}

func FuzzRenameKeepsWhatCanBeRead(f *testing.F) {
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x02\x07\x01\x01a\x01b\x00\x00\x07\x05\x01\x01x\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		before, err := Parse(b)
		if err != nil {
			return
		}
		renamed, err := Rename(b, func(m, n string) (string, string) { return n, m }, func(n string) string {
			return n + "'"
		})
		require.NoError(t, err)
		after, err := Parse(renamed)
		require.NoError(t, err)
		require.Len(t, after.Imports, len(before.Imports))
		for i := range before.Imports {
			assert.Equal(t, before.Imports[i].Type, after.Imports[i].Type)
			assert.Equal(t, before.Imports[i].Name, after.Imports[i].Module)
		}
		for i := range before.Exports {
			assert.Equal(t, before.Exports[i].Index, after.Exports[i].Index)
		}
	})
}
