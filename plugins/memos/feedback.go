package main

import (
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
)

// applyFeedback is one POST /product/feedback for one cube; with several the server mangles the answer.
//
// There are three outcomes: applied, with the ids of what was added or changed; no_change if the record is empty; and
// queued in mode async, without details. The server also returns an empty record when it fails or times out.
//
// Errors: unsupported unless feedback_enabled; not_found for a memory of another scope, because the server would return
// an empty record for the whole call; unavailable if an outage caused an empty record.
func applyFeedback(b *backend, r *abi.MemoryFeedback) (*abi.FeedbackReceipt, error) {
	if !b.feedbackEnabled {
		return nil, abi.NewError(abi.CodeUnsupported, "feedback is off: it changes memories by MemOS's own LLM chain").
			WithHint("set feedback_enabled: true in the block of memos")
	}
	if len(r.NativeIDs) > 0 {
		if err := b.checkOwned(r.NativeIDs...); err != nil {
			return nil, err
		}
	}
	a, err := b.post("feedback_"+b.feedbackMode, b.feedbackBody(r))
	if err != nil {
		return nil, err
	}
	out := &abi.FeedbackReceipt{FeedbackID: r.FeedbackID, NativeIDs: []string{},
		Trace: b.trace("POST /product/feedback")}
	if b.feedbackMode == "async" {
		out.Status = "queued"
		out.Warnings = append(out.Warnings, "feedback_queued: MemOS does not report the outcome of queued feedback")
		return out, nil
	}
	out.NativeIDs = readRecord(a)
	out.Trace.NativeIDs = out.NativeIDs
	if out.Status = "applied"; len(out.NativeIDs) > 0 {
		return out, nil
	}
	if _, err := b.exists(b.cube); err != nil {
		return nil, err
	}
	out.Status = "no_change"
	out.Warnings = append(out.Warnings,
		"no_change_or_failed: MemOS answered an empty record: nothing was to be changed, or its feedback chain "+
			"failed or ran out of its 30 s")
	return out, nil
}

func (b *backend) feedbackBody(r *abi.MemoryFeedback) wire.Object {
	history := []wire.Object{} // the key is required, or the server rejects the request
	for _, m := range r.History {
		if m.Content != nil && m.Role != abi.RoleTool {
			history = append(history, wire.Object{"role", string(m.Role), "content", *m.Content})
		}
	}
	return wire.Object{"user_id", b.cube, "writable_cube_ids", []string{b.cube}, "session_id", sessionOf(r.SessionID),
		"async_mode", b.feedbackMode, "task_id", taskOf(b.cube, "feedback:"+r.FeedbackID), "feedback_content", r.Text,
		"feedback_time", chatTime(r.Timestamp), "corrected_answer", false, "retrieved_memory_ids", r.NativeIDs,
		"info", wire.Object{"mh_event_id", r.FeedbackID}, "history", history}
}

// readRecord reads data, [{answer, record: {add: [{id}], update: [{id, archived_id}]}}], and returns the ids of new
// memories.
func readRecord(a *answer) []string {
	ids := []string{}
	for _, one := range wire.Items(a.data) {
		var added, updated []abi.Raw
		wire.Pick(one, "record", wire.Fields{"add", &added, "update", &updated})
		for _, memory := range append(added, updated...) {
			if id := wire.Text(wire.At(memory, "id")); id != "" && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}
