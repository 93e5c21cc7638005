package jsonpointer_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/text/jsonpointer"
)

func TestSetPutsAValueWhereFindFindsIt(t *testing.T) {
	for _, tt := range []struct {
		name, pointer string
		object        map[string]any
	}{
		{"a key that is there", "/url", map[string]any{"url": "old", "other": 1.0}},
		{"a key that is missing", "/url", map[string]any{}},
		{"objects on the way that are missing", "/api/main/url", map[string]any{"other": 1.0}},
		{"an object on the way that is there", "/api/url", map[string]any{"api": map[string]any{"key": "k"}}},
		{"a key with a slash and a tilde", "/a~1b~0c", map[string]any{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.True(t, jsonpointer.Set(tt.object, tt.pointer, "new"))
			found, there := jsonpointer.Find(tt.object, tt.pointer)
			assert.True(t, there)
			assert.Equal(t, "new", found)
		})
	}
}

func TestSetChangesNothingWhereItCannot(t *testing.T) {
	for _, pointer := range []string{"", "url", "/text/url", "/list/0", "/text/a/b"} {
		object := map[string]any{"text": "x", "list": []any{"y"}}
		assert.False(t, jsonpointer.Set(object, pointer, "new"), pointer)
		assert.Equal(t, map[string]any{"text": "x", "list": []any{"y"}}, object, pointer)
	}
}

func TestPointerIsRFC6901(t *testing.T) {
	var doc any
	require.NoError(t, json.Unmarshal([]byte(`{"foo":["bar","baz"],"":0,"a/b":1,"m~n":8,"o":{"p":null}}`), &doc))
	for at, want := range map[string]any{"/foo/0": "bar", "/": 0.0, "/a~1b": 1.0, "/m~0n": 8.0, "/o/p": nil} {
		got, ok := jsonpointer.Find(doc, at)
		assert.True(t, ok, at)
		assert.Equal(t, want, got, at)
	}
	for _, at := range []string{"/foo/2", "/foo/-1", "/foo/x", "/nope", "/foo/0/x"} {
		_, ok := jsonpointer.Find(doc, at)
		assert.False(t, ok, at)
	}
}
