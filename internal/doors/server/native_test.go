package server_test

import (
	"context"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

func TestTheDocumentHasWhatTheProviderDeclares(t *testing.T) {
	s, _ := newServer(t, &servertest.Slot{Answer: func(_ context.Context, op string, _ any) (any, error) {
		if op != wire.OpCapabilities {
			return nil, nil
		}
		return &report.Capabilities{Provider: "p", NativeQueries: []abi.NativeDecl{{Name: "log", About: "The \x1b[1mnewest.",
			Schema: abi.Raw(`{"type":"object","properties":{"limit":{"type":"integer","minimum":1}}}`)}, {Name: "older", Params: "a"}},
			NativeMutations: []abi.NativeDecl{{Name: "wipe"}}}, nil
	}})
	w := ask(s.Handler(), "GET", wire.PathOpenAPI, "")
	require.Equal(t, 200, w.Code)
	text, err := jsonschema.UnmarshalJSON(w.Body)
	require.NoError(t, err)
	doc := text.(map[string]any)
	log := doc["components"].(map[string]any)["schemas"].(map[string]any)["NativeQuery_log"].(map[string]any)
	require.Equal(t, `Declared by the module of p, which describes it as: "The [1mnewest."`, log["description"])

	query := compile(t, doc, "#/components/schemas/NativeQuery_log")
	scope := `{"run_id":"r","persona_id":"u"}`
	valid := func(s *jsonschema.Schema, body string) bool {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
		require.NoError(t, err)
		return s.Validate(v) == nil
	}
	require.True(t, valid(query, `{"scope":`+scope+`,"name":"log","params":{"limit":3}}`))
	require.False(t, valid(query, `{"scope":`+scope+`,"name":"log","params":{"limit":"3"}}`))
	require.False(t, valid(query, `{"scope":`+scope+`,"name":"log","params":{"other":3}}`))
	for path, part := range map[string]string{"native-query": `"name":"log"`, "mutations": `"reason":"r","name":"wipe"`} {
		body := compile(t, doc, "#/paths/~1v1~1"+path+"/post/requestBody/content/application~1json/schema")
		require.True(t, valid(body, `{"scope":`+scope+`,`+part+`}`), path)
		other := strings.NewReplacer("log", "undeclared", "wipe", "undeclared").Replace(part)
		require.True(t, valid(body, `{"scope":`+scope+`,`+other+`}`), "a module may take more than it declares")
	}
}
