package score

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/stats"
)

// metric is a mean over probes. A file metric_*.go defines and registers it: its name, the probes in its denominator,
// how a retrieval is measured, and examples, which serve as tests and as documentation (docs/reference/metrics.md).
type metric struct {
	Entry
	// applies reports whether a probe is in the denominator. It only looks at the pack, so a provider cannot influence
	// it.
	applies func(*probe) bool
	// none is the reason if no probe applies.
	none string
	// absent is the reason if no answered retrieval has a value; empty means that the provider does not report it.
	absent string
	// measure returns the value of a retrieval of a probe that applies; NaN if it has none. It is nil for metrics that
	// need several reads.
	measure func(*measurement) float64
	// behave returns the value of a conversation about a probe that applies, for metrics of behaviour, which have no
	// measure. If scaled, values are compared as shares of their maximum.
	behave        func(*conversation) float64
	scaled        bool
	conversations []exampleConversation
	// chance is the expected score of a random order. If it is above one half on average, the metric is not used.
	chance func(*probe) float64
	// agrees names a metric whose verdict must be the same; unless names one that must not be worse if this one is
	// better. Otherwise the verdict is replaced by otherwise.
	agrees, unless string
	otherwise      stats.Verdict
	examples       []example
}

// Reasons why no probe applies, shared by several metrics.
const (
	noEvidence = "no answerable probe names evidence"
	noStale    = "the pack has no stale values"
)

// groups are the groups of metrics in the order of tables.
var groups = []string{"behaviour", "budgeted", "sensitivity", "derived", "answer", "validity", "retrieval", "context", "abstention", "stability", "cost"}

// metrics has every metric, in the order of tables: by group, headline metrics first, and among these the ones that
// depend on attribution. place has the position of each. auroc is the only one that is not a mean over probes.
var (
	metrics []metric
	place   map[string]int
)

// register adds metrics. It is called during package initialisation.
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

// comparable reports whether verdicts may be based on the metric: it is a share whose denominator no provider can
// influence.
func (m *metric) comparable() bool {
	return (m.Unit == "share" || m.scaled) && m.Better != "" && !slices.Contains([]string{"stability", "derived", "sensitivity"}, m.Group)
}

// worst is the worst value, which failures get. It is NaN if no value is worse than another.
func (m *metric) worst() float64 {
	if m.Unit != "share" || m.Better == "" || m.Group == "stability" {
		return math.NaN()
	}
	return yes(m.Better == "less")
}

// ofRanking reports whether the metric needs nothing but an order of events.
func (m *metric) ofRanking() bool { return m.Group == "retrieval" && m.Attribution }

// Known returns an error unless a metric with this name exists that a lab's primary comparison may use.
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

// values has the metrics of one retrieval, by place; NaN if the retrieval has none.
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
