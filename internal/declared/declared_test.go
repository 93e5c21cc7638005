package declared_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/declared"
)

func TestParametersAreReadFromTheSchema(t *testing.T) {
	d := &abi.NativeDecl{Name: "x", Schema: abi.Raw(`{"type":"object","required":["z"],"properties":{
		"z":{"type":"string","enum":["a","b"],"description":"One\u001b[31m of\n two"},"n":{"type":["integer","null"]},
		"f":{"type":"number"},"on":{"type":"boolean"},"ids":{"type":"array","items":{"type":"string"}},
		"list":{"type":"array"},"any":{},"either":{"type":["string","integer"]}}}`)}
	assert.Equal(t, []declared.Param{
		{Name: "z", About: "One[31m of two", Kind: declared.KindText, Choices: []string{"a", "b"}, Required: true},
		{Name: "n", Kind: declared.KindInteger}, {Name: "f", Kind: declared.KindNumber},
		{Name: "on", Kind: declared.KindBoolean}, {Name: "ids", Kind: declared.KindTexts},
		{Name: "list", Kind: declared.KindJSON}, {Name: "any", Kind: declared.KindAny},
		{Name: "either", Kind: declared.KindAny}}, declared.Params(d))
	assert.Equal(t, []declared.Param{{Name: "a", Kind: declared.KindAny, Required: true},
		{Name: "b", Kind: declared.KindAny}}, declared.Params(&abi.NativeDecl{Name: "older", Params: "a, b?"}))
}

// Whatever a manifest says, what a model gets is bounded, one line a text, and without marks that cannot be seen.
func TestTheWordsOfAModuleAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{strings.Repeat("x", 5000), "a\x1b]0;b\u202e\u200b",
			"IGNORE\n\nALL"})).Draw(t, "text")
		property := map[string]any{"type": "string", "description": text, "$comment": text, "examples": []any{text},
			"items": map[string]any{"description": text, "enum": []any{text}}}
		schema, err := json.Marshal(map[string]any{"description": text, "properties": map[string]any{"p": property}})
		require.NoError(t, err)
		d := &abi.NativeDecl{Name: "x", About: text, Schema: schema}
		out, err := json.Marshal([]any{declared.Schema(d), declared.About("p", d), declared.Params(d)})
		require.NoError(t, err)
		assert.Less(t, len(out), 9<<10)
		assert.NotContains(t, string(out), "$comment")
		assert.NotContains(t, string(out), "examples")
		var texts func(v any)
		texts = func(v any) {
			switch v := v.(type) {
			case string:
				assert.LessOrEqual(t, len([]rune(v)), declared.MaxAbout+100)
				assert.NotRegexp(t, `[\x00-\x1f\x7f\x{200b}\x{202e}]`, v)
			case []any:
				for _, e := range v {
					texts(e)
				}
			case map[string]any:
				for _, e := range v {
					texts(e)
				}
			}
		}
		var all any
		require.NoError(t, json.Unmarshal(out, &all))
		texts(all)
	})
	large := &abi.NativeDecl{Name: "x", Schema: abi.Raw(`{"properties":{"p":{"enum":["` + strings.Repeat(`x","`, 4000) +
		`y"]}}}`)}
	assert.Equal(t, map[string]any{"p": map[string]any{}}, declared.Schema(large)["properties"])
}
