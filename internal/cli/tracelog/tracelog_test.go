package tracelog_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/cli/tracelog"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/internal/test/testguest"
)

var scope = abi.MemoryScope{RunID: "run", PersonaID: "persona"}

func event(id, text string) *abi.MemoryEvent {
	return &abi.MemoryEvent{EventID: id, RunID: scope.RunID, UserID: scope.PersonaID, SessionID: "s1", TurnID: id,
		Timestamp: "2026-01-02T03:04:05+01:00", Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}}
}

func TestMain(m *testing.M) { testcache.Run(m) }

// run runs a script against a slot that logs, and returns the log's lines.
func run(t *testing.T, o tracelog.Options, script func(s *host.Slot)) []map[string]any {
	t.Helper()
	ctx := context.Background()
	o.File = filepath.Join(t.TempDir(), "trace.jsonl")
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 20
	}
	l, err := tracelog.Open(o)
	require.NoError(t, err)
	h, err := host.New(ctx, host.Options{DataDir: t.TempDir(), CacheDir: testcache.Dir(),
		OnExchange: l.OnExchange, HealthWarnings: l.Warnings})
	require.NoError(t, err)
	s, err := h.Open(ctx, host.ProviderConfig{Name: "probe", Module: testguest.Unhurried(),
		TestSessions: []string{"test-*"},
		Block:        abi.Raw(`{"url": "http://127.0.0.1:9", "api_key": {"secret": "key"}}`),
		Secrets: map[string]host.Secret{"key": {Origin: "http://127.0.0.1:9", Value: func() (string, error) {
			return "sesame-open-1234", nil
		}}}})
	require.NoError(t, err)
	script(s)
	require.NoError(t, s.Close(ctx))
	require.NoError(t, h.Close(ctx))
	l.Close()
	return lines(t, o.File)
}

func TestALineSaysThatThePageAsked(t *testing.T) {
	got := run(t, tracelog.Options{}, func(s *host.Slot) {
		q := &abi.RetrieveRequest{Query: "q", Scope: scope, SessionID: "page"}
		_, _ = s.Retrieve(context.Background(), q) // nothing listens there, but only the line matters
		_, _ = s.Retrieve(host.WithOrigin(context.Background(), host.OriginPage), q)
	})
	require.Len(t, got, 2)
	require.NotContains(t, got[0], "origin")
	require.Equal(t, "page", got[1]["origin"])
}

func lines(t *testing.T, file string) []map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var list []map[string]any
	for in := bufio.NewScanner(bytes.NewReader(text)); in.Scan(); {
		var l map[string]any
		require.NoError(t, json.Unmarshal(in.Bytes(), &l), in.Text())
		list = append(list, l)
	}
	return list
}

// hostFilled lists the fields of every trace that the host fills in.
var hostFilled = []string{"operation", "backend_name", "condition_kind", "scope", "generation", "latency_ms",
	"tokenizer", "warnings", "io", "backend_ms", "plugin_ms", "host_ms"}

func TestEveryRecordAndRetrieveHasItsWholeTrace(t *testing.T) {
	ctx := context.Background()
	list := run(t, tracelog.Options{}, func(s *host.Slot) {
		_, _ = s.RecordEvent(ctx, event("e1", "echo one"))
		_, _ = s.RecordEvent(ctx, event("e1", "echo one"))
		test := event("e2", "echo two")
		test.SessionID = "test-1"
		_, _ = s.RecordEvent(ctx, test)
		_, _ = s.RecordEvent(ctx, event("e3", "http get"))
		_, _ = s.RecordEvent(ctx, event("e4", "panic on purpose"))
		_, _ = s.Retrieve(ctx, &abi.RetrieveRequest{Query: "echo found", Scope: scope, SessionID: "s2"})
		_, _ = s.Retrieve(ctx, &abi.RetrieveRequest{Query: "http get", Scope: scope, SessionID: "s2"})
		_, _ = s.RecordEvents(ctx, &abi.EventBatch{Events: []abi.MemoryEvent{*event("b1", "echo a"),
			*event("b2", "fail backend no"), *event("b3", "echo c")}})
		_, _ = s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "t"})
		_, _ = s.RecordEvent(ctx, event("e5", "echo five"))
	})
	type row struct{ operation, event, outcome, status string }
	var got []row
	text := func(v any) string { s, _ := v.(string); return s }
	for i, l := range list {
		require.EqualValues(t, i+1, l["seq"])
		got = append(got, row{text(l["operation"]), text(l["event_id"]), text(l["outcome"]), text(l["status"])})
	}
	require.Equal(t, []row{{"record_event", "e1", "ok", "committed"}, {"record_event", "e1", "ok", "committed"},
		{"record_event", "e2", "ok", "skipped_read_only"},
		{"record_event", "e3", "unavailable", ""}, {"record_event", "e4", "internal", ""}, {"retrieve", "", "ok", ""},
		{"retrieve", "", "unavailable", ""},
		{"record_events", "b1", "ok", "committed"}, {"record_events", "b2", "backend", ""},
		{"record_events", "b3", "ok", "committed"}, {"set_mode", "", "ok", ""},
		{"record_event", "e5", "ok", "skipped_read_only"}}, got)
	for _, l := range list {
		if l["operation"] == "set_mode" || l["outcome"] == "backend" {
			continue
		}
		trace, ok := l["trace"].(map[string]any)
		require.True(t, ok, "%v", l)
		for _, field := range hostFilled {
			require.Contains(t, trace, field, "%v", l)
		}
		require.Equal(t, "persona", trace["scope"].(map[string]any)["persona_id"])
		require.Equal(t, "control", trace["condition_kind"])
		require.EqualValues(t, 1, trace["generation"])
	}
	failed := list[3]
	io := failed["trace"].(map[string]any)["io"].([]any)
	require.Len(t, io, 1, "an error's line has the native calls")
	require.Equal(t, "get", io[0].(map[string]any)["route"])
	require.Equal(t, "get", failed["error"].(map[string]any)["route"])
}

func TestContentIsLoggedOnlyWhenAskedFor(t *testing.T) {
	ctx := context.Background()
	script := func(s *host.Slot) {
		_, err := s.RecordEvent(ctx, event("e1", "echo I like <tea>, sesame-open-1234"))
		require.NoError(t, err)
		_, err = s.Retrieve(ctx, &abi.RetrieveRequest{Query: "echo some tea", Scope: scope, SessionID: "s2"})
		require.NoError(t, err)
	}
	raw := func(list []map[string]any) string { b, _ := json.Marshal(list); return string(b) }
	plain := run(t, tracelog.Options{}, script)
	require.NotContains(t, raw(plain), "tea")
	require.NotContains(t, raw(plain), "memory-context")
	require.NotZero(t, plain[1]["context"].(map[string]any)["bytes"])
	require.Len(t, plain[1]["context"].(map[string]any)["sha256"], 64)
	full := run(t, tracelog.Options{Content: true}, script)
	require.Contains(t, full[1]["answer"].(map[string]any)["formatted_context"], "some tea")
	require.Equal(t, "echo some tea", full[1]["request"].(map[string]any)["query"])
	require.NotContains(t, full[1]["answer"], "trace", "it stands beside the answer")
	for _, list := range [][]map[string]any{plain, full} {
		require.NotContains(t, raw(list), "sesame", "secrets are in no log, whoever says them")
	}
}

func TestRotation(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	file := filepath.Join(dir, "trace.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`{"left": "open`), 0o600))
	l, err := tracelog.Open(tracelog.Options{File: file, MaxBytes: 4000, Keep: 2})
	require.NoError(t, err)
	h, err := host.New(ctx, host.Options{DataDir: t.TempDir(), CacheDir: testcache.Dir(),
		OnExchange: l.OnExchange})
	require.NoError(t, err)
	s, err := h.Open(ctx, host.ProviderConfig{Name: "probe", Module: testguest.Unhurried()})
	require.NoError(t, err)
	for i := range 40 {
		_, err := s.RecordEvent(ctx, event(fmt.Sprint("e", i), "echo x"))
		require.NoError(t, err)
	}
	require.NoError(t, s.Close(ctx))
	require.NoError(t, h.Close(ctx))
	l.Close()
	written, lost := l.Counts()
	require.Equal(t, []int64{40, 0}, []int64{written, lost})
	var seqs []float64
	for _, name := range []string{"trace.jsonl.2", "trace.jsonl.1", "trace.jsonl"} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.LessOrEqual(t, info.Size(), int64(4000))
		require.EqualValues(t, 0o600, info.Mode().Perm())
		for _, line := range lines(t, filepath.Join(dir, name)) {
			seqs = append(seqs, line["seq"].(float64))
		}
	}
	for i, seq := range seqs {
		require.Equal(t, 40-float64(len(seqs))+float64(i)+1, seq, "what is kept is whole and in order")
	}
	require.NoFileExists(t, file+".3")
}

func TestALogThatCannotBeWrittenFailsNoOperation(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "gone")
	require.NoError(t, os.Mkdir(dir, 0o700))
	var said bytes.Buffer
	var mu sync.Mutex
	l, err := tracelog.Open(tracelog.Options{File: filepath.Join(dir, "trace.jsonl"), MaxBytes: 1, Keep: 1,
		Logger: hclog.New(&hclog.LoggerOptions{Output: &said, Mutex: &mu})})
	require.NoError(t, err)
	h, err := host.New(ctx, host.Options{DataDir: t.TempDir(), CacheDir: testcache.Dir(),
		OnExchange: l.OnExchange, HealthWarnings: l.Warnings})
	require.NoError(t, err)
	s, err := h.Open(ctx, host.ProviderConfig{Name: "probe", Module: testguest.Unhurried()})
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir)) // the next line must rotate the file, which is missing
	for i := range 10 {
		_, err := s.RecordEvent(ctx, event(fmt.Sprint("e", i), "echo x"))
		require.NoError(t, err)
	}
	l.Close()
	written, lost := l.Counts()
	require.EqualValues(t, 10, written+lost)
	require.Positive(t, lost)
	health, err := s.Health(ctx)
	require.NoError(t, err)
	require.Len(t, health.Warnings, 1)
	require.Contains(t, health.Warnings[0], "trace_lost: ")
	mu.Lock()
	require.Equal(t, 1, strings.Count(said.String(), "cannot be written"), "it is logged once")
	mu.Unlock()
	require.NoError(t, s.Close(ctx))
	require.NoError(t, h.Close(ctx))

	_, err = tracelog.Open(tracelog.Options{File: filepath.Join(dir, "trace.jsonl"), MaxBytes: 1})
	require.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
}
