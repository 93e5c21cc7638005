package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins"
)

// memoryConfig is a built-in control in a namespace.
func memoryConfig(name, namespace string) host.ProviderConfig {
	m, _ := plugins.Find(name)
	return host.ProviderConfig{Name: name, Module: m.Wasm, Source: "builtin", Block: abi.Raw(`{}`), Namespace: namespace}
}

func TestAPersonIsErasedFromEveryProviderThatTheFolderKnows(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	h, err := host.New(ctx, host.Options{DataDir: dir, CacheDir: testcache.Dir(), Archive: true})
	require.NoError(t, err)
	s, err := h.Open(ctx, memoryConfig("full_history", "before"))
	require.NoError(t, err)
	tell := func(id, run, user, text string) error {
		e := host.Event(id, text)
		e.RunID, e.UserID = run, user
		_, err := s.RecordEvent(ctx, e)
		return err
	}
	require.NoError(t, tell("e1", "run 1", "ann", "my cat is called zorvex"))
	require.NoError(t, tell("e2", "run 2", "ann", "zorvex likes milk"))
	require.NoError(t, tell("e1", "run 1", "bob", "I like tea"))
	_, err = s.Swap(ctx, memoryConfig("bm25", ""))
	require.NoError(t, err)
	require.NoError(t, tell("e3", "run 1", "ann", "zorvex sleeps"))
	require.NoError(t, tell("e2", "run 1", "bob", "I like rain"))
	require.NotEmpty(t, host.DataHas(t, dir, "zorvex"))

	request := &report.PersonaRequest{PersonaID: "ann", Reason: "asked by ann"}
	cannot := func(context.Context, *host.StoredProvider) (host.ProviderConfig, error) {
		return host.ProviderConfig{}, errors.New("its module is gone")
	}
	r, err := s.ErasePersona(ctx, request, cannot)
	require.NoError(t, err)
	require.Equal(t, abi.ForgetPartial, r.Status)
	require.EqualValues(t, 3, r.ArchivedEvents)
	status, remains := map[string]abi.ResetStatus{}, ""
	for _, x := range r.Scopes {
		remains += strings.Join(x.Remains, "; ")
		status[x.Provider+" "+x.RunID] = x.Status
		require.Equal(t, x.Provider == "bm25", x.Serving)
	}
	require.Equal(t, map[string]abi.ResetStatus{"full_history run 1": abi.ResetFailed, "full_history run 2": abi.ResetFailed,
		"bm25 run 1": abi.ResetDone}, status)
	require.Contains(t, remains, "its module is gone")

	var kept []*host.StoredProvider
	r, err = s.ErasePersona(ctx, request, func(_ context.Context, k *host.StoredProvider) (host.ProviderConfig, error) {
		kept = append(kept, k)
		return memoryConfig(k.Name, ""), nil
	})
	require.NoError(t, err)
	require.Equal(t, abi.ForgetDone, r.Status, "%v", r.Scopes)
	require.Len(t, kept, 1, "a provider is opened once for all its scopes")
	require.Equal(t, "builtin", kept[0].Source)
	require.Equal(t, "before", kept[0].Namespace)
	host.RequireCode(t, tell("e1", "run 1", "ann", "my cat is called zorvex"), abi.CodeConflict, "was forgotten")
	host.RequireCode(t, tell("new", "run 3", "ann", "of another run"), abi.CodeConflict, "was forgotten")
	later := host.Event("later", "I am back")
	later.UserID, later.Timestamp = "ann", "2099-01-01T00:00:00Z"
	_, err = s.RecordEvent(ctx, later)
	require.NoError(t, err)
	m, err := s.Manifest(ctx)
	require.NoError(t, err)
	require.Equal(t, "bm25", m.Provider, "the one that serves goes on")

	_, err = s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	_, err = s.ErasePersona(ctx, request, cannot)
	host.RequireCode(t, err, abi.CodeReadOnly, "nothing is erased")
	_, err = s.SetMode(ctx, &abi.AdapterMode{Reason: "r"})
	require.NoError(t, err)

	for namespace, want := range map[string]string{"before": "I like tea", "": "I like rain"} {
		name := map[string]string{"before": "full_history", "": "bm25"}[namespace]
		_, err = s.Swap(ctx, memoryConfig(name, namespace))
		require.NoError(t, err)
		found, err := s.Retrieve(ctx, &abi.RetrieveRequest{Query: want, SessionID: "new",
			Scope: abi.MemoryScope{RunID: "run 1", PersonaID: "bob"}})
		require.NoError(t, err)
		require.Contains(t, found.FormattedContext, want, "another person's memory is untouched")
	}
	require.NoError(t, s.Close(ctx))
	require.NoError(t, h.Close(ctx))
	require.Empty(t, host.DataHas(t, dir, "zorvex"))
}

func TestAPersonIsErasedFromMemoriesThatFollowedAndNeverServed(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	within := func(do func(s *host.Slot)) {
		h, err := host.New(ctx, host.Options{DataDir: dir, CacheDir: testcache.Dir(), Archive: true})
		require.NoError(t, err)
		s, err := h.Open(ctx, memoryConfig("full_history", ""))
		require.NoError(t, err)
		do(s)
		require.NoError(t, s.Close(ctx))
		require.NoError(t, h.Close(ctx))
	}
	within(func(s *host.Slot) {
		_, err := s.RecordEvent(ctx, host.Event("e1", "my cat is called zorvex"))
		require.NoError(t, err)
		require.NoError(t, s.Shadow(ctx, memoryConfig("bm25", "shadow"), host.ShadowOptions{}))
		host.Until(t, "the shadow has it", func() bool { return host.ShadowOf(t, s).Progress.Done == 1 })
	})
	within(func(s *host.Slot) { // without the shadow
		for i := range 100 {
			_, err := s.RecordEvent(ctx, host.Event(fmt.Sprint("x", i), "zorvex sleeps"))
			require.NoError(t, err)
		}
		_, err := s.Backfill(ctx, memoryConfig("bm25", "stopped"), host.BackfillOptions{Rate: 25})
		require.NoError(t, err)
		host.Until(t, "it has some", func() bool {
			b, err := s.BackfillStatus(ctx)
			require.NoError(t, err)
			return b.Progress.Done > 0
		})
		_, err = s.BackfillStop(ctx, &report.BackfillStop{})
		require.NoError(t, err)
		r, err := s.ErasePersona(ctx, &report.PersonaRequest{PersonaID: host.Event("e1", "").UserID},
			func(_ context.Context, k *host.StoredProvider) (host.ProviderConfig, error) {
				return memoryConfig(k.Name, ""), nil
			})
		require.NoError(t, err)
		require.Equal(t, abi.ForgetDone, r.Status, "%v", r.Scopes)
		require.Len(t, r.Scopes, 3)
	})
	require.Empty(t, host.DataHas(t, dir, "zorvex"))
}
