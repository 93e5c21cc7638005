package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
)

// applyFeedback marks the memories that a correction names as wrong on the platform, with the correction as the reason.
// The self-hosted server does not accept feedback.
//
// Errors: unsupported if feedback is off or the server has no route for it; not_found for an id of another scope.
func applyFeedback(b *backend, f *abi.MemoryFeedback) (*abi.FeedbackReceipt, error) {
	value := map[string]string{"negative": "NEGATIVE", "very_negative": "VERY_NEGATIVE"}[b.feedback]
	switch {
	case !b.platform():
		return nil, abi.NewError(abi.CodeUnsupported, "the self-hosted mem0 server takes no feedback").
			WithHint("record the correction as a turn, or change the memory by native_mutation")
	case value == "":
		return nil, abi.NewError(abi.CodeUnsupported, "feedback is off").WithHint("set feedback in the configuration")
	}
	out := &abi.FeedbackReceipt{FeedbackID: f.FeedbackID, Status: "no_change", NativeIDs: []string{},
		Trace: &abi.Trace{BackendName: b.config.Provider, NativeOperation: "POST /v1/feedback/"}}
	if len(f.NativeIDs) == 0 {
		out.Warnings = append(out.Warnings, "feedback_without_memory: the platform takes feedback on memories by "+
			"their ids; none is named")
	}
	for _, id := range f.NativeIDs {
		// The platform answers 500 for an unknown id, and accepts ids of any scope, so each is fetched first.
		if _, err := b.ownMemory(id); err != nil {
			return nil, err
		}
	}
	for _, id := range f.NativeIDs {
		body := wire.Object{"memory_id", id, "feedback", value, "feedback_reason", f.Text}
		if _, err := b.send(request{route: "platform_feedback", body: body.JSON()}); err != nil {
			return nil, err
		}
		out.Status, out.NativeIDs = "applied", append(out.NativeIDs, id)
	}
	return out, nil
}
