package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/declared"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// capabilitiesWithin is how long the description waits for the provider's declarations.
const capabilitiesWithin = 2 * time.Second

// openAPI serves the description, with the native queries and mutations of the serving provider.
func (s *Server) openAPI(w http.ResponseWriter, r *http.Request) {
	d, err := s.document()
	if err != nil {
		s.fail(w, r, "", err)
		return
	}
	text := d.json
	within, cancel := context.WithTimeout(r.Context(), capabilitiesWithin)
	defer cancel()
	// A slot without a provider is still described, without declarations.
	if c, err := s.options.Slot.Capabilities(within); err == nil && len(c.NativeQueries)+len(c.NativeMutations) > 0 {
		if text, err = withNatives(text, c); err != nil {
			s.fail(w, r, "", err)
			return
		}
	}
	write(w, wire.MediaJSON, http.StatusOK, text)
}

// withNatives adds a provider's declarations to a document: a schema for each query and mutation, as one of the
// possible forms of the request.
func withNatives(text []byte, c *report.Capabilities) ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, abi.WrapError(abi.CodeInternal, "server: reading the OpenAPI document: "+err.Error(), err)
	}
	object := func(in map[string]any, keys ...string) map[string]any {
		for _, key := range keys {
			in, _ = in[key].(map[string]any)
		}
		return in
	}
	schemas := object(doc, "components", "schemas")
	for _, each := range []struct {
		path, base string
		list       []abi.NativeDecl
	}{{wire.PathNativeQuery, "NativeQuery", c.NativeQueries}, {wire.PathMutations, "NativeMutation", c.NativeMutations}} {
		base := map[string]any{"$ref": "#/components/schemas/" + each.base}
		var forms []any
		for i := range each.list {
			d := &each.list[i]
			name := each.base + "_" + d.Name
			schemas[name] = map[string]any{"description": declared.About(c.Provider, d), "allOf": []any{base,
				map[string]any{"properties": map[string]any{"name": map[string]any{"const": d.Name},
					"params": declared.Schema(d)}}}}
			forms = append(forms, map[string]any{"$ref": "#/components/schemas/" + name})
		}
		if len(forms) > 0 {
			body := object(doc, "paths", each.path, "post", "requestBody", "content", wire.MediaJSON)
			body["schema"] = map[string]any{"anyOf": append(forms, base)}
		}
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, abi.WrapError(abi.CodeInternal, "server: writing the OpenAPI document: "+err.Error(), err)
	}
	return append(text, '\n'), nil
}
