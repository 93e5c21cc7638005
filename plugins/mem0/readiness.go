package main

import (
	"time"

	"github.com/memhost/memhost/abi"
)

// readiness checks once. The self-hosted server answers an add after storing all of it; on the platform, each job that
// a marker names is requested.
func readiness(b *backend, r *abi.ReadinessMarkers) (*abi.BackendReadiness, error) {
	if !b.platform() {
		return &abi.BackendReadiness{Status: abi.ReadinessReady, Method: "mem0 answers an add when it is stored"}, nil
	}
	out := &abi.BackendReadiness{Status: abi.ReadinessReady, Method: "status of the platform's events"}
	var oldest time.Time
	for _, m := range r.Markers {
		id, event, ok := splitMarker(m)
		if !ok {
			continue
		}
		// With too little time left, the next call continues.
		if b.Remaining() < 1000 {
			out.EventIDs.Pending = append(out.EventIDs.Pending, event)
			continue
		}
		s, err := b.job(id)
		switch {
		case err != nil:
			return nil, err
		case s == nil:
			out.EventIDs.Lost = append(out.EventIDs.Lost, event)
			out.Warnings = append(out.Warnings, "job_lost: the platform no longer knows the job "+id)
		case s.failed():
			out.EventIDs.Failed = append(out.EventIDs.Failed, event)
			out.Warnings = append(out.Warnings, "job_failed: "+s.problem)
		case !s.succeeded() || b.settledIn(s) > 0:
			out.EventIDs.Pending = append(out.EventIDs.Pending, event)
			if at, err := abi.ParseTime(s.created); err == nil && (oldest.IsZero() || at.Before(oldest)) {
				oldest, out.OldestPendingAt = at, s.created
			}
		case s.unread:
			out.EventIDs.Unknown = append(out.EventIDs.Unknown, event)
			out.Warnings = append(out.Warnings, "job_unread: the platform does not say what the job "+id+" stored")
		case len(s.ids) == 0:
			out.EventIDs.Empty = append(out.EventIDs.Empty, event)
		}
	}
	switch e := out.EventIDs; {
	case len(e.Pending) > 0:
		out.Status = abi.ReadinessPending
	case len(e.Lost)+len(e.Failed) > 0:
		out.Status = abi.ReadinessDegraded
	}
	return out, nil
}
