package host_test

import (
	"fmt"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/plugins"
	"github.com/stretchr/testify/require"
)

// BenchmarkRecordEvents records batches of 1000 events into full_history: of one person, of 1000 known people, and of
// 1000 new people. One iteration is one event.
func BenchmarkRecordEvents(b *testing.B) {
	module, found := plugins.Find("full_history")
	require.True(b, found)
	people := []struct {
		name string
		user func(event int) string
	}{
		{"one", func(int) string { return "one" }},
		{"known", func(event int) string { return fmt.Sprint("person ", event%1000) }},
		{"new", func(event int) string { return fmt.Sprint("person ", event) }},
	}
	for _, durability := range []string{"power", "process"} {
		for _, of := range people {
			b.Run(durability+"/"+of.name, func(b *testing.B) {
				s := host.OpenSlot(b, host.Open(b, host.Options{Durability: durability}),
					host.ProviderConfig{Name: "full_history", Module: module.Wasm, Source: "builtin"})
				events := 0
				record := func(n int) {
					batch := &abi.EventBatch{}
					for range n {
						events++
						e := host.Event(fmt.Sprint("e", events), "I had a cup of tea and thought about the trip.")
						e.UserID = of.user(events)
						batch.Events = append(batch.Events, *e)
					}
					r, err := s.RecordEvents(b.Context(), batch)
					require.NoError(b, err)
					for _, r := range r.Receipts {
						require.Nil(b, r.Error)
					}
				}
				record(1000)
				b.ResetTimer()
				for left := b.N; left > 0; left -= 1000 {
					record(min(1000, left))
				}
			})
		}
	}
}
