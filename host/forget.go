package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// Forgetting takes these steps, each of which may be repeated: the host stores what to forget, so that it is not
// recorded again; it removes its own copies, the archive first; the serving provider removes what it has, and then the
// followers do, concurrently; the store erases the deleted bytes. After any interruption the same request continues.

// NativeArchived is the native type of the archive's entries in a ForgetReceipt's Removed.
const NativeArchived = "archived_event"

// eraseWithin bounds how long forgetting and erasing wait in total for memories other than the serving one.
const eraseWithin = 30 * time.Second

// Forget implements Contract.
func (s *Slot) Forget(ctx context.Context, r *abi.ForgetRequest) (*abi.ForgetReceipt, error) {
	return perform(ctx, s, abi.OpForget, r, func(ctx context.Context) (*abi.ForgetReceipt, error) {
		receipt, err := s.forgetServing(ctx, r)
		if err != nil || s.following != nil {
			return receipt, err
		}
		s.followers.forgotten(ctx, r, receipt)
		outside, left := s.host.scrub(ctx)
		receipt.Outside = outside
		if left != "" {
			remains(receipt, "%s", left)
			if receipt.Status == abi.ForgetDone {
				receipt.Status = abi.ForgetPartial
			}
		}
		return receipt, nil
	})
}

// scrub makes the store erase deleted bytes. left says what it could not erase; empty means nothing.
func (h *Host) scrub(ctx context.Context) (outside []string, left string) {
	outside, err := h.archive.Scrub(ctx)
	if err != nil {
		left = "deleted content in the store, which could not be overwritten: " + abi.AsError(stateError(err)).Error()
	}
	return outside, left
}

// forgetServing is Forget at the serving provider.
func (s *Slot) forgetServing(ctx context.Context, r *abi.ForgetRequest) (*abi.ForgetReceipt, error) {
	return use(ctx, s, abi.OpForget, r, func(ctx context.Context, o *operation, receipt *abi.ForgetReceipt) error {
		sc, err := o.provider.scopeOf(r.Scope)
		if err != nil {
			return err
		}
		if len(r.NativeIDs) > 0 && !o.provider.has(abi.OpForget) {
			return o.provider.unsupported(abi.OpForget) // only the provider knows its native ids
		}
		return o.withLock(ctx, sc, "nothing is forgotten, and no native call was made", func() error {
			if err := o.at(ctx, sc); err != nil {
				return err
			}
			return o.forget(ctx, r, receipt)
		})
	})
}

// forget is Forget under the scope's lock.
func (o *operation) forget(ctx context.Context, r *abi.ForgetRequest, receipt *abi.ForgetReceipt) error {
	h := o.slot.host
	if o.slot.following == nil {
		done, err := h.erasingCopies(ctx, o.memoryScope())
		if err != nil {
			return err
		}
		defer done()
	}
	if err := o.noteForgotten(ctx, r); err != nil {
		return err
	}
	var own ownForgotten
	if o.slot.following == nil { // otherwise the slot that is followed has done it
		if err := own.forget(ctx, h, r); err != nil {
			return err
		}
	}
	failed := o.forgetInProvider(ctx, r, receipt)
	done := failed == nil && receipt.Status == abi.ForgetDone
	if failed == nil {
		own.addTo(receipt)
	}
	if len(r.NativeIDs) == 0 {
		ids, err := h.forgottenIDs(ctx, r)
		if err != nil {
			return err
		}
		if ids, _, err = h.ledger.WithSession(ctx, o.state.Space(), r, ids); err != nil {
			return err
		}
		if err := o.forgetDeliveries(ctx, r, ids, done, receipt); err != nil {
			return err
		}
	}
	if failed != nil {
		_, _ = h.scrub(ctx) // erases the host's own copies; the caller learns of the failure elsewhere
		e := *abi.AsError(failed)
		e.Hint = joinHints(e.Hint, "the host has removed what it held itself, and records none of it again; ask again to "+
			"remove what is left")
		return &e
	}
	receipt.Trace = o.trace(receipt.Trace)
	return nil
}

// ownForgotten is what the host itself removes for a request to forget.
type ownForgotten struct {
	events []string
	damage string // damage in the archive, which may keep part of the events; empty if there is none
}

// forget removes the request's events from the archive and from the queue of a backfill, and the person's stored
// answers. It first saves the events' ids, for providers that are asked later.
func (f *ownForgotten) forget(ctx context.Context, h *Host, r *abi.ForgetRequest) error {
	if err := h.follow.ForgetAnswers(ctx, r.Scope); err != nil || len(r.NativeIDs) > 0 {
		return err
	}
	rule, err := ruleOf(r, h.now())
	if err != nil {
		return err
	}
	matches := func(e *abi.MemoryEvent) bool {
		return inScope(e, r.Scope) && (slices.Contains(r.EventIDs, e.EventID) || rule != nil && rule.covers(e))
	}
	var note func([]*abi.MemoryEvent) error
	if rule != nil {
		note = func(forgotten []*abi.MemoryEvent) error {
			var b state.Batch
			err := putForgotten(&b, r.Scope, idsOf(forgotten), &forgottenRule{At: rule.At, By: rule.key()})
			if err != nil {
				return err
			}
			return h.commit(ctx, &b)
		}
	}
	forgotten, err := h.forgetStored(ctx, r.Scope.PersonaID, matches, note)
	f.events = idsOf(forgotten)
	if err != nil && abi.AsError(err).Reason == "archive" { // damaged: continue with the rest
		f.damage, err = abi.AsError(err).Message, nil
	}
	return err
}

// addTo adds what the host removed to the provider's receipt.
func (f *ownForgotten) addTo(receipt *abi.ForgetReceipt) {
	if len(f.events) > 0 {
		receipt.Removed[NativeArchived] = append(receipt.Removed[NativeArchived], f.events...)
		if receipt.Status == abi.ForgetUnsupported {
			receipt.Status = abi.ForgetPartial
		}
	}
	if f.damage != "" {
		remains(receipt, "the archive, which cannot be read to its end: %s", f.damage)
		receipt.Status = abi.ForgetPartial
	}
}

// inScope reports whether an event belongs to a scope.
func inScope(e *abi.MemoryEvent, scope abi.MemoryScope) bool {
	return e.RunID == scope.RunID && e.UserID == scope.PersonaID && (scope.AgentID == "" || e.AgentID == scope.AgentID)
}

func idsOf(events []*abi.MemoryEvent) (ids []string) {
	for _, e := range events {
		ids = append(ids, e.EventID)
	}
	return ids
}

// forgetInProvider repeats the provider's forget until it stops answering in_progress or the operation's time is over,
// and commits what the guest wrote. If the provider lacks the operation, the receipt says unsupported, and the host
// still does its part.
func (o *operation) forgetInProvider(ctx context.Context, r *abi.ForgetRequest, receipt *abi.ForgetReceipt) error {
	*receipt = abi.ForgetReceipt{Status: abi.ForgetUnsupported}
	if o.provider.has(abi.OpForget) {
		wait := o.slot.host.waiting(o.provider.deadline(o.Op))
		for {
			*receipt = abi.ForgetReceipt{}
			if err := o.enter(ctx, r, receipt); err != nil {
				return err
			}
			if err := o.commit(ctx); err != nil {
				return err
			}
			if receipt.Status != abi.ForgetInProgress || wait.left() < wait.next || ctx.Err() != nil {
				break
			}
			wait.pause(ctx)
		}
	}
	if receipt.Removed == nil {
		receipt.Removed = map[string][]string{}
	}
	if receipt.DerivedMayRemain == nil {
		receipt.DerivedMayRemain = []string{}
	}
	if !o.provider.has(abi.OpForget) {
		remains(receipt, "provider %s has no forget: what it holds stays until its scope is reset", o.provider.name)
	}
	for _, generation := range o.scope.record.Erasing {
		remains(receipt, "generation %d of the scope, whose reset is not finished: reset the scope again", generation)
	}
	return nil
}

// remains adds what is left, and why, to a receipt.
func remains(receipt *abi.ForgetReceipt, format string, about ...any) {
	receipt.DerivedMayRemain = append(receipt.DerivedMayRemain, fmt.Sprintf(format, about...))
}

// forgetDeliveries removes ledger data of forgotten events: the whole entries if the provider has removed the events,
// else only the digests of their text.
func (o *operation) forgetDeliveries(ctx context.Context, r *abi.ForgetRequest, ids []string, done bool,
	receipt *abi.ForgetReceipt) error {
	h, space := o.slot.host, o.state.Space()
	b := new(state.Batch)
	for _, id := range ids {
		unseen, err := h.ledger.Forget(ctx, b, space, id, done)
		if err != nil {
			return err
		}
		if unseen {
			remains(receipt, "event %s, which the provider may still be working off: forget it again later", id)
			receipt.Status = abi.ForgetPartial
		}
	}
	if done {
		if err := h.ledger.ForgetByNativeIDs(ctx, b, space, receipt.Removed); err != nil {
			return err
		}
	}
	if o.slot.following == nil { // reported once, by the slot that is followed
		if err := o.forgetAtOthers(ctx, b, r, ids, receipt); err != nil {
			return err
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return o.keep(ctx, b)
}

// forgetAtOthers removes the digests of events from the ledgers of providers that had this person's memory but do not
// serve now. It returns their names.
func (o *operation) forgetAtOthers(ctx context.Context, b *state.Batch, r *abi.ForgetRequest, ids []string,
	receipt *abi.ForgetReceipt) error {
	h := o.slot.host
	mayBe := scopeOfPerson(r.Scope.PersonaID)
	return h.eachRecord(ctx, tableScopes, nil, func(kv state.KeyValue) error {
		var other scopeRecord
		key := scopeKey(kv.Key)
		if !mayBe(kv.Value) || json.Unmarshal(kv.Value, &other) != nil || key == o.scope.key || o.slot.followers.owns(&other) ||
			other.RunID != r.Scope.RunID ||
			other.PersonaID != r.Scope.PersonaID {
			return nil
		}
		had, err := h.ledger.ForgetTexts(ctx, b, generationSpace(key, other.Generation), r, ids)
		if had && err == nil {
			remains(receipt, "provider %s (namespace %q, agent %q) had events of this person and was not asked: let it "+
				"serve and forget again, or remove them there", other.Provider, other.Namespace, other.AgentID)
			if receipt.Status == abi.ForgetDone {
				receipt.Status = abi.ForgetPartial
			}
		}
		return err
	})
}
