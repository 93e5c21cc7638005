package host

import (
	"context"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/delivery"
)

// gather collects the facts about one of the events in the order in which delivery.Decide needs them. It asks the
// backend last, and only about an event that another data folder may have recorded.
//
// Errors: those of the store and of find_event. In every case nothing was sent.
func (w *write) gather(ctx context.Context, at int) (f *delivery.Facts, err error) {
	h, p, e := w.slot.host, w.provider, w.events[at]
	f = &delivery.Facts{CanFind: p.has(abi.OpFindEvent)}
	if f.TestSession = p.testSession(e.SessionID); f.TestSession {
		return f, nil
	}
	if f.Forgotten, err = h.wasForgotten(ctx, e); err != nil || f.Forgotten {
		return f, err
	}
	if f.Hash, err = delivery.HashOf(e); err != nil {
		return nil, err
	}
	space := w.state.Space()
	ahead := w.ahead()
	if ahead != nil {
		f.Known, err = delivery.Stored(e.EventID, ahead[aheadEntries+at])
	} else {
		f.Known, err = h.ledger.Entry(ctx, space, e.EventID)
	}
	if err != nil || f.Known != nil {
		f.Retry = f.Known != nil && p.retries(f.Known)
		return f, err
	}
	if ahead != nil {
		f.Gap = delivery.StoredGap(ahead[len(ahead)-1])
	} else if f.Gap, err = h.ledger.Gap(ctx, space); err != nil {
		return nil, err
	}
	switch {
	case f.Gap != delivery.ScopeExisted:
	case p.config.NoLookup:
		f.NotAsked = "memory.lookup_existing is off"
	case !f.CanFind:
		f.NotAsked = "the provider cannot look events up (no find_event)"
	default:
		f.Lookup, err = w.findEvent(ctx, e.EventID, e.SessionID, f.PerhapsSent(e))
	}
	return f, err
}
