package run

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/memhost/memhost/eval/rundir"
)

// turns makes the cells of one replicate take turns: all are opened, then each person is run by every cell before the
// next person, then all are finished. A model or a machine that becomes slower during a run then does so for every
// column alike. The order of cells is shuffled for each person, by the lab's seed, so that no column always comes first.
//
// With Concurrency n a turn is for n persons, and with CellsAtOnce n so many cells have a turn at the same time.
type turns struct {
	cells []*participant
	seats chan struct{} // one for each cell that may have a turn at the same time
}

// participant is a cell that takes turns.
type participant struct {
	*rundir.Cell
	begin chan func() // delivers, when a turn begins, the function that ends it
	over  chan struct{}
}

func newTurns(cells []*rundir.Cell, atOnce int) *turns {
	t := &turns{seats: make(chan struct{}, atOnce)}
	for _, c := range cells {
		t.cells = append(t.cells, &participant{Cell: c, begin: make(chan func()), over: make(chan struct{})})
	}
	return t
}

// give begins every turn in order: opening, one for each group of persons, finishing. It returns when the last turn has
// begun, or with ctx. A cell that left has no more turns.
func (t *turns) give(ctx context.Context, seed uint64, groups int) {
	for part := range groups + 2 {
		order := slices.Clone(t.cells)
		if part > 0 && part <= groups {
			shuffle(order, seed, part)
		}
		for _, c := range order {
			select {
			case t.seats <- struct{}{}:
			case <-ctx.Done():
				return
			}
			select {
			case c.begin <- func() { <-t.seats }:
			case <-c.over:
				<-t.seats
			case <-ctx.Done():
				return
			}
		}
	}
}

// shuffle brings cells into the order for one group of persons, the same whenever the run is resumed.
func shuffle(cells []*participant, seed uint64, group int) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00order\x00%d\x00%d", seed, cells[0].Replicate, group))
	random := rand.New(rand.NewChaCha8(sum))
	random.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
}

// turn does one part of the cell's work when it is the cell's turn.
func (p *participant) turn(ctx context.Context, do func() error) error {
	select {
	case end := <-p.begin:
		defer end()
		return do()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave gives up the cell's remaining turns.
func (p *participant) leave() { close(p.over) }
