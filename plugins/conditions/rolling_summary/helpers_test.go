package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot/nanobottest"
	"github.com/memhost/memhost/sdk/sdktest"
	"github.com/memhost/memhost/testenv/llm"
)

var scope = abi.MemoryScope{RunID: "run", PersonaID: "mara"}

// bench is a host in memory with the stub as its model.
type bench struct {
	*sdktest.Host
	t    *testing.T
	stub *llm.Server
	n    int
}

// bring makes a bench. config is what the block has besides llm: `"memory_window":100`.
func bring(t *testing.T, config string) *bench {
	t.Helper()
	b := &bench{t: t, stub: llm.New(llm.Options{})}
	b.Host = b.host(config)
	return b
}

func (b *bench) host(config string) *sdktest.Host {
	manifest, err := os.ReadFile("manifest.json")
	require.NoError(b.t, err)
	if config != "" {
		config = "," + config
	}
	return sdktest.New(b.t, sdktest.Options{Provider: "rolling_summary", Config: `{"llm":{"base_url":"http://llm/v1","model":"stub"}` + config + `}`, Manifest: manifest,
		HTTP: sdktest.Handler(b.t, manifest, nil, b.stub)})
}

// window is the everyday trigger, without the tail.
const window = `"profile":"local","include_tail":false`

// turn makes an event of messages; a text that begins with "assistant: " is the assistant's.
func (b *bench) turn(session string, texts ...string) *abi.MemoryEvent {
	b.n++
	at := time.Date(2026, 1, 12, 9, 0, 0, 0, time.UTC).Add(time.Duration(b.n) * time.Minute)
	e := &abi.MemoryEvent{EventID: fmt.Sprint("e", b.n), RunID: "run", UserID: "mara", SessionID: session, TurnID: fmt.Sprint("t", b.n), Timestamp: at.Format(time.RFC3339)}
	for _, text := range texts {
		m := abi.Message{Role: abi.RoleUser, Content: &text}
		if said, ok := strings.CutPrefix(text, "assistant: "); ok {
			m.Role, m.Content = abi.RoleAssistant, &said
		}
		e.Messages = append(e.Messages, m)
	}
	return e
}

func (b *bench) record(e *abi.MemoryEvent) *abi.WriteReceipt {
	b.t.Helper()
	r, err := sdktest.Do(b.Host, abi.OpRecordEvent, scope, recordEvent, e)
	require.NoError(b.t, err)
	return r
}

// say records n messages of a session, one event each, numbered on from how many were said.
func (b *bench) say(session string, n int) (last *abi.WriteReceipt) {
	b.t.Helper()
	for range n {
		last = b.record(b.turn(session, fmt.Sprintf("Message number %d.", b.n)))
	}
	return last
}

func (b *bench) wait() *abi.BackendReadiness {
	b.t.Helper()
	r, err := sdktest.Do(b.Host, abi.OpWaitUntilReady, scope, waitUntilReady, &abi.WaitRequest{DeadlineMS: 30000})
	require.NoError(b.t, err)
	return r
}

func (b *bench) idle() *abi.BackendReadiness {
	b.t.Helper()
	r, err := sdktest.Do(b.Host, abi.OpWaitUntilReady, scope, waitUntilReady, &abi.WaitRequest{DeadlineMS: 30000, Background: true})
	require.NoError(b.t, err)
	return r
}

func (b *bench) ready(markers ...string) *abi.BackendReadiness {
	b.t.Helper()
	r, err := sdktest.Do(b.Host, abi.OpReadiness, scope, readiness, &abi.ReadinessMarkers{Markers: markers})
	require.NoError(b.t, err)
	return r
}

func (b *bench) query(name, params string) []byte {
	b.t.Helper()
	q := &abi.NativeQuery{Scope: scope, Name: name, Params: map[string]abi.Raw{}}
	require.NoError(b.t, json.Unmarshal([]byte(params), &rawMap{q.Params}))
	r, err := sdktest.Do(b.Host, abi.OpNativeQuery, scope, nativeQuery, q)
	require.NoError(b.t, err)
	return r.Result
}

// rawMap decodes an object into parameters.
type rawMap struct{ to map[string]abi.Raw }

func (m *rawMap) UnmarshalJSON(data []byte) error {
	var values map[string]json.RawMessage
	err := json.Unmarshal(data, &values)
	for k, v := range values {
		m.to[k] = abi.Raw(v)
	}
	return err
}

func (b *bench) files() map[string]string {
	b.t.Helper()
	files, _ := nanobottest.Files(b.t, func(params map[string]abi.Raw) *abi.NativeQueryResult {
		r, err := sdktest.Do(b.Host, abi.OpNativeQuery, scope, nativeQuery, &abi.NativeQuery{Scope: scope, Name: "files", Params: params})
		require.NoError(b.t, err)
		return r
	})
	return files
}

// take imports files, in as many calls as there are maps.
func (b *bench) take(files ...map[string]string) error {
	b.t.Helper()
	for i, part := range files {
		m := &abi.NativeMutation{Scope: scope, Name: "import_files", Reason: "test", Params: nanobottest.Params(b.t, part, false, i == len(files)-1)}
		if _, err := sdktest.Do(b.Host, abi.OpNativeMutation, scope, nativeMutation, m); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) memory() string { return b.files()["memory/MEMORY.md"] }

func (b *bench) log() string { return b.files()["memory/HISTORY.md"] }

// standing is what the status says of a session.
type standing struct {
	SessionID string `json:"session_id"`
	Messages  int    `json:"messages"`
	Pointer   int    `json:"last_consolidated"`
	Archived  int    `json:"archived"`
	Failures  int    `json:"failures"`
	Error     string `json:"error"`
}

func (b *bench) session(id string) standing {
	b.t.Helper()
	var status struct {
		Sessions []standing `json:"sessions"`
	}
	require.NoError(b.t, json.Unmarshal(b.query("status", `{}`), &status))
	for _, s := range status.Sessions {
		if s.SessionID == id {
			return s
		}
	}
	return standing{}
}

func (b *bench) mutate(name, params string) (*abi.MutationReceipt, error) {
	m := &abi.NativeMutation{Scope: scope, Name: name, Params: map[string]abi.Raw{}, Reason: "test"}
	require.NoError(b.t, json.Unmarshal([]byte(params), &rawMap{m.Params}))
	return sdktest.Do(b.Host, abi.OpNativeMutation, scope, nativeMutation, m)
}

func (b *bench) find(session, question string, budget abi.ContextBudget) *abi.RetrieveResult {
	b.t.Helper()
	r, err := sdktest.Do(b.Host, abi.OpRetrieve, scope, retrieve, &abi.RetrieveRequest{Query: question, Scope: scope, SessionID: session, Budget: budget})
	require.NoError(b.t, err)
	again, err := sdktest.Do(b.Host, abi.OpFormatContext, scope, formatContext, &abi.FormatRequest{Result: *r, Budget: budget, Scope: scope})
	require.NoError(b.t, err)
	require.Equal(b.t, r.FormattedContext, again.FormattedContext, "format_context gives the same string")
	if budget.MaxTokens != nil {
		require.LessOrEqual(b.t, *r.Trace.TokenCount, *budget.MaxTokens)
	}
	return r
}

// calls is how often the model was asked.
func (b *bench) calls() int { return b.stub.Counts().LLM }

// prompt is what the model was asked last.
func (b *bench) prompt() string {
	log := b.stub.Log()
	require.NotEmpty(b.t, log)
	return log[len(log)-1].Prompt
}

func (b *bench) fail(f llm.Fault) {
	b.stub.ClearFaults()
	require.NoError(b.t, b.stub.Fail(f))
}

// later moves the clock.
func (b *bench) later(d time.Duration) {
	now, err := time.Parse(time.RFC3339, b.Now)
	require.NoError(b.t, err)
	b.Now = now.Add(d).Format(time.RFC3339)
}
