package run

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/memhost/memhost/eval/rundir"
)

// played gives turns to cells that only note them, "a 0" for opening a, "a 1" for the first person, and returns the notes
// and how many cells had a turn at the same time. A cell leaves after the part that leaving names.
func played(t *testing.T, labels []string, groups, atOnce int, seed uint64, leaving map[string]int) (noted []string, most int) {
	var cells []*rundir.Cell
	for _, label := range labels {
		cells = append(cells, &rundir.Cell{Label: label, Replicate: 1})
	}
	turns := newTurns(cells, atOnce)
	var mu sync.Mutex
	running := 0
	var playing sync.WaitGroup
	for _, c := range turns.cells {
		playing.Go(func() {
			defer c.leave()
			for part := range groups + 2 {
				assert.NoError(t, c.turn(t.Context(), func() error {
					mu.Lock()
					running++
					most = max(most, running)
					noted = append(noted, fmt.Sprintf("%s %d", c.Label, part))
					mu.Unlock()
					runtime.Gosched()
					mu.Lock()
					running--
					mu.Unlock()
					return nil
				}))
				if last, leaves := leaving[c.Label]; leaves && part == last {
					return
				}
			}
		})
	}
	turns.give(t.Context(), seed, groups)
	playing.Wait()
	return noted, most
}

func TestEveryPersonIsRunByAllCellsBeforeTheNext(t *testing.T) {
	labels := []string{"a", "b", "c"}
	noted, most := played(t, labels, 20, 1, 7, nil)
	assert.Equal(t, 1, most, "one cell has a turn at a time")
	assert.Equal(t, []string{"a 0", "b 0", "c 0"}, noted[:3], "opened in the lab's order")
	assert.Equal(t, []string{"a 21", "b 21", "c 21"}, noted[len(noted)-3:], "finished in the lab's order")
	first := map[string]int{}
	for person := 1; person <= 20; person++ {
		turns := slices.Clone(noted[3*person : 3*person+3])
		first[turns[0][:1]]++
		slices.Sort(turns)
		assert.Equal(t, []string{fmt.Sprint("a ", person), fmt.Sprint("b ", person), fmt.Sprint("c ", person)}, turns)
	}
	assert.Len(t, first, 3, "each column comes first for somebody: %v", first)

	again, _ := played(t, labels, 20, 1, 7, nil)
	assert.Equal(t, noted, again, "a resumed run has the same order")
	other, _ := played(t, labels, 20, 1, 8, nil)
	assert.NotEqual(t, noted, other, "another seed is another order")
}

func TestACellThatFailsDoesNotStopTheOthers(t *testing.T) {
	for _, atOnce := range []int{1, 2, 5} {
		noted, most := played(t, []string{"a", "b", "c"}, 4, atOnce, 1, map[string]int{"a": 0, "b": 2})
		assert.LessOrEqual(t, most, atOnce)
		slices.Sort(noted)
		assert.Equal(t, []string{"a 0", "b 0", "b 1", "b 2", "c 0", "c 1", "c 2", "c 3", "c 4", "c 5"}, noted, "%d at once", atOnce)
	}
}

func TestTurnsEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	turns := newTurns([]*rundir.Cell{{Label: "a"}, {Label: "b"}}, 1)
	cancel()
	turns.give(ctx, 1, 3) // returns, though no cell takes a turn
	assert.ErrorIs(t, turns.cells[1].turn(ctx, func() error { return nil }), context.Canceled)
}
