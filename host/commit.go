package host

import (
	"context"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/opstate"
	"github.com/memhost/memhost/host/internal/writelock"
	"github.com/memhost/memhost/internal/state"
)

// An operation commits its state, its ledger entries and what followers need, in one transaction. By then the guest has
// changed the backend, so the caller cannot cancel the commit.

// commit commits what the guest wrote so far, with what the host added to the batch; later writes start a new batch.
func (o *operation) commit(ctx context.Context) error {
	return o.commitState(ctx, writelock.MoreFollow)
}

// commitLast is commit for the last batch of an operation, and releases its lock among hosts. The same transaction
// archives the accepted events.
func (o *operation) commitLast(ctx context.Context, accepted ...*abi.MemoryEvent) error {
	return o.commitState(ctx, writelock.LastCommit, accepted...)
}

func (o *operation) commitState(ctx context.Context, last bool, accepted ...*abi.MemoryEvent) error {
	t := o.state
	t.Batch.MaxSpaceBytes = o.provider.limits.StateBytes
	changed := t.Changed()
	if changed {
		if ahead := o.ahead(); ahead != nil {
			t.KnowCommits(ahead[aheadCommits])
		}
		if err := t.CountCommit(context.WithoutCancel(ctx)); err != nil {
			return stateError(err)
		}
	}
	if t.Batch.Len() > 0 || len(accepted) > 0 {
		if err := o.commitAccepted(ctx, &t.Batch, last, accepted...); err != nil {
			return err
		}
	}
	o.releaseWrites()
	o.state = opstate.New(o.slot.host.store, t.Space())
	if changed {
		o.copyChanged()
	}
	return nil
}

// commitAccepted commits a batch together with what followers need about events that the operation's provider accepted.
func (o *operation) commitAccepted(ctx context.Context, b *state.Batch, last bool, events ...*abi.MemoryEvent) error {
	after, err := o.slot.followers.deliverAccepted(ctx, b, o.provider, events)
	if err != nil || after == nil && b.Len() == 0 {
		return err
	}
	err = o.keepAs(ctx, b, last)
	if after != nil {
		after(err == nil)
	}
	return err
}

// keep commits a batch of the operation, under its lock if it has one. More batches may follow.
func (o *operation) keep(ctx context.Context, b *state.Batch) error {
	return o.keepAs(ctx, b, writelock.MoreFollow)
}

func (o *operation) keepAs(ctx context.Context, b *state.Batch, last bool) error {
	if o.lock == nil {
		return o.slot.host.commit(ctx, b)
	}
	ctx, span := o.slot.host.part(ctx, "commit")
	err := o.lock.Commit(ctx, b, last)
	span.End(string(abi.CodeOf(err)))
	return err
}
