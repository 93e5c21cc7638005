package main

import (
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// createdSkew is how far the server's clock may lag behind the host's: it writes local time without a zone, which is
// read as UTC.
const createdSkew = 12*time.Hour + 10*time.Minute

// findEvent looks for an event whose write was interrupted. Memories of sync writes, and raw windows, have the event's
// id, so absent is certain once the manifest's settle_ms have passed. After async extraction on Neo4j that label is
// gone: then the task shows whether the write arrived, because the server registers it before it answers, or else the
// sources of memories stored since. If there is neither, the extraction lost the write, if it arrived at all, and
// sending it again creates no duplicate.
func findEvent(b *backend, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	out := &abi.FindEventAnswer{Found: "absent"}
	if b.async() {
		status, err := b.task(r.EventID)
		switch {
		case err != nil:
			return nil, err
		case status == "unknown":
			return &abi.FindEventAnswer{Found: "unknown", RetryAfterMS: sdk.Ptr(int64(settleMS))}, nil
		case status != "":
			return &abi.FindEventAnswer{Found: "present"}, nil
		}
	}
	collect := func(m *item) { out.NativeIDs = append(out.NativeIDs, strings.Clone(m.id)) }
	if b.filters() {
		open, _, err := b.seek(ofEvent(r.EventID), []string{r.EventID}, collect)
		switch {
		case err != nil:
			return nil, err
		case len(open) == 0:
			out.Found = "present"
			return out, nil
		case b.keepsInfo():
			return out, nil
		}
	}
	open, all, err := b.seek(since(r.SentAt), []string{r.EventID}, collect)
	if len(open) == 0 {
		out.Found = "present"
	} else if !all {
		out.Found = "unknown"
	}
	return out, err
}

// ofEvent lists the memories with an event's label.
func ofEvent(eventID string) filter { return filter{conds: []cond{is("mh_event_id", eventID)}} }

// since lists the memories that the server ingested after a time.
func since(at string) filter {
	t, err := abi.ParseTime(at)
	if err != nil {
		return filter{}
	}
	return filter{conds: []cond{{key: "created_at", op: "gte", value: sdk.Text(utc(t.Add(-createdSkew)))}}}
}
