package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/base/pause"
)

// testSession is one running test session.
type testSession struct {
	*persona
	number int // number of the session before it
	at     *pack.Event
	done   *sessionDone
}

func (t *testSession) line(kind journal.Kind) *journal.Line {
	return &journal.Line{Kind: kind, PersonaID: t.id, Session: t.number}
}

// test runs the test session after a session, if it has probes.
func (p *persona) test(ctx context.Context, session int, last *pack.Event, probes []*pack.Probe) error {
	if len(probes) == 0 {
		return nil
	}
	t := &testSession{persona: p, number: session, at: last, done: p.done.session(session)}
	if t.done.closed {
		p.canary, p.unsearched = t.remembered(), t
		return nil
	}
	if err := p.stillThere(ctx); err != nil {
		return err
	}
	if err := t.ready(ctx, "test_session"); err != nil {
		return err
	}
	if err := t.findCanary(ctx); err != nil {
		return err
	}
	if err := t.findNonces(ctx); err != nil {
		return err
	}
	var err error
	if t.done.before == nil {
		if t.done.before, err = t.inventory(ctx, "before"); err != nil {
			return err
		}
	}
	// A resumed process raises it again: the slot has kept it, and says so.
	if err := t.wall(ctx, true); err != nil {
		return err
	}
	for i, probe := range probes {
		if err := t.ask(ctx, i+1, probe); err != nil {
			return err
		}
	}
	if err := t.tryCanary(ctx); err != nil {
		return err
	}
	if err := t.conversations(ctx, probes); err != nil {
		return err
	}
	if err := t.wall(ctx, false); err != nil {
		return err
	}
	if t.done.after == nil {
		if t.done.after, err = t.inventory(ctx, "after"); err != nil {
			return err
		}
	}
	if err := t.feedback(ctx, probes); err != nil {
		return err
	}
	closed := t.verdict(len(probes))
	line := t.line(journal.KindClosed)
	line.Closed = closed
	if err := t.journal.Write(line); err != nil {
		return err
	}
	t.done.close()
	p.canary, p.unsearched = t.remembered(), t
	return t.journal.Sync()
}

// ready waits until everything before the session can be found, or the lab's time limit is reached.
func (t *testSession) ready(ctx context.Context, purpose string) error {
	if t.done.readiness != nil {
		return nil
	}
	t.note(fmt.Sprintf("waiting for memory, persona %s, session %d", t.id, t.number))
	line, began := t.line(journal.KindReadiness), time.Now()
	r := &journal.Readiness{Purpose: purpose}
	line.Readiness = r
	err := t.await(ctx, r)
	if ctx.Err() != nil { // an interrupted wait returns pending without having timed out
		return context.Cause(ctx)
	}
	switch e := abi.AsError(err); {
	case err == nil:
	case e.Code == abi.CodeUnsupported: // the provider finishes its work before it acknowledges a write
		r.Status = abi.ReadinessReady
	default:
		if err := t.lost(ctx, e); err != nil {
			return err
		}
		r.Status, r.Error = abi.ReadinessUnknown, e
	}
	r.WaitedMS, r.Native, r.TimedOut = since(began), t.calls.take(), r.Outstanding()
	if err := t.journal.Write(line); err != nil {
		return err
	}
	t.done.readiness = r
	if r.TimedOut && t.Lab.Readiness.OnTimeout == "stop" {
		return abi.NewError(abi.CodeTimeout, fmt.Sprintf("memory of persona %s was not known to be ready %d ms after "+
			"session %d", t.id, t.Lab.Readiness.TimeoutMS, t.number)).
			WithHint("raise readiness.timeout_ms, or set readiness.on_timeout: pending, which asks all the same and " +
				"flags the probes")
	}
	return nil
}

// await asks for readiness until no event is outstanding, or the lab's time limit is reached. The slot itself waits only
// while the status is pending: one failed event, or a backend that cannot say whether it works, ends its wait, although
// other events may still arrive. A cassette is replayed with one operation for each line, so there it asks once.
func (t *testSession) await(ctx context.Context, r *journal.Readiness) error {
	limit := time.Duration(t.Lab.Readiness.TimeoutMS) * time.Millisecond
	for began, left := time.Now(), limit; ; {
		answer, err := t.slot.Readiness(ctx, &abi.ReadinessRequest{Scope: t.scope, TimeoutMS: left.Milliseconds()})
		if err != nil {
			return err
		}
		r.Status, r.Events = answer.Status, answer.EventIDs
		if left = limit - time.Since(began); !r.Outstanding() || left <= 0 || t.Lab.Cassettes {
			return nil
		}
		if err := pause.For(ctx, min(left, time.Second)); err != nil {
			return err
		}
		left = max(0, limit-time.Since(began))
	}
}

// inventory takes the inventory, if the provider supports that.
func (t *testSession) inventory(ctx context.Context, when string) (*journal.Inventory, error) {
	i := &journal.Inventory{When: when}
	if t.has[abi.OpInventory] {
		answer, err := t.slot.Inventory(ctx, &abi.InventoryRequest{Scope: t.scope})
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		i.Inventory = answer
		if err != nil {
			i.Error = abi.AsError(err)
			if err := t.lost(ctx, i.Error); err != nil {
				return nil, err
			}
		}
	}
	line := t.line(journal.KindInventory)
	line.Inventory = i
	return i, t.journal.Write(line)
}

// wall makes the persona's scope read-only, or writable again.
func (t *testSession) wall(ctx context.Context, up bool) error {
	reason := "accumulation"
	if up {
		reason = "test_session"
	}
	receipt, err := t.slot.SetMode(ctx, &abi.AdapterMode{ReadOnly: up, Reason: reason, Scope: &t.scope})
	if err != nil {
		return err
	}
	if up && t.done.wallUp || !up && t.done.wallDown {
		return nil
	}
	line := t.line(journal.KindWall)
	line.Wall = &journal.Wall{Up: up, Receipt: receipt}
	return t.journal.Write(line)
}

// ask asks a probe, by its number in the session, once for each budget, and more often if its reads are compared.
func (t *testSession) ask(ctx context.Context, number int, probe *pack.Probe) error {
	for _, budget := range t.budgets {
		reads := 1
		if t.sampled(probe.ProbeID) {
			reads = 3
		}
		for read := 1; read <= reads; read++ {
			if err := t.retrieve(ctx, number, probe, retrievalKey{probe.ProbeID, budget, read}); err != nil {
				return err
			}
		}
	}
	return nil
}

// sampled reports whether a probe is in the share whose reads are compared, which depends on its id and the seed.
func (t *testSession) sampled(probe string) bool {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00stability\x00%s", t.Lab.Seed, probe))
	return float64(sum[0])/256 < t.Lab.Stability
}

// retrieve makes one retrieval and journals the result, then lets the agent answer. An error is a result, and never an
// empty one. But if the backend is gone, the cell ends, and a resumption tries again.
func (t *testSession) retrieve(ctx context.Context, number int, probe *pack.Probe, a retrievalKey) error {
	stored, done := t.done.probes[a]
	if !done {
		about := func(s host.Span) {
			s.Number("memhost.eval.probe", int64(number))
			s.Number("memhost.eval.budget", a.budget)
			s.Number("memhost.eval.read", int64(a.read))
		}
		var p *journal.Probe
		err := t.spanned(ctx, spanProbe, about, func(ctx context.Context) (err error) {
			p, err = t.read(ctx, probe, a)
			return err
		})
		if err != nil {
			return err
		}
		line := t.line(journal.KindProbe)
		line.Probe = p
		if err := t.journal.Write(line); err != nil {
			return err
		}
		if a.read == 1 {
			t.step("")
		}
		stored = p.ContextSHA256
	}
	if t.options.Agent == nil || stored == "" || a.read > 1 || t.done.answers[a] {
		return nil
	}
	text, err := rundir.Contexts(t.folder).Text(stored)
	if err != nil {
		return err
	}
	return t.answer(ctx, probe, a, string(text))
}

// read makes one retrieval, and retries temporary errors.
//
// Errors: those that end the cell.
func (t *testSession) read(ctx context.Context, probe *pack.Probe, a retrievalKey) (*journal.Probe, error) {
	request := &abi.RetrieveRequest{Query: probe.Query, Scope: t.scope,
		SessionID: fmt.Sprintf("test-session-%d", t.number),
		Scenario:  probe.Scenario, Context: probe.Context, Attribute: probe.Attribute, Filters: probe.Filters,
		AsOf: probe.AsOf, Budget: t.Lab.Budget(a.budget)}
	p := &journal.Probe{ProbeID: a.probe, Budget: a.budget, Read: a.read}
	for attempt := 0; ; attempt++ {
		began := time.Now()
		result, err := t.slot.Retrieve(ctx, request)
		p.LatencyMS, p.Error = since(began), nil
		if err == nil {
			return p, t.keep(p, result)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		p.Error = abi.AsError(err)
		if !p.Error.Retryable || attempt == retries {
			return p, t.lost(ctx, p.Error)
		}
		if err := pauseAfter(ctx, p.Error); err != nil {
			return nil, err
		}
	}
}

// keep stores the texts of a result.
func (t *testSession) keep(p *journal.Probe, result *abi.RetrieveResult) (err error) {
	if p.ContextSHA256, err = rundir.Contexts(t.folder).Put([]byte(result.FormattedContext)); err != nil {
		return err
	}
	if p.RawSHA256, err = rundir.Blobs(t.folder).Put(abi.Marshal(&result.Raw)); err != nil {
		return err
	}
	p.Evidence, p.Trace = result.Evidence, result.Trace
	return nil
}

// answer lets the agent answer a probe, and stores the answer. If the endpoint is gone, the cell ends, and a resumption
// tries again.
func (t *testSession) answer(ctx context.Context, probe *pack.Probe, a retrievalKey, text string) error {
	var answer *journal.Answer
	err := t.spanned(ctx, spanAnswer, nil, func(ctx context.Context) (err error) {
		answer, err = t.options.Agent.Answer(ctx, probe, text, rundir.Blobs(t.folder).Put)
		return err
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		e := abi.AsError(err)
		if affectsAllRequests(e.Code) {
			failed := *e
			failed.Message = "agent: " + e.Message
			return &failed
		}
		answer = &journal.Answer{Turn: 1, Error: e}
	}
	answer.ProbeID, answer.Budget = a.probe, a.budget
	line := t.line(journal.KindAnswer)
	line.Answer = answer
	return t.journal.Write(line)
}

// canary is a write that was tried while read-only.
type canary struct{ eventID, name, text string }

// newCanary returns the canary of a test session: a first-person fact with a made-up name, the same in every cell.
func (t *testSession) newCanary() *canary {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00canary\x00%s\x00%d", t.Lab.Seed, t.id, t.number))
	name := "Zq" + hex.EncodeToString(sum[:5])
	return &canary{eventID: "canary-" + hex.EncodeToString(sum[:8]), name: name, text: "My parrot is called " + name +
		"."}
}

// remembered returns the session's canary, if one was tried.
func (t *testSession) remembered() *canary {
	if t.done.canary == nil {
		return nil
	}
	return t.newCanary()
}

// tryCanary tries a write while the slot is read-only. It must be skipped.
func (t *testSession) tryCanary(ctx context.Context) error {
	if t.done.canary != nil {
		return nil
	}
	c := t.newCanary()
	event := &abi.MemoryEvent{EventID: c.eventID, RunID: t.RunID, UserID: t.id,
		SessionID: fmt.Sprintf("test-session-%d", t.number), TurnID: "canary",
		Timestamp: t.at.Timestamp, Messages: []abi.Message{{Role: abi.RoleUser, Content: &c.text}}}
	r := &journal.Canary{EventID: c.eventID, Text: c.name}
	receipt, err := t.slot.RecordEvent(ctx, event)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		r.Error = abi.AsError(err)
	} else {
		r.Status = receipt.Status
	}
	line := t.line(journal.KindCanary)
	line.Canary = r
	t.done.canary = r
	return t.journal.Write(line)
}

// findCanary searches for the canary of the previous test session, which must not be found.
func (t *testSession) findCanary(ctx context.Context) error {
	c := t.canary
	if c == nil || t.done.checked {
		return nil
	}
	check := &journal.CanaryCheck{EventID: c.eventID}
	result, err := t.slot.Retrieve(ctx, &abi.RetrieveRequest{Query: "What is my parrot called?", Scope: t.scope,
		SessionID: fmt.Sprintf("canary-check-%d", t.number)})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		check.Error = abi.AsError(err)
	} else {
		check.Found = holds(result.FormattedContext, c.name) || holds(string(abi.Marshal(&result.Raw)), c.name)
	}
	line := t.line(journal.KindCanaryCheck)
	line.CanaryCheck = check
	t.canary = nil
	return t.journal.Write(line)
}

// lastCheck searches for the canary and the conversations of the last test session, after another readiness.
func (p *persona) lastCheck(ctx context.Context, session int) error {
	t := &testSession{persona: p, number: session, done: p.done.session(session)}
	searched := p.unsearched == nil || p.unsearched.done.searched || len(p.unsearched.done.transcripts) == 0
	if (p.canary == nil || t.done.checked) && searched {
		return nil
	}
	if err := p.stillThere(ctx); err != nil {
		return err
	}
	if err := t.ready(ctx, "canary_check"); err != nil {
		return err
	}
	if err := t.findCanary(ctx); err != nil {
		return err
	}
	return t.findNonces(ctx)
}

func holds(text, name string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(name))
}

// verdict is what the session proved about the wall.
func (t *testSession) verdict(probes int) *journal.Closed {
	c := &journal.Closed{Wall: "clean", Probes: probes, Pending: t.done.readiness.TimedOut}
	before, after := t.done.before.Inventory, t.done.after.Inventory
	switch {
	case t.done.canary.Error != nil:
		c.Wall, c.Detail = "inconclusive", "the write behind the wall failed: "+string(t.done.canary.Error.Code)
	case t.done.canary.Status != abi.StatusSkippedReadOnly:
		c.Wall, c.Detail = "breached", "a write behind the wall was answered "+string(t.done.canary.Status)
	case before == nil || after == nil:
		c.Wall, c.Detail = "inconclusive", "the provider gave no inventory"
	case !before.Complete || !after.Complete || !before.Quiescent || !after.Quiescent:
		c.Wall, c.Detail = "inconclusive", "an inventory was not complete, or work was under way"
	case !slices.Equal(kinds(before), kinds(after)):
		c.Wall, c.Detail = "breached", fmt.Sprintf("inventory before %v, after %v", kinds(before), kinds(after))
	}
	return c
}

// kinds lists what an inventory counted, for comparison.
func kinds(i *abi.Inventory) []string {
	var list []string
	for _, k := range i.Kinds {
		text, _ := json.Marshal(k)
		list = append(list, string(text))
	}
	slices.Sort(list)
	return list
}
