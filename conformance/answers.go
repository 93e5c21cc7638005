package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/text/jsonpointer"
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
			return judgeAnswer(c.try())
		})
	}
	b.part("declared", "each declared query that requires no parameter is answered, in the form that its show declares",
		func() outcome { return b.declaredAnswers(s) })
	b.part("elsewhere", "no other clause met an answer that breaks the contract", func() outcome {
		if n := len(b.kit.breaches); n > 0 {
			return failed("%d parts; the first is %s", n, b.kit.breaches[0])
		}
		return passed("none")
	})
}

// judgeAnswer judges an answer. Any other error than a breach is for the other clauses.
func judgeAnswer(err error) outcome {
	switch e := abi.AsError(err); {
	case e == nil:
		return passed("it does")
	case e.Reason == abi.ReasonContractBreach:
		return failed("%v", err)
	default:
		return notChecked("answered the error %v", err)
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
		case malformedReceipt(r.Receipt) != nil:
			return malformedReceipt(r.Receipt)
		}
	}
	return nil
}

// declaredAnswers asks every declared query that requires no parameter, and compares the answer with its declaration.
func (b *bench) declaredAnswers(s abi.MemoryScope) outcome {
	c, err := b.slot.Capabilities(b.ctx)
	if err != nil {
		return notChecked("capabilities: %v", err)
	}
	asked := 0
	for i := range c.NativeQueries {
		d := &c.NativeQueries[i]
		if _, required := d.ParamNames(); len(required) > 0 {
			continue
		}
		r, err := b.slot.NativeQuery(b.ctx, &abi.NativeQuery{Scope: s, Name: d.Name})
		switch code := abi.CodeOf(err); {
		case err != nil && abi.AsError(err).Reason == host.ReasonParams: // by its schema, which wants one of several
			continue
		case code == abi.CodeUnsupported || code == abi.CodeInvalidArgument:
			return failed("%s is declared, and refused without parameters, of which it requires none: %v", d.Name, err)
		case err != nil: // of the backend, or there is nothing yet
			continue
		}
		asked++
		if wrong := unlike(d.Show, r.Result); wrong != "" {
			return failed("%s: %s", d.Name, wrong)
		}
	}
	if asked == 0 {
		return notChecked("no declared query can be asked without parameters")
	}
	return passed("%d queries", asked)
}

// unlike says how an answer differs from the form in which its declaration says that it can be shown, "" if it does
// not.
func unlike(show *abi.ShowDecl, answer abi.Raw) string {
	if show == nil {
		return ""
	}
	var whole any
	if err := json.Unmarshal(answer, &whole); err != nil && len(answer) > 0 {
		return "the answer is not JSON: " + err.Error()
	}
	found, _ := jsonpointer.Find(whole, show.At)
	object, isObject := found.(map[string]any)
	list, isList := found.([]any)
	_, isText := found.(string)
	wrong := fmt.Sprintf("the answer has no %s at %q", show.As, show.At)
	switch show.As {
	case abi.ShowTable:
		if isObject {
			list, isList = []any{object}, true
		}
		for _, row := range list {
			if _, is := row.(map[string]any); !is {
				return wrong + ": a row is no object"
			}
		}
		if isList {
			return ""
		}
	case abi.ShowText:
		if _, other := whole.(map[string]any); isText || show.At == "" && other {
			return "" // an answer that has two forms, of which one is a document
		}
	case abi.ShowFiles:
		for path, text := range object {
			if _, is := text.(string); !is {
				return wrong + ": " + path + " is no text"
			}
		}
		if isObject {
			return ""
		}
	default:
		if isObject {
			return ""
		}
	}
	return wrong
}
