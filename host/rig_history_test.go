package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins"
	"github.com/stretchr/testify/require"
)

// History is full_history in a namespace: each namespace is a separate memory.
func History(t testing.TB, namespace string) ProviderConfig {
	t.Helper()
	m, ok := plugins.Find("full_history")
	require.True(t, ok)
	return ProviderConfig{Name: "full_history", Module: m.Wasm, Source: "builtin", Namespace: namespace,
		TestSessions: []string{"test-*"}}
}

func PersonScope(person string) abi.MemoryScope {
	return abi.MemoryScope{RunID: "r", PersonaID: person}
}

// Turn returns the nth turn of a person.
func Turn(person string, n int) *abi.MemoryEvent {
	text := fmt.Sprintf("%s says %d", person, n)
	return &abi.MemoryEvent{EventID: fmt.Sprintf("%s-%05d", person, n), RunID: "r", UserID: person, SessionID: "s",
		TurnID: fmt.Sprint(n), Timestamp: time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC).Format(time.RFC3339),
		Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}}
}

// Record records turns of a person, and requires that each is accepted.
func Record(t testing.TB, s *Slot, person string, from, to int) {
	t.Helper()
	for ; from < to; from++ {
		r, err := s.RecordEvent(context.Background(), Turn(person, from))
		require.NoError(t, err)
		require.Equal(t, abi.StatusCommitted, r.Status)
	}
}

// Remembered returns the event ids in a person's memory, in the order in which full_history received them.
func Remembered(t testing.TB, s *Slot, person string) []string {
	t.Helper()
	q, err := s.Retrieve(context.Background(), &abi.RetrieveRequest{Query: "q", SessionID: "new",
		Scope: PersonScope(person)})
	require.NoError(t, err)
	var turns []abi.MemoryEvent
	require.NoError(t, json.Unmarshal(q.Raw.Calls[0].Body, &turns))
	ids := []string{}
	for _, e := range turns {
		ids = append(ids, e.EventID)
	}
	return ids
}

func TurnIDs(person string, from, to int) []string {
	ids := []string{}
	for ; from < to; from++ {
		ids = append(ids, Turn(person, from).EventID)
	}
	return ids
}

// Until waits until a condition is true.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	end := time.Now().Add(60 * time.Second)
	for !holds() {
		if time.Now().After(end) {
			require.Fail(t, "it took too long: "+what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// UntilState waits until the backfill is in a state.
func UntilState(t testing.TB, s *Slot, want report.FollowerState) *report.Backfill {
	t.Helper()
	var last *report.Backfill
	Until(t, string(want), func() bool {
		b, err := s.BackfillStatus(context.Background())
		require.NoError(t, err)
		last = b
		return b.State == want
	})
	return last
}

// Serves waits until a memory serves, and returns its manifest.
func Serves(t testing.TB, s *Slot, namespace string) *report.RunManifest {
	t.Helper()
	var last *report.RunManifest
	Until(t, namespace+" serves", func() bool {
		m, err := s.Manifest(context.Background())
		require.NoError(t, err)
		last = m
		return m.Namespace == namespace
	})
	return last
}

// DataHas returns the files in a folder that contain a text.
func DataHas(t *testing.T, dir, text string) (files []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		path := dir + "/" + e.Name()
		if e.IsDir() {
			files = append(files, DataHas(t, path, text)...)
			continue
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		if bytes.Contains(content, []byte(text)) {
			files = append(files, path)
		}
	}
	return files
}

// ShadowOf returns the slot's only shadow.
func ShadowOf(t testing.TB, s *Slot) *report.Shadow {
	t.Helper()
	list, err := s.Shadows(context.Background())
	require.NoError(t, err)
	require.Len(t, list.Shadows, 1)
	return &list.Shadows[0]
}

// RunHistory opens a host and a slot on a folder, runs within, and closes both.
func RunHistory(t *testing.T, dir string, within func(h *Host, s *Slot)) {
	t.Helper()
	ctx := context.Background()
	h, err := New(ctx, Options{DataDir: dir, CacheDir: testcache.Dir(), Archive: true, Durability: "process"})
	require.NoError(t, err)
	s, err := h.Open(ctx, History(t, ""))
	require.NoError(t, err)
	within(h, s)
	require.NoError(t, s.Close(ctx))
	require.NoError(t, h.Close(ctx))
}

// fillable is a backend of the probe; tests set its answer to each part.
type fillable struct {
	*httptest.Server
	Posts  atomic.Int64
	answer func(n int64, rw http.ResponseWriter)
}

func NewFillable(t testing.TB, answer func(n int64, rw http.ResponseWriter)) *fillable {
	b := &fillable{answer: answer}
	b.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/find" {
			_, _ = rw.Write([]byte("present"))
			return
		}
		b.answer(b.Posts.Add(1), rw)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *fillable) Config() ProviderConfig {
	c := ProbeConfig(fmt.Sprintf(`{"url":%q}`, b.URL))
	c.Namespace = "next"
	return c
}
