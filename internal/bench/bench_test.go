package bench

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkRows runs every task once for each iteration and reports the medians of all figures.
func BenchmarkRows(b *testing.B) {
	for _, t := range tasks(testing.Short()) {
		b.Run(t.name, func(b *testing.B) {
			e, err := newEnv(testing.Short())
			require.NoError(b, err)
			defer func() { require.NoError(b, e.end()) }()
			r := &Result{}
			for _, row := range t.rows {
				r.Rows = append(r.Rows, RowResult{Row: row, Cells: map[string]*Cell{}, Missing: map[string]string{}})
			}
			for b.Loop() {
				f, err := t.round(b.Context(), e)
				require.NoError(b, err)
				require.NoError(b, e.endRound())
				r.take(f)
			}
			b.ReportMetric(0, "ns/op")
			for i := range r.Rows {
				for _, who := range r.Rows[i].By {
					if s, ok := r.Rows[i].Value(who); ok {
						b.ReportMetric(s.Center, metricName(r.Rows[i].ID, who, r.Rows[i].Unit))
					}
				}
			}
		})
	}
}

// metricName has no blanks, as the benchmark format wants it.
func metricName(row, who string, unit Unit) string {
	return strings.NewReplacer(" ", "_", ",", "").Replace(row + ":" + who + "-" + string(unit))
}

func TestEverythingRuns(t *testing.T) {
	r, err := Run(t.Context(), Options{Short: true, Memory: 200, Profile: 20 * time.Millisecond})
	require.NoError(t, err)
	for _, row := range r.Rows {
		for _, who := range row.By {
			_, measured := row.Value(who)
			require.True(t, measured || row.Missing[who] != "", "%s by %s: neither a figure nor a reason why there is none", row.ID, who)
		}
	}
	require.Len(t, r.Profiles, 2)
	require.NoError(t, r.Print(io.Discard))
}
