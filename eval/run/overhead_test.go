package run

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/stretchr/testify/require"
)

// instant answers at once with 20 different items in a context of some 4,000 tokens.
type instant struct {
	slot
	n        int
	evidence []abi.Evidence
	text     string
}

func (s *instant) Retrieve(context.Context, *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	s.n++
	return &abi.RetrieveResult{Evidence: s.evidence, FormattedContext: fmt.Sprintf("%d %s", s.n, s.text),
		Trace: &abi.Trace{IO: []abi.IO{{Route: "search"}}}}, nil
}

// BenchmarkProbe measures the cost of the evaluation itself for a probe: the provider answers at once, and nothing is
// synced to disk. Limit: 1 ms.
func BenchmarkProbe(b *testing.B) {
	dir := b.TempDir()
	w, err := journal.Append(filepath.Join(dir, journal.Name), func() string {
		return stamp(time.Now())
	}, func(*journal.Line) {})
	require.NoError(b, err)
	defer w.Close()
	s := &instant{text: strings.Repeat("She drinks green tea in the morning. ", 430)}
	for i := range 20 {
		s.evidence = append(s.evidence, abi.Evidence{Rank: int64(i + 1),
			Text: strings.Repeat("She drinks green tea. ", 10), SourceEventIDs: []string{"event-7"}})
	}
	c := &cell{runner: &runner{Run: &rundir.Run{Lab: &lab.Lab{Seed: 1}}, folder: dir,
		options: Options{Logger: hclog.NewNullLogger()}},
		participant: &participant{Cell: &rundir.Cell{}}, journal: w, slot: s, before: newDone(), budgets: []int64{4000}}
	p := &persona{cell: c, id: "ann", done: newDone().persona("ann")}
	t := &testSession{persona: p, number: 1, done: p.done.session(1)}
	b.ResetTimer()
	for i := range b.N {
		require.NoError(b, t.ask(b.Context(), 1, &pack.Probe{ProbeID: fmt.Sprint("probe-", i),
			Query: "What does she drink?"}))
	}
}
