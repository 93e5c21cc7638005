package compat_test

import (
	"bufio"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/examples/demo"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/extism"
	"github.com/memhost/memhost/internal/test/testcache"
)

// expectedContents lists what a later release must still find in a data folder. It is stored next to the folder, in the
// JSON of the release that made it.
type expectedContents struct {
	Provider string          `json:"provider"`
	Module   string          `json:"module"`
	Block    json.RawMessage `json:"block"`
	// Ended is when the folder was closed. Requests are what its backend has had until then.
	Ended    time.Time `json:"ended"`
	Requests []request `json:"requests,omitempty"`
	// Said are the events of the present generation, Forgotten those that a reset removed. Unanswered arrived at the
	// backend, but its answer got lost; a provider that keeps events in the data folder has none.
	Said       []recordedEvent `json:"said"`
	Forgotten  []recordedEvent `json:"forgotten"`
	Unanswered json.RawMessage `json:"unanswered,omitempty"`
	// ReadOnly is the scope that was read-only when the folder was closed.
	ReadOnly json.RawMessage    `json:"read_only"`
	Asked    []answeredQuestion `json:"asked"`
	// Manifest is the run manifest.
	Manifest json.RawMessage `json:"manifest"`
}

// recordedEvent is an event and its first receipt.
type recordedEvent struct {
	Event   json.RawMessage `json:"event"`
	Receipt json.RawMessage `json:"receipt"`
}

// answeredQuestion is a question and what was found then. Each scope has one.
type answeredQuestion struct {
	Request json.RawMessage `json:"request"`
	// Generation is the scope's.
	Generation int64 `json:"generation"`
	// Texts are those of the evidence.
	Texts []string `json:"texts"`
}

// events are those of the demo conversation of one persona.
func events(t testing.TB, persona string) (list []*abi.MemoryEvent) {
	t.Helper()
	file, err := demo.Events()
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		e := decode[abi.MemoryEvent](t, lines.Bytes())
		if e.UserID == persona {
			list = append(list, e)
		}
	}
	require.NoError(t, lines.Err())
	return list
}

func scopeOf(e *abi.MemoryEvent) abi.MemoryScope {
	return abi.MemoryScope{RunID: e.RunID, PersonaID: e.UserID, AgentID: e.AgentID}
}

// live records a life in a data folder, and a cassette of it: two people and a scope that becomes read-only, a reset, a
// batch, an answer that gets lost.
func live(t *testing.T, u providerSetup, wasm []byte, dir, cassette string) *expectedContents {
	t.Helper()
	ctx, config := t.Context(), u.config(wasm, backendURL)
	b := newBackend(u, time.Date(2026, 7, 1, 9, 0, 0, 0, time.UTC))
	o := options(dir, b)
	o.Cassette = &host.CassetteOptions{Path: cassette, Seed: []byte(u.name), Timeless: true}
	h, err := host.New(ctx, o)
	require.NoError(t, err)
	s, err := h.Open(ctx, config)
	require.NoError(t, err)
	told := &expectedContents{Provider: u.provider, Module: u.module, Block: json.RawMessage(config.Block)}
	record := func(e *abi.MemoryEvent) recordedEvent {
		receipt, err := s.RecordEvent(ctx, e)
		require.NoError(t, err)
		return recordedEvent{abi.Marshal(e), abi.Marshal(receipt)}
	}
	mara, jonas, frozen := events(t, "mara"), events(t, "jonas"), events(t, "mara")

	for _, e := range mara[:5] {
		told.Said = append(told.Said, record(e))
	}
	ready(t, s, scopeOf(mara[0]))

	for _, e := range jonas[:3] {
		told.Forgotten = append(told.Forgotten, record(e))
	}
	ready(t, s, scopeOf(jonas[0]))
	reset, err := s.ResetScope(ctx, scopeOf(jonas[0]))
	require.NoError(t, err)
	require.Equal(t, abi.ResetDone, reset.Status)
	batch := &abi.EventBatch{}
	for _, e := range jonas[3:7] {
		batch.Events = append(batch.Events, *e)
	}
	receipts, err := s.RecordEvents(ctx, batch)
	require.NoError(t, err)
	for i, r := range receipts.Receipts {
		require.Nil(t, r.Error)
		told.Said = append(told.Said, recordedEvent{abi.Marshal(&batch.Events[i]), abi.Marshal(r.Receipt)})
	}
	ready(t, s, scopeOf(jonas[0]))

	for _, e := range frozen[5:8] {
		e.RunID = "frozen"
		told.Said = append(told.Said, record(e))
	}
	scope := scopeOf(frozen[5])
	ready(t, s, scope)
	_, err = s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "an example", Scope: &scope})
	require.NoError(t, err)
	told.ReadOnly = abi.Marshal(&scope)

	for _, e := range []*abi.MemoryEvent{mara[0], jonas[3], frozen[5]} {
		r := &abi.RetrieveRequest{Query: *e.Messages[0].Content, Scope: scopeOf(e), SessionID: "later"}
		result, err := s.Retrieve(ctx, r)
		require.NoError(t, err)
		told.Asked = append(told.Asked, answeredQuestion{abi.Marshal(r), result.Trace.Generation, texts(result)})
	}

	manifest, err := s.Manifest(ctx)
	require.NoError(t, err)
	told.Manifest = abi.Marshal(manifest)
	if b.handler != nil { // leave two events open: the answer to one is lost, the other is not waited for
		b.lose(true)
		receipt, err := s.RecordEvent(ctx, mara[8])
		b.lose(false)
		if err != nil || receipt.Status == abi.StatusUncertain {
			told.Unanswered = abi.Marshal(mara[8])
		} else { // kept here, and the backend is asked later
			told.Said = append(told.Said, recordedEvent{abi.Marshal(mara[8]), abi.Marshal(receipt)})
		}
	}
	told.Said = append(told.Said, record(mara[9]))
	require.NoError(t, s.Close(ctx))
	require.NoError(t, h.Close(ctx))
	told.Ended, told.Requests = o.Now(), b.requests
	return told
}

// ready waits until a scope is ready, if its provider can tell.
func ready(t *testing.T, s *host.Slot, scope abi.MemoryScope) {
	t.Helper()
	answer, err := s.Readiness(t.Context(), &abi.ReadinessRequest{Scope: scope, TimeoutMS: 20000})
	if abi.CodeOf(err) == abi.CodeUnsupported {
		return
	}
	require.NoError(t, err)
	require.Equal(t, abi.ReadinessReady, answer.Status, "%v", answer.Warnings)
}

// options are a host's on a data folder, before a backend.
func options(dir string, b *backend) host.Options {
	return host.Options{DataDir: dir, CacheDir: testcache.Dir(), Durability: "process", Version: "test",
		Intercept: b.intercept, Now: b.now, Engines: []host.Engine{extism.Engine()}}
}

func texts(r *abi.RetrieveResult) []string {
	list := []string{}
	for _, e := range r.Evidence {
		list = append(list, e.Text)
	}
	return list
}
