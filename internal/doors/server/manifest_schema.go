package server

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/memhost/memhost/abi"
)

// RunManifestSchema is the JSON Schema (2020-12) of a run's manifest.json, made from the Go type.
// docs/schemas/run-manifest.schema.json is a copy.
func RunManifestSchema() ([]byte, error) {
	r := newRegistry()
	root := r.Schema(reflect.TypeFor[abi.RunManifest](), true, "")
	finish(r, nil)
	text, err := json.MarshalIndent(map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title": "memhost run manifest",
		"$ref":  root.Ref, "$defs": r.Map()}, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(bytes.ReplaceAll(text, []byte(`"`+schemaPrefix), []byte(`"#/$defs/`)), '\n'), nil
}
