package main

import (
	"slices"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// applyFeedback is one POST /product/feedback for one cube; with several the server mangles the answer.
//
// Three outcomes: applied, with the ids of what was added or changed; no_change, where the record is empty, which the server also answers for every failure and
// timeout of its own; queued in mode async, where it says nothing more.
//
// Errors: unsupported unless feedback_enabled; not_found for a memory that is not of this scope, which would turn the whole call into an empty record;
// unavailable when an empty record has an outage behind it.
func applyFeedback(c *sdk.Call, r *abi.MemoryFeedback) (*abi.FeedbackReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	if !s.feedbackEnabled {
		return nil, abi.NewError(abi.CodeUnsupported, "feedback is off: it changes memories by MemOS's own LLM chain").
			WithHint("set feedback_enabled: true in the block of memos")
	}
	if len(r.NativeIDs) > 0 {
		if err := s.own(c, r.NativeIDs); err != nil {
			return nil, err
		}
	}
	route := "feedback_" + s.feedbackMode
	a, err := s.post(c, route, s.feedbackBody(c, r))
	if err != nil {
		return nil, err
	}
	out := &abi.FeedbackReceipt{FeedbackID: r.FeedbackID, NativeIDs: []string{}, Trace: s.trace("POST /product/feedback")}
	if s.feedbackMode == "async" {
		out.Status = "queued"
		out.Warnings = append(out.Warnings, "feedback_queued: MemOS does not say later what became of queued feedback")
		return out, nil
	}
	if out.NativeIDs, err = readRecord(a); err != nil {
		return nil, unusable(route, a, "the record cannot be read: "+err.Error())
	}
	out.Trace.NativeIDs = out.NativeIDs
	if out.Status = "applied"; len(out.NativeIDs) > 0 {
		return out, nil
	}
	if _, err := s.exists(c, s.cubeOf(c)); err != nil {
		return nil, err
	}
	out.Status = "no_change"
	out.Warnings = append(out.Warnings, "no_change_or_failed: MemOS answered an empty record: nothing was to be changed, or its feedback chain failed or ran out of its 30 s")
	return out, nil
}

func (s *settings) feedbackBody(c *sdk.Call, r *abi.MemoryFeedback) []byte {
	cube := s.cubeOf(c)
	return object(func(e *jsontext.Encoder) {
		putText(e, "user_id", cube)
		putTexts(e, "writable_cube_ids", cube)
		putText(e, "session_id", sessionOf(r.SessionID))
		putText(e, "async_mode", s.feedbackMode)
		putText(e, "task_id", taskOf(cube, "feedback:"+r.FeedbackID))
		putText(e, "feedback_content", r.Text)
		putText(e, "feedback_time", chatTime(r.Timestamp))
		putBool(e, "corrected_answer", false)
		putTexts(e, "retrieved_memory_ids", r.NativeIDs...)
		e.FieldStart("info")
		e.ObjStart()
		putText(e, "mh_event_id", r.FeedbackID)
		e.ObjEnd()
		// The key must be there, or the server refuses the request.
		e.FieldStart("history")
		e.ArrStart()
		for i := range r.History {
			m := &r.History[i]
			if m.Content == nil || m.Role == abi.RoleTool {
				continue
			}
			e.ObjStart()
			putText(e, "role", string(m.Role))
			putText(e, "content", *m.Content)
			e.ObjEnd()
		}
		e.ArrEnd()
	})
}

// readRecord reads data, [{answer, record: {add: [{id}], update: [{id, archived_id}]}}], into the ids of what is new.
func readRecord(a *answer) (ids []string, err error) {
	ids = []string{}
	if a.data == nil || a.data.Type() != jsontext.Array {
		return ids, nil
	}
	keep := func(d *jsontext.Decoder) error {
		return d.Obj(func(d *jsontext.Decoder, key string) error {
			if key != "id" || d.Next() != jsontext.String {
				return d.Skip()
			}
			id, err := d.Str()
			if id != "" && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
			return err
		})
	}
	err = jsontext.DecodeBytes(a.data).Arr(func(d *jsontext.Decoder) error {
		if d.Next() != jsontext.Object {
			return d.Skip()
		}
		return d.Obj(func(d *jsontext.Decoder, key string) error {
			if key != "record" || d.Next() != jsontext.Object {
				return d.Skip()
			}
			return d.Obj(func(d *jsontext.Decoder, key string) error {
				if (key != "add" && key != "update") || d.Next() != jsontext.Array {
					return d.Skip()
				}
				return d.Arr(keep)
			})
		})
	})
	return ids, err
}
