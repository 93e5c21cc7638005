package nanobottest

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/testenv/llm"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk/sdktest"
)

// Module is a memory: its name, and its operations, called without a wasm engine.
type Module struct {
	*nanobot.Plugin
	Name string
}

// Scope is the scope of a Rig and a Slot.
var Scope = abi.MemoryScope{RunID: "run", PersonaID: "mara"}

// Rig is a memory on a host in memory, with the stub as its model. It works in one scope.
type Rig struct {
	*sdktest.Host
	Turns
	T      testing.TB
	Stub   *llm.Server
	module Module
}

// NewRig makes a Rig. config is the rest of the block after llm: `"memory_window":100`.
func (m Module) NewRig(t testing.TB, config string) *Rig {
	t.Helper()
	return m.newRig(t, llm.New(llm.Options{}), config)
}

func (m Module) newRig(t testing.TB, stub *llm.Server, config string) *Rig {
	t.Helper()
	manifest, err := os.ReadFile("manifest.json")
	require.NoError(t, err)
	return &Rig{Turns: Turns{Scope: Scope}, Stub: stub, module: m, T: t,
		Host: sdktest.New(t, sdktest.Options{Provider: m.Name,
			Config: `{"llm":{"base_url":"http://llm/v1","model":"stub"}` +
				moreMembers(config) + `}`, Manifest: manifest,
			HTTP: sdktest.Handler(t, manifest, nil, stub)})}
}

// moreMembers formats what follows the first member of an object.
func moreMembers(config string) string {
	if config == "" {
		return ""
	}
	return "," + config
}

// Fresh returns another host with the same model and no config.
func (r *Rig) Fresh() *Rig {
	r.T.Helper()
	return r.module.newRig(r.T, r.Stub, "")
}

// Again exports the scope and imports it into a fresh host.
func (r *Rig) Again(out map[string]string) *Rig {
	r.T.Helper()
	fresh := r.Fresh()
	require.NoError(r.T, fresh.Take(out))
	return fresh
}

// In returns the same host in another scope.
func (r *Rig) In(scope abi.MemoryScope) *Rig {
	other := *r
	other.Turns = Turns{Scope: scope}
	return &other
}

// Turns makes the events of a scope, numbered and a minute apart.
type Turns struct {
	Scope abi.MemoryScope
	n     int
}

// began is the time before the first event.
var began = time.Date(2026, 1, 12, 9, 0, 0, 0, time.UTC)

// Turn returns the next event; a text that begins with "assistant: " is the assistant's.
func (x *Turns) Turn(session string, texts ...string) *abi.MemoryEvent {
	x.n++
	e := UserEvent(x.Scope, fmt.Sprint("e", x.n), session, texts...)
	e.TurnID, e.Timestamp = fmt.Sprint("t", x.n), began.Add(time.Duration(x.n)*time.Minute).Format(time.RFC3339)
	return e
}

// UserEvent is an event of the scope's user; a text that begins with "assistant: " is the assistant's.
func UserEvent(scope abi.MemoryScope, id, session string, texts ...string) *abi.MemoryEvent {
	e := &abi.MemoryEvent{EventID: id, RunID: scope.RunID, UserID: scope.PersonaID, AgentID: scope.AgentID,
		SessionID: session, TurnID: id, Timestamp: began.Format(time.RFC3339)}
	for _, text := range texts {
		m := abi.Message{Role: abi.RoleUser, Content: &text}
		if answer, ok := strings.CutPrefix(text, "assistant: "); ok {
			m.Role, m.Content = abi.RoleAssistant, &answer
		}
		e.Messages = append(e.Messages, m)
	}
	return e
}

// Record records an event.
func (r *Rig) Record(e *abi.MemoryEvent) *abi.WriteReceipt {
	r.T.Helper()
	receipt, err := sdktest.Do(r.Host, abi.OpRecordEvent, r.Scope, r.module.RecordEvent, e)
	require.NoError(r.T, err)
	return receipt
}

// RecordMessages records n messages of a session, one event each, numbered from the count so far.
func (r *Rig) RecordMessages(session string, n int) (last *abi.WriteReceipt) {
	r.T.Helper()
	for range n {
		last = r.Record(r.Turn(session, fmt.Sprintf("Message number %d.", r.n)))
	}
	return last
}

// Wait does the work that is due while a caller waits for it.
func (r *Rig) Wait() *abi.BackendReadiness {
	r.T.Helper()
	return r.work(&abi.WaitRequest{DeadlineMS: 30000})
}

// Idle does the work that is due while no caller waits.
func (r *Rig) Idle() *abi.BackendReadiness {
	r.T.Helper()
	return r.work(&abi.WaitRequest{DeadlineMS: 30000, Background: true})
}

func (r *Rig) work(request *abi.WaitRequest) *abi.BackendReadiness {
	r.T.Helper()
	ready, err := sdktest.Do(r.Host, abi.OpWaitUntilReady, r.Scope, r.module.WaitUntilReady, request)
	require.NoError(r.T, err)
	return ready
}

// Ready checks readiness without doing any work.
func (r *Rig) Ready(markers ...string) *abi.BackendReadiness {
	r.T.Helper()
	ready, err := sdktest.Do(r.Host, abi.OpReadiness, r.Scope, r.module.Readiness,
		&abi.ReadinessMarkers{Markers: markers})
	require.NoError(r.T, err)
	return ready
}

// Find retrieves, and formats the result again, which must give the same text within the budget.
func (r *Rig) Find(session, question string, budget abi.ContextBudget) *abi.RetrieveResult {
	r.T.Helper()
	result, err := sdktest.Do(r.Host, abi.OpRetrieve, r.Scope, r.module.Retrieve,
		&abi.RetrieveRequest{Query: question, Scope: r.Scope, SessionID: session, Budget: budget})
	require.NoError(r.T, err)
	again, err := sdktest.Do(r.Host, abi.OpFormatContext, r.Scope, r.module.FormatContext,
		&abi.FormatRequest{Result: *result, Budget: budget, Scope: r.Scope})
	require.NoError(r.T, err)
	require.Equal(r.T, result.FormattedContext, again.FormattedContext, "format_context gives the same string")
	if budget.MaxTokens != nil {
		require.LessOrEqual(r.T, *result.Trace.TokenCount, *budget.MaxTokens)
	}
	return result
}

// Query runs a native query; params is a JSON object.
func (r *Rig) Query(name, params string) []byte {
	r.T.Helper()
	return r.query(name, members(r.T, params)).Result
}

func (r *Rig) query(name string, params map[string]abi.Raw) *abi.NativeQueryResult {
	r.T.Helper()
	result, err := sdktest.Do(r.Host, abi.OpNativeQuery, r.Scope, r.module.NativeQuery,
		&abi.NativeQuery{Scope: r.Scope, Name: name, Params: params})
	require.NoError(r.T, err)
	return result
}

// Mutate runs a native mutation; params is a JSON object.
func (r *Rig) Mutate(name, params string) (*abi.MutationReceipt, error) {
	r.T.Helper()
	return r.mutate(name, members(r.T, params))
}

func (r *Rig) mutate(name string, params map[string]abi.Raw) (*abi.MutationReceipt, error) {
	return sdktest.Do(r.Host, abi.OpNativeMutation, r.Scope, r.module.NativeMutation,
		&abi.NativeMutation{Scope: r.Scope, Name: name, Reason: "test", Params: params})
}

func members(t testing.TB, object string) map[string]abi.Raw {
	t.Helper()
	var values map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(object), &values))
	params := map[string]abi.Raw{}
	for name, value := range values {
		params[name] = abi.Raw(value)
	}
	return params
}

// Files returns the memory's files.
func (r *Rig) Files() map[string]string {
	r.T.Helper()
	files, _ := Files(r.T, func(params map[string]abi.Raw) *abi.NativeQueryResult { return r.query("files", params) })
	return files
}

// Take imports files, with one call per map.
func (r *Rig) Take(files ...map[string]string) error {
	r.T.Helper()
	for i, part := range files {
		if _, err := r.mutate("import_files", Params(r.T, part, false, i == len(files)-1)); err != nil {
			return err
		}
	}
	return nil
}

// Standing is a session's entry in the status.
type Standing struct {
	SessionID string `json:"session_id"`
	Messages  int    `json:"messages"`
	Pointer   int    `json:"last_consolidated"`
	Archived  int    `json:"archived"`
	Failures  int    `json:"failures"`
	Error     string `json:"error"`
}

// Session returns a session's entry in the status; the zero value if there is none.
func (r *Rig) Session(id string) Standing {
	r.T.Helper()
	var status struct {
		Sessions []Standing `json:"sessions"`
	}
	require.NoError(r.T, json.Unmarshal(r.Query("status", `{}`), &status))
	for _, s := range status.Sessions {
		if s.SessionID == id {
			return s
		}
	}
	return Standing{}
}

// Calls returns how often the model was called.
func (r *Rig) Calls() int { return r.Stub.Counts().LLM }

// Prompt returns the model's latest prompt.
func (r *Rig) Prompt() string {
	r.T.Helper()
	log := r.Stub.Log()
	require.NotEmpty(r.T, log)
	return log[len(log)-1].Prompt
}

// Fail makes the model fail in this way from now on, instead of any earlier way.
func (r *Rig) Fail(f llm.Fault) {
	r.T.Helper()
	r.Stub.ClearFaults()
	require.NoError(r.T, r.Stub.Fail(f))
}

// Later moves the clock.
func (r *Rig) Later(d time.Duration) {
	r.T.Helper()
	now, err := time.Parse(time.RFC3339, r.Now)
	require.NoError(r.T, err)
	r.Now = now.Add(d).Format(time.RFC3339)
}
