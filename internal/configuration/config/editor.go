package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/schema"
)

// schemaDraft is the version of JSON Schema that editors and modules use.
const schemaDraft = "https://json-schema.org/draft/2020-12/schema"

// Block describes one provider for an editor.
type Block struct {
	Provider
	// Schema is the config_schema of the provider's module, nil for a module without configuration.
	Schema abi.Raw
	// Preset is merged under the block by the module. Keys in it are not required in the file.
	Preset abi.Raw
}

// EditorSchema is a JSON Schema (draft 2020-12) of a whole configuration file, for editors.
//
// It accepts what Load accepts, with two exceptions: it reports required keys of a block as missing that come from the
// environment, and it refuses a provider that is not in blocks unless the file sets memory.plugin.
//
// Errors: a module's schema or preset that is not a JSON object.
func EditorSchema(blocks []Block) (map[string]any, error) {
	defs := map[string]any{"valueFromFile": included()}
	root := copyTree(described().document)
	nullable(root)
	memory := root["properties"].(map[string]any)["memory"].(map[string]any)
	scope := memory["properties"].(map[string]any)["scope"].(map[string]any)["properties"].(map[string]any)
	user := maps.Clone(scope["persona_id"].(map[string]any))
	user["description"] = "Another name of persona_id."
	scope["user_id"] = user
	choices := map[string][]any{}
	for _, b := range blocks {
		block, err := BlockSchema(b, "#/$defs/"+b.Name)
		if err != nil {
			return nil, err
		}
		delete(block, "$schema")
		defs[b.Name] = block
		word := b.word()
		choices[word] = append(choices[word], b.Name)
		own := memory["properties"].(map[string]any)[word+"s"].(map[string]any)
		if own["properties"] == nil {
			own["properties"] = map[string]any{}
		}
		own["properties"].(map[string]any)[b.Name] = orIncluded(map[string]any{"$ref": "#/$defs/" + b.Name})
	}
	builtIn := map[string]any{}
	for _, word := range []string{WordBackend, WordCondition} {
		memory["properties"].(map[string]any)[word].(map[string]any)["examples"] = choices[word]
		builtIn[word] = map[string]any{"enum": append(choices[word], nil)}
	}
	text := map[string]any{"type": "string"}
	memory["allOf"] = []any{
		map[string]any{"$comment": "exactly one of backend and condition is set", "not": map[string]any{
			"required":   []any{WordBackend, WordCondition},
			"properties": map[string]any{WordBackend: text, WordCondition: text}}},
		map[string]any{"$comment": "without memory.plugin the provider is one that is built in",
			"if":   map[string]any{"required": []any{"plugin"}, "properties": map[string]any{"plugin": text}},
			"else": map[string]any{"properties": builtIn}},
	}
	root["$defs"] = defs
	return root, nil
}

// BlockSchema is the schema of one provider's block in a configuration file: the module's own, with {file: PATH} and
// null allowed in place of any value. at is where the schema will be: "#", or a place in a larger schema.
func BlockSchema(b Block, at string) (map[string]any, error) {
	own, err := rawObject(b.Schema)
	if err != nil {
		return nil, err
	}
	preset, err := rawObject(b.Preset)
	if err != nil {
		return nil, err
	}
	addOtherNames(b.Name, own)
	out := openToFiles(own).(map[string]any)
	if required, ok := own["required"].([]any); ok {
		var missing []any
		for _, name := range required {
			if key, _ := name.(string); preset[key] == nil {
				missing = append(missing, name)
			}
		}
		delete(out, "required")
		if missing != nil {
			out["required"] = missing
		}
	}
	if out["additionalProperties"] == nil && out["unevaluatedProperties"] == nil {
		out["additionalProperties"] = false // as in the check of the block
	}
	out["$schema"] = schemaDraft
	delete(out, "$id")
	if at == "#" {
		defs, _ := out["$defs"].(map[string]any)
		defs = maps.Clone(defs)
		if defs == nil {
			defs = map[string]any{}
		}
		defs["valueFromFile"] = included()
		out["$defs"] = defs
		return out, nil
	}
	return moveRefs(out, at).(map[string]any), nil
}

// rawObject decodes a JSON object; nil is an empty one.
func rawObject(raw abi.Raw) (map[string]any, error) {
	if len(raw) == 0 {
		return map[string]any{}, nil
	}
	v, err := schema.Decode(raw, nil)
	if err != nil {
		return nil, err
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, abi.NewError(abi.CodeInvalidArgument, "want a JSON object, got "+schema.Show(nil, v))
	}
	return object, nil
}

// includedRef is the reference to included, at its usual place in the schemas of this file.
const includedRef = "#/$defs/valueFromFile"

// included describes what may replace a value of a block: nothing, or the name of a file with the value.
func included() map[string]any {
	return map[string]any{"anyOf": []any{
		map[string]any{"type": "null"},
		map[string]any{"type": "object", "required": []any{"file"}, "maxProperties": 1, "properties": map[string]any{
			"file": map[string]any{"type": "string", "minLength": 1, "description": "a file that holds the value"}}},
	}}
}

// orIncluded allows s or included, with what an editor shows of s.
func orIncluded(s any) any {
	of, ok := s.(map[string]any)
	if !ok {
		return s // the schemas true and false
	}
	out := map[string]any{"anyOf": []any{of, map[string]any{"$ref": includedRef}}}
	for _, shown := range []string{"title", "description", "default", "deprecated", "examples"} {
		if v, there := of[shown]; there {
			out[shown] = v
		}
	}
	return out
}

// openToFiles allows included in place of every value that s describes below its top.
func openToFiles(s any) any {
	of, ok := s.(map[string]any)
	if !ok {
		return s
	}
	out := maps.Clone(of)
	for _, keyword := range []string{"items", "additionalProperties"} {
		if sub, ok := of[keyword].(map[string]any); ok {
			out[keyword] = orIncluded(openToFiles(sub))
		}
	}
	if properties, ok := of["properties"].(map[string]any); ok {
		opened := map[string]any{}
		for name, sub := range properties {
			opened[name] = orIncluded(openToFiles(sub))
		}
		out["properties"] = opened
	}
	if defs, ok := of["$defs"].(map[string]any); ok {
		opened := map[string]any{}
		for name, sub := range defs {
			opened[name] = openToFiles(sub)
		}
		out["$defs"] = opened
	}
	for _, keyword := range []string{"anyOf", "allOf"} {
		if list, ok := of[keyword].([]any); ok {
			opened := make([]any, len(list))
			for i, sub := range list {
				opened[i] = openToFiles(sub)
			}
			out[keyword] = opened
		}
	}
	return out
}

// moveRefs adapts references in a schema to its new place: "#/$defs/x" becomes "#/$defs/mem0/$defs/x".
func moveRefs(v any, at string) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = moveRefs(e, at)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for key, e := range v {
			ref, isText := e.(string)
			if key == "$ref" && isText && ref != includedRef {
				out[key] = at + strings.TrimPrefix(ref, "#")
				continue
			}
			out[key] = moveRefs(e, at)
		}
		return out
	}
	return v
}

// nullable allows null in place of every value that s describes below its top, because Load treats it as absence.
func nullable(s map[string]any) {
	properties, _ := s["properties"].(map[string]any)
	for _, p := range properties {
		sub := p.(map[string]any)
		nullable(sub)
		if kind, ok := sub["type"].(string); ok {
			sub["type"] = []any{kind, "null"}
		}
		if words, ok := sub["enum"].([]any); ok {
			sub["enum"] = append(slices.Clip(words), nil)
		}
		if entry, ok := sub["additionalProperties"].(map[string]any); ok && entry["type"] != nil {
			entry["type"] = []any{"object", "null"}
		}
	}
}
