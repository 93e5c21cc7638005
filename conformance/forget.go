package conformance

import (
	"strings"

	"github.com/memhost/memhost/abi"
)

// checkForget is clause 15.
func checkForget(b *bench) {
	if !b.can(abi.OpForget) {
		b.part("claim", "a provider that claims forget removes what it is asked to", func() outcome {
			return foundOut("the provider has no forget")
		})
		return
	}
	s, other := b.scope("forget", "p"), b.scope("forget", "q")
	gone, kept := b.plant(s), b.plant(s)
	// The same event ids in another scope are other events.
	next := 0
	elsewhere := b.plantWith(other, func(e *abi.MemoryEvent) {
		if next < len(gone.events) {
			e.EventID = gone.events[next].EventID
		}
		next++
	})
	before, unsure := b.inventory(s)
	var receipt *abi.ForgetReceipt
	b.part("wall", "while read-only nothing is forgotten, with no native call",
		func() outcome { return b.forgetBehind(gone) })
	end := b.part("end", "forgetting events comes to its end", func() outcome {
		var o outcome
		receipt, o = b.forget(gone)
		return o
	})
	if end.verdict != Pass {
		return
	}
	b.part("retrieve", "what was forgotten is in no retrieval", func() outcome { return b.checkForgotten(gone, receipt) })
	b.part("others", "other events of the scope, and the same ids in another scope, are still there", func() outcome {
		for _, p := range []*plantedFact{kept, elsewhere} {
			result, err := b.ask(p.scope)
			switch {
			case err != nil:
				return refused("retrieve", err)
			case p.found != nil && !holds(result, p.name):
				return failed("%s was not to be forgotten, and is not found in %s any more", p.name, scopeName(p.scope))
			}
		}
		if o := control(kept, elsewhere); o != nil {
			return *o
		}
		return passed("%s and %s are found", kept.name, elsewhere.name)
	})
	b.part("provenance", "what was forgotten has no provenance", func() outcome { return b.untraceable(gone, receipt) })
	b.part("inventory", "the inventory has less than before", func() outcome {
		after, stillUnsure := b.inventory(s)
		switch {
		case unsure != nil:
			return *unsure
		case stillUnsure != nil:
			return *stillUnsure
		case gone.found == nil:
			return *control(gone)
		case total(after) >= total(before):
			return failed("it counted %d before and %d after", total(before), total(after))
		}
		return passed("%d before, %d after", total(before), total(after))
	})
	b.forgetBy()
	b.part("again", "forgetting what is gone is no error", func() outcome {
		_, o := b.forget(gone)
		return o
	})
}

// forget asks a provider to forget the events of a fact.
func (b *bench) forget(p *plantedFact) (*abi.ForgetReceipt, outcome) {
	if p.trouble != nil {
		return nil, *p.trouble
	}
	r := &abi.ForgetRequest{Scope: p.scope, Reason: "conformance kit"}
	for _, e := range p.events {
		r.EventIDs = append(r.EventIDs, e.EventID)
	}
	receipt, err := b.slot.Forget(b.ctx, r)
	if err != nil {
		return nil, refused("forget", err)
	}
	said := strings.Join(receipt.DerivedMayRemain, "; ")
	switch receipt.Status {
	case abi.ForgetDone:
		return receipt, passed("removed: %v; may remain: %q", receipt.Removed, said)
	case abi.ForgetInProgress:
		return receipt, pending("still in progress at its deadline: %s", said)
	}
	return receipt, lacking("%s: %s", receipt.Status, said)
}

// forgetBehind asks for it behind the wall.
func (b *bench) forgetBehind(p *plantedFact) outcome {
	if err := b.readOnly(true); err != nil {
		return refused("set_mode", err)
	}
	mark := b.wire.mark()
	_, err := b.slot.Forget(b.ctx, &abi.ForgetRequest{Scope: p.scope, EventIDs: []string{"kit"},
		Reason: "conformance kit"})
	sent := b.wire.since(mark)
	if err := b.readOnly(false); err != nil {
		return refused("set_mode", err)
	}
	switch {
	case abi.CodeOf(err) != abi.CodeReadOnly:
		return failed("it answered %v", err)
	case len(sent) > 0:
		return failed("it was refused, and there were native calls: %s", routesOf(sent))
	}
	return passed("refused, with no native call")
}

// checkForgotten looks for a fact in a retrieval.
func (b *bench) checkForgotten(p *plantedFact, receipt *abi.ForgetReceipt) outcome {
	if o := b.wait(p.scope); o != nil {
		return *o
	}
	result, err := b.ask(p.scope)
	switch {
	case err != nil:
		return refused("retrieve", err)
	case holds(result, p.name):
		return left(receipt, "%s was forgotten, and is found", p.name)
	}
	removed := map[string]bool{}
	for _, ids := range receipt.Removed {
		for _, id := range ids {
			removed[id] = true
		}
	}
	for _, e := range result.Evidence {
		if removed[e.NativeID] {
			return failed("%q was removed, and is evidence", e.NativeID)
		}
	}
	if o := control(p); o != nil {
		return *o
	}
	return passed("%s was found before, and is not now", p.name)
}

// untraceable asks where the events of a fact have gone.
func (b *bench) untraceable(p *plantedFact, receipt *abi.ForgetReceipt) outcome {
	if !b.can(abi.OpProvenance) {
		return foundOut("the provider has no provenance")
	}
	for _, e := range p.events {
		found, err := b.slot.Provenance(b.ctx, &abi.ProvenanceRequest{Scope: p.scope, EventID: e.EventID, Limit: 10})
		switch {
		case abi.CodeOf(err) == abi.CodeNotFound:
			continue
		case err != nil:
			return refused("provenance", err)
		}
		for _, item := range found.Items {
			if strings.Contains(strings.ToLower(string(item.Native)+item.Evidence.Text), strings.ToLower(p.name)) {
				return left(receipt, "%s was forgotten, and an item of its event has it", p.name)
			}
		}
	}
	if o := control(p); o != nil {
		return *o
	}
	return passed("no item of its events has it")
}

// left is a fact that is still there: a failure, unless the receipt says that something made of it may remain. The
// manifest has to declare that.
func left(receipt *abi.ForgetReceipt, format string, args ...any) outcome {
	o := failed(format, args...)
	if len(receipt.DerivedMayRemain) > 0 {
		o.verdict, o.lacks = Inconclusive, true
		o.reason += "; the receipt says what may remain: " + short(strings.Join(receipt.DerivedMayRemain, "; "), 300)
	}
	return o
}

// total is what an inventory counts in all.
func total(i *abi.Inventory) (n int64) {
	for _, k := range i.Kinds {
		n += k.Count
	}
	return n
}
