package main

import (
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// createdSkew is how far the server's clock may be behind the host's.
const createdSkew = 10 * time.Minute

// findEvent looks for an event whose write was cut off.
//
// Sync writes, and raw windows, carry the event's id: absent is absent once the manifest's settle_ms have passed. After async extraction on Neo4j the label is gone:
// then the task says whether the write arrived, since it is registered before the answer, and else the sources of what was stored since.
func findEvent(c *sdk.Call, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	cube := s.cubeOf(c)
	out := &abi.FindEventAnswer{Found: "absent"}
	if s.async() {
		status, err := s.task(c, r.EventID)
		switch {
		case err != nil:
			return nil, err
		case status == "unknown":
			return &abi.FindEventAnswer{Found: "unknown", RetryAfterMS: sdk.Ptr(int64(settleMS))}, nil
		case status != "":
			return &abi.FindEventAnswer{Found: "present"}, nil
		}
	}
	collect := func(m *item) { out.NativeIDs = append(out.NativeIDs, m.id) }
	if s.filters() {
		open, _, err := s.seek(c, cube, filter{conds: []cond{is("mh_event_id", r.EventID)}}, []string{r.EventID}, collect)
		if err != nil {
			return nil, err
		}
		if len(open) == 0 {
			out.Found = "present"
			return out, nil
		}
		if s.keepsInfo() {
			return out, nil
		}
	}
	open, all, err := s.seek(c, cube, since(r.SentAt), []string{r.EventID}, collect)
	switch {
	case err != nil:
		return nil, err
	case len(open) == 0:
		out.Found = "present"
	case !all || s.async() && !s.tracked(c):
		// Nothing remains of a write whose extraction failed: without a tracker that looks like one that never came.
		out.Found = "unknown"
	}
	return out, nil
}

// since is the memories that the server took in after a time. Its clock has no zone: with TZ other than UTC there the window is off, so it is wide.
func since(at string) filter {
	t, err := abi.ParseTime(at)
	if err != nil {
		return filter{}
	}
	return filter{conds: []cond{{key: "created_at", op: "gte", value: sdk.Text(utc(t.Add(-createdSkew)))}}}
}

// tracked tells whether the server keeps task status for the scope's cube.
func (s *settings) tracked(c *sdk.Call) bool {
	a, err := s.get(c, "status", abi.QueryParam{Key: "user_id", Value: s.cubeOf(c)})
	if err != nil {
		return false
	}
	known, err := statuses(a)
	return err == nil && len(known) > 0
}
