package evalcmd

import (
	"fmt"
	"sync"

	"github.com/memhost/memhost/eval/run"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/internal/cli"
)

// evalProgress shows one bar for all cells of a run, with the name of the cell whose turn it is.
type evalProgress struct {
	bar  *cli.Progress
	mu   sync.Mutex
	done map[string]int
}

func (a *commands) evalProgress(r *rundir.Run) *evalProgress {
	total := 0
	for _, c := range r.Cells {
		if c.State != rundir.Complete {
			total += r.Pack.Counts.Events + r.Pack.Counts.Probes*len(r.Lab.BudgetsOf(r.Lab.Find(c.Label)))
		}
	}
	return &evalProgress{bar: a.Out.Progress(total, ""), done: map[string]int{}}
}

func (s *evalProgress) show(p run.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := fmt.Sprintf("%s/%d", p.Label, p.Replicate)
	s.bar.Describe(fmt.Sprintf("%-22s", name))
	if more := p.Done - s.done[name]; more > 0 {
		s.bar.Add(more)
		s.done[name] = p.Done
	}
}

// evalCells prints the state of each cell.
func (a *commands) evalCells(r *rundir.Run) {
	for _, c := range r.Cells {
		mark, more := a.Out.Open(), ""
		switch c.State {
		case rundir.Complete:
			mark = a.Out.Passed()
		case rundir.Failed:
			mark, more = a.Out.Broken(), ": "+cli.Cut(c.Error.Message, 200)
		}
		a.Out.Print("%s %s/%d %s%s\n", mark, c.Label, c.Replicate, c.State, more)
	}
}
