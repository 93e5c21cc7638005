package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/internal/base/pause"
)

// localFreshness is the default number of events for measuring a provider without a backend.
const localFreshness = 3

// FreshnessOf is how many events are used to measure a provider's freshness. Calls of a backend may cost money, so they
// need an explicit setting in the lab.
func FreshnessOf(l *lab.Lab, p *lab.Provider, local bool) int {
	switch {
	case l.Cassettes: // its clock is virtual
		return 0
	case l.Freshness != nil:
		return *l.Freshness
	case local:
		return localFreshness
	}
	return 0
}

// freshness records events one by one, each in a scope used only for this, and retrieves repeatedly until the event is
// returned, or until memory is ready without returning it. It runs last, so that it does not affect probes.
func (c *cell) freshness(ctx context.Context) error {
	n := FreshnessOf(c.Lab, c.provider, c.options.Local != nil && c.options.Local(c.provider))
	for i := 1; i <= n; i++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00freshness\x00%d", c.Lab.Seed, i))
		name, id := "Zq"+hex.EncodeToString(sum[:5]), "freshness-"+hex.EncodeToString(sum[:8])
		if c.before.fresh[id] {
			continue
		}
		c.note(fmt.Sprintf("freshness %d of %d", i, n))
		f, err := c.untilShown(ctx, id, fmt.Sprintf("freshness-%d", i), name)
		if err != nil {
			return err
		}
		if err := c.journal.Write(&journal.Line{Kind: journal.KindFreshness, Freshness: f}); err != nil {
			return err
		}
	}
	return nil
}

func (c *cell) untilShown(ctx context.Context, id, persona, name string) (*journal.Freshness, error) {
	f := &journal.Freshness{EventID: id}
	scope := abi.MemoryScope{RunID: c.RunID + "-freshness", PersonaID: persona}
	text := "My lighthouse is called " + name + "."
	receipt, err := c.slot.RecordEvent(ctx, &abi.MemoryEvent{EventID: id, RunID: scope.RunID, UserID: persona,
		SessionID: "session-1", TurnID: "turn-1",
		Timestamp: "2026-01-05T09:00:00Z", Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}})
	began := time.Now()
	if err != nil {
		return f, c.failed(ctx, f, err)
	}
	f.Duplicate = receipt.Duplicate
	deadline := began.Add(time.Duration(c.Lab.Readiness.TimeoutMS) * time.Millisecond)
	for ready, wait := false, 10*time.Millisecond; ; wait = min(2*wait, time.Second) {
		result, err := c.slot.Retrieve(ctx, &abi.RetrieveRequest{Query: "What is my lighthouse called?", Scope: scope,
			SessionID: "session-2"})
		f.Reads++
		f.AfterMS = since(began)
		if err != nil {
			return f, c.failed(ctx, f, err)
		}
		f.Found = holds(result.FormattedContext, name)
		if f.Found || ready || time.Now().After(deadline) {
			return f, nil
		}
		answer, err := c.slot.Readiness(ctx, &abi.ReadinessRequest{Scope: scope, TimeoutMS: 1})
		if err != nil && abi.CodeOf(err) != abi.CodeUnsupported {
			return f, c.failed(ctx, f, err)
		}
		// a provider without readiness finishes its work before it answers
		ready = err != nil || answer.Status == abi.ReadinessReady
		if ready {
			continue
		}
		if err := pause.For(ctx, wait); err != nil {
			return f, err
		}
	}
}

// failed records an error of a measurement, which is a result unless the backend is gone.
func (c *cell) failed(ctx context.Context, f *journal.Freshness, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f.Error = abi.AsError(err)
	return c.lost(ctx, f.Error)
}
