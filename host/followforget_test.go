package host_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins"
)

// mem0Config is the built mem0 module with a fake server, whose language model is rule-based.
func mem0Config(t testing.TB) host.ProviderConfig {
	t.Helper()
	m, ok := plugins.Find("mem0")
	require.True(t, ok)
	server := httptest.NewServer(mem0.New(mem0.Options{}))
	t.Cleanup(server.Close)
	return host.ProviderConfig{Name: "mem0", Module: m.Wasm, Source: "builtin",
		Block: abi.Raw(`{"url":"` + server.URL + `"}`)}
}

// slotWithFollower opens a slot with a control that keeps everything, and with mem0 as its shadow, which gets every
// retrieval.
func slotWithFollower(t *testing.T, dir string) (*host.Host, *host.Slot) {
	t.Helper()
	h, err := host.New(context.Background(), host.Options{DataDir: dir, CacheDir: testcache.Dir(), Archive: true})
	require.NoError(t, err)
	s, err := h.Open(context.Background(), host.History(t, ""))
	require.NoError(t, err)
	require.NoError(t, s.Shadow(context.Background(), mem0Config(t), host.ShadowOptions{SamplePercent: 100}))
	return h, s
}

// atFollower retrieves from the slot's only follower.
func atFollower(t *testing.T, s *host.Slot, scope abi.MemoryScope, query string) string {
	t.Helper()
	found, err := host.FollowerOf(t, s).Retrieve(context.Background(), &abi.RetrieveRequest{Query: query,
		Scope: scope, SessionID: "new"})
	require.NoError(t, err)
	return found.FormattedContext
}

func TestAFollowerForgetsByItsOwnMeans(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	h, s := slotWithFollower(t, dir)
	e := host.Event("e1", "My cat is called Zorvex.")
	e.SessionID = "cat"
	_, err := s.RecordEvent(ctx, e)
	require.NoError(t, err)
	host.RunCommands(t, s, "e2", "I live in Oslo.")
	host.Until(t, "it has everything", func() bool { return host.ShadowOf(t, s).State == report.FollowerReady })
	_, err = s.Retrieve(ctx, &abi.RetrieveRequest{Query: "the cat Zorvex", Scope: host.TestScope, SessionID: "new"})
	require.NoError(t, err)
	host.Until(t, "it was asked", func() bool { return host.ShadowOf(t, s).Report.Answers == 1 })
	require.Contains(t, atFollower(t, s, host.TestScope, "the cat Zorvex"), "Zorvex")

	r, err := s.Forget(ctx, &abi.ForgetRequest{Scope: host.TestScope, SessionID: "cat", Reason: "asked"})
	require.NoError(t, err)
	require.Equal(t, abi.ForgetDone, r.Status, "%v", r.DerivedMayRemain)
	require.Equal(t, []string{"e1"}, r.Removed[host.NativeArchived])
	require.Len(t, r.Removed["memory (mem0)"], 1)
	require.Contains(t, strings.Join(r.DerivedMayRemain, "\n"), "at mem0, which follows: history: mem0 keeps")
	require.NotContains(t, atFollower(t, s, host.TestScope, "the cat Zorvex in Oslo"), "Zorvex")
	require.Contains(t, atFollower(t, s, host.TestScope, "the cat Zorvex in Oslo"), "Oslo")
	require.Zero(t, host.ShadowOf(t, s).Report.Answers)
	past, err := s.Forget(ctx, &abi.ForgetRequest{Scope: host.TestScope, From: "1990-01-01T00:00:00Z",
		To: "1990-01-02T00:00:00Z"})
	require.NoError(t, err)
	require.NotContains(t, strings.Join(past.DerivedMayRemain, "\n"), "was not asked", "the one that serves was")
	known := host.LedgerEntry(t, host.FollowerOf(t, s), "e1")
	require.Nil(t, known, "the follower's own ledger has lost it")
	require.NoError(t, s.Close(ctx))
	require.NoError(t, h.Close(ctx))
	require.Empty(t, host.DataHas(t, dir, "Zorvex"))
}

func TestAPersonIsErasedAtFollowersToo(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	h, s := slotWithFollower(t, dir)
	for _, e := range []*abi.MemoryEvent{host.Event("e1", "My cat is called Zorvex."), host.Event("e2", "I live in Oslo.")} {
		e.UserID = map[string]string{"e1": "ann", "e2": "bob"}[e.EventID]
		_, err := s.RecordEvent(ctx, e)
		require.NoError(t, err)
	}
	host.Until(t, "it has everything", func() bool { return host.ShadowOf(t, s).State == report.FollowerReady })
	ann, bob := host.TestScope, host.TestScope
	ann.PersonaID, bob.PersonaID = "ann", "bob"
	for i, scope := range []abi.MemoryScope{ann, bob} {
		_, err := s.Retrieve(ctx, &abi.RetrieveRequest{Query: "what do you know of me", Scope: scope, SessionID: "new"})
		require.NoError(t, err)
		host.Until(t, "it was asked", func() bool { return host.ShadowOf(t, s).Report.Answers == int64(i+1) })
	}
	require.Contains(t, atFollower(t, s, ann, "the cat Zorvex"), "Zorvex")

	r, err := s.ErasePersona(ctx, &report.PersonaRequest{PersonaID: "ann", Reason: "asked"},
		func(context.Context, *host.StoredProvider) (host.ProviderConfig, error) {
			require.Fail(t, "a follower is open already")
			return host.ProviderConfig{}, nil
		})
	require.NoError(t, err)
	require.Equal(t, abi.ForgetDone, r.Status, "%v", r.Scopes)
	require.Len(t, r.Scopes, 2)
	for _, scope := range r.Scopes {
		require.Equal(t, abi.ResetDone, scope.Status, scope.Provider)
	}
	require.NotContains(t, atFollower(t, s, ann, "the cat Zorvex"), "Zorvex")
	require.Contains(t, atFollower(t, s, bob, "Oslo"), "Oslo", "others' memory goes on")
	page, err := s.ShadowAnswers(ctx, &report.ShadowAnswersRequest{Limit: 10})
	require.NoError(t, err)
	require.Len(t, page.Answers, 1)
	require.Equal(t, "bob", page.Answers[0].Scope.PersonaID)
	again := host.Event("e1", "My cat is called Zorvex.")
	again.UserID = "ann"
	_, err = s.RecordEvent(ctx, again)
	host.RequireCode(t, err, abi.CodeConflict, "was forgotten")
	require.NoError(t, s.Close(ctx))
	require.NoError(t, h.Close(ctx))
	require.Empty(t, host.DataHas(t, dir, "Zorvex"))
}
