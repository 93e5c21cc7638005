package conformance

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/memhost/memhost/abi"
)

// checkReadOnly is clause 4.
func checkReadOnly(b *bench) {
	s := b.scope("wall", "p")
	p := b.plant(s)
	before, unsure := b.inventory(s)
	var skipped, calls, canaries []outcome
	names := []string{}
	canary := func() *abi.MemoryEvent {
		name := b.kit.names.name()
		names = append(names, name)
		return b.event(s, b.kit.target.Probe.Wordings[0](name))
	}
	// A whole read-only slot, then a session that is read-only by itself.
	mark := b.wire.mark()
	if err := b.readOnly(true); err != nil {
		b.part("receipts", "writes are answered skipped_read_only", func() outcome { return refused("set_mode", err) })
		return
	}
	skipped = append(skipped, b.skips(canary()), b.skipsBatch(canary(), canary()))
	for range 2 {
		if result, err := b.ask(s); err != nil {
			calls = append(calls, refused("retrieve while read-only", err))
		} else if _, err := b.slot.FormatContext(b.ctx, &abi.FormatRequest{Result: *result, Scope: s}); err != nil {
			calls = append(calls, refused("format_context while read-only", err))
		}
	}
	if o := b.wait(s); o != nil {
		calls = append(calls, *o)
	}
	if _, err := b.slot.Health(b.ctx); err != nil {
		calls = append(calls, refused("health while read-only", err))
	}
	if err := b.readOnly(false); err != nil {
		calls = append(calls, refused("set_mode", err))
	}
	test := canary()
	test.SessionID = "kit-test-1"
	skipped = append(skipped, b.skips(test))
	if _, err := b.retrieve(&abi.RetrieveRequest{Query: b.kit.target.Probe.Question, Scope: s,
		SessionID: "kit-test-1"}); err != nil {
		calls = append(calls, refused("retrieve in a test session", err))
	}
	seen := b.wire.since(mark)

	b.part("receipts", "writes are answered skipped_read_only", func() outcome {
		return worst(skipped, "%d writes skipped", len(skipped)+1)
	})
	b.part("calls", "the host sees no native call that is not a read", func() outcome {
		if wrote := changes(seen); len(wrote) > 0 {
			calls = append(calls, failed("left the host: %s", routesOf(wrote)))
		}
		return worst(calls, "%d native calls, all reads", len(seen))
	})
	b.part("inventory", "inventories before and after are equal", func() outcome {
		return b.checkUnchanged(s, p, before, unsure)
	})
	b.part("canary", "what was said while read-only is never found afterwards", func() outcome {
		if o := b.wait(s); o != nil {
			return *o
		}
		result, err := b.ask(s)
		if err != nil {
			return refused("retrieve", err)
		}
		for _, name := range names {
			if holds(result, name) {
				canaries = append(canaries, failed("%s was said while read-only, and found", name))
			}
		}
		if p.found != nil && !holds(result, p.name) {
			canaries = append(canaries, failed("%s was told before, and is gone", p.name))
		}
		if o := control(p); o != nil && o.verdict != NotApplicable {
			canaries = append(canaries, *o)
		}
		return worst(canaries, "%d canaries not found, what was told before is", len(names))
	})
	b.part("classes", "what the manifest calls read stores and removes nothing", b.classes)
}

// worst returns the gravest outcome. Without outcomes it passes, with the reason given.
func worst(list []outcome, format string, args ...any) outcome {
	w := passed(format, args...)
	for _, o := range list {
		if o.verdict.gravity() > w.verdict.gravity() {
			w = o
		}
	}
	return w
}

// skips records an event that must be skipped.
func (b *bench) skips(e *abi.MemoryEvent) outcome {
	r, err := b.record(b.ctx, e)
	switch {
	case err != nil:
		return refused("record_event while read-only", err)
	case r.Status != abi.StatusSkippedReadOnly:
		return failed("record_event while read-only is answered %s", r.Status)
	}
	return passed("skipped")
}

func (b *bench) skipsBatch(events ...*abi.MemoryEvent) outcome {
	batch := &abi.EventBatch{}
	for _, e := range events {
		batch.Events = append(batch.Events, *e)
	}
	answers, err := b.slot.RecordEvents(b.ctx, batch)
	if err != nil {
		return refused("record_events while read-only", err)
	}
	for _, a := range answers.Receipts {
		if a.Error != nil {
			return refused("record_events while read-only", a.Error)
		}
		if a.Receipt.Status != abi.StatusSkippedReadOnly {
			return failed("record_events while read-only is answered %s", a.Receipt.Status)
		}
	}
	return passed("skipped")
}

// inventory takes what a scope holds. unsure is why that proves nothing.
func (r *rig) inventory(s abi.MemoryScope) (_ *abi.Inventory, unsure *outcome) {
	unknown := func(o outcome) (*abi.Inventory, *outcome) { return nil, &o }
	if !slices.Contains(r.bench.capabilities, abi.OpInventory) {
		return unknown(lacking("the module has no inventory"))
	}
	i, err := r.slot.Inventory(r.bench.ctx, &abi.InventoryRequest{Scope: s})
	switch {
	case err != nil:
		return unknown(refused("inventory", err))
	case !i.Complete:
		return unknown(lacking("the inventory is not complete"))
	case !i.Quiescent:
		return unknown(inconclusive("the backend was still at work when the inventory was taken"))
	}
	return i, nil
}

// checkUnchanged compares a scope's inventory with an earlier one.
func (b *bench) checkUnchanged(s abi.MemoryScope, p *plantedFact, before *abi.Inventory, unsure *outcome) outcome {
	if !p.retained() && before == nil {
		return foundOut("nothing is retained, and there is no inventory to take")
	}
	if unsure != nil {
		return *unsure
	}
	after, unsure := b.inventory(s)
	if unsure != nil {
		return *unsure
	}
	if old, now := kinds(before), kinds(after); old != now {
		return failed("before %s, after %s", old, now)
	}
	return passed("%s, before and after", kinds(after))
}

func kinds(i *abi.Inventory) string {
	list := slices.Clone(i.Kinds)
	slices.SortFunc(list, func(a, b abi.InventoryKind) int {
		if a.Kind < b.Kind {
			return -1
		}
		return 1
	})
	text, _ := json.Marshal(list)
	return string(text)
}

// checkNoReset is clause 10.
func checkNoReset(b *bench) {
	s := b.scope("noreset", "p")
	p := b.plant(s)
	if err := b.readOnly(true); err != nil {
		b.part("refused", "a reset is refused", func() outcome { return refused("set_mode", err) })
		return
	}
	b.part("refused", "a reset while read-only is refused with read_only, and no native call is made", func() outcome {
		mark := b.wire.mark()
		receipt, err := b.slot.ResetScope(b.ctx, s)
		switch sent := b.wire.since(mark); {
		case err == nil:
			return failed("answered %s", receipt.Status)
		case abi.CodeOf(err) != abi.CodeReadOnly:
			return failed("answered %v, want read_only", err)
		case len(sent) > 0:
			return failed("refused, and the host saw %s", routesOf(sent))
		}
		return passed("read_only, no native call")
	})
	b.part("setup", "set-up while read-only only checks", func() outcome {
		mark := b.wire.mark()
		_, err := b.slot.SetupScope(b.ctx, s)
		if wrote := changes(b.wire.since(mark)); len(wrote) > 0 {
			return failed("the host saw %s", routesOf(wrote))
		}
		if err != nil && abi.CodeOf(err) != abi.CodeReadOnly {
			return refused("setup_scope", err)
		}
		return passed("reads only")
	})
	if err := b.readOnly(false); err != nil {
		b.part("kept", "the scope is as it was", func() outcome { return refused("set_mode", err) })
		return
	}
	b.part("kept", "the scope is as it was", func() outcome {
		if o := control(p); o != nil && o.verdict != NotApplicable {
			return *o
		}
		result, err := b.ask(s)
		switch {
		case err != nil:
			return refused("retrieve", err)
		case p.found != nil && !holds(result, p.name):
			return failed("%s was told before, and is gone", p.name)
		case p.found != nil && result.Trace.Generation != p.found.Trace.Generation:
			return failed("the scope went from generation %d to %d", p.found.Trace.Generation, result.Trace.Generation)
		}
		return passed("generation %d, nothing lost", result.Trace.Generation)
	})
}

// checkWall is clause 11.
func checkWall(b *bench) {
	s := b.scope("control", "p")
	p := b.plant(s)
	b.part("kind", "the kind is said where it counts", func() outcome {
		result, err := b.ask(s)
		switch {
		case err != nil:
			return refused("retrieve", err)
		case result.Trace.ConditionKind != b.kind:
			return failed("the manifest says %s, the trace %s", b.kind, result.Trace.ConditionKind)
		}
		return passed("%s", b.kind)
	})
	before, beforeErr := b.ask(s)
	held, unsure := b.inventory(s)
	if err := b.readOnly(true); err != nil {
		b.part("wall", "every operation meets the wall", func() outcome { return refused("set_mode", err) })
		return
	}
	b.part("wall", "feedback, mutations and queries meet the same wall as events", func() outcome {
		return b.tryOtherWrites(s)
	})
	if err := b.readOnly(false); err != nil {
		b.part("unchanged", "memory is as it was", func() outcome { return refused("set_mode", err) })
		return
	}
	b.part("unchanged", "the same question has the same answer, and the scope holds the same", func() outcome {
		if o := b.wait(s); o != nil {
			return *o
		}
		same := passed("the answer is the same")
		if held != nil {
			if same = b.checkUnchanged(s, p, held, unsure); same.verdict == Fail {
				return same
			}
		}
		after, err := b.ask(s)
		switch {
		case beforeErr != nil || err != nil:
			return refused("retrieve", errors.Join(beforeErr, err))
		case p.found != nil && !holds(after, p.name):
			return failed("%s was told before, and is gone", p.name)
		case b.kind == abi.KindControl && !sameJSON(abi.Marshal(&before.Raw), abi.Marshal(&after.Raw)):
			return failed("a control's raw answer changed while it was read-only")
		}
		return same
	})
}

// tryOtherWrites tries, while the wall is up, all operations other than recording that may change memory.
func (b *bench) tryOtherWrites(s abi.MemoryScope) outcome {
	mark := b.wire.mark()
	at := b.event(s, "x")
	skip := func(op, status string, err error) *outcome {
		var o outcome
		switch {
		case !slices.Contains(b.capabilities, op):
			return nil
		case err != nil:
			o = refused(op+" while read-only", err)
		case status != string(abi.StatusSkippedReadOnly):
			o = failed("%s while read-only is answered %s", op, status)
		default:
			return nil
		}
		return &o
	}
	if o := b.skips(at); o.verdict != Pass {
		return o
	}
	feedback, err := b.slot.ApplyFeedback(b.ctx, &abi.MemoryFeedback{FeedbackID: at.EventID, Scope: s,
		SessionID: at.SessionID, Timestamp: at.Timestamp, Text: "That is wrong."})
	status := ""
	if feedback != nil {
		status = feedback.Status
	}
	if o := skip(abi.OpApplyFeedback, status, err); o != nil {
		return *o
	}
	mutation, err := b.slot.NativeMutation(b.ctx, &abi.NativeMutation{Scope: s, Name: "kit_none",
		Reason: "conformance kit"})
	status = ""
	if mutation != nil {
		status = mutation.Status
	}
	if o := skip(abi.OpNativeMutation, status, err); o != nil {
		return *o
	}
	// Their answers do not matter here, only what they send.
	_, _ = b.slot.NativeQuery(b.ctx, &abi.NativeQuery{Scope: s, Name: "kit_none"})
	_, _ = b.slot.Provenance(b.ctx, &abi.ProvenanceRequest{Scope: s, EventID: at.EventID, Limit: 1})
	if wrote := changes(b.wire.since(mark)); len(wrote) > 0 {
		return failed("left the host while read-only: %s", routesOf(wrote))
	}
	return passed("skipped, or read")
}
