package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// readiness checks which of the queued turns have become episodes: on REST and MCP by the contents of the graph
// (queue.go), on core also by the gateway's jobs.
func readiness(c *sdk.Call, r *abi.ReadinessMarkers) (*abi.BackendReadiness, error) {
	v, err := openCall(c)
	if err != nil {
		return nil, err
	}
	answer := &abi.BackendReadiness{Status: abi.ReadinessReady}
	queued, unread := readMarkers(r.Markers)
	if unread > 0 {
		answer.Status = abi.ReadinessUnknown
		answer.Warnings = append(answer.Warnings,
			"marker_unread: "+sdk.Itoa(unread)+" markers are not of this module; what they stand for is not known")
	}
	return answer, v.surface.ready(v, queued, answer)
}

// verdict collects the states of queued turns.
type verdict struct {
	*abi.BackendReadiness
	// oldestMS is when the oldest pending turn was sent.
	oldestMS int64
	copies   int
}

func (j *verdict) pending(m *marker) {
	j.EventIDs.Pending = append(j.EventIDs.Pending, m.name)
	if j.oldestMS == 0 || m.sentMS < j.oldestMS {
		j.oldestMS = m.sentMS
	}
}

// countCopies records whether an event was stored twice.
func (j *verdict) countCopies(n storedTurn) {
	if n.copies > 1 {
		j.copies++
	}
}

// warn adds a warning about events, if there are any.
func (j *verdict) warn(code string, n int, what string) {
	if n > 0 {
		j.Warnings = append(j.Warnings, code+": "+sdk.Itoa(n)+" events "+what)
	}
}

// close sets the status: the worst state found.
func (j *verdict) close() {
	ids := &j.EventIDs
	j.warn("stored_twice", j.copies, "have more than one episode")
	if len(ids.Unknown) > 0 {
		j.Status = abi.ReadinessUnknown
	}
	if len(ids.Pending) > 0 {
		j.Status, j.OldestPendingAt = abi.ReadinessPending, stampMS(j.oldestMS)
	}
	if len(ids.Failed)+len(ids.Lost) > 0 {
		j.Status = abi.ReadinessFailed
	}
}

// findEvent checks whether a turn has become an episode. It reports absent only if the turn can no longer arrive.
func findEvent(c *sdk.Call, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	v, err := openCall(c)
	if err != nil {
		return nil, err
	}
	want := marker{name: r.EventID, sentMS: millis(r.SentAt)}
	markers, _ := readMarkers(r.Markers)
	for _, m := range markers {
		if m.name == r.EventID {
			want = m
		}
	}
	last, _, err := v.readLast()
	if err != nil {
		return nil, err
	}
	return v.surface.findEvent(v, want, last)
}

// overtaken reports whether a later turn of the scope has arrived. Queues are processed in order, so this turn will not
// arrive any more.
func (m *marker) overtaken(last marker, found map[string]storedTurn) bool {
	later := last.sentMS > m.sentMS || m.seq > 0 && last.seq > m.seq
	return last.name != m.name && found[last.name].copies > 0 && later
}

// absentAfter returns absent if no time is left, and unknown before: leftMS is how long the event may still arrive.
func absentAfter(leftMS int64) *abi.FindEventAnswer {
	if leftMS < 0 {
		return &abi.FindEventAnswer{Found: "absent"}
	}
	return &abi.FindEventAnswer{Found: "unknown", RetryAfterMS: sdk.Ptr(min(leftMS+1, 2000))}
}
