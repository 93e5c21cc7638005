package host

import (
	"context"
	"fmt"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/fakes/bolt"
	"github.com/memhost/memhost/internal/measure"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j/config"
	"github.com/stretchr/testify/require"
)

// factRows are n rows as a question for facts of Graphiti answers them: two uuids, a sentence, two times and a list.
func factRows(n int) bolt.Answer {
	a := bolt.Answer{Columns: []string{"fact", "episode", "text", "valid_ms", "invalid_ms", "dangling", "episodes"}}
	for i := range n {
		id := fmt.Sprintf("9e0c4f1a-0000-4000-8000-%012d", i)
		a.PackedRows = append(a.PackedRows, bolt.Pack(nil, []any{id, "a1b2c3d4-0000-4000-8000-00000000000e", fmt.Sprintf("user_a prefers aisle seats on business trips, said for the time number %d", i),
			int64(1740821400000 + i), nil, false, []any{id, id}}))
	}
	return a
}

// BenchmarkBoltRows brings 1,000 rows to the guest, beside the driver alone: to the host as JSON, into the guest's memory, and walked there value by value. The server
// is the fake, in this process, with rows that are packed before.
func BenchmarkBoltRows(b *testing.B) {
	s := graph(b, bolt.Options{Password: testSecret})
	s.Handle(oneStatement, reply(factRows(1000)))
	ctx := context.Background()
	driver := func(liveness bool) func(b *testing.B) {
		return func(b *testing.B) {
			d, err := neo4j.NewDriverWithContext(s.URL("bolt"), neo4j.BasicAuth("neo4j", testSecret, ""), func(c *config.Config) {
				if liveness {
					c.ConnectionLivenessCheckTimeout = 0
				}
			})
			require.NoError(b, err)
			defer func() { _ = d.Close(ctx) }()
			b.ReportAllocs()
			for b.Loop() {
				session := d.NewSession(ctx, neo4j.SessionConfig{AccessMode: neo4j.AccessModeRead})
				result, err := session.Run(ctx, oneStatement, nil)
				require.NoError(b, err)
				records, err := result.Collect(ctx)
				if err != nil || len(records) != 1000 {
					b.Fatal(len(records), err)
				}
				require.NoError(b, session.Close(ctx))
			}
		}
	}
	guest := func(h *Host, command string) func(b *testing.B) {
		return func(b *testing.B) {
			slot := openSlot(b, h, graphConfig(s.URL("bolt")))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := slot.Retrieve(ctx, ask(command+" one")); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("by=driver", driver(false))
	b.Run("by=driver,checked", driver(true))
	b.Run("by=host", func(b *testing.B) {
		slot := openSlot(b, open(b, Options{}), graphConfig(s.URL("bolt")))
		p := slot.current.Load().provider
		b.ReportAllocs()
		for b.Loop() {
			ctx, cancel := context.WithTimeout(ctx, p.limits.Deadline)
			deadline, _ := ctx.Deadline()
			c := &call{provider: p, op: abi.OpRetrieve, ctx: ctx, deadline: deadline}
			head, _, err := c.query(&abi.BoltRequest{Route: "one"})
			if err != nil || head.Rows != 1000 {
				b.Fatal(err)
			}
			cancel()
		}
	})
	b.Run("by=guest", func(b *testing.B) { guest(open(b, Options{}), "bolt_pull")(b) })
	b.Run("by=guest,walked", func(b *testing.B) { guest(open(b, Options{}), "bolt_count")(b) })
	b.Run("by=guest,walked,uninterrupted", func(b *testing.B) {
		h := open(b, Options{})
		require.NoError(b, useWay(ctx, h, measure.Uninterrupted))
		guest(h, "bolt_count")(b)
	})
}
