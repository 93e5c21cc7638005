package score

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/stats"
)

// metric is a mean over probes. A file metric_*.go defines and registers it: its name, the probes in its denominator, how
// a retrieval is measured, and examples, which are both its test and its documentation (docs/metrics.md).
type metric struct {
	Entry
	// applies tells by the pack alone whether a probe is in the denominator: a provider cannot change it.
	applies func(*probe) bool
	// none says why there is no value where no probe applies.
	none string
	// absent says why no retrieval that was answered has a value; empty: the provider does not say.
	absent string
	// measure is the value of a retrieval of a probe that applies; NaN where it has none. It is nil where several reads
	// make one value.
	measure func(*measuring) float64
	// behave is the value of a conversation about a probe that applies, of metrics of behaviour, which have no measure.
	// scaled values are compared as shares of the most that they can be.
	behave func(*conversation) float64
	scaled bool
	talks  []exampleTalk
	// chance is what random order would score. Where that comes to more than a half on average, the metric is refused.
	chance func(*probe) float64
	// agrees names a metric whose verdict has to be the same, and unless one that must not be worse where this one is
	// better. Where that fails, the verdict is otherwise.
	agrees, unless string
	otherwise      stats.Verdict
	examples       []example
}

// Reasons why no probe applies, of several metrics.
const (
	noEvidence = "no answerable probe names evidence"
	noStale    = "the pack has no stale values"
)

// groups are the groups of metrics in the order of tables.
var groups = []string{"behaviour", "budgeted", "sensitivity", "derived", "answer", "validity", "retrieval", "context", "abstention", "stability", "cost"}

// metrics is every metric, in the order of tables: by group, headline metrics first, and of them
// those that name their sources. place is the position of each.
// auroc is the only one that is not a mean over probes.
var (
	metrics []metric
	place   map[string]int
)

// register adds metrics. It is called while the package's variables are set up.
func register(list ...metric) bool {
	metrics = append(metrics, list...)
	return true
}

func init() {
	slices.SortStableFunc(metrics, func(a, b metric) int {
		return cmp.Or(cmp.Compare(slices.Index(groups, a.Group), slices.Index(groups, b.Group)),
			cmp.Compare(yes(b.Headline), yes(a.Headline)), cmp.Compare(yes(b.Attribution), yes(a.Attribution)))
	})
	place = map[string]int{}
	for i := range metrics {
		place[metrics[i].Name] = i
	}
}

// comparable reports whether a verdict can be given on it: a share whose denominator no provider can change.
func (m *metric) comparable() bool {
	return (m.Unit == "share" || m.scaled) && m.Better != "" && !slices.Contains([]string{"stability", "derived", "sensitivity"}, m.Group)
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

// auroc is explained like a metric.
var auroc = Entry{Name: "auroc", Group: "abstention", Unit: "share", Better: "more",
	What: "the chance that the top score of an answerable probe lies above that of one that cannot be answered; " +
		"without items it lies below all"}
