package host

import (
	"context"
	"encoding/json"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
	"github.com/memhost/memhost/host/internal/opstate"
	"github.com/memhost/memhost/internal/state"
)

// What an operation commits: state, ledger and archive, in one transaction. The guest has changed the backend by then,
// so the caller cannot cancel it.

// commit commits what the guest wrote so far, with what the host added to the batch; later writes begin a new one.
func (o *operation) commit(ctx context.Context) error { return o.commitState(ctx, moreFollow) }

// commitLast is commit for the last batch of an operation, which frees its lock among hosts. Accepted events go into the
// archive with it.
func (o *operation) commitLast(ctx context.Context, accepted ...*abi.MemoryEvent) error {
	return o.commitState(ctx, lastCommit, accepted...)
}

func (o *operation) commitState(ctx context.Context, last bool, accepted ...*abi.MemoryEvent) error {
	t := o.state
	t.Batch.MaxSpaceBytes = o.provider.limits.StateBytes
	if t.Changed() {
		if err := t.CountCommit(context.WithoutCancel(ctx)); err != nil {
			return stateError(err)
		}
	}
	if t.Batch.Len() > 0 || len(accepted) > 0 {
		if err := o.commitArchived(ctx, &t.Batch, last, accepted...); err != nil {
			return err
		}
	}
	o.releaseWrites()
	o.state = opstate.New(o.slot.host.store, t.Space())
	return nil
}

// commitArchived commits a batch together with events that the operation's provider accepted. It is commit alone where
// no archive is kept.
func (o *operation) commitArchived(ctx context.Context, b *state.Batch, last bool, events ...*abi.MemoryEvent) error {
	h, p := o.slot.host, o.provider
	if len(events) > 0 && !o.slot.noArchive && !h.archives() && h.away.Load() { // a shadow misses something
		uncancelled := context.WithoutCancel(ctx) // as keep's
		if err := o.slot.endAway(uncancelled); err != nil {
			return err
		}
		if err := h.dropQueue(uncancelled); err != nil {
			return err
		}
	}
	switch {
	case h.archives() && !o.slot.noArchive && len(events) > 0:
	case b.Len() > 0:
		return o.keepAs(ctx, b, last)
	default:
		return nil
	}
	entries := make([]archive.Entry, len(events))
	for i, e := range events {
		entries[i] = archive.Entry{Provider: p.name, Namespace: p.config.Namespace, Queued: !h.archive.On,
			Event: json.RawMessage(abi.Marshal(e))}
	}
	done, err := h.archive.Add(b, entries)
	if err != nil {
		return err
	}
	if h.options.Tracer != nil {
		h.follow.NoteCause(entries[0].Seq, len(entries), h.traceparentOf(ctx))
	}
	err = o.keepAs(ctx, b, last)
	done(err == nil)
	o.slot.wakeFollowers()
	o.slot.boundQueue(ctx)
	return err
}

// archives reports whether what is recorded is kept: for the archive, or until every follower has it.
func (h *Host) archives() bool { return h.archive.On || h.queued.Load() }

// keep commits a batch of the operation, under its lock if it has one; further ones follow.
func (o *operation) keep(ctx context.Context, b *state.Batch) error {
	return o.keepAs(ctx, b, moreFollow)
}

func (o *operation) keepAs(ctx context.Context, b *state.Batch, last bool) error {
	if o.lock == nil {
		return o.slot.host.commit(ctx, b)
	}
	ctx, span := o.slot.host.part(ctx, "commit")
	err := o.lock.commit(ctx, b, last)
	span.End(string(abi.CodeOf(err)))
	return err
}
