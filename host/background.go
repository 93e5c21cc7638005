package host

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// backgroundWork is the work that the host starts on its own schedule while a provider serves. The zero value does
// nothing.
type backgroundWork struct {
	stop context.CancelFunc
	done chan struct{}
}

// end stops the work and waits until a run in progress has stopped.
func (b *backgroundWork) end() {
	if b.stop != nil {
		b.stop()
		<-b.done
	}
}

// endBackground ends the background work of a provider.
func (p *Provider) endBackground() {
	p.background.end()
	p.polling.end()
}

// backgroundTick is the longest time between two checks for work that is due.
const backgroundTick = 10 * time.Second

// every runs work repeatedly, with a pause after each run, until end is called.
func every(pause time.Duration, work func(context.Context)) backgroundWork {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				work(ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
	return backgroundWork{stop: stop, done: done}
}

// startBackground starts the background work that a provider's manifest declares, and the checks for outstanding
// events.
func (s *Slot) startBackground(p *Provider) {
	decls := p.module.Manifest.Background
	if s.host.recorded { // while recording, only operations that callers asked for run
		if len(decls) > 0 {
			p.logger.Warn("no background work is done while a cassette is recorded", "exports", len(decls))
		}
		return
	}
	if !s.host.options.NoReadinessPolls && (p.has(abi.OpReadiness) || p.has(abi.OpFindEvent)) {
		due := polls{}
		p.polling = every(pollPause, func(ctx context.Context) { s.pollOutstanding(ctx, p, due) })
	}
	if len(decls) == 0 {
		return
	}
	pause := backgroundTick
	for _, d := range decls {
		pause = min(pause, time.Duration(d.IntervalMS)*time.Millisecond)
	}
	p.background = every(max(pause, 10*time.Millisecond), func(ctx context.Context) { s.runDue(ctx, p) })
}

// runDue runs everything that is due by the host's clock, one export at a time. A failed run is logged and observed
// like any operation, and is due again after its interval.
func (s *Slot) runDue(ctx context.Context, p *Provider) {
	h := s.host
	var scopes []scopeRecord
	err := h.eachRecord(ctx, tableScopes, nil, func(r state.KeyValue) error {
		var record scopeRecord
		if err := json.Unmarshal(r.Value, &record); err == nil && p.owns(&record) {
			scopes = append(scopes, record)
		}
		return nil
	})
	if err != nil {
		p.logger.Error("background work: the scopes cannot be read", "error", err)
		return
	}
	for _, d := range p.module.Manifest.Background {
		for i := range scopes {
			if ctx.Err() != nil {
				return
			}
			if err := s.runIfDue(ctx, p, d, scopes[i].memoryScope()); err != nil && ctx.Err() == nil {
				p.logger.Warn("background work", "export", d.Export, "run_id", scopes[i].RunID, "persona_id",
					scopes[i].PersonaID, "error", err)
			}
		}
	}
}

// runIfDue runs one export for one scope. Work that writes stays due while the scope is read-only.
func (s *Slot) runIfDue(ctx context.Context, p *Provider, d abi.BackgroundDecl, scope abi.MemoryScope) error {
	sc, err := p.scopeOf(scope)
	if err != nil {
		return err
	}
	key := append(sc.key[:], d.Export...)
	stored, err := s.host.store.Record(ctx, tableBackground, key)
	if err != nil {
		return stateError(err)
	}
	now := s.host.now()
	if len(stored) == 8 {
		last := time.UnixMilli(int64(binary.BigEndian.Uint64(stored)))
		if since := now.Sub(last); since >= 0 && since < time.Duration(d.IntervalMS)*time.Millisecond {
			return nil
		}
	}
	if d.Class != abi.ClassRead && s.wall.ReadOnly(sc.wallKey()) {
		return nil
	}
	var b state.Batch
	b.ExpectRecord(tableBackground, key, stored)
	b.PutRecord(tableBackground, key, binary.BigEndian.AppendUint64(nil, uint64(now.UnixMilli())))
	err = s.host.commit(ctx, &b)
	if errors.Is(err, state.ErrConflict) {
		return nil // another host has started it
	}
	if err != nil {
		return err
	}
	if d.Export == abi.OpReadiness {
		_, err := s.lookReady(ctx, &abi.ReadinessRequest{Scope: scope})
		return err
	}
	return s.work(ctx, p, scope)
}

// work has the guest do its outstanding work for a scope.
func (s *Slot) work(ctx context.Context, p *Provider, scope abi.MemoryScope) (err error) {
	ctx, o := s.beginOn(ctx, p, abi.OpWaitUntilReady)
	defer o.end(&err)
	_, err = o.change(ctx, scope, &abi.WaitRequest{DeadlineMS: p.deadline(abi.OpWaitUntilReady).Milliseconds(),
		Background: true}, new(abi.BackendReadiness))
	return err
}
