package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// marker is what readiness gets back of a queued event: its operation and its id.
func marker(operation, eventID string) string { return operation + " " + eventID }

// readiness checks once the operation of each event that is not known to be stored, and then whether the bank has other
// operations, such as a consolidation, which derives observations from what was retained.
func readiness(c *sdk.Call, r *abi.ReadinessMarkers) (*abi.BackendReadiness, error) {
	ready := &abi.BackendReadiness{Status: abi.ReadinessReady, Method: "operations"}
	for _, m := range r.Markers {
		operation, event, _ := strings.Cut(m, " ")
		if c.Remaining() < 2000 {
			ready.EventIDs.Unknown = append(ready.EventIDs.Unknown, event)
			continue
		}
		status, err := statusOf(c, operation)
		if err != nil {
			return nil, err
		}
		switch {
		case isWaiting(status):
			ready.EventIDs.Pending = append(ready.EventIDs.Pending, event)
		case status == "failed" || status == "cancelled":
			ready.EventIDs.Failed = append(ready.EventIDs.Failed, event)
		case status == "not_found": // Hindsight drops completed operations after some days
			answer, err := ask(c, request{route: "document", document: documentOf(event)})
			if err != nil {
				return nil, err
			}
			if answer == nil {
				ready.EventIDs.Lost = append(ready.EventIDs.Lost, event)
			}
		}
	}
	busy, err := waiting(c)
	if err != nil {
		return nil, err
	}
	switch {
	case busy || len(ready.EventIDs.Pending) > 0:
		ready.Status = abi.ReadinessPending
	case len(ready.EventIDs.Failed)+len(ready.EventIDs.Lost) > 0:
		ready.Status = abi.ReadinessFailed
	case len(ready.EventIDs.Unknown) > 0:
		ready.Status = abi.ReadinessUnknown
	}
	return ready, nil
}
