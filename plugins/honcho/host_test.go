package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	fake "github.com/memhost/memhost/internal/fakes/honcho"
)

// slotAt is a slot with the built module behind it, at a server.
func slotAt(t testing.TB, url, block string, o host.Options, secrets map[string]host.Secret) *host.Slot {
	t.Helper()
	if o.DataDir == "" {
		o.DataDir = t.TempDir()
	}
	o.CacheDir = compiled(t)
	h, err := host.New(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close(context.Background())) })
	s, err := h.Open(context.Background(), host.ProviderConfig{Name: "honcho", Module: builtin(t), Block: abi.Raw(fmt.Sprintf(`{"url":%q%s}`, url, block)), Secrets: secrets})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s
}

func TestRecordAndRetrieveTakeOneNativeCallEach(t *testing.T) {
	server := httptest.NewServer(fake.New(fake.Options{Mood: quick}))
	t.Cleanup(server.Close)
	s := slotAt(t, server.URL, "", host.Options{}, nil)
	ctx := context.Background()
	_, err := s.SetupScope(ctx, scope)
	require.NoError(t, err)
	for _, n := range []int{1, 2, 100} {
		e := turn(fmt.Sprint("e", n), "s1")
		for i := range n {
			e.Messages = append(e.Messages, abi.Message{Role: abi.RoleUser, Content: new(fmt.Sprintf("My cat number %d is called Zorvex%d.", i, i))})
		}
		receipt, err := s.RecordEvent(ctx, e)
		require.NoError(t, err)
		assert.Len(t, receipt.Trace.IO, 1, "%d messages", n)
		assert.Len(t, receipt.NativeIDs, n)
	}
	result, err := s.Retrieve(ctx, &abi.RetrieveRequest{Query: "What is my cat called?", Scope: scope, SessionID: "s2"})
	require.NoError(t, err)
	assert.Len(t, result.Trace.IO, 1)
	assert.Contains(t, result.FormattedContext, "] user-alice said: My cat number")
	assert.Contains(t, result.FormattedContext, representationHeading, "the prose has its label")
	for _, e := range result.Evidence {
		assert.Nil(t, e.Score, "Honcho gives none")
	}
	assert.Nil(t, result.Trace.TopScore)
	assert.Empty(t, result.Trace.RepresentationVersion)
}

func TestAKeyThatMayNotCreateWorkspaces(t *testing.T) {
	server := httptest.NewServer(fake.New(fake.Options{Mood: quick, Keys: map[string]fake.Key{"ws-key": {Workspace: "lab"}, "admin-key": {Admin: true}}}))
	t.Cleanup(server.Close)
	key := func(value string) map[string]host.Secret {
		return map[string]host.Secret{"H": {Value: func() (string, error) { return value, nil }, Origin: server.URL}}
	}
	ctx := context.Background()
	for _, tt := range []struct {
		name, block, key string
		works            bool
	}{
		{"an admin key makes a workspace for each scope", `,"api_key":{"secret":"H"}`, "admin-key", true},
		{"a workspace key works in its workspace", `,"api_key":{"secret":"H"},"fixed_workspace":"lab"`, "ws-key", true},
		{"a workspace key cannot make another", `,"api_key":{"secret":"H"}`, "ws-key", false},
		{"no key", ``, "", false},
		{"a wrong key", `,"api_key":{"secret":"H"}`, "expired", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.works {
				s := slotAt(t, server.URL, tt.block, host.Options{}, key(tt.key))
				receipt, err := s.RecordEvent(ctx, turn("e1", "s1", "I sing."))
				require.NoError(t, err)
				assert.Equal(t, abi.StatusQueued, receipt.Status)
				return
			}
			h, err := host.New(ctx, host.Options{DataDir: t.TempDir(), CacheDir: compiled(t)})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, h.Close(ctx)) })
			_, err = h.Open(ctx, host.ProviderConfig{Name: "honcho", Module: builtin(t), Block: abi.Raw(fmt.Sprintf(`{"url":%q%s}`, server.URL, tt.block)), Secrets: key(tt.key)})
			require.Equal(t, abi.CodeUnauthenticated, abi.CodeOf(err), "%v", err)
			e := abi.AsError(err)
			assert.EqualValues(t, 401, *e.Native.Status)
			assert.Contains(t, e.Native.Body, "detail")
			assert.Contains(t, e.Hint, "fixed_workspace")
			assert.NotContains(t, string(abi.Marshal(e)), "-key")
		})
	}
}

func TestAResetIsPolledToItsEndAndLeavesTheOtherScopeAlone(t *testing.T) {
	for _, block := range []string{"", `,"fixed_workspace":"lab"`} {
		t.Run("block "+block, func(t *testing.T) {
			f := fake.New(fake.Options{Mood: fake.Mood{Flush: true, PurgeDelay: 100 * time.Millisecond, CacheTTL: time.Hour}})
			server := httptest.NewServer(f)
			t.Cleanup(server.Close)
			s := slotAt(t, server.URL, block, host.Options{}, nil)
			ctx := context.Background()
			bob := turn("e1", "s1", "My cat is called Qumbli.")
			bob.UserID = "bob"
			for _, e := range []*abi.MemoryEvent{turn("e1", "s1", "My cat is called Zorvex."), turn("e2", "s2", "I sing."), bob} {
				_, err := s.RecordEvent(ctx, e)
				require.NoError(t, err)
			}
			receipt, err := s.ResetScope(ctx, scope)
			require.NoError(t, err)
			assert.Equal(t, abi.ResetDone, receipt.Status)
			assert.EqualValues(t, 2, *receipt.Removed["session"])
			assert.Equal(t, receipt.OldGeneration+1, receipt.NewGeneration)
			assert.Equal(t, block != "", len(receipt.Remains) > 0, "peers cannot be deleted: %v", receipt.Remains)
			for persona, want := range map[string]string{"alice": "", "bob": "Qumbli"} {
				result, err := s.Retrieve(ctx, &abi.RetrieveRequest{Query: "cat", Scope: abi.MemoryScope{RunID: "run1", PersonaID: persona}, SessionID: "new"})
				require.NoError(t, err)
				assert.Equal(t, want != "", strings.Contains(result.FormattedContext, "Qumbli"), persona)
				assert.NotContains(t, result.FormattedContext, "Zorvex")
			}
			again, err := s.RecordEvent(ctx, turn("e1", "s1", "My cat is called Nimbor."))
			require.NoError(t, err, "the id may be used again, whatever the API caches")
			assert.False(t, again.Duplicate)
			second, err := s.ResetScope(ctx, scope)
			require.NoError(t, err)
			assert.Equal(t, abi.ResetDone, second.Status)
		})
	}
}

func TestADefaultServerIsPendingAndNeverAPass(t *testing.T) {
	server := httptest.NewServer(fake.New(fake.Options{}))
	t.Cleanup(server.Close)
	now := time.Now()
	s := slotAt(t, server.URL, "", host.Options{Now: func() time.Time { return now }}, nil)
	_, err := s.RecordEvent(context.Background(), turn("e1", "s1", "My cat is called Zorvex."))
	require.NoError(t, err)
	now = now.Add(30 * time.Second)
	ready, err := s.Readiness(context.Background(), &abi.ReadinessRequest{Scope: scope})
	require.NoError(t, err)
	assert.Equal(t, abi.ReadinessPending, ready.Status)
	assert.Contains(t, strings.Join(ready.Warnings, "\n"), "DERIVER_FLUSH_ENABLED=true")
}

// direct is a client without anything between it and the server.
type direct struct{ url string }

func (d direct) do(b *testing.B, method, path, body string) []byte {
	r, err := http.NewRequest(method, d.url+path, strings.NewReader(body))
	require.NoError(b, err)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(b, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(b, err)
	require.Less(b, answer.StatusCode, 300, "%s", text)
	return text
}

// slow answers after a while.
type slow struct {
	http.Handler
	by time.Duration
}

func (s slow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.by > 0 {
		time.Sleep(s.by) // the backend's own time, not a wait of the test
	}
	s.Handler.ServeHTTP(w, r)
}

// BenchmarkNative compares operations through a slot with the same HTTP call made directly, at a backend that answers at once and after 5 ms.
func BenchmarkNative(b *testing.B) {
	for _, by := range []time.Duration{0, 5 * time.Millisecond} {
		f := fake.New(fake.Options{Mood: fake.Mood{Flush: true, EnqueueFails: true}})
		server := httptest.NewServer(slow{f, by})
		b.Cleanup(server.Close)
		slots := map[string]*host.Slot{"power": slotAt(b, server.URL, "", host.Options{}, nil), "process": slotAt(b, server.URL, "", host.Options{Durability: "process"}, nil)}
		ctx := context.Background()
		for _, s := range slots {
			_, err := s.RecordEvent(ctx, turn("e0", "s0", "My cat is called Zorvex.", "Noted."))
			require.NoError(b, err)
		}
		ask := &abi.RetrieveRequest{Query: "What is my cat called?", Scope: scope, SessionID: "s0"}
		d := direct{server.URL}
		workspace := "/v3/workspaces/" + f.Workspaces()[0]
		name := fmt.Sprintf("backend=%v/", by)
		b.Run(name+"op=retrieve/by=direct", func(b *testing.B) {
			for b.Loop() {
				var v map[string]any
				require.NoError(b, json.Unmarshal(d.do(b, "GET", workspace+"/sessions/s-s0/context?tokens=8000&summary=true&peer_target=user-alice&max_conclusions=25&search_query=What+is+my+cat+called&search_top_k=25", ""), &v))
			}
		})
		b.Run(name+"op=retrieve/by=slot", func(b *testing.B) {
			for b.Loop() {
				_, err := slots["power"].Retrieve(ctx, ask)
				require.NoError(b, err)
			}
		})
		body := `{"messages":[{"peer_id":"user-alice","content":"I like tea.","created_at":"2026-03-01T09:00:00Z"},{"peer_id":"agent-default","content":"Noted.","created_at":"2026-03-01T09:00:00Z"}]}`
		b.Run(name+"op=record/by=direct", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				d.do(b, "POST", fmt.Sprintf("%s/sessions/d%d/messages", workspace, i), body)
			}
		})
		for _, durability := range []string{"process", "power"} {
			b.Run(name+"op=record/by=slot,"+durability, func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					id := fmt.Sprintf("%s-%s-%d-%d", durability, by, b.N, i)
					_, err := slots[durability].RecordEvent(ctx, turn(id, id, "I like tea.", "Noted."))
					require.NoError(b, err)
				}
			})
		}
	}
}
