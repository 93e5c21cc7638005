package score

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/stats"
	"github.com/memhost/memhost/internal/text/tokens"
)

// The labels of the references that are computed here. If a provider has the same label, the reference's label gets a
// mark.
const (
	randomLabel   = "random"
	evidenceLabel = "evidence"
)

// references are two columns without a provider: randomly drawn messages up to the budget (a floor), and the evidence
// itself up to the budget (a ceiling).
type references struct {
	*timeline
	seed    uint64
	budgets []int64
	counter tokens.Counter
	// evidenced is false for a pack that names no evidence: then golden is empty.
	evidenced bool
	random    *column
	golden    *column
}

func newReferences(t *timeline, seed uint64, budgets []int64, counter tokens.Counter,
	taken map[string]bool) *references {
	newColumn := func(label, reason string) *column {
		for taken[strings.ToLower(label)] {
			label += "*"
		}
		c := &column{timeline: t, seed: seed, reason: reason, reference: make([][]*reading, len(budgets))}
		c.Column = Column{Label: label, Provider: label, Kind: "reference"}
		for i := range c.reference {
			c.reference[i] = make([]*reading, len(t.probes))
		}
		return c
	}
	r := &references{timeline: t, seed: seed, budgets: budgets, counter: counter,
		evidenced: slices.ContainsFunc(t.probes, (*probe).hasEvidence),
		random:    newColumn(randomLabel, "not computed: without a limit it would be everything"),
		golden:    newColumn(evidenceLabel, "")}
	if !r.evidenced {
		r.golden.reason = "not computed: " + noEvidence
	}
	return r
}

// renderedEvent is an event in the form in which the references show it.
type renderedEvent struct {
	id, text string
	session  int
	tokens   int64
}

// message formats an event as the references show it: a line "speaker: text" for each message.
func message(e *pack.Event) renderedEvent {
	var b strings.Builder
	for i := range e.Messages {
		m := &e.Messages[i]
		if m.Content == nil {
			continue
		}
		name := m.Name
		if name == "" {
			name = string(m.Role)
		}
		b.WriteString(name + ": " + *m.Content + "\n")
	}
	return renderedEvent{id: e.EventID, text: b.String(), session: e.SessionIndex}
}

// persona computes both references for the probes of a persona.
func (r *references) persona(p *persona, history []renderedEvent) {
	for i := range history {
		history[i].tokens = r.counter.Count([]byte(history[i].text))
	}
	for _, probe := range p.probes {
		known := len(history)
		for known > 0 && history[known-1].session > probe.AfterSession {
			known--
		}
		for at, budget := range r.budgets {
			if budget > 0 {
				r.random.reference[at][probe.number] = r.read(probe, r.draw(probe, history[:known], budget))
			}
			if r.evidenced {
				r.golden.reference[at][probe.number] = r.read(probe, r.fit(r.gold(probe, history[:known]), budget))
			}
		}
	}
}

// misses is after how many consecutive messages that do not fit a context counts as full.
const misses = 5

// draw returns random whole messages, up to the budget.
func (r *references) draw(p *probe, history []renderedEvent, budget int64) []renderedEvent {
	random := stats.Random(r.seed, fmt.Sprintf("random/%s/%d", p.ProbeID, budget))
	order := random.Perm(len(history))
	var list []renderedEvent
	missed := 0
	for _, i := range order {
		n := history[i].tokens
		if n > budget {
			if missed++; missed == misses {
				break
			}
			continue
		}
		budget, missed = budget-n, 0
		list = append(list, history[i])
	}
	return list
}

// fit returns the start of a list, up to the budget; 0 means no limit.
func (r *references) fit(list []renderedEvent, budget int64) []renderedEvent {
	if budget == 0 {
		return list
	}
	for i := range list {
		if budget -= list[i].tokens; budget < 0 {
			return list[:i]
		}
	}
	return list
}

// gold returns the first known member of each gold group, in chronological order.
func (r *references) gold(p *probe, history []renderedEvent) []renderedEvent {
	var list []renderedEvent
	for _, s := range history {
		if slices.ContainsFunc(p.groups, func(group []string) bool { return group[0] == s.id }) {
			list = append(list, s)
		}
	}
	return list
}

// read returns the reading of messages as a context. Its tokens are those of its messages, as draw and fit count them.
func (r *references) read(p *probe, list []renderedEvent) *reading {
	var b strings.Builder
	evidence := make([]abi.Evidence, len(list))
	var count, none int64
	for i, s := range list {
		count += s.tokens
		start := int64(b.Len())
		b.WriteString(s.text)
		evidence[i] = abi.Evidence{Rank: int64(i + 1), Text: s.text, SourceEventIDs: []string{s.id},
			Shown: &abi.Shown{Start: start, End: int64(b.Len()), Whole: true}}
	}
	return r.measure(p, &retrieval{evidence: evidence, context: b.String(),
		trace: &abi.Trace{TokenCount: &count, FrameTokens: &none}})
}
