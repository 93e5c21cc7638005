package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"
)

// Result is what a run leaves, as JSON too. It keeps every round, so that whoever reads it can compute the rest.
type Result struct {
	Began   time.Time `json:"began"`
	Seconds float64   `json:"seconds"`
	Version string    `json:"version,omitempty"`
	Machine Machine   `json:"machine"`
	// LoadBefore and LoadAfter are the machine's average over a minute.
	LoadBefore string `json:"load_before,omitempty"`
	LoadAfter  string `json:"load_after,omitempty"`
	Rounds     int    `json:"rounds"`
	// Loop is what the reference loop took, the median of all rounds: how fast the machine was.
	Loop     float64     `json:"loop,omitempty"`
	Short    bool        `json:"short,omitempty"`
	Rows     []RowResult `json:"rows"`
	Memory   []MemoryRun `json:"memory,omitempty"`
	Profiles []Profile   `json:"profiles,omitempty"`
}

// RowResult is a row with its figures.
type RowResult struct {
	Row
	// Cells are the figures, by who.
	Cells map[string]*Cell `json:"cells"`
	// Missing says why somebody has none.
	Missing map[string]string `json:"missing,omitempty"`
	// Loops are what the reference loop took beside the figures, one for each round.
	Loops []float64 `json:"loops,omitempty"`
	// Outside is how many rounds at either end lie outside of the spread (spread.go). It is less than zero where there are too few for any.
	Outside int `json:"outside,omitempty"`
}

// Cell is the figures of one contestant, one for each round.
type Cell struct {
	Rounds []float64 `json:"rounds"`
	// Allocs and Bytes are those of an operation in the last round.
	Allocs float64 `json:"allocs,omitempty"`
	Bytes  float64 `json:"bytes,omitempty"`
}

// take adds a round.
func (r *Result) take(f figures) {
	for i := range r.Rows {
		row := &r.Rows[i]
		before := row.measured()
		for _, who := range row.By {
			at := cell{row.ID, who}
			if why, ok := f.missing[at]; ok {
				row.Missing[who] = why
			}
			s, ok := f.samples[at]
			if !ok {
				continue
			}
			c := row.Cells[who]
			if c == nil {
				c = &Cell{}
				row.Cells[who] = c
			}
			c.Rounds = append(c.Rounds, s.value)
			if row.Allocations {
				c.Allocs, c.Bytes = s.allocs, s.bytes
			}
		}
		if row.measured() > before {
			row.Loops = append(row.Loops, f.loop)
		}
	}
}

// measured is in how many rounds.
func (r *RowResult) measured() int {
	n := 0
	for _, c := range r.Cells {
		n = max(n, len(c.Rounds))
	}
	return n
}

// Ours is who the row is about.
func (r *RowResult) Ours() string { return r.By[0] }

// Value is somebody's figure. It is not there where nobody measured it.
func (r *RowResult) Value(who string) (Spread, bool) {
	list := r.values(who)
	if r.Exact && len(list) > 0 {
		return spread(list, 0), true
	}
	return spread(list, r.Outside), len(list) > 0
}

func (r *RowResult) values(who string) []float64 {
	if c := r.Cells[who]; c != nil {
		return c.Rounds
	}
	return nil
}

// Loop is somebody's figure as a multiple of what the reference loop took beside it.
func (r *RowResult) Loop(who string) (Spread, bool) {
	list := paired(r.values(who), r.Loops, over)
	return spread(list, r.Outside), len(list) > 0
}

// Ratio is ours divided by another's, round by round.
func (r *RowResult) Ratio(other string) (Spread, bool) {
	s := spread(r.against(other, over), r.Outside)
	return s, !math.IsNaN(s.Center) && !math.IsInf(s.Center, 0)
}

// against computes a figure from ours and another's of the same round.
func (r *RowResult) against(other string, f func(ours, others float64) float64) []float64 {
	if other == r.Ours() {
		return nil
	}
	return paired(r.values(r.Ours()), r.values(other), f)
}

func paired(a, b []float64, f func(a, b float64) float64) []float64 {
	var list []float64
	for i := range min(len(a), len(b)) {
		list = append(list, f(a[i], b[i]))
	}
	return list
}

func over(a, b float64) float64 { return a / b }
func less(a, b float64) float64 { return a - b }

// Verdict is what became of a bar.
type Verdict struct {
	Bar Bar
	// Seen is what the bar bounds, with the interval in which the true median lies.
	Seen Spread
	// Holds and Missed are both false where the limit lies within the spread, and where there is none.
	Holds, Missed bool
}

// Verdicts holds the figures against the row's bars. A bar whose baseline was not measured is left out.
func (r *RowResult) Verdicts() []Verdict {
	var list []Verdict
	for _, b := range r.Bars {
		v := Verdict{Bar: b}
		var rounds []float64
		switch b.Kind {
		case AtMost:
			rounds = r.values(r.Ours())
		case Ratio:
			rounds = r.against(b.Over, over)
		case Added:
			rounds = r.against(b.Over, less)
		case Allocations:
			if c := r.Cells[r.Ours()]; c != nil {
				v.Seen, rounds = Spread{c.Allocs, c.Allocs, c.Allocs}, c.Rounds
			}
		}
		switch {
		case b.Kind == Allocations:
		case r.Exact:
			v.Seen = spread(rounds, 0)
		default:
			v.Seen = interval(rounds)
		}
		if len(rounds) > 0 {
			v.Holds, v.Missed = v.Seen.Hi <= b.Limit, v.Seen.Lo > b.Limit
			list = append(list, v)
		}
	}
	return list
}

// Write puts the result into a file.
func (r *Result) Write(path string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Read reads the result of an earlier run.
func Read(path string) (*Result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(Result)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: is no result of memhost bench: %w", path, err)
	}
	return r, nil
}
