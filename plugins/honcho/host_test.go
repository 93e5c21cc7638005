package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/brief"
	fake "github.com/memhost/memhost/internal/test/fakes/honcho"
	"github.com/memhost/memhost/internal/test/pages"
	"github.com/memhost/memhost/internal/test/testcache"
)

// slotAt is a slot with the built module behind it, at a server.
func slotAt(t testing.TB, url, block string, o host.Options, secrets map[string]host.Secret) *host.Slot {
	t.Helper()
	if o.DataDir == "" {
		o.DataDir = t.TempDir()
	}
	o.CacheDir, o.Durability = testcache.Dir(), "process"
	h, err := host.New(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close(context.Background())) })
	s, err := h.Open(context.Background(), host.ProviderConfig{Name: "honcho", Module: builtin(t),
		Block: abi.Raw(fmt.Sprintf(`{"url":%q%s}`, url, block)), Secrets: secrets})
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
			e.Messages = append(e.Messages, abi.Message{Role: abi.RoleUser,
				Content: new(fmt.Sprintf("My cat number %d is called Zorvex%d.", i, i))})
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
	assert.Contains(t, result.FormattedContext, headRepresentation+"the user", "the prose has its label")
	for _, e := range result.Evidence {
		assert.Nil(t, e.Score, "Honcho gives none")
	}
	assert.Nil(t, result.Trace.TopScore)
	assert.Empty(t, result.Trace.RepresentationVersion)
}

func TestAKeyThatMayNotCreateWorkspaces(t *testing.T) {
	server := httptest.NewServer(fake.New(fake.Options{Mood: quick,
		Keys: map[string]fake.Key{"ws-key": {Workspace: "lab"}, "admin-key": {Admin: true}}}))
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
			h, err := host.New(ctx, host.Options{DataDir: t.TempDir(), CacheDir: testcache.Dir()})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, h.Close(ctx)) })
			_, err = h.Open(ctx, host.ProviderConfig{Name: "honcho", Module: builtin(t),
				Block: abi.Raw(fmt.Sprintf(`{"url":%q%s}`, server.URL, tt.block)), Secrets: key(tt.key)})
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
			f := fake.New(fake.Options{Mood: fake.Mood{Flush: true, PurgeDelay: 100 * time.Millisecond,
				CacheTTL: time.Hour}})
			server := httptest.NewServer(f)
			t.Cleanup(server.Close)
			s := slotAt(t, server.URL, block, host.Options{}, nil)
			ctx := context.Background()
			bob := turn("e1", "s1", "My cat is called Qumbli.")
			bob.UserID = "bob"
			for _, e := range []*abi.MemoryEvent{turn("e1", "s1", "My cat is called Zorvex."),
				turn("e2", "s2", "I sing."), bob} {
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
				result, err := s.Retrieve(ctx, &abi.RetrieveRequest{Query: "cat",
					Scope: abi.MemoryScope{RunID: "run1", PersonaID: persona}, SessionID: "new"})
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

// TestAResetNeedsNoMoreMemoryThanAPage: the pages of sessions that it deletes have twice the size of the guest's
// memory.
func TestAResetNeedsNoMoreMemoryThanAPage(t *testing.T) {
	brief.Leave(t)
	const sessions, memory = 1000, 12 << 20
	gone := 0
	metadata := strings.Repeat("x", 30<<10)
	server := pages.Serve(t, fake.New(fake.Options{Mood: quick}), func(r *http.Request, _ []byte) string {
		switch {
		case gone < sessions && strings.HasSuffix(r.URL.Path, "/sessions/list"):
			var items []string
			for i := range pageSize {
				items = append(items, fmt.Sprintf(`{"id":"s%d","metadata":{"note":%q}}`, gone+i, metadata))
			}
			return fmt.Sprintf(`{"items":[%s],"total":%d,"page":1,"size":100,"pages":%d}`,
				strings.Join(items, ","), sessions-gone, (sessions-gone)/pageSize)
		case r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/sessions/"):
			gone++
			return "{}"
		}
		return ""
	})
	s := slotAt(t, server.URL, "", host.Options{Limits: host.Limits{MemoryBytes: memory}}, nil)
	_, err := s.SetupScope(t.Context(), scope)
	require.NoError(t, err)
	receipt, err := s.ResetScope(t.Context(), scope)
	require.NoError(t, err)
	assert.Equal(t, abi.ResetDone, receipt.Status)
	assert.EqualValues(t, sessions, *receipt.Removed["session"])
	server.MoreThan(t, memory)
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
