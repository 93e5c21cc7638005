package run

import (
	"context"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/plugins"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mem0At is the built-in mem0 with a backend at url.
func mem0At(t *testing.T, url string) func(*lab.Provider) (host.ProviderConfig, error) {
	return func(*lab.Provider) (host.ProviderConfig, error) {
		m, ok := plugins.Find("mem0")
		require.True(t, ok)
		return host.ProviderConfig{Name: "mem0", Module: m.Wasm, Source: "builtin",
			Block: abi.Raw(`{"url":"` + url + `"}`)}, nil
	}
}

func TestABackendThatWasEmptiedIsNotResumed(t *testing.T) {
	path, p := synthetic(t)
	for name, stopAfter := range map[string]int{"before the first inventory": 2, "in a test session": 4, "later": 9} {
		backend := mem0.New(mem0.Options{})
		server := httptest.NewServer(backend)
		defer server.Close()
		begun := options(t, p)
		begun.Provider = mem0At(t, server.URL)
		run := filepath.Join(t.TempDir(), "run")
		r, err := Begin(run, labOf(t, "providers: [mem0]\nbudgets: [200]"), path, p, begun)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		first := begun
		first.Progress = func(now Progress) {
			if now.Done == stopAfter {
				stop()
			}
		}
		require.ErrorIs(t, Go(ctx, run, r, p, first), context.Canceled, name)
		stop()
		require.NotEmpty(t, backend.Texts(""), name)

		backend.LoseData()
		err = Go(t.Context(), run, r, p, begun)
		require.Error(t, err, name)
		e := abi.AsError(err)
		assert.Equal(t, abi.CodeConflict, e.Code, name)
		assert.Equal(t, "memory_lost", e.Reason, name)
		assert.Contains(t, e.Message, "cell mem0/1: the memory of persona synth-01 is not the one", name)
		r, err = rundir.Open(run)
		require.NoError(t, err)
		assert.Equal(t, rundir.Failed, r.Cells[0].State, name)
		for _, l := range lines(t, run, r.Cells[0])[1:] {
			if l.Kind == journal.KindInventory && l.Inventory.When == journal.Resumed {
				assert.Zero(t, count(l.Inventory.Inventory, ""), name)
			}
		}
	}
}

func TestWhatAMemoryLostIsToldFromItsInventories(t *testing.T) {
	holds := func(n int64) *abi.Inventory {
		return &abi.Inventory{Kinds: []abi.InventoryKind{{Kind: "fact", Count: n}}, Complete: true, Quiescent: true}
	}
	for name, c := range map[string]struct {
		done personaDone
		now  int64
		lost string
	}{
		"as it was":                     {personaDone{known: holds(3)}, 3, ""},
		"a write in flight arrived":     {personaDone{known: holds(3)}, 4, ""},
		"an older copy":                 {personaDone{known: holds(3)}, 2, "it had 3 of kind fact, and has 2"},
		"merged after events":           {personaDone{known: holds(3), since: 2}, 2, ""},
		"emptied after events":          {personaDone{known: holds(3), since: 2}, 0, "it had 3 items, and is empty"},
		"emptied before any inventory":  {personaDone{since: 2, native: 5}, 0, "it had 5 items, and is empty"},
		"nothing kept of what was said": {personaDone{since: 2}, 0, ""},
		"nothing kept, by an inventory": {personaDone{known: holds(0)}, 0, ""},
		"kept after an inventory, emptied": {personaDone{known: holds(0), since: 1, native: 1}, 0,
			"it had 1 items, and is empty"},
	} {
		assert.Equal(t, c.lost, c.done.lost(holds(c.now)), name)
	}
}
