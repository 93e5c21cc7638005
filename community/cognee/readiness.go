package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// readiness checks the dataset's newest run, and which documents it has completed. It checks the run first: a run that
// ends in between is then reported as pending, and a ready event is never reported as failed.
func readiness(c *sdk.Call, r *abi.ReadinessMarkers) (*abi.BackendReadiness, error) {
	ready := &abi.BackendReadiness{Status: abi.ReadinessReady, Method: "pipeline runs"}
	dataset, err := datasetOf(c)
	if err != nil {
		return nil, err
	}
	status, completed := "", map[string]bool{}
	if dataset != "" {
		if status, err = statusOf(c, dataset); err != nil {
			return nil, err
		}
		if completed, err = completeDocuments(c, dataset); err != nil {
			return nil, err
		}
	}
	for _, event := range r.Markers {
		done, there := completed[documentOf(event)]
		switch {
		case !there:
			ready.EventIDs.Lost = append(ready.EventIDs.Lost, event)
		case !done && status == runStarted:
			ready.EventIDs.Pending = append(ready.EventIDs.Pending, event)
		case !done:
			ready.EventIDs.Failed = append(ready.EventIDs.Failed, event)
		}
	}
	switch {
	case status == runStarted:
		ready.Status = abi.ReadinessPending
	case len(ready.EventIDs.Failed)+len(ready.EventIDs.Lost) > 0:
		ready.Status = abi.ReadinessFailed
	}
	if status == runErrored {
		ready.Warnings = append(ready.Warnings, "run_errored: Cognee's newest run on this dataset failed, which its log "+
			"explains; memhost readiness --retry and the next event that is recorded run it again")
	}
	return ready, nil
}
