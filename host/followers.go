package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
	"github.com/memhost/memhost/host/internal/follow"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
)

// followers are the additional memories of a slot, backfills and shadows, with the archive that fills them. A slot
// reports to them what happened at the serving provider, through these five methods only:
//
//	accepted     events were accepted: what the archive and the queue keep of them joins the commit
//	retrieved    an agent has its answer: shadows are asked the same
//	resetting    a scope is about to be reset
//	forgotten    the serving provider has forgotten something: followers forget it, too
//	owns         whether a scope is a follower's
//
// The slot of a trial or of a follower has nil: nothing is archived, and it has no followers.
type followers struct {
	slot *Slot
	all  atomic.Pointer[[]*follower]
	// cutting is held while the queue is cut.
	cutting sync.Mutex
}

// deliverAccepted adds what followers and archive keep of accepted events to the batch of a commit. after, if not nil,
// must be called when the commit has ended.
func (fs *followers) deliverAccepted(ctx context.Context, b *state.Batch, p *Provider, events []*abi.MemoryEvent) (
	after func(committed bool), err error) {
	if fs == nil || len(events) == 0 {
		return nil, nil
	}
	h := fs.slot.host
	if !h.archives() {
		return nil, fs.miss(context.WithoutCancel(ctx))
	}
	entries := make([]archive.Entry, len(events))
	for i, e := range events {
		entries[i] = archive.Entry{Provider: p.name, Namespace: p.config.Namespace, Queued: !h.archive.On,
			Event: json.RawMessage(abi.Marshal(e))}
	}
	done, err := h.archive.Add(b, entries)
	if err != nil {
		return nil, err
	}
	if h.options.Tracer != nil {
		h.follow.NoteCause(entries[0].Seq, len(entries), h.traceparentOf(ctx))
	}
	return func(committed bool) {
		done(committed)
		fs.wake()
		fs.boundQueue(ctx)
	}, nil
}

// archives reports whether recorded events are kept: for the archive, or until every follower has them.
func (h *Host) archives() bool { return h.archive.On || h.queued.Load() }

// miss is called when an event is recorded that nothing keeps. It drops the shadows of an earlier process that are not
// running now, because they would miss the event.
func (fs *followers) miss(ctx context.Context) error {
	if !fs.slot.host.away.Load() {
		return nil
	}
	if err := fs.endAway(ctx); err != nil {
		return err
	}
	return fs.slot.host.dropQueue(ctx)
}

// retrieved passes a retrieval, whose answer the agent already has, to the shadows. It never waits.
func (fs *followers) retrieved(ctx context.Context, r *abi.RetrieveRequest, result *abi.RetrieveResult,
	took time.Duration) {
	if OriginOf(ctx) != "" {
		return
	}
	var q *follow.Question
	for _, f := range fs.list() {
		if !f.work.Sampled() {
			continue
		}
		if q == nil {
			serving := ""
			if v := fs.slot.current.Load(); v != nil {
				serving = v.provider.name
			}
			q = follow.NewQuestion(r, result, serving, took, fs.slot.host.now())
			q.Cause = fs.slot.host.traceparentOf(ctx)
		}
		f.work.Ask(q)
	}
}

// resetting records that a scope is about to be reset, so that followers reset it when they reach this point in their
// queue. after must be called when the reset has ended.
func (fs *followers) resetting(ctx context.Context, scope abi.MemoryScope) (after func(), err error) {
	if fs == nil || !fs.slot.host.archives() {
		return func() {}, nil
	}
	return fs.wake, fs.slot.host.archive.NoteErased(ctx, scope)
}

// forgotten has every follower forget what the serving provider has forgotten, concurrently, and adds what remains
// there to the receipt. Native ids only mean something to the serving provider, so such requests are not passed on.
func (fs *followers) forgotten(ctx context.Context, r *abi.ForgetRequest, receipt *abi.ForgetReceipt) {
	if fs == nil || len(r.NativeIDs) > 0 {
		return
	}
	within, cancel := context.WithTimeout(ctx, fs.slot.host.eraseWithin)
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, f := range fs.list() {
		p := f.provider()
		if p == nil {
			continue
		}
		all.Go(func() {
			one, err := f.inner.Forget(within, r)
			if err != nil {
				one = &abi.ForgetReceipt{Status: abi.ForgetPartial, DerivedMayRemain: []string{
					"all of it: " + abi.AsError(err).Message + "; forget it again"}}
			}
			mu.Lock()
			defer mu.Unlock()
			addForgotten(receipt, p.name, one)
		})
	}
	all.Wait()
}

// owns reports whether a scope belongs to a follower.
func (fs *followers) owns(r *scopeRecord) bool {
	for _, f := range fs.list() {
		if p := f.provider(); p != nil && p.owns(r) {
			return true
		}
	}
	return false
}

// addForgotten adds to a receipt what a follower has forgotten.
func addForgotten(receipt *abi.ForgetReceipt, name string, one *abi.ForgetReceipt) {
	for kind, ids := range one.Removed {
		receipt.Removed[fmt.Sprintf("%s (%s)", kind, name)] = ids
	}
	for _, what := range one.DerivedMayRemain {
		remains(receipt, "at %s, which follows: %s", name, what)
	}
	switch {
	case one.Status == abi.ForgetDone || receipt.Status == abi.ForgetPartial:
	case one.Status == abi.ForgetInProgress && receipt.Status != abi.ForgetUnsupported:
		receipt.Status = abi.ForgetInProgress
	default:
		receipt.Status = abi.ForgetPartial
	}
}

// list returns the followers.
func (fs *followers) list() []*follower {
	if fs == nil {
		return nil
	}
	if list := fs.all.Load(); list != nil {
		return *list
	}
	return nil
}

// add adds a follower to the list; remove removes it. The caller holds swapMu.
func (fs *followers) add(f *follower) {
	list := append(slices.Clone(fs.list()), f)
	fs.all.Store(&list)
}

func (fs *followers) remove(f *follower) {
	list := slices.DeleteFunc(slices.Clone(fs.list()), func(one *follower) bool { return one == f })
	fs.all.Store(&list)
}

// with returns the follower of a memory; nil if there is none.
func (fs *followers) with(key follow.Key) *follower {
	for _, f := range fs.list() {
		if f.work.Key() == key {
			return f
		}
	}
	return nil
}

// wake tells the followers to look for new work.
func (fs *followers) wake() {
	for _, f := range fs.list() {
		f.work.Wake()
	}
}

// boundQueue drops the oldest queued events if the queue for followers is too long. It does not delay the write that
// triggers it.
func (fs *followers) boundQueue(ctx context.Context) {
	h := fs.slot.host
	if !h.follow.TooLong() || !fs.cutting.TryLock() {
		return
	}
	fs.slot.drains.Go(func() {
		defer fs.cutting.Unlock()
		var all []*follow.Follower
		for _, f := range fs.list() {
			all = append(all, f.work)
		}
		if err := h.follow.Cut(context.WithoutCancel(ctx), all); err != nil {
			h.logger.Warn("the queue of the memories that follow cannot be cut", "error", err)
		}
	})
}

// scopes returns a scope's state at each follower.
func (fs *followers) scopes(scope abi.MemoryScope) (list []*scopeState, err error) {
	for _, f := range fs.list() {
		p := f.provider()
		if p == nil {
			continue
		}
		sc, err := p.scopeOf(scope)
		if err != nil {
			return nil, err
		}
		list = append(list, sc)
	}
	return list, nil
}

// close ends all followers. They continue when the slot is opened again.
func (fs *followers) close(ctx context.Context) (err error) {
	if fs == nil {
		return nil
	}
	for _, f := range fs.list() {
		err = errors.Join(err, f.close(ctx))
	}
	fs.all.Store(nil)
	return err
}

// endAway drops the data of shadows that are not running.
func (fs *followers) endAway(ctx context.Context) error {
	records, err := fs.slot.host.follow.Records(ctx)
	for key, r := range records {
		if err != nil || r.Role != report.RoleShadow || fs.with(key) != nil {
			continue
		}
		fs.slot.host.logger.Warn("a memory that no longer follows does not get what is recorded, and begins anew when it "+
			"follows again: there is no archive", "provider", r.Provider)
		err = fs.slot.host.follow.Drop(ctx, key)
	}
	if err == nil {
		fs.slot.host.away.Store(false)
	}
	return err
}
