package model

import (
	"fmt"
	"slices"

	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/stats"
)

// Judged is a judge's result for one provider at one budget.
type Judged struct {
	Label   string `json:"label"`
	Budget  int64  `json:"budget"`
	Answers int    `json:"answers"`
	// Missing counts the answers that the agent did not give, or on which the judge has no verdict.
	Missing int             `json:"missing"`
	Rate    stats.Corrected `json:"rate"`
	// ByLabel is the same by label of the probes.
	ByLabel []LabelRate `json:"by_label"`
	// Abstained is the share of answers that admit not knowing, among the probes without an answer. It is not part of
	// Rate, and is not corrected. It is nil if the pack has no such probe, or the judge no verdict.
	Abstained *stats.Interval `json:"abstained,omitempty"`
	// AbstainedMissing counts such answers without a verdict.
	AbstainedMissing int `json:"abstained_missing,omitempty"`
}

// LabelRate is a judge's result for one provider's answers to the probes with one label. The correction is computed
// over all labels.
type LabelRate struct {
	Label   string          `json:"label"`
	Answers int             `json:"answers"`
	Rate    stats.Corrected `json:"rate"`
}

// Verdicts are a judge's results and its error rates.
type Verdicts struct {
	Model string `json:"model"`
	Stub  bool   `json:"stub,omitempty"`
	// CorrectedOn is the basis of the correction: "made items", or people's labels of real answers.
	CorrectedOn string   `json:"corrected_on"`
	Providers   []Judged `json:"providers"`
	// Errors has the judge's verdicts by sort of calibration item.
	Errors []SortRate `json:"errors"`
	// Agreement is the agreement between people and judge on real answers, if people labelled any.
	Agreement []Agreement `json:"agreement,omitempty"`
	// Exact counts answers that were compared with a probe's options, without a judge.
	Exact int `json:"exact,omitempty"`
	// Compared compares the providers with the lab's reference, probe by probe, on uncorrected judged accuracy.
	Compared []Compared `json:"compared"`
	// Usage is the count of the judge's endpoint, over the Counted answers that reported it.
	Usage   journal.Usage `json:"usage"`
	Counted int           `json:"counted"`
}

// Compared compares every provider with one reference at one budget, adjusted together. The reference is that of the
// sealed primary comparison, if there is one, and otherwise the first provider.
type Compared struct {
	Budget      int64                `json:"budget"`
	Reference   string               `json:"reference"`
	Comparisons []LabelledComparison `json:"comparisons"`
}

// LabelledComparison compares one provider with the reference.
type LabelledComparison struct {
	Label string `json:"label"`
	stats.Comparison
}

// SortRate is how often a judge accepted items of one sort.
type SortRate struct {
	Sort     Sort `json:"sort"`
	Items    int  `json:"items"`
	Accepted int  `json:"accepted"`
	// Missing counts items on which the judge has no verdict. They are not in Items.
	Missing int `json:"missing,omitempty"`
}

// Agreement is the agreement of two raters on the answers on which both have a verdict.
type Agreement struct {
	A      string `json:"a"`
	B      string `json:"b"`
	Items  int    `json:"items"`
	Agreed int    `json:"agreed"`
	// Kappa is Cohen's kappa; nil if chance alone would always agree.
	Kappa *float64 `json:"kappa"`
}

// enoughLabels is how many labelled answers a correction needs; with fewer it uses made-up items.
const enoughLabels = 100

// ratedGroup has the judge's verdicts on one provider at one budget, for one label or for all.
type ratedGroup struct {
	provider string
	budget   int64
	label    string // of the probes; empty for all
}

// Conclude computes rates from a judge's file, corrected by the judge's own errors: measured on people's labels if
// there are enough, otherwise on made-up items. If a text was judged again after an error, its last line counts.
func Conclude(list []Judgement, labels []Labelled, l *lab.Lab) *Verdicts {
	seed := l.Seed
	v := &Verdicts{CorrectedOn: "made items", Providers: []Judged{}, Errors: []SortRate{}, Compared: []Compared{}}
	abstained, silent := map[ratedGroup]stats.Outcomes{}, map[ratedGroup]int{}
	paired := newPaired()
	answers, missing := map[ratedGroup]stats.Outcomes{}, map[ratedGroup]int{}
	probeLabels := map[ratedGroup][]string{}
	var right, wrong stats.Outcomes
	sorts := map[Sort]*SortRate{}
	var order []ratedGroup
	accepted, clusters := map[string]bool{}, map[string]string{} // by text
	for _, j := range lastOfEach(list) {
		if j.Header != nil {
			v.Model = j.Header.Judge.Model.Model
			continue
		}
		v.Stub = v.Stub || j.Stub
		if j.Usage != nil {
			v.Usage.PromptTokens += j.Usage.PromptTokens
			v.Usage.CompletionTokens += j.Usage.CompletionTokens
			v.Counted++
		}
		sample := stats.Sample{Cluster: j.Cluster}
		if j.Accepted {
			sample.Value = 1
		}
		if j.Sort == SortAnswer {
			all := ratedGroup{j.Label, j.Budget, ""}
			if !slices.Contains(order, all) {
				order = append(order, all)
			}
			if j.Exact && j.Error == nil {
				v.Exact++
			}
			if j.Unanswerable {
				if j.Error != nil {
					silent[all]++
				} else {
					abstained[all] = append(abstained[all], sample)
				}
				continue
			}
			paired.add(&j)
			if j.Error != nil {
				missing[all]++
				continue
			}
			accepted[j.Text], clusters[j.Text] = j.Accepted, j.Cluster
			answers[all] = append(answers[all], sample)
			labelled := ratedGroup{j.Label, j.Budget, j.ProbeLabel}
			if answers[labelled] == nil {
				probeLabels[all] = append(probeLabels[all], j.ProbeLabel)
			}
			answers[labelled] = append(answers[labelled], sample)
			continue
		}
		rate := sorts[j.Sort]
		if rate == nil {
			rate = &SortRate{Sort: j.Sort}
			sorts[j.Sort] = rate
		}
		if j.Error != nil {
			rate.Missing++
			continue
		}
		rate.Items++
		rate.Accepted += int(sample.Value)
		if j.Sort.Right() {
			right = append(right, sample)
		} else {
			wrong = append(wrong, sample)
		}
	}
	v.Agreement = agreements(labels, accepted)
	if r, w := byPeople(labels, accepted, clusters); len(r) > 0 && len(w) > 0 && len(r)+len(w) >= enoughLabels {
		v.CorrectedOn = fmt.Sprintf("%d answers that people labelled", len(r)+len(w))
		right, wrong = r, w
	}
	correct := func(of ratedGroup) stats.Corrected {
		return stats.Correct(answers[of], right, wrong,
			stats.Random(seed, fmt.Sprint("judge ", of.provider, of.budget, of.label)))
	}
	for _, all := range order {
		judged := Judged{Label: all.provider, Budget: all.budget, Answers: len(answers[all]), Missing: missing[all],
			Rate: correct(all), ByLabel: []LabelRate{}, AbstainedMissing: silent[all]}
		if len(abstained[all]) > 0 {
			i := stats.MeanInterval(abstained[all], stats.Random(seed, fmt.Sprint("abstained ", all.provider, all.budget)))
			judged.Abstained = &i
		}
		for _, label := range probeLabels[all] {
			of := ratedGroup{all.provider, all.budget, label}
			judged.ByLabel = append(judged.ByLabel,
				LabelRate{Label: label, Answers: len(answers[of]), Rate: correct(of)})
		}
		v.Providers = append(v.Providers, judged)
	}
	v.Compared = paired.compare(l)
	for _, sort := range []Sort{SortVerbatim, SortParaphrase, SortStale, SortOther, SortOnTopic, SortRefusal} {
		if rate := sorts[sort]; rate != nil {
			v.Errors = append(v.Errors, *rate)
		}
	}
	return v
}

// lastOfEach drops earlier lines of texts that were judged again.
func lastOfEach(list []Judgement) []Judgement {
	last := map[string]int{}
	for i, j := range list {
		last[j.Item] = i
	}
	var kept []Judgement
	for i, j := range list {
		if last[j.Item] == i {
			kept = append(kept, j)
		}
	}
	return kept
}

// byPeople returns the judge's verdicts on the answers that people call right, and on those that they call wrong. It
// skips answers on which people disagree.
func byPeople(labels []Labelled, accepted map[string]bool, clusters map[string]string) (right, wrong stats.Outcomes) {
	says, split := map[string]bool{}, map[string]bool{}
	var order []string
	for _, l := range labels {
		before, there := says[l.Text]
		if !there {
			order = append(order, l.Text)
		}
		split[l.Text] = split[l.Text] || there && before != l.Right
		says[l.Text] = l.Right
	}
	for _, text := range order {
		verdict, judged := accepted[text]
		if !judged || split[text] {
			continue
		}
		sample := stats.Sample{Cluster: clusters[text]}
		if verdict {
			sample.Value = 1
		}
		if says[text] {
			right = append(right, sample)
		} else {
			wrong = append(wrong, sample)
		}
	}
	return right, wrong
}

// agreements compares the judge with each person, and people with each other.
func agreements(labels []Labelled, accepted map[string]bool) []Agreement {
	raters := []string{"judge"}
	says := map[string]map[string]bool{"judge": accepted}
	var texts []string
	seen := map[string]bool{}
	for _, l := range labels {
		if says[l.By] == nil {
			raters, says[l.By] = append(raters, l.By), map[string]bool{}
		}
		says[l.By][l.Text] = l.Right
		if !seen[l.Text] {
			seen[l.Text], texts = true, append(texts, l.Text)
		}
	}
	var list []Agreement
	for i, a := range raters {
		for _, b := range raters[i+1:] {
			pair := Agreement{A: a, B: b}
			var first, second []string
			for _, text := range texts {
				x, byA := says[a][text]
				y, byB := says[b][text]
				if !byA || !byB {
					continue
				}
				pair.Items++
				if x == y {
					pair.Agreed++
				}
				first, second = append(first, fmt.Sprint(x)), append(second, fmt.Sprint(y))
			}
			if pair.Items == 0 {
				continue
			}
			kappa, known := stats.Kappa(first, second)
			if known {
				pair.Kappa = &kappa
			}
			list = append(list, pair)
		}
	}
	return list
}
