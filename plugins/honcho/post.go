package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// The reasons of errors for writes that did not simply succeed.
const (
	reasonNotStored = "not_stored" // Honcho does not have it, and no request in progress could still store it
	reasonUncertain = "uncertain"  // it may have been stored
)

// lookUpMS is the remaining time that is needed to look an event up after a failed write, in ms.
const lookUpMS = 500

// post sends up to 100 pieces in one call, which is one transaction. If the answer leaves open whether they were
// stored, it looks them up and does not send them again: Honcho has no idempotency, and a second post duplicates
// messages and derivation.
func (w *writer) post(session string, pieces []piece) ([]message, *abi.Error) {
	bodies := make([]wire.Object, len(pieces))
	for i := range pieces {
		bodies[i] = pieces[i].body
	}
	head, body, err := w.exchange(request{route: "messages", session: session, body: wire.Object{"messages",
		bodies}.JSON()})
	var failed *abi.Error
	answered := false
	switch {
	case err != nil:
		failed = abi.AsError(err)
		if failed.Code == abi.CodeDenied || failed.Code == abi.CodeReadOnly || failed.Code == abi.CodeInvalidArgument {
			return nil, failed // the host sent nothing
		}
		if failed.NothingStored { // there is no connection
			return nil, failed
		}
	case head.Status == 200 || head.Status == 201:
		if wire.Check(body) == nil {
			if stored, err := readList(body, readMessage); err == nil && len(stored) == len(pieces) {
				return stored, nil
			}
		}
		failed, answered = sdk.Unusable("messages", head.Status, body, "is not the list of what was stored"), true
	case head.Status >= 300 && head.Status < 500:
		return nil, failure("messages", head, body).WithReason(reasonNotStored)
	default:
		// A 500 comes from the server itself, which has ended the request. 502, 503 and 504 come from a proxy, and the
		// server may still be working.
		failed, answered = failure("messages", head, body), head.Status == 500
	}
	failed.Reason = reasonUncertain
	if w.Remaining() < lookUpMS {
		return nil, failed
	}
	stored, asked := w.lookUp(session, pieces)
	switch {
	case !asked:
		return nil, failed
	case len(stored) == len(pieces):
		return stored, nil
	case len(stored) == 0 && answered:
		return nil, failed.WithReason(reasonNotStored)
	}
	return nil, failed
}

// lookUp returns which of the pieces Honcho has, in their order; asked is false if Honcho did not answer.
func (w *writer) lookUp(session string, pieces []piece) (stored []message, asked bool) {
	var found []message
	for i, p := range pieces {
		if i == 0 || pieces[i-1].event != p.event {
			var err error
			if found, err = w.messagesOf(session, p.event); err != nil {
				return nil, false
			}
		}
		for j := range found {
			if found[j].piece == p.number {
				stored = append(stored, found[j])
				break
			}
		}
	}
	return stored, true
}
