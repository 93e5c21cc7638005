package meter

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
)

// contractRequest is a retrieve of 3 KB with 12 items, as the host sends it.
func contractRequest() []byte {
	r := &abi.RetrieveRequest{Query: "what tea do I like?", Scope: abi.MemoryScope{RunID: "run", PersonaID: "persona"}, SessionID: "s", Filters: map[string]abi.Raw{}}
	for i := range 12 {
		r.Filters[fmt.Sprint("item", i)] = abi.Raw(fmt.Sprintf(`{"id":"native-%d","text":%q,"score":0.%d,"at":"2026-01-02T03:04:05Z","valid":true,"tags":["a","b"]}`, i, strings.Repeat("memory ", 20), i+10))
	}
	return abi.AppendJSON(nil, &abi.Envelope{Op: abi.OpRetrieve, Body: abi.Marshal(r)})
}

// BenchmarkCost is the cost of metering for a guest that does nothing but parse and write JSON, beside the same guest unmetered and under wazero's own check. The
// three take turns, so that what else the machine does falls on all; reported are the ratios of their medians and of their fastest runs.
func BenchmarkCost(b *testing.B) {
	original := read(b, "../testguest/echo/echo.wasm")
	metered, err := Rewrite(original)
	require.NoError(b, err)
	request := contractRequest()
	plain, checked := newEngine(b, wazero.NewRuntimeConfig()), newEngine(b, wazero.NewRuntimeConfig().WithCloseOnContextDone(true))
	plain.more = func() int64 { return 1 << 17 }
	guests := []guest{startGuest(b, plain, original), startGuest(b, plain, metered), startGuest(b, checked, original)}
	took := make([][]time.Duration, len(guests))
	for b.Loop() {
		for i, g := range guests {
			began := time.Now()
			g.ask(b, abi.OpRetrieve, request)
			took[i] = append(took[i], time.Since(began))
		}
	}
	for i, name := range []string{"unmetered", "metered", "context-check"} {
		slices.Sort(took[i])
		median, base := took[i][len(took[i])/2], took[0][len(took[0])/2]
		b.ReportMetric(float64(median.Nanoseconds()), name+"-ns")
		if i > 0 {
			b.ReportMetric(float64(median)/float64(base), name+"/unmetered")
			b.ReportMetric(float64(took[i][0])/float64(took[0][0]), name+"/unmetered-fastest")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRewrite is what rewriting adds to the load of a module.
func BenchmarkRewrite(b *testing.B) {
	original := read(b, "../testguest/probe/probe.wasm")
	b.SetBytes(int64(len(original)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Rewrite(original); err != nil {
			b.Fatal(err)
		}
	}
}
