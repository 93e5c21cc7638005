package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/plugins"
)

// plotHistory is the plot of cost by the amount of stored data.
const plotHistory = "history"

// fullHistory opens a slot with full_history.
func (e *env) fullHistory(ctx context.Context, o host.Options) (*host.Slot, error) {
	m, ok := plugins.Find("full_history")
	if !ok {
		return nil, fmt.Errorf("module full_history has not been built")
	}
	return e.slot(ctx, o, host.ProviderConfig{Name: "full_history", Module: m.Wasm, Source: "builtin"})
}

// commitTask records into full_history, which calls no backend: what remains is the module, the ledger and the disk.
func commitTask() task {
	const id, synced = "commit", "4 KB written and synced"
	rows := []Row{{ID: id + "/power", What: "full_history: record, durability power", Unit: Nanoseconds,
		By: []string{byMemhost, "durability process", synced}}}
	return inTurns(id, pace{stretch: time.Microsecond, round: 200 * time.Millisecond, stretches: 50}, rows,
		func(ctx context.Context, e *env) ([]contestant, error) {
			var list []contestant
			n := 0
			for i, durability := range []string{"power", "process"} {
				s, err := e.fullHistory(ctx, host.Options{Durability: durability})
				if err != nil {
					return nil, err
				}
				list = append(list, by(rows[0].ID, rows[0].By[i], repeat(func() error {
					n++
					_, err := s.RecordEvent(ctx, turn(fmt.Sprint("c", n), "I had a cup of tea."))
					return err
				})))
			}
			file, err := os.Create(filepath.Join(e.dir, "synced"))
			if err != nil {
				return nil, err
			}
			e.later(file.Close)
			page := make([]byte, 4<<10)
			return append(list, by(rows[0].ID, synced, repeat(func() error {
				if _, err := file.WriteAt(page, 0); err != nil {
					return err
				}
				return file.Sync()
			}))), nil
		})
}

// historyTask records into and retrieves from full_history with histories of several lengths: a record must not depend
// on what is stored, and a retrieval only on the budget. The histories are written once and reused.
func historyTask(short bool) task {
	const id = "history"
	sizes := []int{100_000, 10_000, 1_000}
	if short {
		sizes = []int{1_000, 100}
	}
	var who []string
	for _, n := range sizes {
		who = append(who, fmt.Sprintf("with %d turns stored", n))
	}
	last := who[len(who)-1]
	row := func(name, what, series string) Row {
		r := Row{ID: id + "/" + name, What: what + fmt.Sprintf(", %d turns stored", sizes[0]), Unit: Nanoseconds,
			By: who, Points: map[string]Point{},
			Bars: []Bar{{Kind: Ratio, Over: last, Limit: 1.25}}}
		for i, n := range sizes {
			r.Points[who[i]] = Point{plotHistory, series, float64(n)}
		}
		return r
	}
	const small, large, twice = "a budget of 1000 tokens", "a budget of 8000 tokens", "history/budget"
	rows := []Row{row("record", "full_history: record", "record"),
		row("retrieve1000", "full_history: retrieve with "+small, "retrieve with "+small),
		row("retrieve8000", "full_history: retrieve with "+large, "retrieve with "+large),
		{ID: twice, What: "full_history: retrieve in proportion to the budget", Unit: Nanoseconds,
			By:   []string{large, small},
			Bars: []Bar{{Kind: Ratio, Over: small, Limit: 10, Note: "8 times the budget, and a quarter more"}}}}
	p := pace{stretch: time.Microsecond, round: 150 * time.Millisecond, stretches: 20}
	return inTurns(id, p, rows, func(ctx context.Context, e *env) ([]contestant, error) {
		folders, err := keep(e, id, func() (folders []string, err error) {
			for _, n := range sizes {
				folders = append(folders, e.folder())
				s, err := e.fullHistory(ctx, host.Options{Durability: "process", DataDir: folders[len(folders)-1]})
				if err == nil {
					err = fill(ctx, s, n)
				}
				if err != nil {
					return nil, err
				}
			}
			return folders, nil
		})
		if err != nil {
			return nil, err
		}
		var list []contestant
		for i, folder := range folders {
			s, err := e.fullHistory(ctx, host.Options{Durability: "process", DataDir: folder})
			if err != nil {
				return nil, err
			}
			list = append(list, by(rows[0].ID, who[i], repeat(func() error {
				e.made++
				_, err := s.RecordEvent(ctx, storedTurn("more", e.made))
				return err
			})))
			for j, budget := range []int64{1000, 8000} {
				r := ask("tea?")
				r.Budget.MaxTokens = &budget
				c := by(rows[1+j].ID, who[i], repeat(func() error { _, err := s.Retrieve(ctx, r); return err }))
				if i == 0 {
					c.cells = append(c.cells, cell{twice, []string{small, large}[j]})
				}
				list = append(list, c)
			}
		}
		return list, nil
	})
}

// fill records n turns, in batches.
func fill(ctx context.Context, s *host.Slot, n int) error {
	batch := &abi.EventBatch{}
	for i := range n {
		if batch.Events = append(batch.Events, *storedTurn("e", i)); len(batch.Events) < 1000 && i < n-1 {
			continue
		}
		receipts, err := s.RecordEvents(ctx, batch)
		if err != nil {
			return err
		}
		for _, r := range receipts.Receipts {
			if r.Error != nil {
				return r.Error
			}
		}
		batch.Events = batch.Events[:0]
	}
	return nil
}

// storedTurn is the i-th turn of a long history.
func storedTurn(prefix string, i int) *abi.MemoryEvent {
	e := turn(fmt.Sprint(prefix, i), fmt.Sprintf("Turn %d: I had a cup of tea and thought about the trip to the "+
		"mountains that we planned.", i))
	e.Timestamp = time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC).Format(time.RFC3339)
	return e
}

// recordSizeTask records turns of several lengths, for the plot.
func recordSizeTask() task {
	const id = "record-size"
	var rows []Row
	for _, size := range echoSizes {
		rows = append(rows, Row{ID: id + "/" + strings.ReplaceAll(size.name, " ", ""),
			What: "full_history: record of a turn of " + size.name, Unit: Nanoseconds, By: []string{byMemhost},
			PlotOnly: true, Points: map[string]Point{byMemhost: {plotSize, "full_history records a turn",
				float64(size.bytes)}}})
	}
	// The stretch is long, because a turn of 1 MB affects caches and heap for the operations after it.
	return inTurns(id, pace{stretch: 3 * time.Millisecond, round: 50 * time.Millisecond, stretches: 10}, rows,
		func(ctx context.Context, e *env) ([]contestant, error) {
			s, err := e.fullHistory(ctx, host.Options{Durability: "process"})
			if err != nil {
				return nil, err
			}
			var list []contestant
			for i, size := range echoSizes {
				message := strings.Repeat("x", size.bytes)
				list = append(list, by(rows[i].ID, byMemhost, repeat(func() error {
					e.made++
					_, err := s.RecordEvent(ctx, turn(fmt.Sprint("r", e.made), message))
					return err
				})))
			}
			return list, nil
		})
}
