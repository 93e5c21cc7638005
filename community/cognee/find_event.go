package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// findEvent says whether an event has arrived: its document is there, and completed or about to be. A document that no
// run has taken is absent: recording the event again changes nothing in it and starts a run.
func findEvent(c *sdk.Call, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	absent := &abi.FindEventAnswer{Found: "absent"}
	dataset, err := datasetOf(c)
	if err != nil || dataset == "" {
		return absent, err
	}
	status, err := statusOf(c, dataset)
	if err != nil {
		return nil, err
	}
	completed, err := completeDocuments(c, dataset)
	if err != nil {
		return nil, err
	}
	done, there := completed[documentOf(r.EventID)]
	if !there || !done && status != runStarted {
		return absent, nil
	}
	return &abi.FindEventAnswer{Found: "present", Markers: []string{r.EventID}}, nil
}
