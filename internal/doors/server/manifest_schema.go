package server

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/memhost/memhost/host/report"
)

// RunManifestSchema is the JSON Schema (2020-12) of a run's manifest.json, made from the Go type.
// docs/schemas/run-manifest.schema.json is a copy.
func RunManifestSchema() ([]byte, error) {
	r := newRegistry()
	root := r.Schema(reflect.TypeFor[report.RunManifest](), true, "")
	return writeSchema(r, map[string]any{"title": "memhost run manifest", "$ref": root.Ref})
}

// writeSchema adds the types of a registry to a schema, and writes it.
func writeSchema(r huma.Registry, doc map[string]any) ([]byte, error) {
	finish(r, nil)
	doc["$schema"], doc["$defs"] = "https://json-schema.org/draft/2020-12/schema", r.Map()
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(bytes.ReplaceAll(text, []byte(`"`+schemaPrefix), []byte(`"#/$defs/`)), '\n'), nil
}
