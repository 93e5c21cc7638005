package host

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins"
)

// hanging is mem0 as a shadow whose backend can be made to hang: it then answers nothing until the caller gives up, or
// until fail makes it reject every call.
func hanging(t *testing.T, namespace string) (config ProviderConfig, hang, fail func()) {
	t.Helper()
	m, ok := plugins.Find("mem0")
	require.True(t, ok)
	backend, hangs, fails := mem0.New(mem0.Options{}), make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-hangs:
			select {
			case <-r.Context().Done():
			case <-fails:
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		default:
			backend.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return ProviderConfig{Name: "mem0", Module: m.Wasm, Source: "builtin", Namespace: namespace,
		Block: abi.Raw(`{"url":"` + server.URL + `"}`)}, func() { close(hangs) }, func() { close(fails) }
}

// A hanging shadow is named in the receipt. It delays neither the erasing of the host's own data nor another shadow.
func TestAHangingShadowHoldsUpNoErasing(t *testing.T) {
	brief.Leave(t)
	for name, erase := range map[string]func(s *Slot) (status abi.ForgetStatus, mayRemain []string, err error){
		"person": func(s *Slot) (abi.ForgetStatus, []string, error) {
			r, err := s.ErasePersona(context.Background(), &report.PersonaRequest{PersonaID: "ann"}, nil)
			if err != nil {
				return "", nil, err
			}
			return r.Status, r.MayRemain, nil
		},
		"session": func(s *Slot) (abi.ForgetStatus, []string, error) {
			r, err := s.Forget(context.Background(), &abi.ForgetRequest{SessionID: "s1",
				Scope: abi.MemoryScope{RunID: "run", PersonaID: "ann"}})
			if err != nil {
				return "", nil, err
			}
			return r.Status, r.DerivedMayRemain, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			dir := t.TempDir()
			h, err := New(ctx, Options{DataDir: dir, CacheDir: testcache.Dir(), Archive: true})
			require.NoError(t, err)
			h.eraseWithin = time.Second
			s, err := h.Open(ctx, History(t, ""))
			require.NoError(t, err)
			config, hang, fail := hanging(t, "hangs")
			require.NoError(t, s.Shadow(ctx, config, ShadowOptions{}))
			require.NoError(t, s.Shadow(ctx, History(t, "answers"), ShadowOptions{}))
			for _, run := range []string{"run", "run2", "run3"} {
				e := Event("e1-"+run, "My cat is called Zorvex.")
				e.UserID, e.RunID = "ann", run
				_, err := s.RecordEvent(ctx, e)
				require.NoError(t, err)
			}
			Until(t, "the shadows have everything", func() bool {
				for _, f := range s.followers.list() {
					if at, _, err := f.work.Progress(ctx); err != nil || at != report.FollowerReady {
						return false
					}
				}
				return true
			})
			hang()
			began := time.Now()
			status, mayRemain, err := erase(s)
			require.NoError(t, err)
			require.Less(t, time.Since(began), 15*time.Second, "the shadow's own deadline is longer, for each scope")
			require.Equal(t, abi.ForgetPartial, status)
			for _, what := range mayRemain {
				require.Contains(t, what, "mem0", "the other shadow has forgotten")
			}
			require.Contains(t, strings.Join(mayRemain, "\n"), "all of it: ")
			_, err = s.Retrieve(ctx, Ask("the cat Zorvex"))
			require.NoError(t, err)
			for _, e := range AllArchived(t, h, 0) {
				require.NotEqual(t, "run", e.RunID, "the archive was erased")
			}
			fail() // the shadow's own reset of the scope still hangs
			require.NoError(t, s.Close(ctx))
			require.NoError(t, h.Close(ctx))
			if name == "person" {
				require.Empty(t, DataHas(t, dir, "Zorvex"))
			}
		})
	}
}

// A reset leaves no text of the scope in the data folder: not in the archive, the queue of a backfill, the stored
// answers of a shadow, the shadow itself, or free pages of the store.
func TestAResetErasesWhatTheHostItselfHolds(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	h, err := New(ctx, Options{DataDir: dir, CacheDir: testcache.Dir(), Archive: true})
	require.NoError(t, err)
	s, err := h.Open(ctx, History(t, ""))
	require.NoError(t, err)
	require.NoError(t, s.Shadow(ctx, History(t, "shadow"), ShadowOptions{SamplePercent: 100}))
	RunCommands(t, s, "e1", "My cat is called Zorvex.")
	other := Event("e2", "I like tea.")
	other.UserID = "bob"
	_, err = s.RecordEvent(ctx, other)
	require.NoError(t, err)
	Until(t, "the shadow has everything", func() bool { return ShadowOf(t, s).State == report.FollowerReady })
	_, err = s.Retrieve(ctx, Ask("the cat"))
	require.NoError(t, err)
	Until(t, "the shadow was asked", func() bool { return ShadowOf(t, s).Report.Answers == 1 })
	_, err = s.BackfillEvents(ctx, &report.BackfillEvents{First: true,
		Events: []abi.MemoryEvent{*Event("e3", "Zorvex likes milk."), *other}})
	require.NoError(t, err)
	require.NotEmpty(t, DataHas(t, dir, "Zorvex"))

	r, err := s.ResetScope(ctx, TestScope)
	require.NoError(t, err)
	require.Equal(t, abi.ResetDone, r.Status, "%v", r.Remains)
	require.EqualValues(t, 2, *r.Removed[NativeArchived])
	require.Empty(t, r.Outside, "the file was overwritten")
	left := AllArchived(t, h, 0)
	require.Len(t, left, 1)
	require.Equal(t, "bob", left[0].UserID)
	require.Zero(t, ShadowOf(t, s).Report.Answers)
	stats, err := h.given.ArchiveStats(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1, stats.Events)
	Until(t, "the shadow has reset the scope", func() bool { return len(DataHas(t, dir, "Zorvex")) == 0 })
	require.NotEmpty(t, DataHas(t, dir, "I like tea"))
	RunCommands(t, s, "e1", "My cat is called Zorvex.") // it may be recorded again
	require.NoError(t, s.Close(ctx))
	require.NoError(t, h.Close(ctx))
}
