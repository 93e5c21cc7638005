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

// A reply of Hindsight 1.1.0, shortened.
const recalled = `{"results":[{"id":"b9fc1a5e","text":"user: My cat is called Zorvex.","type":"world","entities":null,
"occurred_start":null,"mentioned_at":"2026-03-01T09:30:00+00:00","document_id":"e1","metadata":{"event_id":"e1"},
"scores":{"final":0.95,"reranker":null}}],"trace":null}`

func newHost(t *testing.T, steps ...sdktest.Step) *sdktest.Host {
	manifest, err := os.ReadFile("manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	return sdktest.New(t, sdktest.Options{Provider: "hindsight", Kind: abi.KindArchitecture,
		Config: `{"url": "http://backend", "effort": "low"}`, Manifest: manifest, HTTP: sdktest.Script(t, steps...)})
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

func TestATurnIsRetainedInTheBackground(t *testing.T) {
	h := newHost(t, step("retain", 200, `{"success":true,"async":true,"operation_id":"op"}`))
	receipt, err := sdktest.Do(h, abi.OpRecordEvent, scope, recordEvent, &abi.MemoryEvent{EventID: "e1", RunID: "run",
		UserID: "ann", SessionID: "s1", TurnID: "t1", Timestamp: "2026-03-01T10:30:00+01:00", Context: "home",
		Messages: []abi.Message{{Role: abi.RoleUser, Content: sdk.Ptr("My cat is called Zorvex.")}}})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, receipt.Status, abi.StatusQueued)
	equal(t, receipt.Markers[0], "op e1")
	operation := operationOf("hindsight__run_ann__1", "e1")
	equal(t, h.Sent[0].Params["bank"], "hindsight__run_ann__1")
	equal(t, h.Sent[0].Body, `{"items":[{"content":"user: My cat is called Zorvex.","timestamp":"2026-03-01T10:30:00+01:00","document_id":"e1","metadata":{"event_id":"e1","session_id":"s1","timestamp":"2026-03-01T10:30:00+01:00"},"tags":["context:home"]}],"async":true,"operation_id":"`+operation+`"}`)
}

func TestTheBudgetAndTheLabelsAreHindsights(t *testing.T) {
	h := newHost(t, step("recall", 200, recalled))
	result, err := sdktest.Do(h, abi.OpRetrieve, scope, retrieve, &abi.RetrieveRequest{Query: "cat", Scope: scope,
		SessionID: "s2", Context: "home", Budget: abi.ContextBudget{MaxTokens: sdk.Ptr(int64(500))}})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, h.Sent[0].Body, `{"query":"cat","budget":"low","max_tokens":500,"include":{"entities":null},"tags":["context:home"],"tags_match":"all_strict"}`)
	equal(t, result.Evidence[0].SourceEventIDs[0], "e1")
	equal(t, result.FormattedContext, "<memory-context backend=\"hindsight\" scope=\"run/ann\">\n"+
		"- [2026-03-01] user: My cat is called Zorvex.\n</memory-context>")
}

func TestReadinessSaysWhatBecameOfEachEvent(t *testing.T) {
	none := step("operations", 200, `{"total":0}`)
	for said, want := range map[string]abi.ReadinessStatus{"completed": abi.ReadinessReady, "pending": abi.ReadinessPending,
		"processing": abi.ReadinessPending, "failed": abi.ReadinessFailed, "cancelled": abi.ReadinessFailed} {
		h := newHost(t, step("operation", 200, `{"status":"`+said+`"}`), none, none, none)
		ready, err := sdktest.Do(h, abi.OpReadiness, scope, readiness, &abi.ReadinessMarkers{Markers: []string{"op e1"}})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, ready.Status, want)
	}
	h := newHost(t, step("operations", 200, `{"total":0}`), step("operations", 200, `{"total":1}`))
	ready, err := sdktest.Do(h, abi.OpReadiness, scope, readiness, &abi.ReadinessMarkers{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, ready.Status, abi.ReadinessPending)
}

func TestNothingIsForgottenWhileAnOperationCouldBringItBack(t *testing.T) {
	h := newHost(t, step("operations", 200, `{"total":1}`))
	receipt, err := sdktest.Do(h, abi.OpForget, scope, forget, &abi.ForgetRequest{Scope: scope, EventIDs: []string{"e1"}, Reason: "test"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, receipt.Status, abi.ForgetInProgress)
	equal(t, len(h.Sent), 1)
}

func TestAFailureKeepsHindsightsWords(t *testing.T) {
	h := newHost(t, step("recall", 504, `{"detail":"Request timed out while searching memories."}`))
	_, err := sdktest.Do(h, abi.OpRetrieve, scope, retrieve, &abi.RetrieveRequest{Query: "cat", Scope: scope, SessionID: "s2"})
	equal(t, abi.CodeOf(err), abi.CodeTimeout)
	if err == nil || !strings.Contains(err.Error(), "Request timed out") {
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
	server := httptest.NewServer(newFake())
	defer server.Close()
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
	module, err := filepath.Abs("hindsight.wasm")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := filepath.Join(dir, "memhost.yaml")
	if err := os.WriteFile(at, []byte("memory:\n  backend: hindsight\n  plugin: "+module+"\n  backends:\n    hindsight: {url: "+
		url+"}\ndata: {dir: "+dir+"/data}\n"), 0o644); err != nil {
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
