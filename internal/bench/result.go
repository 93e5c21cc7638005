package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"golang.org/x/perf/benchmath"
)

// Result is what a run leaves, as JSON too. It keeps every round, so that whoever reads it can compute the rest.
type Result struct {
	Began   time.Time `json:"began"`
	Seconds float64   `json:"seconds"`
	Version string    `json:"version,omitempty"`
	Machine Machine   `json:"machine"`
	// LoadBefore and LoadAfter are the machine's average over a minute.
	LoadBefore string      `json:"load_before,omitempty"`
	LoadAfter  string      `json:"load_after,omitempty"`
	Rounds     int         `json:"rounds"`
	Short      bool        `json:"short,omitempty"`
	Rows       []RowResult `json:"rows"`
	Memory     []MemoryRun `json:"memory,omitempty"`
}

// RowResult is a row with its figures.
type RowResult struct {
	Row
	// Cells are the figures, by who.
	Cells map[string]*Cell `json:"cells"`
	// Missing says why somebody has none.
	Missing map[string]string `json:"missing,omitempty"`
}

// Cell is the figures of one contestant, one for each round.
type Cell struct {
	Rounds []float64 `json:"rounds"`
	// Allocs and Bytes are those of an operation in the last round.
	Allocs float64 `json:"allocs,omitempty"`
	Bytes  float64 `json:"bytes,omitempty"`
}

// Spread is a median and the interval in which the true one lies, as benchstat computes it (95 %, nothing assumed of the distribution). With fewer than six rounds
// the ends are infinite.
type Spread struct{ Center, Lo, Hi float64 }

// spread takes rounds together.
func spread(rounds []float64) Spread {
	if len(rounds) == 0 {
		return Spread{math.NaN(), math.Inf(-1), math.Inf(1)}
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(rounds, &benchmath.DefaultThresholds), 0.95)
	return Spread{s.Center, s.Lo, s.Hi}
}

// overlaps tells whether two intervals have something in common.
func (s Spread) overlaps(t Spread) bool { return s.Lo <= t.Hi && t.Lo <= s.Hi }

// Percent is the larger distance to an end of the interval, in percent of the center, as benchstat prints it.
func (s Spread) Percent() string {
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) {
		return "± ?"
	}
	if s.Center == 0 {
		return "± 0 %"
	}
	return fmt.Sprintf("± %.0f %%", 100*max(s.Hi-s.Center, s.Center-s.Lo)/math.Abs(s.Center))
}

// take adds a round.
func (r *Result) take(f figures) {
	for i := range r.Rows {
		row := &r.Rows[i]
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
	}
}

// Ours is who the row is about.
func (r *RowResult) Ours() string { return r.By[0] }

// Value is somebody's figure. It is not there where nobody measured it.
func (r *RowResult) Value(who string) (Spread, bool) {
	c := r.Cells[who]
	if c == nil || len(c.Rounds) == 0 {
		return Spread{}, false
	}
	if r.Exact {
		return Spread{median(slices.Clone(c.Rounds)), slices.Min(c.Rounds), slices.Max(c.Rounds)}, true
	}
	return spread(c.Rounds), true
}

// against computes a figure from ours and another's of the same round.
func (r *RowResult) against(other string, f func(ours, others float64) float64) (Spread, bool) {
	a, b := r.Cells[r.Ours()], r.Cells[other]
	if a == nil || b == nil || other == r.Ours() {
		return Spread{}, false
	}
	var list []float64
	for i := range min(len(a.Rounds), len(b.Rounds)) {
		list = append(list, f(a.Rounds[i], b.Rounds[i]))
	}
	return spread(list), len(list) > 0
}

// Ratio is ours divided by another's, round by round.
func (r *RowResult) Ratio(other string) (Spread, bool) {
	s, ok := r.against(other, func(a, b float64) float64 { return a / b })
	return s, ok && !math.IsNaN(s.Center) && !math.IsInf(s.Center, 0)
}

// Added is ours less another's, round by round.
func (r *RowResult) Added(other string) (Spread, bool) {
	return r.against(other, func(a, b float64) float64 { return a - b })
}

// Verdict is what became of a bar.
type Verdict struct {
	Bar Bar
	// Seen is what the bar bounds, as it was measured.
	Seen Spread
	// Holds and Missed are both false where the limit lies within the spread, and where there is none.
	Holds, Missed bool
}

// Verdicts holds the figures against the row's bars. A bar whose baseline was not measured is left out.
func (r *RowResult) Verdicts() []Verdict {
	var list []Verdict
	for _, b := range r.Bars {
		v, ok := Verdict{Bar: b}, false
		switch b.Kind {
		case AtMost:
			v.Seen, ok = r.Value(r.Ours())
		case Ratio:
			v.Seen, ok = r.Ratio(b.Over)
		case Added:
			v.Seen, ok = r.Added(b.Over)
		case Allocations:
			if c := r.Cells[r.Ours()]; c != nil {
				v.Seen, ok = Spread{c.Allocs, c.Allocs, c.Allocs}, true
			}
		}
		if ok {
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
