package server_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

func TestTheRunManifestsSchemaIsTheTypes(t *testing.T) {
	text, err := server.RunManifestSchema()
	require.NoError(t, err)
	file := filepath.Join("..", "..", "..", "docs", "schemas", "run-manifest.schema.json")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, text, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(text), "go test ./internal/doors/server -update writes it anew")

	var doc map[string]any
	require.NoError(t, json.Unmarshal(text, &doc))
	defs := doc["$defs"].(map[string]any)
	fields := defs["RunManifest"].(map[string]any)["properties"].(map[string]any)
	typ := reflect.TypeFor[report.RunManifest]()
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		require.Contains(t, fields, name)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if _, ref, ok := strings.Cut(line, `"$ref": "#/$defs/`); ok {
			require.Contains(t, defs, strings.Trim(ref, `",`))
		}
	}
}

func TestAManifestFitsItsSchema(t *testing.T) {
	text, err := server.RunManifestSchema()
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("manifest.json", doc))
	s, err := c.Compile("manifest.json")
	require.NoError(t, err)
	manifest := &report.RunManifest{Manifest: 1, Provider: "p", Condition: "p", ConditionKind: abi.KindControl,
		Clock: "real", ServingSince: "2026-03-01T09:00:00Z",
		Config: abi.Raw(`{}`), Capabilities: report.Capabilities{Provider: "p", ConditionKind: abi.KindControl},
		Health: abi.BackendHealth{Status: abi.HealthOK, ConsistencyModel: "immediate", Isolation: "hard",
			PetObservability: "weak"},
		Scopes: []report.ScopeMapping{{NativeScope: map[string]string{"id": "x"}}},
		Smokes: []report.SmokeVerdict{{Name: "isolation", Verdict: "pass"}}}
	var value map[string]any
	require.NoError(t, json.Unmarshal(abi.Marshal(manifest), &value))
	require.NoError(t, s.Validate(value))
	delete(value, "module")
	require.Error(t, s.Validate(value), "a schema that takes everything would prove nothing")
}
