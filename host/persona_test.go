package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins"
)

// memoryConfig is a built-in control in a namespace.
func memoryConfig(name, namespace string) ProviderConfig {
	m, _ := plugins.Find(name)
	return ProviderConfig{Name: name, Module: m.Wasm, Source: "builtin", Block: abi.Raw(`{}`), Namespace: namespace}
}

func TestAPersonIsErasedFromEveryProviderThatTheFolderKnows(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	h, err := New(ctx, Options{DataDir: dir, CacheDir: testcache.Dir(), Archive: true})
	require.NoError(t, err)
	s, err := h.Open(ctx, memoryConfig("full_history", "before"))
	require.NoError(t, err)
	tell := func(id, run, user, text string) error {
		e := event(id, text)
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
	require.NotEmpty(t, dataHas(t, dir, "zorvex"))

	request := &report.PersonaRequest{PersonaID: "ann", Reason: "asked by ann"}
	cannot := func(context.Context, *KeptProvider) (ProviderConfig, error) {
		return ProviderConfig{}, errors.New("its module is gone")
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

	var kept []*KeptProvider
	r, err = s.ErasePersona(ctx, request, func(_ context.Context, k *KeptProvider) (ProviderConfig, error) {
		kept = append(kept, k)
		return memoryConfig(k.Name, ""), nil
	})
	require.NoError(t, err)
	require.Equal(t, abi.ForgetDone, r.Status, "%v", r.Scopes)
	require.Len(t, kept, 1, "a provider is opened once for all its scopes")
	require.Equal(t, "builtin", kept[0].Source)
	require.Equal(t, "before", kept[0].Namespace)
	requireCode(t, tell("e1", "run 1", "ann", "my cat is called zorvex"), abi.CodeConflict, "was forgotten")
	requireCode(t, tell("new", "run 3", "ann", "of another run"), abi.CodeConflict, "was forgotten")
	later := event("later", "I am back")
	later.UserID, later.Timestamp = "ann", "2099-01-01T00:00:00Z"
	_, err = s.RecordEvent(ctx, later)
	require.NoError(t, err)
	m, err := s.Manifest(ctx)
	require.NoError(t, err)
	require.Equal(t, "bm25", m.Provider, "the one that serves goes on")

	_, err = s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	_, err = s.ErasePersona(ctx, request, cannot)
	requireCode(t, err, abi.CodeReadOnly, "nothing is erased")
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
	require.Empty(t, dataHas(t, dir, "zorvex"))
}

func TestAPersonIsErasedFromMemoriesThatFollowedAndNeverServed(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	within := func(do func(s *Slot)) {
		h, err := New(ctx, Options{DataDir: dir, CacheDir: testcache.Dir(), Archive: true})
		require.NoError(t, err)
		s, err := h.Open(ctx, memoryConfig("full_history", ""))
		require.NoError(t, err)
		do(s)
		require.NoError(t, s.Close(ctx))
		require.NoError(t, h.Close(ctx))
	}
	within(func(s *Slot) {
		_, err := s.RecordEvent(ctx, event("e1", "my cat is called zorvex"))
		require.NoError(t, err)
		require.NoError(t, s.Shadow(ctx, memoryConfig("bm25", "shadow"), ShadowOptions{}))
		until(t, "the shadow has it", func() bool { return shadowOf(t, s).Progress.Done == 1 })
	})
	within(func(s *Slot) { // without the shadow
		for i := range 100 {
			_, err := s.RecordEvent(ctx, event(fmt.Sprint("x", i), "zorvex sleeps"))
			require.NoError(t, err)
		}
		_, err := s.Backfill(ctx, memoryConfig("bm25", "stopped"), BackfillOptions{Rate: 25})
		require.NoError(t, err)
		until(t, "it has some", func() bool {
			b, err := s.BackfillStatus(ctx)
			require.NoError(t, err)
			return b.Progress.Done > 0
		})
		_, err = s.BackfillStop(ctx, &report.BackfillStop{})
		require.NoError(t, err)
		r, err := s.ErasePersona(ctx, &report.PersonaRequest{PersonaID: event("e1", "").UserID},
			func(_ context.Context, k *KeptProvider) (ProviderConfig, error) { return memoryConfig(k.Name, ""), nil })
		require.NoError(t, err)
		require.Equal(t, abi.ForgetDone, r.Status, "%v", r.Scopes)
		require.Len(t, r.Scopes, 3)
	})
	require.Empty(t, dataHas(t, dir, "zorvex"))
}
