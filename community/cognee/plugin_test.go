package main

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/sdktest"
)

var scope = abi.MemoryScope{RunID: "run", PersonaID: "ann"}

// Replies of Cognee 1.6.5, shortened.
const (
	listed   = `[{"id":"d1","name":"other"},{"id":"d2","name":"cognee__run_ann__1"}]`
	searched = `[{"dataset_id":"d2","dataset_name":"cognee__run_ann__1","dataset_tenant_id":null,"search_result":[
{"id":"b6f72dc3","type":"IndexSchema","text":"[e1 2026-03-01T10:30:00+01:00]\nuser: My cat is called Zorvex.","document_id":"6d225c64",
"document_name":"e1","chunk_index":0,"external_metadata":"{\"event_id\": \"e1\", \"timestamp\": \"2026-03-01T10:30:00+01:00\"}","score":0.36}]}]`
)

func newHost(t *testing.T, steps ...sdktest.Step) *sdktest.Host {
	manifest, err := os.ReadFile("manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	return sdktest.New(t, sdktest.Options{Provider: "cognee", Kind: abi.KindArchitecture, Secrets: []string{"api_key"},
		Config: `{"url": "http://backend"}`, Manifest: manifest, HTTP: sdktest.Script(t, steps...)})
}

func step(route string, status int64, body string) sdktest.Step {
	return sdktest.Step{Route: route, Reply: sdktest.Reply{Status: status, Body: body}}
}

func equal[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestATurnIsAddedAsAFileAndRunInTheBackground(t *testing.T) {
	h := newHost(t, step("datasets", 200, listed), step("add", 200, `{"data_ingestion_info":[{"run_info":{},"data_id":"6d225c64"}]}`),
		step("cognify", 200, `{"d2":{"status":"PipelineRunStarted"}}`))
	receipt, err := sdktest.Do(h, abi.OpRecordEvent, scope, recordEvent, &abi.MemoryEvent{EventID: "e1", RunID: "run",
		UserID: "ann", SessionID: "s1", TurnID: "t1", Timestamp: "2026-03-01T10:30:00+01:00",
		Messages: []abi.Message{{Role: abi.RoleUser, Content: sdk.Ptr("My cat is called Zorvex.")}}})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, receipt.Status, abi.StatusQueued)
	equal(t, receipt.NativeIDs[0], "6d225c64")
	for _, part := range []string{`name="datasetId"` + "\r\n\r\nd2\r\n",
		`[{"event_id":"e1","session_id":"s1","timestamp":"2026-03-01T10:30:00+01:00"}]`,
		`name="data"; filename="e1.txt"` + "\r\ncontent-type: text/plain; charset=utf-8\r\n\r\n" +
			"[e1 2026-03-01T10:30:00+01:00]\nuser: My cat is called Zorvex.\r\n--memhost-"} {
		if !strings.Contains(h.Sent[1].Body, part) {
			t.Errorf("%q lacks %q", h.Sent[1].Body, part)
		}
	}
	equal(t, h.Sent[2].Body, `{"dataset_ids":["d2"],"run_in_background":true}`)
}

func TestASearchIsOfTheScopesDatasetAlone(t *testing.T) {
	h := newHost(t, step("datasets", 200, listed), step("search", 200, searched))
	ask := &abi.RetrieveRequest{Query: "cat", Scope: scope, SessionID: "s2", Budget: abi.ContextBudget{MaxItems: sdk.Ptr(int64(3))}}
	result, err := sdktest.Do(h, abi.OpRetrieve, scope, retrieve, ask)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, h.Sent[1].Body, `{"search_type":"CHUNKS","dataset_ids":["d2"],"query":"cat","top_k":3}`)
	equal(t, result.Evidence[0].SourceEventIDs[0], "e1")
	equal(t, result.FormattedContext, "<memory-context backend=\"cognee\" scope=\"run/ann\">\n"+
		"- [2026-03-01] user: My cat is called Zorvex.\n</memory-context>")
	for _, other := range []string{`[{"text":"of any dataset"}]`, strings.Replace(searched, `"d2"`, `"d1"`, 1), `[]`} {
		_, err = sdktest.Do(newHost(t, step("datasets", 200, listed), step("search", 200, other)), abi.OpRetrieve, scope, retrieve, ask)
		equal(t, abi.CodeOf(err), abi.CodeBackend)
	}
}

func TestReadinessSaysWhatBecameOfEachEvent(t *testing.T) {
	items := `{"items":[{"id":"6d225c64","name":"e1","completed":false},{"id":"d42881dd","name":"e2","completed":true}]}`
	for _, test := range []struct {
		status string
		want   abi.ReadinessStatus
		events []string
	}{
		{"DATASET_PROCESSING_STARTED", abi.ReadinessPending, []string{"e1", "e2"}},
		{"DATASET_PROCESSING_ERRORED", abi.ReadinessFailed, []string{"e1", "e2"}},
		{"DATASET_PROCESSING_COMPLETED", abi.ReadinessReady, []string{"e2"}},
		{"DATASET_PROCESSING_COMPLETED", abi.ReadinessFailed, []string{"e3"}},
	} {
		h := newHost(t, step("datasets", 200, listed), step("status", 200, `{"d2":"`+test.status+`"}`), step("processed", 200, items))
		ready, err := sdktest.Do(h, abi.OpReadiness, scope, readiness, &abi.ReadinessMarkers{Markers: test.events})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, ready.Status, test.want)
		equal(t, len(ready.EventIDs.Pending)+len(ready.EventIDs.Failed)+len(ready.EventIDs.Lost), boolInt(test.want != abi.ReadinessReady))
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestNothingIsForgottenWhileARunIsAtWork(t *testing.T) {
	h := newHost(t, step("datasets", 200, listed), step("status", 200, `{"d2":"DATASET_PROCESSING_STARTED"}`))
	receipt, err := sdktest.Do(h, abi.OpForget, scope, forget, &abi.ForgetRequest{Scope: scope, EventIDs: []string{"e1"}, Reason: "test"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, receipt.Status, abi.ForgetInProgress)
	equal(t, len(h.Sent), 2)
}

func TestAFailureKeepsCogneesWords(t *testing.T) {
	h := newHost(t, step("datasets", 200, listed), step("search", 500, `{"error":"Internal server error","detail":"no such table"}`))
	_, err := sdktest.Do(h, abi.OpRetrieve, scope, retrieve, &abi.RetrieveRequest{Query: "cat", Scope: scope, SessionID: "s2"})
	equal(t, abi.CodeOf(err), abi.CodeBackend)
	if err == nil || !strings.Contains(err.Error(), "Internal server error: no such table") {
		t.Errorf("got %v", err)
	}
}

// TestKit builds the module and runs the conformance kit in front of the fake, with the program memhost: MEMHOST, or
// the one on the PATH.
func TestKit(t *testing.T) {
	program := os.Getenv("MEMHOST")
	if program == "" {
		found, err := exec.LookPath("memhost")
		if err != nil {
			t.Skip("no memhost: MEMHOST=/path/to/memhost runs the kit")
		}
		program = found
	}
	server := httptest.NewServer(newFake("fake-key"))
	defer server.Close()
	t.Setenv("COGNEE_API_KEY", "fake-key")
	checkKit(t, program, server.URL, "30s")
}

// checkKit runs the kit in front of a server. It wants every clause to pass.
func checkKit(t *testing.T, program, url, readyWithin string) {
	t.Helper()
	run(t, program, "build", "--compiler", "go")
	out := run(t, program, "conformance", "--config", configure(t, url), "--ready-within", readyWithin)
	t.Logf("%s", out)
}

// configure writes a configuration for the built module in front of a server.
func configure(t *testing.T, url string) string {
	t.Helper()
	module, err := filepath.Abs("cognee.wasm")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := filepath.Join(dir, "memhost.yaml")
	if err := os.WriteFile(at, []byte("memory:\n  backend: cognee\n  plugin: "+module+"\n  backends:\n    cognee: {url: "+
		url+", api_key: {secret: cognee}}\nsecrets:\n  cognee: {env: COGNEE_API_KEY, origin: "+url+"}\ndata: {dir: "+dir+
		"/data}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return at
}

func run(t *testing.T, program string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(program, args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("memhost %s: %v\n%s%s", strings.Join(args, " "), err, out, errs.String())
	}
	return out
}
