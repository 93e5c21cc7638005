package host

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
)

var _ report.Listing = (*Slot)(nil)

// pageScan is the most records that one page reads, so that searching for a rare state does not block a call.
const pageScan = 5000

// maxCounted is how many events one page of scopes counts before it ends.
const maxCounted = 20_000

// ListScopes implements report.Listing.
func (s *Slot) ListScopes(ctx context.Context, q report.ScopeQuery) (*report.ScopePage, error) {
	const op = "list_scopes"
	after, err := hex.DecodeString(q.After)
	if err != nil || len(after) != 0 && len(after) != len(scopeKey{}) {
		e := abi.NewError(abi.CodeInvalidArgument, "after: not a cursor of this list").
			WithHint("send next of the page before, or nothing")
		return nil, inOperation(op, e)
	}
	v, err := s.take(op)
	if err != nil {
		return nil, err
	}
	defer v.provider.release()
	page := &report.ScopePage{Scopes: []report.ListedScope{}}
	contains, counted := strings.ToLower(q.Contains), int64(0)
	last, more, err := s.host.scan(ctx, tableScopes, nil, after, func(stored state.KeyValue) (full bool, err error) {
		var r scopeRecord
		if json.Unmarshal(stored.Value, &r) != nil || len(stored.Key) != len(scopeKey{}) || !v.provider.owns(&r) {
			return false, nil // another provider's, or damaged, which is reported when the scope is used
		}
		if contains != "" && !strings.Contains(strings.ToLower(r.displayName()), contains) {
			return false, nil
		}
		space := generationSpace(scopeKey(stored.Key), r.Generation)
		var open delivery.Completeness
		if err := s.host.ledger.Count(ctx, space, &open); err != nil {
			return false, err
		}
		if q.OnlyOpen && open.Queued+open.Pending+open.Lost == 0 {
			return false, nil
		}
		listed := report.ListedScope{ScopeMapping: r.mapping(), Queued: int64(open.Queued), Pending: int64(open.Pending),
			Lost: int64(open.Lost)}
		if q.Counts {
			events, lastAt, err := s.host.ledger.Activity(ctx, space)
			if err != nil {
				return false, err
			}
			counted += events
			listed.Events, listed.LastAt = &events, sentAtText(lastAt)
		}
		page.Scopes = append(page.Scopes, listed)
		return len(page.Scopes) == pageLimit(q.Limit) || counted >= maxCounted, nil
	})
	if err != nil {
		return nil, inOperation(op, err)
	}
	if more {
		page.Next = hex.EncodeToString(last)
	}
	return page, nil
}

// ListEvents implements report.Listing.
func (s *Slot) ListEvents(ctx context.Context, q report.EventQuery) (*report.EventPage, error) {
	const op = "list_events"
	if err := q.Validate(); err != nil {
		return nil, inOperation(op, err)
	}
	v, err := s.take(op)
	if err != nil {
		return nil, err
	}
	defer v.provider.release()
	page, err := s.host.listEvents(ctx, v.provider, &q)
	if err != nil {
		return nil, inOperation(op, err)
	}
	return page, nil
}

func (h *Host) listEvents(ctx context.Context, p *Provider, q *report.EventQuery) (*report.EventPage, error) {
	sc, err := p.scopeOf(q.Scope)
	if err != nil {
		return nil, err
	}
	page := &report.EventPage{Events: []report.ListedEvent{}}
	if page.Generation, err = h.currentGeneration(ctx, sc); err != nil {
		return nil, err
	}
	space := sc.space(page.Generation)
	table := delivery.TableEntries
	if q.OnlyOpen() {
		table = delivery.TableUnseen // much shorter than the ledger, which may have a hundred thousand entries
	}
	var after []byte
	if q.After != "" {
		after = delivery.Key(space, q.After)
	}
	last, more, err := h.scan(ctx, table, space[:], after, func(r state.KeyValue) (full bool, err error) {
		id := string(r.Key[len(space):])
		var e *delivery.Entry
		if table == delivery.TableEntries {
			e, err = delivery.Decode(id, r.Value)
		} else {
			e, err = h.ledger.Entry(ctx, space, id)
		}
		if err != nil || e == nil {
			return false, err
		}
		listed := listedEvent(id, e)
		if q.Wants(&listed) {
			page.Events = append(page.Events, listed)
		}
		return len(page.Events) == pageLimit(q.Limit), nil
	})
	if err != nil {
		return nil, err
	}
	if more {
		page.Next = string(last[len(space):])
	}
	return page, nil
}

// HasEvents reports whether the data folder has an event of a run and a person, from any provider. An empty id matches
// any.
func (h *Host) HasEvents(ctx context.Context, runID, personaID string) (found bool, err error) {
	_, _, err = h.scan(ctx, tableScopes, nil, nil, func(stored state.KeyValue) (done bool, err error) {
		var r scopeRecord
		if json.Unmarshal(stored.Value, &r) != nil || len(stored.Key) != len(scopeKey{}) ||
			runID != "" && r.RunID != runID || personaID != "" && r.PersonaID != personaID {
			return false, nil
		}
		space := generationSpace(scopeKey(stored.Key), r.Generation)
		events, err := h.store.Records(ctx, delivery.TableEntries, space[:], nil, 1)
		found = len(events) > 0
		return found, stateError(err)
	})
	return found, err
}

// listedEvent is an entry of the ledger as callers see it.
func listedEvent(eventID string, e *delivery.Entry) report.ListedEvent {
	l := report.ListedEvent{EventID: eventID, SessionID: e.Session, SentAt: sentAtText(e.SentAt), Receipt: e.Receipt}
	switch e.State {
	case delivery.Sent:
		l.State = report.EventSent
	case delivery.Lost:
		l.State = report.EventLost
	case delivery.Failed, delivery.Again:
		l.State = report.EventFailed
	default:
		l.State = string(e.Receipt.Status)
	}
	return l
}

// sentAtText is when an event was sent, in report.TimeFormat; empty if the ledger does not know.
func sentAtText(at time.Time) string {
	if at.UnixMilli() <= 0 {
		return ""
	}
	return at.UTC().Format(report.TimeFormat)
}

func pageLimit(limit int64) int {
	if limit <= 0 {
		return report.DefaultPage
	}
	return int(min(limit, report.MaxPage))
}

// scan visits the records of a table whose key begins with prefix and is greater than after, until visit reports that
// the page is full or pageScan records were seen. last is the key of the last record visited; more reports whether
// others follow.
func (h *Host) scan(ctx context.Context, table state.Table, prefix, after []byte,
	visit func(state.KeyValue) (full bool, err error)) (last []byte, more bool, err error) {
	const chunk = report.MaxPage + 1
	for seen := 0; ; {
		records, err := h.store.Records(ctx, table, prefix, after, chunk)
		if err != nil {
			return nil, false, stateError(err)
		}
		for i, r := range records {
			full, err := visit(r)
			if err != nil {
				return nil, false, err
			}
			after = r.Key
			seen++
			if full || seen == pageScan {
				return after, i < len(records)-1 || len(records) == chunk, nil
			}
		}
		if len(records) < chunk {
			return after, false, nil
		}
	}
}
