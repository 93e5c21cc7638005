package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
)

// Clause 5 tells manyFacts facts, more than backends give unless they are asked for more, and asks with a budget of
// roomForAll tokens, which holds them several times.
const (
	manyFacts  = 24
	roomForAll = 8000
)

// fills checks a budget of tokens: either everything fits in, or the trace says what ended the context. A missing fact
// counts only if a query by its own words finds it, which proves that it is stored.
func (b *bench) fills(q question) outcome {
	if q.noAnswer != nil {
		return *q.noAnswer
	}
	if q.query != b.kit.target.Probe.Question {
		return notChecked("what is recorded is not shown")
	}
	s, tell := b.many(), b.kit.target.Probe.Wordings[0]
	missing := make([]string, manyFacts)
	for i := range missing {
		missing[i] = b.kit.names.name()
		if _, err := b.record(b.ctx, b.event(s, tell(missing[i]))); err != nil {
			return refused("record_event", err)
		}
	}
	if o := b.wait(s); o != nil {
		return *o
	}
	ask := func(query string) (*abi.RetrieveResult, error) {
		return b.retrieve(&abi.RetrieveRequest{Query: query, Scope: s, Budget: abi.ContextBudget{MaxTokens: limit(
			roomForAll)}})
	}
	mark := b.wire.mark()
	r, err := ask(q.query)
	if err != nil {
		return refused("retrieve", err)
	}
	sent := b.wire.since(mark)
	missing = slices.DeleteFunc(missing, func(name string) bool { return shows(r, name) })
	said := fmt.Sprintf("%d of %d facts are shown, in %d of %d tokens", manyFacts-len(missing), manyFacts,
		*r.Trace.TokenCount,
		roomForAll)
	switch why, o := endReason(r, sent, roomForAll); {
	case len(missing) == 0:
		return passed("%s", said)
	case o != nil:
		return *o
	case why != "":
		return passed("%s: %s", said, why)
	case !slices.ContainsFunc(r.Evidence, func(e abi.Evidence) bool { return e.Shown != nil }):
		return notChecked(beforeShown) // and so from before budgets reached retrieval
	}
	for _, name := range missing[:min(3, len(missing))] {
		own, err := ask(tell(name))
		if err != nil {
			return refused("retrieve", err)
		}
		if shows(own, name) {
			return failed("%s. %s is held, since its own words find it, and there was room for it; neither "+
				"budget_applied.max_items nor a warning says what ended the context", said, name)
		}
	}
	return passed("%s; the others are not found by their own words either", said)
}

// shows reports whether a name is in the formatted context, without regard to case.
func shows(r *abi.RetrieveResult, name string) bool {
	return strings.Contains(strings.ToLower(r.FormattedContext), strings.ToLower(name))
}

// endReason is, for a budget of tokens, the trace's reason why a context is not longer, "" for no reason. The outcome
// is set if the reason is false.
func endReason(r *abi.RetrieveResult, sent []exchange, room int64) (why string, o *outcome) {
	t := r.Trace
	if *t.TokenCount > room/2 {
		return "the budget is in use", nil
	}
	for _, w := range t.Warnings {
		if strings.HasPrefix(w, abi.WarnBudgetUnused+":") {
			return w, nil
		}
	}
	use, told := t.BudgetApplied["max_items"]
	if told && use.How == "fixed" {
		return "max_items is said to be fixed", nil
	}
	if !told || use.Sent == nil || use.Received == nil || *use.Received >= *use.Sent {
		return "", nil
	}
	number := func(x exchange) bool { return sentNumber(x, *use.Sent) }
	if use.How == "native" && !slices.ContainsFunc(sent, number) {
		wrong := failed("max_items: the trace says that %d was sent, the host saw it in no request (%s)", *use.Sent,
			routesOf(sent))
		return "", &wrong
	}
	return fmt.Sprintf("%d were asked for and %d came", *use.Sent, *use.Received), nil
}
