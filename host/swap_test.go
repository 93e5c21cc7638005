package host_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSwapUnderLoadFailsNoCall(t *testing.T) {
	s := host.OpenSlot(t, host.Open(t, host.Options{}), smokeProvider("full_history", host.SmokeNever))
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
					e := host.Event(fmt.Sprintf("%d-%d", i, n), "a turn")
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
		c := smokeProvider("full_history", host.SmokeNever)
		if i%2 == 0 {
			c = smokeProvider("no_memory", host.SmokeNever)
		}
		m, err := s.Swap(context.Background(), c)
		require.NoError(t, err)
		assert.EqualValues(t, i+2, m.LoadGeneration)
		broken := c
		broken.Module = slices.Concat(c.Module[:len(c.Module)/2], []byte("not wasm any more"))
		_, err = s.Swap(context.Background(), broken)
		host.RequireCode(t, err, abi.CodeInvalidArgument, "still serves")
	}
	stop()
	wg.Wait()
}

// Before wazero 1.11.0, closing a module broke another module with the same bytes.
func TestSwapToEqualBytesLeavesTheNewModuleWhole(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	for i := range 5 {
		_, err := s.Swap(context.Background(), host.ProbeConfig(fmt.Sprintf(`{"note":"%d"}`, i)))
		require.NoError(t, err)
		host.Drained(s)
		host.RequireUsable(t, s, fmt.Sprint("e", i))
	}
}

func TestSwappedInProviderNeverSeesAnothersMemory(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	host.RunCommands(t, s, "e1", "append turns probe")
	_, err := s.Swap(context.Background(), host.ProviderConfig{Name: "probe_backend", Module: host.ProbeModule})
	require.NoError(t, err)
	assert.Equal(t, []string{""}, host.Retrieved(t, s, "read turns"))
	r, err := s.RecordEvent(context.Background(), host.Event("e1", "append turns backend"))
	require.NoError(t, err, "no conflict: its ledger is its own")
	assert.False(t, r.Duplicate)
	_, err = s.Swap(context.Background(), host.ProbeConfig(`{}`))
	require.NoError(t, err)
	assert.Equal(t, []string{"1=probe "}, host.Retrieved(t, s, "read turns"), "and the first one finds its own again")
}

func TestFailedSwapNamesItsStepAndTheOldOneServes(t *testing.T) {
	var steps []report.RunStep
	s := host.OpenSlot(t, host.Impatient(host.Open(t, host.Options{OnStep: func(step report.RunStep) {
		steps = append(steps, step)
	}})), host.ProbeConfig(`{}`))
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
		_, err := s.Swap(context.Background(), host.ProbeConfig(c.block))
		e := host.RequireCode(t, err, c.code, "step ", c.says, "the slot still serves probe")
		assert.Equal(t, "swap", e.Operation)
		assert.Equal(t, "fail", steps[len(steps)-1].Verdict)
		host.RequireUsable(t, s, c.block)
	}
}

func TestClosedSlotSaysSo(t *testing.T) {
	h := host.Open(t, host.Options{})
	s, err := h.Open(context.Background(), host.ProbeConfig(`{}`))
	require.NoError(t, err)
	require.NoError(t, s.Close(context.Background()))
	_, err = s.Retrieve(context.Background(), host.Ask("echo"))
	host.RequireCode(t, err, abi.CodeUnavailable, "closed")
}

func TestSecondHostOnOneFolderIsTurnedAway(t *testing.T) {
	dir := t.TempDir()
	host.Open(t, host.Options{DataDir: dir})
	_, err := host.New(context.Background(), host.Options{DataDir: dir, CacheDir: testcache.Dir()})
	host.RequireCode(t, err, abi.CodeUnavailable)
}

func TestUnsupportedOperationIsNamed(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	_, err := s.Provenance(context.Background(), &abi.ProvenanceRequest{Scope: host.TestScope, EventID: "e"})
	e := host.RequireCode(t, err, abi.CodeUnsupported, "provider probe has no provenance")
	assert.Equal(t, abi.OpProvenance, e.Operation)
	_, err = s.ApplyFeedback(context.Background(),
		&abi.MemoryFeedback{FeedbackID: "f", Scope: host.TestScope, SessionID: "s", Timestamp: "2026-01-01T00:00:00Z",
			Text: "t"})
	host.RequireCode(t, err, abi.CodeUnsupported)
}

func TestManifestTellsWhatServes(t *testing.T) {
	s := host.ProbeSlot(t, `{"note":"n"}`)
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
	assert.Equal(t, []string{"identity", "configure", "load", "health", "setup_scope", "capabilities", "isolation_smoke",
		"write_read_smoke", "pending_gate", "serve"}, names)
	assert.Contains(t, m.Capabilities.Capabilities, abi.OpInventory)
}
