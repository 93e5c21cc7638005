package jsonpointer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/memhost/memhost/internal/jsonpointer"
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
