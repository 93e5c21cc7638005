package server_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

var update = flag.Bool("update", false, "write testdata/openapi.json anew")

// table lists every route of the door.
func table() []string {
	return []string{"POST /v1/events", "POST /v1/events/batch", "POST /v1/retrieve", "POST /v1/format",
		"POST /v1/scopes", "POST /v1/scopes/reset", "GET /v1/scopes", "POST /v1/scopes/list", "POST /v1/events/list",
		"GET /v1/operations", "GET /v1/modules", "GET /v1/cluster", "GET /v1/runs", "POST /v1/runs/report", "GET /v1/mode", "PUT /v1/mode",
		"GET /v1/health", "GET /v1/capabilities", "GET /v1/manifest", "POST /v1/readiness", "POST /v1/inventory",
		"POST /v1/feedback", "POST /v1/forget", "POST /v1/forget/persona", "POST /v1/mutations", "POST /v1/provenance",
		"POST /v1/native-query", "POST /v1/swap", "GET /v1/archive", "POST /v1/archive/page",
		"POST /v1/backfill", "GET /v1/backfill", "POST /v1/backfill/plan", "POST /v1/backfill/events", "POST /v1/backfill/serve",
		"POST /v1/backfill/stop", "POST /v1/compare", "GET /v1/shadows", "POST /v1/shadows/answers",
		"POST /v1/archive/events", "GET /v1/archive/check", "GET /v1/backup", "POST /v1/import", "POST /v1/import/confirm", "GET /v1/import", "GET /healthz", "GET /readyz", "GET /metrics", "GET /openapi.json",
		"GET /docs"}
}

func document(t *testing.T, s *server.Server) []byte {
	t.Helper()
	text, err := s.OpenAPI()
	require.NoError(t, err)
	return text
}

// openAPI returns the document as generic JSON.
func openAPI(t *testing.T) map[string]any {
	t.Helper()
	s, _ := newServer(t, new(servertest.Slot))
	w := ask(s.Handler(), "GET", wire.PathOpenAPI, "")
	require.Equal(t, 200, w.Code)
	require.Equal(t, wire.MediaJSON, w.Header().Get("Content-Type"))
	require.Equal(t, document(t, s), w.Body.Bytes())
	doc, err := jsonschema.UnmarshalJSON(w.Body)
	require.NoError(t, err)
	return doc.(map[string]any)
}

func TestTheDocumentIsAsItWas(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot))
	golden := filepath.Join("testdata", "openapi.json")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, document(t, s), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(document(t, s)), "go test ./internal/doors/server -update writes it anew")
}

func TestEveryRouteOfTheTableIsThereAndDescribed(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot), func(o *server.Options) {
		o.Swapper = server.SwapperFunc(nil)
	})
	paths := openAPI(t)["paths"].(map[string]any)
	var described []string
	for path, item := range paths {
		for method := range item.(map[string]any) {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	require.ElementsMatch(t, table(), described)
	for _, line := range table() {
		method, path, _ := strings.Cut(line, " ")
		status := ask(s.Handler(), method, path, "{").Code
		require.NotContains(t, []int{404, 405}, status, line)
	}
}

// walk visits every object of a document with its path.
func walk(path string, v any, visit func(path string, object map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(path, v)
		for k, e := range v {
			if k != "example" {
				walk(path+"/"+k, e, visit)
			}
		}
	case []any:
		for i, e := range v {
			walk(fmt.Sprintf("%s/%d", path, i), e, visit)
		}
	}
}

func TestTheDocumentHoldsTogether(t *testing.T) {
	doc := openAPI(t)
	require.Equal(t, "3.1.0", doc["openapi"])
	at := func(pointer string) (any, bool) {
		var v any = doc
		for _, part := range strings.Split(strings.TrimPrefix(pointer, "#/"), "/") {
			m, ok := v.(map[string]any)
			if !ok {
				return nil, false
			}
			if v, ok = m[part]; !ok {
				return nil, false
			}
		}
		return v, true
	}
	used := map[string]bool{}
	walk("", doc, func(path string, o map[string]any) {
		if ref, ok := o["$ref"].(string); ok {
			_, found := at(ref)
			require.True(t, found, "%s refers to %s", path, ref)
			used[ref] = true
		}
		require.NotContains(t, o, "$schema", path)
	})
	for name := range doc["components"].(map[string]any)["schemas"].(map[string]any) {
		require.True(t, used["#/components/schemas/"+name], "%s is used nowhere", name)
	}
	var ids []string
	for path, item := range doc["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			op := operation.(map[string]any)
			ids = append(ids, op["operationId"].(string))
			require.NotEmpty(t, op["summary"], path)
			require.Len(t, op["tags"], 1, path)
			responses := op["responses"].(map[string]any)
			for status, r := range responses {
				require.NotEmpty(t, r.(map[string]any)["description"], "%s %s %s", method, path, status)
				require.Equal(t, status != "200", r.(map[string]any)["$ref"] != nil, "%s %s", path, status)
			}
			require.Contains(t, responses, "200")
			require.Equal(t, method != "get", op["requestBody"] != nil, path)
		}
	}
	slices.Sort(ids)
	require.Equal(t, slices.Compact(slices.Clone(ids)), ids, "operation ids are unique")
	for _, r := range doc["components"].(map[string]any)["responses"].(map[string]any) {
		require.Contains(t, r.(map[string]any)["content"], wire.MediaProblem)
	}
}

// compile compiles a schema of the document.
func compile(t *testing.T, doc map[string]any, pointer string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	require.NoError(t, c.AddResource("openapi.json", doc))
	s, err := c.Compile("openapi.json" + pointer)
	require.NoError(t, err)
	return s
}

func schemaOf(name string) string { return "#/components/schemas/" + name }

func valid(s *jsonschema.Schema, text string) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

func TestTheSchemasAreSchemasAndTheExamplesAreOfThem(t *testing.T) {
	doc := openAPI(t)
	for name := range doc["components"].(map[string]any)["schemas"].(map[string]any) {
		compile(t, doc, schemaOf(name))
	}
	examples := 0
	walk("", doc, func(path string, o map[string]any) {
		example, ok := o["example"]
		if !ok {
			return
		}
		examples++
		require.NoError(t, compile(t, doc, o["schema"].(map[string]any)["$ref"].(string)).Validate(example), path)
	})
	require.Greater(t, examples, 30)
}

func TestTheExamplesOfRequestsAreValidRequests(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct{ Example json.RawMessage }
			}
		}
	}
	s, _ := newServer(t, new(servertest.Slot))
	require.NoError(t, json.Unmarshal(document(t, s), &doc))
	requests := map[string]interface {
		abi.Decodable
		Validate() error
	}{wire.PathEvents: new(abi.MemoryEvent), wire.PathEventsBatch: new(abi.EventBatch),
		wire.PathRetrieve: new(abi.RetrieveRequest), wire.PathFormat: new(abi.FormatRequest),
		wire.PathScopes: new(abi.MemoryScope), wire.PathScopesReset: new(abi.MemoryScope),
		wire.PathMode: new(abi.AdapterMode), wire.PathReadiness: new(abi.ReadinessRequest),
		wire.PathInventory: new(abi.InventoryRequest), wire.PathFeedback: new(abi.MemoryFeedback),
		wire.PathForget:     new(abi.ForgetRequest),
		wire.PathPersona:    new(report.PersonaRequest),
		wire.PathMutations:  new(abi.NativeMutation),
		wire.PathProvenance: new(abi.ProvenanceRequest), wire.PathNativeQuery: new(abi.NativeQuery),
		wire.PathSwap: new(wire.SwapRequest), wire.PathEventsList: new(wire.EventListRequest),
		wire.PathScopesList: new(wire.ScopeListRequest),
		wire.PathRunsReport: new(wire.RunReportRequest), wire.PathImportConfirm: new(wire.ImportConfirm),
		wire.PathArchivePage: new(report.ArchiveRequest), wire.PathArchiveEvents: new(abi.EventBatch),
		wire.PathBackfill: new(wire.BackfillRequest), wire.PathBackfillPlan: new(wire.BackfillRequest),
		wire.PathBackfillGive:  new(report.BackfillEvents),
		wire.PathBackfillServe: new(report.BackfillServe), wire.PathBackfillStop: new(report.BackfillStop),
		wire.PathShadowAnswers: new(report.ShadowAnswersRequest), wire.PathCompare: new(wire.CompareRequest)}
	for path, item := range doc.Paths {
		for _, op := range item {
			example := op.RequestBody.Content[wire.MediaJSON].Example
			if example == nil {
				continue
			}
			request := requests[path]
			require.NotNil(t, request, path)
			require.NoError(t, abi.UnmarshalStrict(bytes.TrimSpace(example), request), path)
			require.NoError(t, request.Validate(), path)
		}
	}
}

func TestWhatTheSchemasSay(t *testing.T) {
	doc := openAPI(t)
	for _, c := range []struct {
		schema, text string
		valid        bool
	}{
		{"MemoryEvent", anEvent, true},
		{"MemoryEvent", strings.Replace(anEvent, `"hi"`, "null", 1), true},
		{"MemoryEvent", strings.Replace(anEvent, `,"content":"hi"`, "", 1), true},
		{"MemoryEvent", strings.Replace(anEvent, `"user","content"`, `"robot","content"`, 1), false},
		{"MemoryEvent", strings.Replace(anEvent, `"turn_id"`, `"turn"`, 1), false},
		{"MemoryEvent", strings.Replace(anEvent, "2026-03-01T09:30:00Z", "yesterday", 1), false},
		{"MemoryEvent", strings.Replace(anEvent, `{`, `{"metadata":{"a":[1,{"b":null}],"c":"d"},`, 1), true},
		{"AdapterMode", `{"read_only":true,"reason":"x","why":1}`, false},
		{"NativeQueryResult", `{"name":"x","result":[1,"2",null]}`, true},
		{"NativeQueryResult", `{"name":"x","result":null,"of_tomorrow":1}`, true},
		{"ResetReceipt", `{"status":"done","removed":{"memory":null,"fact":3},"remains":[],"old_generation":1,"new_generation":2,"warnings":[]}`, true},
		{"BatchReceipts", `{"receipts":[{"event_id":"e","error":{"code":"conflict","message":"m","retryable":false,"operation":"record_events"}}]}`, true},
		{"BatchReceipts", `{"receipts":[{"event_id":"e"}]}`, false},
		{"Problem", `{"type":"t","title":"t","status":409,"detail":"d","code":"conflict","message":"d","retryable":false,"operation":"retrieve"}`, true},
		{"Problem", `{"type":"t","title":"t","status":409,"detail":"d","code":"made_up","message":"d","retryable":false,"operation":"retrieve"}`, false},
		{"BackendHealth", `{"status":"ok","backend_name":"x","latency_ms":1.5,"consistency_model":"sometimes","isolation":"hard","pet_observability":"weak","warnings":[]}`, false},
	} {
		err := valid(compile(t, doc, schemaOf(c.schema)), c.text)
		require.Equal(t, c.valid, err == nil, "%s %s: %v", c.schema, c.text, err)
	}
	event := doc["components"].(map[string]any)["schemas"].(map[string]any)["MemoryEvent"].(map[string]any)
	require.Contains(t, event["properties"].(map[string]any)["event_id"].(map[string]any)["description"],
		"event_id identifies the turn")
}
