package cli

import (
	"fmt"
	"sync"

	"github.com/memhost/memhost/eval/run"
	"github.com/memhost/memhost/eval/rundir"
)

// evalProgress shows one bar at a time: that of the cell with the latest news.
type evalProgress struct {
	*app
	mu   sync.Mutex
	bars map[string]*progress
	done map[string]int
}

func (s *evalProgress) told(p run.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := fmt.Sprintf("%s/%d", p.Label, p.Replicate)
	bar, known := s.bars[name]
	if !known {
		bar = s.out.progress(p.Total, fmt.Sprintf("%-22s", name))
		s.bars[name] = bar
	}
	if more := p.Done - s.done[name]; more > 0 {
		bar.add(more)
		s.done[name] = p.Done
	}
}

func (s *evalProgress) finish() {
	for _, bar := range s.bars {
		bar.finish()
	}
}

// evalCells prints the state of each cell.
func (a *app) evalCells(r *rundir.Run) {
	for _, c := range r.Cells {
		mark, more := a.out.open(), ""
		switch c.State {
		case rundir.Complete:
			mark = a.out.passed()
		case rundir.Failed:
			mark, more = a.out.broken(), ": "+printable(cut(c.Error.Message, 200))
		}
		a.out.print("%s %s/%d %s%s\n", mark, c.Label, c.Replicate, c.State, more)
	}
}
