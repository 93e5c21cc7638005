package host

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSwapUnderLoadFailsNoCall(t *testing.T) {
	s := openSlot(t, open(t, Options{}), smoked("full_history", SmokeNever))
	ctx, stop := context.WithCancel(context.Background())
	const callers = 200
	swaps := 50
	if brief.Tests() {
		swaps = 10
	}
	items := int64(1)
	var calls atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			persona := fmt.Sprint("p", i/2)
			for n := 0; ctx.Err() == nil; n++ {
				if i%2 == 0 {
					_, err := s.Retrieve(context.Background(),
						&abi.RetrieveRequest{Query: "q", Scope: abi.MemoryScope{RunID: "run", PersonaID: persona},
							SessionID: "s2",
							Budget:    abi.ContextBudget{MaxItems: &items}})
					assert.NoError(t, err)
				} else {
					e := event(fmt.Sprintf("%d-%d", i, n), "a turn")
					e.UserID = persona
					_, err := s.RecordEvent(context.Background(), e)
					assert.NoError(t, err)
				}
				calls.Add(1)
			}
		}()
	}
	for i := range swaps {
		for seen := calls.Load(); calls.Load() < seen+callers; {
			runtime.Gosched()
		}
		c := smoked("full_history", SmokeNever)
		if i%2 == 0 {
			c = smoked("no_memory", SmokeNever)
		}
		m, err := s.Swap(context.Background(), c)
		require.NoError(t, err)
		assert.EqualValues(t, i+2, m.LoadGeneration)
		broken := c
		broken.Module = slices.Concat(c.Module[:len(c.Module)/2], []byte("not wasm any more"))
		_, err = s.Swap(context.Background(), broken)
		requireCode(t, err, abi.CodeInvalidArgument, "still serves")
	}
	stop()
	wg.Wait()
}

// Before wazero 1.11.0, closing a module broke another module with the same bytes.
func TestSwapToEqualBytesLeavesTheNewModuleWhole(t *testing.T) {
	s := probeSlot(t, `{}`)
	for i := range 5 {
		_, err := s.Swap(context.Background(), probeConfig(fmt.Sprintf(`{"note":"%d"}`, i)))
		require.NoError(t, err)
		s.drains.Wait()
		requireUsable(t, s, fmt.Sprint("e", i))
	}
}

func TestSwappedInProviderNeverSeesAnothersMemory(t *testing.T) {
	s := probeSlot(t, `{}`)
	told(t, s, "e1", "append turns probe")
	_, err := s.Swap(context.Background(), ProviderConfig{Name: "probe_backend", Module: probeModule})
	require.NoError(t, err)
	assert.Equal(t, []string{""}, retrieved(t, s, "read turns"))
	r, err := s.RecordEvent(context.Background(), event("e1", "append turns backend"))
	require.NoError(t, err, "no conflict: its ledger is its own")
	assert.False(t, r.Duplicate)
	_, err = s.Swap(context.Background(), probeConfig(`{}`))
	require.NoError(t, err)
	assert.Equal(t, []string{"1=probe "}, retrieved(t, s, "read turns"), "and the first one finds its own again")
}

func TestFailedSwapNamesItsStepAndTheOldOneServes(t *testing.T) {
	var steps []report.RunStep
	s := openSlot(t, impatient(open(t, Options{OnStep: func(step report.RunStep) {
		steps = append(steps, step)
	}})), probeConfig(`{}`))
	for _, c := range []struct {
		block string
		code  abi.Code
		says  string
	}{
		{`{"health":"error"}`, abi.CodeUnavailable, "health was told to fail"},
		{`{"health":"unavailable"}`, abi.CodeUnavailable, "says that it is unavailable"},
		{`{"health":"trap"}`, abi.CodeInternal, "health was told to trap"},
		{`{"health":"spin"}`, abi.CodeTimeout, "stopped"},
		{`{"health":"nonsense"}`, abi.CodeInvalidArgument, "health"},
	} {
		_, err := s.Swap(context.Background(), probeConfig(c.block))
		e := requireCode(t, err, c.code, "step ", c.says, "the slot still serves probe")
		assert.Equal(t, "swap", e.Operation)
		assert.Equal(t, "fail", steps[len(steps)-1].Verdict)
		requireUsable(t, s, c.block)
	}
}

func TestClosedSlotSaysSo(t *testing.T) {
	h := open(t, Options{})
	s, err := h.Open(context.Background(), probeConfig(`{}`))
	require.NoError(t, err)
	require.NoError(t, s.Close(context.Background()))
	_, err = s.Retrieve(context.Background(), ask("echo"))
	requireCode(t, err, abi.CodeUnavailable, "closed")
}

func TestSecondHostOnOneFolderIsTurnedAway(t *testing.T) {
	dir := t.TempDir()
	open(t, Options{DataDir: dir})
	_, err := New(context.Background(), Options{DataDir: dir, CacheDir: testcache.Dir()})
	requireCode(t, err, abi.CodeUnavailable)
}

func TestUnsupportedOperationIsNamed(t *testing.T) {
	s := probeSlot(t, `{}`)
	_, err := s.Provenance(context.Background(), &abi.ProvenanceRequest{Scope: testScope, EventID: "e"})
	e := requireCode(t, err, abi.CodeUnsupported, "provider probe has no provenance")
	assert.Equal(t, abi.OpProvenance, e.Operation)
	_, err = s.ApplyFeedback(context.Background(),
		&abi.MemoryFeedback{FeedbackID: "f", Scope: testScope, SessionID: "s", Timestamp: "2026-01-01T00:00:00Z",
			Text: "t"})
	requireCode(t, err, abi.CodeUnsupported)
}

func TestManifestTellsWhatServes(t *testing.T) {
	s := probeSlot(t, `{"note":"n"}`)
	m, err := s.Manifest(context.Background())
	require.NoError(t, err)
	assert.Equal(t, "probe", m.Condition)
	assert.Empty(t, m.Backend)
	assert.Len(t, m.Module.SHA256, 64)
	assert.Len(t, m.ConfigHash, 64)
	var names []string
	for _, step := range m.Steps {
		names = append(names, step.Name)
	}
	assert.Equal(t, []string{"identity", "configure", "load", "health", "setup_scope", "capabilities", stepIsolation,
		stepWriteRead, stepGate, "serve"}, names)
	assert.Contains(t, m.Capabilities.Capabilities, abi.OpInventory)
}

func TestAProviderThatCannotServeNamesTheReasonFirst(t *testing.T) {
	err := cannotServe("memos", &abi.BackendHealth{Warnings: []string{"write_profile: async", "unauthenticated: liveness"}},
		401)
	e := requireCode(t, err, abi.CodeUnauthenticated, "unavailable: unauthenticated: liveness; write_profile: async")
	assert.Contains(t, e.Hint, "credentials")
}
