package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// findEvent reports whether an event has arrived: its document exists, or its operation still waits. It checks the
// operation first, so that the second check finds what the operation writes in between.
func findEvent(c *sdk.Call, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	bank, err := bankOf(c)
	if err != nil {
		return nil, err
	}
	operation, id := operationOf(bank, r.EventID), documentOf(r.EventID)
	status, err := statusOf(c, operation)
	if err != nil {
		return nil, err
	}
	answer, err := ask(c, request{route: "document", document: id})
	switch {
	case err != nil:
		return nil, err
	case answer != nil || isWaiting(status): // an operation is as good as the event: nothing is to be sent again
		return &abi.FindEventAnswer{Found: "present", NativeIDs: []string{id},
			Markers: []string{marker(operation, r.EventID)}}, nil
	}
	return &abi.FindEventAnswer{Found: "absent"}, nil
}
