package evalcmd

import (
	"fmt"
	"sync"

	"github.com/memhost/memhost/eval/run"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/internal/cli"
)

// evalProgress shows one bar at a time: that of the cell with the latest update.
type evalProgress struct {
	*commands
	mu   sync.Mutex
	bars map[string]*cli.Progress
	done map[string]int
}

func (s *evalProgress) told(p run.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := fmt.Sprintf("%s/%d", p.Label, p.Replicate)
	bar, known := s.bars[name]
	if !known {
		bar = s.Out.Progress(p.Total, fmt.Sprintf("%-22s", name))
		s.bars[name] = bar
	}
	if more := p.Done - s.done[name]; more > 0 {
		bar.Add(more)
		s.done[name] = p.Done
	}
}

func (s *evalProgress) finish() {
	for _, bar := range s.bars {
		bar.Finish()
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
