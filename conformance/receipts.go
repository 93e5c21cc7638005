package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
)

// checkReceipt is clause 1.
func checkReceipt(b *bench) {
	s := b.scope("receipt", "p")
	mark := b.wire.mark()
	p := &plantedFact{scope: s, name: b.kit.names.name()}
	e := b.event(s, b.kit.target.Probe.Wordings[0](p.name))
	receipt, err := b.record(b.ctx, e)
	sent := b.wire.since(mark)
	b.part("accepted", "a turn of a user and an assistant message is accepted", func() outcome {
		switch {
		case err != nil:
			return refused("record_event", err)
		case receipt.EventID != e.EventID:
			return failed("the receipt is of event %q, recorded was %q", receipt.EventID, e.EventID)
		case receipt.Status == abi.StatusSkippedReadOnly || receipt.Duplicate:
			return failed("a new event got the receipt %s, duplicate %v", receipt.Status, receipt.Duplicate)
		}
		return passed("%s", receipt.Status)
	})
	if err != nil {
		return
	}
	b.part("consistent", "the receipt does not contradict itself", func() outcome { return consistentReceipt(receipt) })
	b.part("sent", "what the receipt says is what the host saw sent", func() outcome {
		wrote := len(changes(sent)) > 0
		switch {
		case receipt.Status == abi.StatusNotRetained && writesOf(sent, p.name) > 0:
			return failed("not_retained, and the host saw the turn go to the backend (%s)", routesOf(changes(sent)))
		case receipt.Status != abi.StatusNotRetained && len(sent) > 0 && !wrote && !b.isInHostState(s, p.name, receipt):
			return failed("%s, and the host saw reads only (%s)", receipt.Status, routesOf(sent))
		}
		if o := checkSentOnce(sent, p.name); o != nil {
			return *o
		}
		if receipt.NativeIDsKind == abi.NativeIDsFinal && wrote {
			for _, id := range receipt.NativeIDs {
				if !onTheWire(sent, id) {
					return failed("the native id %q is in no call and no answer that the host saw", id)
				}
			}
		}
		return passed("%d native calls, %d of them no reads", len(sent), len(changes(sent)))
	})
	p.events, p.receipts = []*abi.MemoryEvent{e}, []*abi.WriteReceipt{receipt}
	b.part("retained", "what a receipt calls committed can be retrieved at once, and what it calls not retained never",
		func() outcome { return b.truthful(p) })
	b.part("complete", "a retrieval says whether the turn may still be missing", func() outcome {
		return b.complete(p, s)
	})
	b.part("setup", "a scope can be set up twice, and no two scopes have the same native scope", b.setUpTwice)
	b.part("counts", "the inventory changes when something is recorded", b.inventoryGrows)
	b.part("capabilities", "what the provider says it can do it can", b.capable)
}

// isInHostState reports whether a turn can be found although no write carried it: the provider keeps it in the host's
// state, and its native reads go elsewhere, such as to an embedding model. A committed turn is found without a wait.
func (b *bench) isInHostState(s abi.MemoryScope, name string, receipt *abi.WriteReceipt) bool {
	if receipt.Status != abi.StatusCommitted {
		return b.foundBy(s, name)
	}
	r, err := b.ask(s)
	return err == nil && holds(r, name)
}

// checkSentOnce requires that no request with the turn was sent twice.
func checkSentOnce(sent []exchange, name string) *outcome {
	seen := map[string]bool{}
	for _, x := range answeredCalls(changes(sent)) {
		key := x.call.Route + " " + x.call.URL + "\x00" + string(x.call.Body)
		if x.carries(name) && seen[key] {
			o := failed("the turn was sent twice by route %s", x.call.Route)
			return &o
		}
		seen[key] = true
	}
	return nil
}

// onTheWire reports whether an id is in a call or an answer.
func onTheWire(sent []exchange, id string) bool {
	return slices.ContainsFunc(sent, func(x exchange) bool {
		return x.carries(id) || strings.Contains(strings.ToLower(string(x.answer.Body)), strings.ToLower(id))
	})
}

// setUpTwice sets two scopes up, one of them twice.
func (b *bench) setUpTwice() outcome {
	last := ""
	for _, persona := range []string{"one", "one", "two"} {
		s := b.scope("setup", persona)
		b.wrote(s)
		receipt, err := b.slot.SetupScope(b.ctx, s)
		switch {
		case err != nil:
			return refused("setup_scope", err)
		case !receipt.Ready:
			return failed("setup_scope is not ready: %v", receipt.Warnings)
		}
		for _, w := range receipt.Warnings {
			if !hasCode(w) {
				return failed("the warning %q does not begin with a code and a colon", short(w, 80))
			}
		}
		if persona == "two" && len(receipt.NativeScope) > 0 && last == fmt.Sprint(receipt.NativeScope) {
			return failed("two scopes have the native scope %s", last)
		}
		last = fmt.Sprint(receipt.NativeScope)
	}
	return passed("twice, and another one")
}

// inventoryGrows compares the inventory before and after a fact.
func (b *bench) inventoryGrows() outcome {
	s := b.scope("counts", "p")
	first := b.plant(s)
	before, unsure := b.inventory(s)
	if unsure != nil {
		return notChecked("%s", unsure.reason)
	}
	second := b.plant(s)
	after, unsure := b.inventory(s)
	if unsure != nil {
		return notChecked("%s", unsure.reason)
	}
	if o := control(first, second); o != nil {
		return notChecked("%s", o.reason)
	}
	if total(before) == 0 {
		return failed("%s is found, and a complete inventory counts nothing", first.name)
	}
	for i := range after.Kinds {
		for j := range before.Kinds {
			x, y := &after.Kinds[i], &before.Kinds[j]
			if x.Kind == y.Kind && x.Count != y.Count && x.Digest != "" && x.Digest == y.Digest {
				return failed("%s: the count went from %d to %d, and the digest is the same", x.Kind, y.Count, x.Count)
			}
		}
	}
	if kinds(before) == kinds(after) {
		return failed("it is %s, before and after %s was recorded", kinds(after), second.name)
	}
	return passed("%d items, then %d", total(before), total(after))
}

// consistentReceipt compares the parts of a receipt.
func consistentReceipt(r *abi.WriteReceipt) outcome {
	consistency := map[abi.WriteStatus]string{abi.StatusCommitted: "committed", abi.StatusQueued: "queued",
		abi.StatusNotRetained: ""}
	want, ok := consistency[r.Status]
	if !ok {
		want = "pending"
	}
	switch {
	case r.Trace == nil || r.Trace.Consistency != want:
		return failed("status %s, and the trace's consistency is not %q", r.Status, want)
	case r.NativeIDsKind != abi.NativeIDsNone && len(r.NativeIDs) == 0 && r.Status == abi.StatusCommitted &&
		(r.StoredCount == nil || *r.StoredCount > 0):
		return failed("native_ids_kind %s without a native id", r.NativeIDsKind)
	case r.NativeIDsKind == abi.NativeIDsNone && len(r.NativeIDs) > 0:
		return failed("native_ids_kind none with %d native ids", len(r.NativeIDs))
	case r.Status == abi.StatusNotRetained && r.StoredCount != nil && *r.StoredCount > 0:
		return failed("not_retained, and stored_count is %d", *r.StoredCount)
	case r.Status == abi.StatusUncertain && !isUncertain(r):
		return failed("uncertain without a warning that says so")
	}
	for _, w := range r.Warnings {
		if !hasCode(w) {
			return failed("the warning %q does not begin with a code and a colon", short(w, 80))
		}
	}
	return passed("%s, %d native ids (%s), %d markers", r.Status, len(r.NativeIDs), r.NativeIDsKind, len(r.Markers))
}

// hasCode reports whether a warning begins with a code and a colon.
func hasCode(warning string) bool {
	code, _, ok := strings.Cut(warning, ":")
	return ok && code != "" && !strings.ContainsAny(code, " \t\n")
}

// isUncertain reports whether a receipt says that its event may be there twice, or not at all.
func isUncertain(r *abi.WriteReceipt) bool {
	return r.Status == abi.StatusUncertain || slices.ContainsFunc(r.Warnings, func(w string) bool {
		return strings.HasPrefix(w, "delivery_uncertain:")
	})
}

// truthful compares a receipt with what can be found before and after the wait.
func (b *bench) truthful(p *plantedFact) outcome {
	receipt := p.receipts[0]
	atOnce, err := b.ask(p.scope)
	if err != nil {
		return refused("retrieve", err)
	}
	early := holds(atOnce, p.name)
	if o := b.findOnce(p); o != nil {
		return *o
	}
	switch {
	case receipt.Status == abi.StatusNotRetained && (early || p.found != nil):
		return failed("not_retained, and %s was found", p.name)
	case receipt.Status == abi.StatusNotRetained:
		return foundOut("nothing is retained: the receipt says so, and nothing was found")
	case receipt.Status == abi.StatusCommitted && !early && p.found != nil:
		return failed("committed, but %s was found only after the readiness wait: that is queued or pending", p.name)
	case p.found == nil:
		return passed("%s; whether it is found is clause 2", receipt.Status)
	}
	return passed("%s, found at once: %v", receipt.Status, early)
}

// complete records another turn and compares what retrievals say of completeness with what they hold.
func (b *bench) complete(p *plantedFact, s abi.MemoryScope) outcome {
	if p.trouble != nil {
		return *p.trouble
	}
	more := &plantedFact{scope: s, name: b.kit.names.name()}
	receipt, err := b.record(b.ctx, b.event(s, b.kit.target.Probe.Wordings[0](more.name)))
	if err != nil {
		return refused("record_event", err)
	}
	early, err := b.ask(s)
	if err != nil {
		return refused("retrieve", err)
	}
	warned := slices.ContainsFunc(early.Trace.Warnings, func(w string) bool {
		return strings.HasPrefix(w, abi.WarnMemoryPending+":")
	})
	outstanding := receipt.Status != abi.StatusCommitted && receipt.Status != abi.StatusNotRetained
	switch said := early.Trace.Consistency; {
	case outstanding != (said != "committed") || outstanding != warned:
		return failed("the receipt says %s, the retrieval after it consistency %s, warnings %v", receipt.Status, said,
			early.Trace.Warnings)
	case early.Trace.ConsistencyAsOf == "":
		return failed("the retrieval does not say as of when its consistency is")
	}
	if o := b.findOnce(more); o != nil {
		return *o
	}
	if more.found != nil && !outstanding && !holds(early, more.name) {
		return failed("the retrieval said committed, and %s was found only after the readiness wait", more.name)
	}
	return passed("%s, so the retrieval says %s", receipt.Status, early.Trace.Consistency)
}

// capable calls the capabilities that only look, once each.
func (b *bench) capable() outcome {
	s := b.scope("receipt", "p")
	tries := map[string]func() error{
		abi.OpReadiness: func() error {
			_, err := b.slot.Readiness(b.ctx, &abi.ReadinessRequest{Scope: s})
			return err
		},
		abi.OpInventory: func() error {
			_, err := b.slot.Inventory(b.ctx, &abi.InventoryRequest{Scope: s})
			return err
		},
		abi.OpProvenance: func() error {
			_, err := b.slot.Provenance(b.ctx, &abi.ProvenanceRequest{Scope: s, EventID: "kit-none", Limit: 1})
			return err
		},
	}
	var done []string
	for op, try := range tries {
		if !slices.Contains(b.capabilities, op) {
			continue
		}
		err := try()
		if abi.AsError(err) != nil && abi.AsError(err).Reason == abi.ReasonContractBreach {
			return refused(op, err)
		}
		if code := abi.CodeOf(err); code == abi.CodeUnsupported || code == abi.CodeInternal {
			return failed("the provider has %s, and it says %v", op, err)
		}
		done = append(done, op)
	}
	slices.Sort(done)
	return passed("tried: %v", done)
}

// checkFinds is clause 2.
func checkFinds(b *bench) {
	p := b.plant(b.scope("finds", "p"))
	b.part("finds", "a fact is found in its scope, from a new session, after the readiness wait", func() outcome {
		if p.trouble != nil {
			return *p.trouble
		}
		switch {
		case p.found != nil:
			return passed("%s after %d wordings", p.name, len(p.events))
		case !p.retained():
			return foundOut("every receipt says not_retained, and a provider that retains nothing passes by " +
				"returning nothing")
		case b.stored(p) && b.answersNothing(p):
			return failed("receipts say that %s was stored, readiness that it can be retrieved, and retrieve is empty",
				p.name)
		}
		return inconclusive("%s was told in %d wordings and not found: the backend may have extracted nothing", p.name,
			len(p.events))
	})
	b.part("new", "a scope that nobody wrote to holds nothing of it", func() outcome {
		result, err := b.ask(b.scope("finds", "somebody else"))
		switch {
		case err != nil:
			return refused("retrieve", err)
		case holds(result, p.name):
			return failed("%s was found in a scope where nothing was recorded", p.name)
		}
		return passed("nothing found")
	})
}

// stored reports whether every receipt claims that something was stored.
func (b *bench) stored(p *plantedFact) bool {
	for _, r := range p.receipts {
		if r.StoredCount == nil && r.NativeIDsKind != abi.NativeIDsFinal || r.StoredCount != nil &&
			*r.StoredCount == 0 {
			return false
		}
	}
	return len(p.receipts) > 0
}

// answersNothing reports whether the scope answers with nothing at all.
func (b *bench) answersNothing(p *plantedFact) bool {
	result, err := b.ask(p.scope)
	return err == nil && len(result.Evidence) == 0 && result.FormattedContext == ""
}
