package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

var errReadsOnly = errors.New("conformance kit: only routes of class read are let through here")

// readsOnly lets only calls of class read through to the backend.
func readsOnly(ctx context.Context, call host.NativeCall, send next) (host.NativeAnswer, error) {
	if call.Class != abi.ClassRead {
		return host.NativeAnswer{}, errReadsOnly
	}
	return send(ctx)
}

// classes checks that routes of class "read" only read. While no other route may pass, a turn is recorded and a scope
// is reset; the backend must not change.
//
// A second host looks at the backend. Its data folder is empty, so it sees what the backend holds and nothing that the
// plugin keeps in the host's state: a model that is asked, or a look-up, changes nothing there.
func (b *bench) classes() outcome {
	s := b.scope("classes", "p")
	kept := b.plant(s)
	if kept.trouble != nil {
		return *kept.trouble
	}
	look, err := b.open(b.dir+"-look", 1, nil)
	if err != nil {
		return refused("open", err)
	}
	look.wrote(s) // its first generation is cleaned up too
	before, err := look.ask(s)
	if err != nil {
		return refused("retrieve in "+scopeName(s)+", on an empty data folder", err)
	}
	held, _ := look.inventory(s)

	told, heard := b.recordWithReadsOnly(s)
	if o := look.checkUnchangedScope(s, kept, before, held, told, heard, "record_event"); o.verdict != Pass {
		return o
	}
	mark := b.wire.mark()
	b.wire.during(readsOnly, func() { _, _ = b.slot.ResetScope(b.ctx, s) }) // whatever it answers: clause 6 judges that
	heard = answeredCalls(b.wire.since(mark))
	if o := look.checkUnchangedScope(s, kept, before, held, nil, heard, "reset_scope"); o.verdict != Pass {
		return o
	}
	if !holds(before, kept.name) {
		if o := control(kept); o != nil && o.verdict != NotApplicable {
			return *o
		}
		return notChecked("what is recorded is kept by the host: another data folder does not find it in the backend")
	}
	return passed("record_event and reset_scope changed nothing in the backend")
}

// recordWithReadsOnly records a turn, and sends feedback if the provider accepts it, while only reads may pass. names
// are the recorded names, heard the calls that the backend answered.
func (b *bench) recordWithReadsOnly(s abi.MemoryScope) (names []string, heard []exchange) {
	mark := b.wire.mark()
	turn, feedback := b.kit.names.name(), b.kit.names.name()
	wording := b.kit.target.Probe.Wordings[0]
	b.wire.during(readsOnly, func() {
		e := b.event(s, wording(turn))
		_, _ = b.record(b.ctx, e) // it may fail: what it left in the backend counts
		if slices.Contains(b.capabilities, abi.OpApplyFeedback) {
			_, _ = b.slot.ApplyFeedback(b.ctx, &abi.MemoryFeedback{FeedbackID: e.EventID + "-feedback", Scope: s,
				SessionID: e.SessionID, Timestamp: e.Timestamp, Text: wording(feedback)})
		}
		// If a read can have filled a queue, the queue gets its time.
		if heard = answeredCalls(b.wire.since(mark)); anyCarries(heard, turn) || anyCarries(heard, feedback) {
			_ = b.wait(s)
		}
	})
	return []string{turn, feedback}, heard
}

// checkUnchangedScope checks that the backend is unchanged after an operation during which only reads could pass.
//
// kept is a fact from before the operation, before the answer that may hold it, held the inventory then (nil: none can
// be taken). told are texts that must not be found now, and heard the calls that passed.
func (r *rig) checkUnchangedScope(s abi.MemoryScope, kept *plantedFact, before *abi.RetrieveResult, held *abi.Inventory, told []string,
	heard []exchange, op string) outcome {
	if o := r.wait(s); o != nil {
		return *o
	}
	now, err := r.ask(s)
	if err != nil {
		return refused("retrieve in "+scopeName(s)+" after "+op, err)
	}
	for _, name := range told {
		if holds(now, name) {
			return failed("%s stored %s while only routes of class read were let through: one of these writes: %s", op,
				name, distinct(heard))
		}
	}
	if holds(before, kept.name) && !holds(now, kept.name) {
		return failed("%s removed %s while only routes of class read were let through: one of these removes: %s",
			op, kept.name, distinct(heard))
	}
	if held == nil {
		return passed("the answer is the same")
	}
	i, unsure := r.inventory(s)
	if unsure != nil {
		return *unsure
	}
	if was, is := kinds(held), kinds(i); was != is {
		return failed("%s changed the inventory while only routes of class read were let through (%s): before %s, "+
			"after %s",
			op, distinct(heard), was, is)
	}
	return passed("the answer and the inventory are the same")
}

// distinct names routes for people, each once.
func distinct(list []exchange) string {
	var names []string
	for _, x := range list {
		if !slices.Contains(names, x.call.Route) {
			names = append(names, x.call.Route)
		}
	}
	return strings.Join(names, ", ")
}

// answeredCalls are the calls that the backend took.
func answeredCalls(list []exchange) []exchange {
	return slices.DeleteFunc(list, func(x exchange) bool { return x.answered == 0 })
}

// anyCarries reports whether one of the calls holds a text.
func anyCarries(list []exchange, text string) bool {
	return slices.ContainsFunc(list, func(x exchange) bool { return x.carries(text) })
}
