package main

import (
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// forget deletes the documents of events, with the facts that were drawn from them. While an operation of the bank waits
// it answers in_progress, and the host calls again: the operation could bring back what is deleted now.
func forget(c *sdk.Call, r *abi.ForgetRequest) (*abi.ForgetReceipt, error) {
	out := &abi.ForgetReceipt{Status: abi.ForgetInProgress, Removed: map[string][]string{"document": {}},
		DerivedMayRemain: []string{}}
	if busy, err := waiting(c); err != nil || busy {
		return out, err
	}
	ids := slices.Clone(r.NativeIDs)
	for _, event := range r.EventIDs {
		ids = append(ids, documentOf(event))
	}
	whole := true
	if r.SessionID != "" || r.From != "" {
		var err error
		whole, err = eachDocument(c, func(one document) {
			if sdk.Forgets(r, one.session, one.time) {
				ids = append(ids, one.id)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	out.Status = abi.ForgetDone
	var missed []string
	for _, id := range ids {
		if c.Remaining() < 2000 {
			whole = false
			break
		}
		answer, err := ask(c, request{route: "document_delete", document: id})
		switch {
		case err != nil:
			return nil, err
		case answer != nil:
			out.Removed["document"] = append(out.Removed["document"], id)
		case slices.Contains(r.NativeIDs, id):
			missed = append(missed, id)
		}
	}
	if !whole {
		out.Status = abi.ForgetInProgress
	}
	out.DerivedMayRemain = append(out.DerivedMayRemain,
		"operations: Hindsight keeps the request of a completed operation until its retention drops it",
		"observations: what Hindsight consolidated from several facts changes with its next consolidation")
	if len(missed) > 0 && out.Status == abi.ForgetDone {
		out.Status = abi.ForgetPartial
		out.DerivedMayRemain = append(out.DerivedMayRemain, "what has other native ids, unless it is gone already: "+
			"Hindsight deletes documents, not single facts; forget the event")
	}
	return out, nil
}
