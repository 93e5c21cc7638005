package main

import (
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// forget deletes the documents of events, with their chunks and what only they have in the graph. While a run is at work
// it answers in_progress, and the host calls again: Cognee would let the deletion wait for the run.
func forget(c *sdk.Call, r *abi.ForgetRequest) (*abi.ForgetReceipt, error) {
	out := &abi.ForgetReceipt{Status: abi.ForgetInProgress, Removed: map[string][]string{"document": {}},
		DerivedMayRemain: []string{}}
	dataset, err := datasetOf(c)
	if err != nil {
		return nil, err
	}
	selected, listed, whole := []string{}, map[string]bool{}, true
	if dataset != "" {
		status, err := statusOf(c, dataset)
		if err != nil || status == runStarted {
			return out, err
		}
		names := map[string]bool{}
		for _, event := range r.EventIDs {
			names[documentOf(event)] = true
		}
		whole, err = eachDocument(c, dataset, func(one document) {
			listed[one.id] = true
			if names[one.name] || slices.Contains(r.NativeIDs, one.id) || sdk.Forgets(r, one.session, one.time) {
				selected = append(selected, one.id)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	out.Status = abi.ForgetDone
	for _, id := range selected {
		if c.Remaining() < 5000 {
			whole = false
			break
		}
		if _, err := ask(c, request{route: "data_delete", dataset: dataset, data: id}); err != nil {
			return nil, err
		}
		out.Removed["document"] = append(out.Removed["document"], id)
	}
	out.DerivedMayRemain = append(out.DerivedMayRemain,
		"entities: those that other documents name too stay in the graph, with the description they have there")
	switch {
	case !whole:
		out.Status = abi.ForgetInProgress
	case slices.ContainsFunc(r.NativeIDs, func(id string) bool { return !listed[id] }):
		out.Status = abi.ForgetPartial
		out.DerivedMayRemain = append(out.DerivedMayRemain, "what has other native ids, unless it is gone already: "+
			"Cognee deletes documents, not single chunks or entities; forget the event")
	}
	return out, nil
}
