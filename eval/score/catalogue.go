package score

import (
	"fmt"
	"math"

	"github.com/memhost/memhost/abi"
)

// metric is one metric that is a mean over probes.
type metric struct {
	Entry
	// applies tells by the pack alone whether a probe is in the denominator: a provider cannot change it.
	applies func(*probe) bool
	// none says why there is no value where no probe applies.
	none string
	// session metrics are refused where chance alone comes to more than a half.
	chance func(*probe) float64
}

// comparable reports whether a verdict can be given on it: a share whose denominator no provider can change.
func (m *metric) comparable() bool {
	return m.Unit == "share" && m.Better != "" && m.Group != "stability" && m.Group != "derived"
}

// worst is the worst value of a probe: what a failure counts as. It is NaN where no value is worse than another.
func (m *metric) worst() float64 {
	if m.Unit != "share" || m.Better == "" || m.Group == "stability" {
		return math.NaN()
	}
	return yes(m.Better == "less")
}

// ofRanking reports whether an order of events is all that it needs.
func (m *metric) ofRanking() bool { return m.Group == "retrieval" && m.Attribution }

// metrics is every metric, in the order of tables. auroc is the only one that is not a mean over probes.
var metrics = func() []metric {
	list := []metric{
		{Entry: Entry{Name: "recall@tokens", Group: "budgeted", Unit: "share", Better: "more", Headline: true,
			Attribution: true,
			What: "gold groups of which the context shows a member: by items that name it among at most 3 source events, " +
				"and that show at least three quarters of one of its messages in order"}},
		{Entry: Entry{Name: "all@tokens", Group: "budgeted", Unit: "share", Better: "more", Attribution: true,
			What: "probes of which the context shows every gold group"}},
		{Entry: Entry{Name: "content", Group: "budgeted", Unit: "share", Better: "more", Headline: true,
			What: "content words of the evidence that are inside shown text, of each group's best member; " +
				"the column evidence is its ceiling"}},
		{Entry: Entry{Name: "content_false", Group: "budgeted", Unit: "share", Better: "less",
			What: "the same share for the evidence of another cluster's probe: what content is without any memory"}},
	}
	for i := range list {
		list[i].applies, list[i].none = (*probe).hasEvidence, "no answerable probe names evidence"
	}
	list[2].applies, list[3].applies = (*probe).hasWords, (*probe).hasFalseWords
	list[2].none, list[3].none = "no evidence has content words", "the pack has one cluster only"
	list = append(list,
		metric{Entry: Entry{Name: "in_order", Group: "budgeted", Unit: "share", Better: "more",
			What: "gold groups of which shown text holds three quarters of a message in runs of four words, whatever items " +
				"claim: a list of words has none, and a verdict on content needs it to agree"},
			applies: (*probe).hasWords, none: "no evidence has content words"},
		metric{Entry: Entry{Name: "derived@tokens", Group: "derived", Unit: "share", Better: "more", Attribution: true,
			What: "gold groups of which an item of at most 60 words shows a gold value and names a member: facts that a " +
				"backend extracted; it has no verdict"},
			applies: func(p *probe) bool { return p.hasEvidence() && p.hasAnswers() },
			none:    "no answerable probe names evidence and answers"},
		metric{Entry: Entry{Name: "unsupported", Group: "derived", Unit: "share",
			What: "gold groups that shown items name without showing the words, of those that they name"},
			applies: (*probe).hasEvidence, none: "no answerable probe names evidence"},
		metric{Entry: Entry{Name: "answer_shown", Group: "answer", Unit: "share", Better: "more", Headline: true,
			What: "probes of which the context holds a member of every answers group, as whole words in any case"},
			applies: (*probe).hasAnswers, none: "no probe has answers"},
		metric{Entry: Entry{Name: "forbidden_shown", Group: "answer", Unit: "share", Better: "less",
			What: "probes whose context holds a text that it must not"}, applies: (*probe).hasForbidden,
			none: "no probe forbids a text"},
	)
	for _, m := range []metric{
		{Entry: Entry{Name: "current_shown", Unit: "share", Better: "more", Headline: true,
			What: "probes with earlier values whose present value is shown"}},
		{Entry: Entry{Name: "stale_shown", Unit: "share", Better: "less", Headline: true,
			What: "probes with earlier values of which one is shown"}},
		{Entry: Entry{Name: "current_first", Unit: "share", Better: "more",
			What: "probes with earlier values whose present value is shown, and no earlier one before it"}},
		{Entry: Entry{Name: "stale_unflagged", Unit: "share", Better: "less", Headline: true,
			What: "probes with earlier values of which one is shown without a legible sign that it no longer holds"}},
		{Entry: Entry{Name: "stale_age_days", Unit: "days",
			What: "how long ago the oldest value that is shown unflagged was superseded, over the probes that show " +
				"one"}},
	} {
		m.Group, m.applies, m.none = "validity", (*probe).hasStale, "the pack has no stale values"
		list = append(list, m)
	}
	for _, level := range []string{"", "session."} {
		list = append(list, ranking(level)...)
	}
	return append(list,
		metric{Entry: Entry{Name: "coverage", Group: "retrieval", Unit: "share",
			What: "items that name 1 to 3 source events, of the items of a probe"},
			applies: everyProbe},
		metric{Entry: Entry{Name: "other_context", Group: "context", Unit: "share",
			What: "attributed items that come from another context than the one asked for, " +
				"over probes that ask for one and get any"},
			applies: (*probe).hasContext, none: "no probe asks for a context"},
		metric{Entry: Entry{Name: "items", Group: "abstention", Unit: "count", What: "items returned"},
			applies: everyProbe},
		metric{Entry: Entry{Name: "items_unanswerable", Group: "abstention", Unit: "count",
			What: "items returned for probes that cannot be answered"},
			applies: (*probe).unanswerable, none: "every probe can be answered"},
		metric{Entry: Entry{Name: "stability", Group: "stability", Unit: "share", Better: "more",
			What: "Jaccard index of the items of three reads, the mean of the three pairs"}, applies: everyProbe},
		metric{Entry: Entry{Name: "context_tokens", Group: "cost", Unit: "tokens", Headline: true,
			What: "tokens of the formatted context"}, applies: everyProbe},
		metric{Entry: Entry{Name: "frame_tokens", Group: "cost", Unit: "tokens",
			What: "tokens of the context that are not items' own words"},
			applies: everyProbe},
		metric{Entry: Entry{Name: "shortfall", Group: "cost", Unit: "tokens",
			What: "tokens by which the context falls short of its budget, by the provider's word"},
			applies: everyProbe},
	)
}()

// ranking are the metrics of the items' order, by events or by sessions.
func ranking(level string) []metric {
	what, session := "an item that names it", level != ""
	if session {
		what = "an item of its session, sessions in the order of their first item"
	}
	var list []metric
	add := func(name, says string, of func(*rankScores) float64) {
		m := metric{Entry: Entry{Name: level + name, Group: "retrieval", Unit: "share", Better: "more",
			Attribution: true,
			Headline:    level+name == "recall@10" || level+name == "mrr", What: says},
			applies: (*probe).hasEvidence, none: "no answerable probe names evidence"}
		if session {
			m.chance = func(p *probe) float64 { return of(&p.chance) }
		}
		list = append(list, m)
	}
	for i, k := range cutoffs {
		name := func(metric string) string { return fmt.Sprintf("%s@%d", metric, k) }
		within := fmt.Sprintf("among the first %d, by %s", k, what)
		add(name("hit"), "probes of which a gold group is served "+within, func(s *rankScores) float64 {
			return s.hit[i]
		})
		add(name("recall"), "gold groups that are served "+within, func(s *rankScores) float64 { return s.recall[i] })
		add(name("all"), "probes of which every gold group is served "+within, func(s *rankScores) float64 {
			return s.all[i]
		})
		add(name("ndcg"), "discounted gain of gold groups when first served, of the ideal, "+within,
			func(s *rankScores) float64 { return s.ndcg[i] })
	}
	add("mrr", "1 over the rank at which the first gold group is served, by "+what,
		func(s *rankScores) float64 { return s.mrr })
	return list
}

// auroc is explained like a metric.
var auroc = Entry{Name: "auroc", Group: "abstention", Unit: "share", Better: "more",
	What: "the chance that the top score of an answerable probe lies above that of one that cannot be answered; " +
		"without items it lies below all"}

// place is the position of each metric.
var place = func() map[string]int {
	m := map[string]int{}
	for i := range metrics {
		m[metrics[i].Name] = i
	}
	return m
}()

// Known reports whether a metric has this name, as the lab's primary comparison may name it.
//
// Errors: invalid_argument, with the nearest name as a hint.
func Known(name string) error {
	if i, known := place[name]; known && metrics[i].comparable() {
		return nil
	}
	var names []string
	for i := range metrics {
		if metrics[i].comparable() {
			names = append(names, metrics[i].Name)
		}
	}
	e := wrong("primary.metric: %q is no metric that providers can be compared by", name)
	e.Hint = "such as answer_shown, recall@tokens, content"
	if near := abi.Nearest(name, names); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return e
}

// values are the metrics of one retrieval, by place; NaN where the retrieval has none.
type values []float64

func newValues() values {
	v := make(values, len(metrics))
	for i := range v {
		v[i] = math.NaN()
	}
	return v
}

func (v values) set(name string, x float64) { v[place[name]] = x }

func (v values) setRanks(level string, s rankScores) {
	for i, k := range cutoffs {
		v.set(fmt.Sprintf("%shit@%d", level, k), s.hit[i])
		v.set(fmt.Sprintf("%srecall@%d", level, k), s.recall[i])
		v.set(fmt.Sprintf("%sall@%d", level, k), s.all[i])
		v.set(fmt.Sprintf("%sndcg@%d", level, k), s.ndcg[i])
	}
	v.set(level+"mrr", s.mrr)
}
