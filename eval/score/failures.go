package score

import (
	"cmp"
	"math"
	"slices"

	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
)

// Failure is a probe that was answered badly, with what was expected and what was shown.
type Failure struct {
	Label     string      `json:"label"` // of the column
	Replicate int         `json:"replicate"`
	Budget    int64       `json:"budget"`
	Probe     *pack.Probe `json:"probe"`
	// AnswerShown, Evidence (recall@tokens) and Content are those metrics; nil if they don't apply to the probe or the
	// provider.
	AnswerShown *float64 `json:"answer_shown"`
	Evidence    *float64 `json:"recall_at_tokens"`
	Content     *float64 `json:"content"`
	// Unflagged means that a value that no longer holds was shown without a sign of that.
	Unflagged bool `json:"stale_unflagged,omitempty"`
	// Error is the class of the error, if there was no answer.
	Error string `json:"error,omitempty"`
	// Context is what was shown.
	Context string `json:"context"`
}

// FailureOptions select failures. Zero values select all columns and budgets, and 20 failures.
type FailureOptions struct {
	Label  string
	Budget *int64
	Limit  int
}

// Failures lists the probes with the worst answers: errors first, then those whose answer was not shown, by the share
// of the evidence's content words that was shown, and then those that showed an earlier value unflagged.
//
// Errors: those of Score; invalid_argument for a label or a budget that the run does not have.
func Failures(folder string, p *pack.Pack, o FailureOptions) ([]Failure, error) {
	audit, err := readAudit(folder, p)
	if err != nil {
		return nil, err
	}
	s, err := load(folder, p, audit)
	if err != nil {
		return nil, err
	}
	if o.Label != "" && !slices.ContainsFunc(s.columns, func(c *column) bool { return c.Label == o.Label }) {
		return nil, wrong("the run has no provider %q", o.Label)
	}
	if o.Budget != nil && !slices.Contains(s.budgets, *o.Budget) {
		return nil, wrong("the run has no budget %d: it has %v", *o.Budget, s.budgets)
	}
	type rankedFailure struct {
		Failure
		badness float64
		context string
	}
	var list []rankedFailure
	for _, c := range s.columns {
		for at, budget := range s.budgets {
			if o.Label != "" && c.Label != o.Label || o.Budget != nil && budget != *o.Budget {
				continue
			}
			for _, cell := range c.cells {
				for number, r := range cell.readings[at] {
					if r == nil {
						continue
					}
					f := Failure{Label: c.Label, Replicate: cell.Replicate, Budget: budget,
						Probe: s.probes[number].Probe, Error: r.err}
					if badness := f.judge(r); badness > 0 {
						list = append(list, rankedFailure{f, badness, r.context})
					}
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b rankedFailure) int { return cmp.Compare(b.badness, a.badness) })
	limit := o.Limit
	if limit == 0 {
		limit = maxExamples
	}
	failures := []Failure{}
	for _, f := range list[:min(len(list), limit)] {
		text, err := rundir.Contexts(folder).Text(f.context)
		if err != nil {
			return nil, err
		}
		f.Context = string(text)
		failures = append(failures, f.Failure)
	}
	return failures, nil
}

// judge fills in the metrics and returns how bad the answer is: 0 means no failure.
func (f *Failure) judge(r *reading) float64 {
	if r.err != "" {
		return 4
	}
	value := func(name string) *float64 {
		if v := r.values[place[name]]; !math.IsNaN(v) {
			return &v
		}
		return nil
	}
	f.AnswerShown, f.Evidence, f.Content = value("answer_shown"), value("recall@tokens"), value("content")
	stale := value("stale_unflagged")
	f.Unflagged = stale != nil && *stale > 0
	badness := 0.0
	if f.Unflagged {
		badness = 0.5
	}
	missed := 1.0 // share of the evidence's words that was not shown
	if f.Content != nil {
		missed -= *f.Content
	}
	switch {
	case f.AnswerShown != nil && *f.AnswerShown < 1:
		badness += 2 + missed
	case f.AnswerShown == nil && f.Content != nil && missed > 0:
		badness += missed
	}
	return badness
}
