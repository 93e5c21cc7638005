package conformance

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
)

// answersClause counts every answer that the host refuses as contract_breach. The clause in which it happened is then
// inconclusive.
const answersClause = 14

// checkAnswers is clause 14. The host checks every answer; here each operation is called once more, and breaches in
// other clauses count, too.
func checkAnswers(b *bench) {
	s := b.scope("answers", "p")
	e := b.event(s, b.kit.target.Probe.Wordings[0](b.kit.names.name()))
	q := &abi.RetrieveRequest{Query: b.kit.target.Probe.Question, Scope: s,
		Budget: abi.ContextBudget{MaxItems: limit(3), MaxTokens: limit(500)}}
	var result *abi.RetrieveResult
	for _, c := range []struct {
		op  string
		try func() error
	}{
		{abi.OpHealth, func() error { _, err := b.slot.Health(b.ctx); return err }},
		{abi.OpSetupScope, func() error { _, err := b.slot.SetupScope(b.ctx, s); return err }},
		{abi.OpRetrieve, func() error { _, err := b.ask(s); return err }},
		{abi.OpRecordEvent, func() error { _, err := b.record(b.ctx, e); return err }},
		{abi.OpRecordEvents, func() error { return b.recordTwo(s) }},
		{abi.OpReadiness, func() error {
			_, err := b.slot.Readiness(b.ctx, &abi.ReadinessRequest{Scope: s,
				TimeoutMS: b.kit.target.ReadyWithin.Milliseconds()})
			return err
		}},
		{abi.OpRetrieve + "_found", func() (err error) { result, err = b.retrieve(q); return err }},
		{abi.OpFormatContext, func() error {
			if result == nil {
				return nil
			}
			_, err := b.slot.FormatContext(b.ctx, &abi.FormatRequest{Result: *result, Budget: q.Budget, Scope: s})
			return err
		}},
		{abi.OpInventory, func() error {
			_, err := b.slot.Inventory(b.ctx, &abi.InventoryRequest{Scope: s})
			return err
		}},
		{abi.OpProvenance, func() error {
			_, err := b.slot.Provenance(b.ctx, &abi.ProvenanceRequest{Scope: s, EventID: e.EventID, Limit: 2})
			return err
		}},
		{abi.OpResetScope, func() error { _, err := b.slot.ResetScope(b.ctx, s); return err }},
	} {
		if slices.Contains(abi.OptionalOperations(), c.op) && !slices.Contains(b.capabilities, c.op) {
			continue
		}
		b.part(c.op, "an answer of "+strings.TrimSuffix(c.op, "_found")+" keeps to the contract", func() outcome {
			return kept(c.try())
		})
	}
	b.part("elsewhere", "no other clause met an answer that breaks the contract", func() outcome {
		if n := len(b.kit.breaches); n > 0 {
			return failed("%d parts; the first is %s", n, b.kit.breaches[0])
		}
		return passed("none")
	})
}

// kept judges an answer. Any other error than a breach is for the other clauses.
func kept(err error) outcome {
	switch e := abi.AsError(err); {
	case e == nil:
		return passed("it does")
	case e.Reason == abi.ReasonContractBreach:
		return failed("%v", err)
	default:
		return aside("answered the error %v", err)
	}
}

// recordTwo records a batch of two turns.
func (b *bench) recordTwo(s abi.MemoryScope) error {
	batch := &abi.EventBatch{}
	for range 2 {
		batch.Events = append(batch.Events, *b.event(s, b.kit.target.Probe.Wordings[0](b.kit.names.name())))
	}
	b.wrote(s)
	out, err := b.slot.RecordEvents(b.ctx, batch)
	if err != nil {
		return err
	}
	for _, r := range out.Receipts {
		switch {
		case r.Error != nil:
			return r.Error
		case malformed(r.Receipt) != nil:
			return malformed(r.Receipt)
		}
	}
	return nil
}
