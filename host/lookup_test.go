package host_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/fakes/honcho"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/internal/test/fakes/memos"
	"github.com/memhost/memhost/plugins"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheLookupCanBeTurnedOffAndIsToldOf(t *testing.T) {
	server := httptest.NewServer(mem0.New(mem0.Options{}))
	t.Cleanup(server.Close)
	m, _ := plugins.Find("mem0")
	folder := func(noLookup bool) *host.Slot {
		return host.OpenSlot(t, host.Open(t, host.Options{}), host.ProviderConfig{Name: "simple_rag", Module: m.Wasm, Source: "builtin",
			NoLookup: noLookup, Block: abi.Raw(`{"url":"` + server.URL + `"}`)})
	}
	event := eventAt("a", "2026-01-02T00:00:00Z", "My cat is called Zorvex.")
	_, err := folder(true).RecordEvent(t.Context(), event)
	require.NoError(t, err)

	off := folder(true)
	setUp, err := off.SetupScope(t.Context(), abi.MemoryScope{RunID: "r", PersonaID: "p"})
	require.NoError(t, err)
	assert.Contains(t, strings.Join(setUp.Warnings, "\n"), "what was recorded before is doubled")
	receipt, err := off.RecordEvent(t.Context(), event)
	require.NoError(t, err)
	assert.False(t, receipt.Duplicate)
	assert.Contains(t, strings.Join(receipt.Warnings, "\n"), "memory.lookup_existing is off")

	receipt, err = folder(false).RecordEvent(t.Context(), event)
	require.NoError(t, err)
	assert.True(t, receipt.Duplicate)
}

// TestALostDataFolderDoublesNothing: events are recorded, the data folder is lost, and the same events are recorded
// with a new one.
func TestALostDataFolderDoublesNothing(t *testing.T) {
	t.Parallel() // it waits more than it computes
	for _, tt := range []struct {
		name, provider, block string
		backend               func() http.Handler
	}{
		{"memos sync/fast", "memos", `,"graph_store":"neo4j","add_mode":"sync/fast"`,
			func() http.Handler { return memos.New(memos.Options{}) }},
		{"memos sync/fine", "memos", `,"graph_store":"neo4j","add_mode":"sync/fine"`,
			func() http.Handler { return memos.New(memos.Options{}) }},
		{"memos async", "memos", `,"graph_store":"neo4j","add_mode":"async"`,
			func() http.Handler { return memos.New(memos.Options{}) }},
		{"memos async without tasks", "memos", `,"graph_store":"neo4j","add_mode":"async"`,
			func() http.Handler { return memos.New(memos.Options{NoRedis: true}) }},
		{"mem0", "mem0", ``, func() http.Handler { return mem0.New(mem0.Options{}) }},
		{"simple_rag", "simple_rag", ``, func() http.Handler { return mem0.New(mem0.Options{}) }},
		{"honcho", "honcho", ``, func() http.Handler { return honcho.New(honcho.Options{}) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "honcho" { // which waits for its queue
				brief.Leave(t)
			}
			server := httptest.NewServer(tt.backend())
			t.Cleanup(server.Close)
			m, ok := plugins.Find(strings.Replace(tt.provider, "simple_rag", "mem0", 1))
			require.True(t, ok)
			scope := abi.MemoryScope{RunID: "r", PersonaID: "p"}
			record := func(s *host.Slot, events int) (receipts []*abi.WriteReceipt) {
				batch := &abi.EventBatch{}
				for i := range events {
					text := []string{"My cat is called Zorvex.", "I live in Lyon.", "I drink oolong tea.", "I row."}[i]
					batch.Events = append(batch.Events, *eventAt(string(rune('a'+i)), "2026-01-02T00:00:00Z", text))
				}
				answers, err := s.RecordEvents(t.Context(), batch)
				require.NoError(t, err)
				for _, a := range answers.Receipts {
					require.Nil(t, a.Error)
					receipts = append(receipts, a.Receipt)
				}
				_, err = s.Readiness(t.Context(), &abi.ReadinessRequest{Scope: scope, TimeoutMS: 5000})
				require.NoError(t, err)
				return receipts
			}
			folder := func() *host.Slot {
				return host.OpenSlot(t, host.Open(t, host.Options{}), host.ProviderConfig{Name: tt.provider, Module: m.Wasm,
					Source: "builtin", Block: abi.Raw(`{"url":"` + server.URL + `"` + tt.block + `}`)})
			}
			stored := func(s *host.Slot) map[string]int64 {
				inventory, err := s.Inventory(t.Context(), &abi.InventoryRequest{Scope: scope})
				require.NoError(t, err)
				counts := map[string]int64{}
				for _, kind := range inventory.Kinds {
					counts[kind.Kind] = kind.Count
				}
				return counts
			}
			before := folder()
			for _, r := range record(before, 3) {
				assert.False(t, r.Duplicate)
			}
			want := stored(before)
			require.NotEmpty(t, want)

			after := folder()
			receipts := record(after, 4)
			for _, r := range receipts[:3] {
				assert.True(t, r.Duplicate, "%s %v", r.EventID, r.Warnings)
			}
			assert.False(t, receipts[3].Duplicate, "an event that is really new is delivered")
			got := stored(after)
			t.Log(want, got)
			for kind, n := range want {
				assert.LessOrEqual(t, got[kind], n+n/3, "one event more, and nothing twice: %s", kind)
			}
			receipt, err := folder().SetupScope(t.Context(), scope)
			require.NoError(t, err)
			assert.Contains(t, strings.Join(receipt.Warnings, "\n"), "scope_existed: ")
			assert.NotContains(t, strings.Join(receipt.Warnings, "\n"), "memory.lookup_existing is off")
		})
	}
}
