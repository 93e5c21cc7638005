package host

import (
	"context"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
)

// An action is what becomes of an event that is recorded.
type action string

const (
	// skipTest answers skipped_read_only: the session is read-only by the configuration.
	skipTest action = "skip"
	// refuseForgotten and refuseOther answer a conflict.
	refuseForgotten action = "refuse"
	refuseOther     action = "conflict"
	// repeat answers the first receipt at its present status.
	repeat action = "repeat"
	// adopt notes in the ledger that the backend has the event, and answers like repeat.
	adopt action = "adopt"
	// settle asks the backend what has arrived of an earlier attempt, and then repeats, sends, or sends the rest.
	settle action = "settle"
	// send sends the event, sendRest the parts of it that the backend lacks. sendWarned sends it with the warning that it
	// may be stored twice.
	send       action = "send"
	sendRest   action = "send rest"
	sendWarned action = "send, warn"
	// sendAgain sends an event of which the backend kept nothing once more.
	sendAgain action = "send again"
	// oneByOne gives the write lock back and records the events of the batch one at a time.
	oneByOne action = "one by one"
)

// facts are what is known of an event before anything of it is sent.
type facts struct {
	testSession, forgotten bool
	hash                   contentHash
	// known is the ledger's record; nil if it has none.
	known *ledgerEntry
	// retry: the backend kept nothing of the event, and it is to be sent again.
	retry bool
	// history says why the ledger may have no record of an event that was recorded, if it may: trimmedByRetention,
	// trimmedByLoss, or 0. canFind reports whether the provider can look events up.
	history byte
	canFind bool
	// lookup is what the backend says of an event that the ledger does not know, where the backend had the scope before
	// the data folder had; nil if it was not asked, and notAsked is why.
	lookup   *abi.FindEventAnswer
	notAsked string
}

// decide is the contract of delivery: what becomes of an event by what is known of it. Rows are tried from the top.
//
//	the event                                  alone        in a batch
//	-----------------------------------------  -----------  ----------
//	is of a test session                       skip         skip
//	was forgotten                              refuse       refuse
//	is in the ledger with other content        conflict     conflict
//	is in the ledger and arrived               repeat       repeat
//	is in the ledger, nothing was kept of it   repeat       repeat
//	  and it is to be sent again               send again   one by one
//	is in the ledger as lost                   send         send
//	is in the ledger as failed                 send         send
//	is in the ledger as sent, no receipt       settle       one by one
//	is in the ledger, receipt undecided        settle       one by one
//	is new                                     send         send
//	may have dropped out of the ledger         settle       one by one
//	  and the provider cannot look it up       send         send
//	may be in a backend that had the scope
//	  and is not looked up                     send, warn   send, warn
//	  and the backend has it                   adopt        adopt
//	  and the backend has a part of it         send rest    one by one
//	  and the backend does not have it         send         send
//	  and the backend cannot tell              send, warn   send, warn
//
// So nothing is sent twice as long as the ledger or the backend can tell that it arrived; and what they cannot tell of
// an event that this host never sent is sent, since a doubled event is better than a lost one.
func decide(f *facts, batch bool) action {
	alone := func(a action) action {
		if batch {
			return oneByOne
		}
		return a
	}
	switch {
	case f.testSession:
		return skipTest
	case f.forgotten:
		return refuseForgotten
	case f.known != nil && f.known.hash != f.hash:
		return refuseOther
	case f.known != nil && (f.known.state == deliveryLost || f.known.state == deliveryFailed):
		return send
	case f.retry:
		return alone(sendAgain)
	case f.known != nil && f.known.uncertain():
		return alone(settle)
	case f.known != nil:
		return repeat
	case f.history == trimmedByRetention && f.canFind:
		return alone(settle)
	case f.history != trimmedByLoss:
		return send
	case f.lookup == nil:
		return sendWarned
	}
	switch f.lookup.Found {
	case answercheck.FoundPresent:
		return adopt
	case answercheck.FoundPartial:
		return alone(sendRest)
	case answercheck.FoundUnknown:
		return sendWarned
	}
	return send
}

// gather collects the facts of an event, in the order in which decide needs them: what decides is asked for last, and
// the backend only about an event that another data folder may have recorded.
//
// Errors: those of the store and of find_event; nothing was sent.
func (w *write) gather(ctx context.Context, e *abi.MemoryEvent) (f *facts, err error) {
	h, p := w.slot.host, w.provider
	f = &facts{canFind: p.has(abi.OpFindEvent)}
	if f.testSession = p.testSession(e.SessionID); f.testSession {
		return f, nil
	}
	if f.forgotten, err = h.wasForgotten(ctx, e); err != nil || f.forgotten {
		return f, err
	}
	if f.hash, err = hashEvent(e); err != nil {
		return nil, err
	}
	space := w.state.Space()
	if f.known, err = h.ledgerRecord(ctx, space, e.EventID); err != nil || f.known != nil {
		f.retry = f.known != nil && p.retries(f.known)
		return f, err
	}
	why, err := h.store.Record(ctx, tableTrimmed, space[:])
	if err != nil {
		return nil, stateError(err)
	}
	if len(why) > 0 {
		f.history = why[0]
	}
	switch {
	case f.history != trimmedByLoss:
	case p.config.NoLookup:
		f.notAsked = "memory.lookup_existing is off"
	case !f.canFind:
		f.notAsked = "the provider cannot look events up (no find_event)"
	default:
		f.lookup, err = w.findEvent(ctx, e.EventID, e.SessionID, f.perhapsSent(e))
	}
	return f, err
}

// perhapsSent is the record of an event that was sent perhaps, at any time before.
func (f *facts) perhapsSent(e *abi.MemoryEvent) *ledgerEntry {
	return &ledgerEntry{hash: f.hash, state: deliverySent, sentAt: time.UnixMilli(0), session: e.SessionID}
}
