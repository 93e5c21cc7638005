package host

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/segments"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins"
)

// forgetterEnv turns the test binary into a process that forgets and kills itself in the middle: "FOLDER STEP".
const forgetterEnv = "HOST_TEST_FORGETTER"

// killingStore kills its process at a step: before or after a commit, or before, during or after overwriting free pages.
type killingStore struct {
	state.Store
	left *int
}

func (s killingStore) step() {
	*s.left--
	if *s.left == 0 {
		me, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = me.Kill()
		}
		panic(fmt.Sprint("still alive: ", err))
	}
}

func (s killingStore) Commit(ctx context.Context, b *state.Batch) (state.CommitResult, error) {
	s.step()
	result, err := s.Store.Commit(ctx, b)
	s.step()
	return result, err
}

func (s killingStore) Scrub(ctx context.Context) error {
	s.step()
	err := s.Store.(*state.Bolt).Scrub(&deadlyContext{Context: ctx, store: s})
	s.step()
	return err
}

func (s killingStore) Outside() []string { return s.Store.(*state.Bolt).Outside() }

// deadlyContext is checked before each page is overwritten, and counts a step before the first, the second, the fourth
// page and so on.
type deadlyContext struct {
	context.Context
	store killingStore
	pages int
}

func (c *deadlyContext) Err() error {
	c.pages++
	if c.pages&(c.pages-1) == 0 {
		c.store.step()
	}
	return c.Context.Err()
}

// rememberer opens a slot with full_history and an archive. Its process is killed at the given step; 0 means never.
func rememberer(dir, cache string, step int) (*Host, *Slot, error) {
	ctx := context.Background()
	h, err := New(ctx, Options{DataDir: dir, CacheDir: cache, Archive: true, NoReadinessPolls: true})
	if err != nil {
		return nil, nil, err
	}
	m, _ := plugins.Find("full_history")
	s, err := h.Open(ctx, ProviderConfig{Name: "full_history", Module: m.Wasm, Source: "builtin", Block: abi.Raw(`{}`),
		Smoke: SmokeNever})
	if step > 0 {
		deadly := killingStore{h.store, &step}
		h.store, h.archive.Store = deadly, deadly
	}
	return h, s, err
}

// forgetter is the process that gets killed.
func forgetter(work string) error {
	var dir string
	var step int
	if _, err := fmt.Sscan(work, &dir, &step); err != nil {
		return err
	}
	_, s, err := rememberer(dir, os.Getenv("HOST_TEST_CACHE"), step)
	if err != nil {
		return err
	}
	_, err = s.Forget(context.Background(), ForgetEvents("m1", "m2"))
	return err
}

// The path through a built guest: m1 is in a sealed segment of the archive, m2 in its open part, both in the guest's
// state and in the ledger. Whatever the step at which the process is killed, the same request continues.
func TestForgettingGoesOnAfterAKillAtEachStep(t *testing.T) {
	brief.Leave(t)
	ctx := context.Background()
	filled := t.TempDir()
	h, s, err := rememberer(filled, testcache.Dir(), 0)
	require.NoError(t, err)
	tell := func(s *Slot, id, text string) error {
		_, err := s.RecordEvent(ctx, Event(id, text))
		return err
	}
	require.NoError(t, tell(s, "m1", "my cat is called zorvex"))
	Fill(t, h, 0, 120)
	Tend(t, h)
	require.NotEmpty(t, SegmentFiles(t, h))
	require.NoError(t, tell(s, "m2", "zorvex likes milk"))
	require.NoError(t, tell(s, "kept", "I like tea"))
	require.NoError(t, s.Close(ctx))
	require.NoError(t, h.Close(ctx))
	require.NotEmpty(t, DataHas(t, filled, "zorvex"))

	for step, killed := 1, true; killed; step++ {
		require.Less(t, step, 100)
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(filled)))
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "HOST_TEST_CACHE="+testcache.Dir(), forgetterEnv+"="+fmt.Sprint(dir, " ", step))
		var failure bytes.Buffer
		child.Stderr = &failure
		err := child.Run()
		if killed = err != nil; killed {
			require.Contains(t, err.Error(), "killed", failure.String())
		}

		h, s, err := rememberer(dir, testcache.Dir(), 0)
		require.NoError(t, err)
		r, err := s.Forget(ctx, ForgetEvents("m1", "m2"))
		require.NoError(t, err, "step %d", step)
		require.Equal(t, abi.ForgetDone, r.Status, "step %d: %v", step, r.DerivedMayRemain)
		for _, id := range []string{"m1", "m2"} {
			RequireCode(t, tell(s, id, "zorvex again"), abi.CodeConflict, "was forgotten")
			kept := LedgerEntry(t, s, id)
			require.Nil(t, kept)
		}
		archived := AllArchived(t, h, 0)
		require.Len(t, archived, 121)
		for _, e := range archived {
			require.NotContains(t, string(abi.Marshal(&e)), "zorvex", "step %d", step)
		}
		list, err := h.archive.Segments(ctx)
		require.NoError(t, err)
		strays, err := segments.Strays(h.archive.Dir, list)
		require.NoError(t, err)
		require.Empty(t, strays, "step %d: a segment that is not known may hold anything", step)
		found, err := s.Retrieve(ctx, &abi.RetrieveRequest{Query: "zorvex", Scope: TestScope, SessionID: "new"})
		require.NoError(t, err)
		require.NotContains(t, strings.ToLower(string(abi.Marshal(found))), "cat is called")
		require.Contains(t, found.FormattedContext, "I like tea")
		require.NoError(t, s.Close(ctx))
		require.NoError(t, h.Close(ctx))
		require.Empty(t, DataHas(t, dir, "zorvex"), "step %d", step)
		t.Logf("step %d: killed %v", step, killed)
	}
}
