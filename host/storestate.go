package host

import (
	"context"
	"time"

	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
)

// mostDated limits how many open events are searched for the oldest one, because each one costs a read of the store.
const mostDated = 5_000

// StoreState reports what the store holds. It reads the store until ctx ends, and leaves out what it could not read.
func (h *Host) StoreState(ctx context.Context) report.Store {
	var is report.Store
	if open, err := h.openEvents(ctx); err == nil {
		is.Open = open
	}
	if store, ok := h.store.(state.Sizer); ok {
		if n, err := store.Size(ctx); err == nil {
			is.Bytes = &n
		}
	}
	if store, ok := h.store.(state.Connected); ok {
		n := store.Connections()
		is.Connections = &report.Connections{Used: n.Used, Max: n.Max, Allowed: n.Allowed}
	}
	return is
}

// openEvents counts the events whose delivery is not settled.
func (h *Host) openEvents(ctx context.Context) (*report.OpenEvents, error) {
	open := new(report.OpenEvents)
	var dated [][]byte
	err := h.ledger.EachOutstanding(ctx, func(key []byte, _ delivery.Scope, is delivery.Outstanding) error {
		switch is {
		case delivery.OutstandingQueued:
			open.Queued++
		case delivery.OutstandingPending:
			open.Pending++
		case delivery.OutstandingLost:
			open.Lost++
			return nil
		default:
			return nil
		}
		if len(dated) <= mostDated {
			dated = append(dated, key)
		}
		return nil
	})
	if err != nil || len(dated) > mostDated {
		return open, err
	}
	var oldest time.Duration
	now := h.now()
	for _, key := range dated {
		e, err := h.ledger.Entry(ctx, state.Space(key), string(key[len(state.Space{}):]))
		if err != nil {
			return open, nil // without the age of the oldest
		}
		if e != nil {
			oldest = max(oldest, now.Sub(e.SentAt))
		}
	}
	open.Oldest = &oldest
	return open, nil
}
