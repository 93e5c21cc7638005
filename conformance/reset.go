package conformance

import (
	"context"
	"errors"
	"sync"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

// checkReset is clause 6.
func checkReset(b *bench) {
	s, other := b.scope("reset", "p"), b.scope("reset", "p2")
	mark := b.wire.mark()
	mine, theirs := b.plant(s), b.plant(other)
	wrote := writesOf(b.wire.since(mark), mine.name)
	mark = b.wire.mark()
	receipt, err := b.slot.ResetScope(b.ctx, s)
	sent := b.wire.since(mark)

	b.part("end", "a reset comes to its end and starts a new generation", func() outcome {
		if err != nil {
			return refused("reset_scope", err)
		}
		switch receipt.Status {
		case abi.ResetInProgress:
			return pending("still in progress at its deadline: %v", receipt.Remains)
		case abi.ResetIncomplete:
			return lacking("incomplete, there remains: %v", receipt.Remains)
		case abi.ResetFailed:
			return failed("failed: %v", receipt.Remains)
		}
		switch {
		case receipt.NewGeneration != receipt.OldGeneration+1:
			return failed("done, and generation %d became %d", receipt.OldGeneration, receipt.NewGeneration)
		case wrote > 0 && len(changes(sent)) == 0:
			return failed("done, and the host saw no native call that could have removed anything (%s)", routesOf(sent))
		}
		return passed("generation %d, native calls: %s", receipt.NewGeneration, routesOf(sent))
	})
	if err != nil {
		return
	}
	b.part("one_scope", "the scope is empty afterwards, and the other one is not",
		func() outcome { return b.onlyOne(mine, theirs) })
	b.part("erased", "what was reset is gone from the backend, not only out of reach", func() outcome {
		return b.checkErased(mine, receipt)
	})
	b.part("again", "a reset of an empty scope is done, too", func() outcome {
		again, err := b.slot.ResetScope(b.ctx, s)
		switch {
		case err != nil:
			return refused("reset_scope", err)
		case again.Status != abi.ResetDone && receipt.Status == abi.ResetDone:
			return failed("%s: %v", again.Status, again.Remains)
		}
		return passed("%s, generation %d", again.Status, again.NewGeneration)
	})
	b.part("next", "the new generation keeps what it is told, and knows nothing of the old", func() outcome {
		fresh := b.plant(s)
		result, err := b.ask(s)
		switch {
		case err != nil:
			return refused("retrieve", err)
		case holds(result, mine.name):
			return failed("%s was told before the reset, and found", mine.name)
		}
		if o := control(fresh); o != nil && o.verdict != NotApplicable {
			return *o
		}
		return passed("generation %d", result.Trace.Generation)
	})
	b.part("late", "an event of the old generation that reaches the backend after the reset is never seen in the new "+
		"one",
		b.checkLateWrite)
}

func (b *bench) onlyOne(mine, theirs *plantedFact) outcome {
	result, err := b.ask(mine.scope)
	if err != nil {
		return refused("retrieve", err)
	}
	if holds(result, mine.name) {
		return failed("%s is still found in the scope that was reset", mine.name)
	}
	untouched, err := b.ask(theirs.scope)
	switch {
	case err != nil:
		return refused("retrieve", err)
	case holds(result, theirs.name):
		return failed("the scope that was reset found %s of another one", theirs.name)
	case theirs.found != nil && !holds(untouched, theirs.name):
		return failed("%s was told in another scope, and is gone", theirs.name)
	}
	if o := control(mine, theirs); o != nil && o.verdict != NotApplicable {
		return *o
	}
	return passed("the one is empty, the other is not")
}

// checkErased looks for a fact from a new data folder, whose first generation is the one in which the fact was
// recorded.
func (b *bench) checkErased(p *plantedFact, receipt *abi.ResetReceipt) outcome {
	if receipt.Status != abi.ResetDone {
		return notChecked("the reset came to %s", receipt.Status)
	}
	r, err := b.open(b.dir+"-erased", 1, nil)
	if err != nil {
		return refused("open", err)
	}
	result, err := r.ask(p.scope)
	switch {
	case err != nil:
		return refused("retrieve in "+scopeName(p.scope)+", on an empty data folder", err)
	case holds(result, p.name):
		return failed("the reset is done, and the backend still gives %s to generation %d", p.name, receipt.OldGeneration)
	}
	return passed("not found in generation %d", receipt.OldGeneration)
}

var errHeld = errors.New("conformance kit: the connection was dropped, and the request goes on its way later")

// holder keeps the calls of an event back, to be sent on later.
type holder struct {
	mu   sync.Mutex
	held []next
}

// intercept holds what carries a name and is no read.
func (h *holder) intercept(name string) host.Interceptor {
	return func(ctx context.Context, call host.NativeCall, send next) (host.NativeAnswer, error) {
		x := exchange{call: call}
		if call.Class == abi.ClassRead || !x.carries(name) {
			return send(ctx)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.held = append(h.held, send)
		return host.NativeAnswer{}, errHeld
	}
}

// release sends on what was held. It returns how many calls that were.
func (h *holder) release(ctx context.Context) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, send := range h.held {
		_, _ = send(ctx)
	}
	n := len(h.held)
	h.held = nil
	return n
}

// checkLateWrite lets an event's request arrive after the scope was reset.
func (b *bench) checkLateWrite() outcome {
	s := b.scope("late", "p")
	first := b.plant(s)
	if o := control(first); o != nil {
		return *o
	}
	name, h := b.kit.names.name(), &holder{}
	b.wire.during(h.intercept(name), func() {
		_, _ = b.record(b.ctx, b.event(s, b.kit.target.Probe.Wordings[0](name)))
	})
	if len(h.held) == 0 {
		return notChecked("no native call carries the event: there is nothing that could be late")
	}
	var receipt *abi.ResetReceipt
	for range 2 { // generations that take turns would have the first one's native ids again
		var err error
		receipt, err = b.slot.ResetScope(b.ctx, s)
		switch {
		case err != nil:
			return refused("reset_scope", err)
		case receipt.Status != abi.ResetDone:
			return inconclusive("the reset came to %s", receipt.Status)
		}
	}
	fresh := b.plant(s)
	n := h.release(b.ctx)
	defer b.sweep(s)
	if o := b.wait(s); o != nil {
		return *o
	}
	result, err := b.ask(s)
	switch {
	case err != nil:
		return refused("retrieve", err)
	case holds(result, name):
		return failed("%s was told before the reset and arrived after it, and the new generation found it", name)
	}
	if o := control(fresh); o != nil {
		return *o
	}
	return passed("%d late requests, none seen in generation %d", n, receipt.NewGeneration)
}

// sweep resets the first generation of a scope once more: a late request may have made it again in the backend, and no
// slot that knows a later generation looks there. One on a new data folder begins with the first.
func (b *bench) sweep(s abi.MemoryScope) {
	r, err := b.open(b.dir+"-late", 1, nil)
	if err == nil {
		_, _ = r.slot.ResetScope(b.ctx, s)
	}
}
