package host

import (
	"context"
	"fmt"
	"time"

	"github.com/memhost/memhost/abi"
)

// takeTurn lets the follower serve: writes wait while those under way end and the follower gets the last of them; then
// one switch. served is false where that takes too long: then everything is as before, and it is tried again.
func (f *follower) takeTurn(ctx context.Context) (served bool, err error) {
	s := f.slot
	if !s.swapMu.TryLock() { // a swap, or a request that stops this follower and waits for it
		return false, nil
	}
	defer s.swapMu.Unlock()
	within, cancel := context.WithTimeout(ctx, gateWait)
	defer cancel()
	if !s.gate.Close(within) {
		return false, nil
	}
	defer s.gate.Open()
	if caught, err := f.catchUp(within); !caught {
		return false, err
	}
	return true, f.serve(ctx)
}

// catchUp delivers what is left while the gate is closed.
func (f *follower) catchUp(ctx context.Context) (caught bool, err error) {
	for {
		if s := f.slot; s.mode.isReadOnly(nil) { // nothing can be delivered, and nothing is recorded either
			behind, err := f.host.archive.CountAfter(ctx, f.record.Position)
			return err == nil && behind == 0, err
		}
		more, err := f.page(ctx)
		if ctx.Err() != nil {
			return false, nil
		}
		if err != nil || !more {
			return err == nil, err
		}
	}
}

// promoteBehind is how many events may be left for a plain swap to a follower's memory.
const promoteBehind = 256

// promote is a plain swap to the memory of a follower: next is loaded anew, gets what is left, and serves. The caller
// holds swapMu.
func (f *follower) promote(ctx context.Context, next *Provider, health *abi.BackendHealth, steps *stepLog,
	began time.Time) (err error) {
	defer func() {
		if err != nil {
			_ = next.close(context.WithoutCancel(ctx))
			e := *abi.AsError(err)
			e.Operation, e.Hint = "swap", joinHints(e.Hint, "the slot serves on as before")
			err = &e
		}
	}()
	hint := "`memhost swap " + next.name + " --backfill` waits until it has everything, then swaps"
	behind, err := f.host.archive.CountAfter(ctx, f.record.Position)
	if err != nil {
		return err
	}
	if behind > promoteBehind {
		return abi.NewError(abi.CodeConflict, fmt.Sprintf("%s lacks %d events", next.name, behind)).
			WithReason("behind").WithHint(hint)
	}
	f.end(ctx)
	old := f.inner.current.Swap(&serving{provider: next})
	f.calls = context.WithoutCancel(ctx)
	within, cancel := context.WithTimeout(ctx, gateWait)
	defer cancel()
	caught := f.slot.gate.Close(within)
	if caught {
		defer f.slot.gate.Open()
		next.consistency, next.backendName = health.ConsistencyModel, health.BackendName
		f.mu.Lock()
		f.opened, f.health, f.steps = true, health, steps.steps
		f.mu.Unlock()
		if caught, err = f.catchUp(within); caught {
			err = f.serve(ctx)
		}
	}
	if err == nil && !caught {
		err = abi.NewError(abi.CodeConflict, fmt.Sprintf("writes under way, or what %s lacks, take longer than %s",
			next.name, gateWait)).WithReason("behind").WithHint(hint)
	}
	if err != nil {
		f.inner.current.Store(old)
		f.start()
		return err
	}
	old.provider.endBackground()
	f.slot.drain(old.provider)
	return nil
}

// serve makes the follower's provider the slot's. The caller holds swapMu and the gate.
func (f *follower) serve(ctx context.Context) error {
	s, p := f.slot, f.provider()
	look, err := f.look(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	held := f.record.heldEvents()
	if (len(look.open) > 0 || held > 0) && !f.accept {
		f.mu.Unlock()
		return abi.NewError(abi.CodeConflict, fmt.Sprintf("%d events are open, and %d wait for their scopes, which are "+
			"read-only", len(look.open), held)).WithReason("open")
	}
	health, record := f.health, f.record
	detail := fmt.Sprintf("%d events since %s, %d left out, %d open", record.Done, record.Since, record.LeftOut,
		len(look.open))
	steps := append(f.steps, abi.RunStep{Name: stepBackfill, Verdict: verdictPass, Detail: detail})
	f.state = abi.FollowerServes
	f.mu.Unlock()
	if err := f.host.dropFollower(ctx, f.key); err != nil {
		return err
	}
	p.endBackground()
	f.inner.current.Store(nil)
	s.removeFollower(f)
	s.secrets = p.config.Secrets
	s.serve(ctx, p, health, &stepLog{steps: steps, tell: f.host.options.OnStep}, time.Now())
	return nil
}

// stepBackfill is the step of a swap that says how the provider was filled.
const stepBackfill = "backfill"
