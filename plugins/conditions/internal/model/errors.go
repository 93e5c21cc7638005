package model

import (
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/chat"
)

// Reasons of an error of a model.
const (
	ReasonUnavailable = "llm_unavailable"
	ReasonBadOutput   = "llm_bad_output"
	// ReasonRefused: the endpoint refuses the request itself, and will refuse it again.
	ReasonRefused = "llm_refused"
)

// BadOutput is the error of an answer that cannot be used. body is what was said; it may be nil.
func BadOutput(message string, status int64, body []byte) *abi.Error {
	e := abi.NewError(abi.CodeBackend, message).WithReason(ReasonBadOutput)
	e.Route = Route
	if body != nil {
		e.Native = native(status, body)
	}
	return e
}

// refused is the error of a status that is no success.
func refused(s *state.State, head *abi.HTTPResponse, body []byte) error {
	e := chat.Refusal(head.Status, head.Headers["retry-after"], body, time.UnixMilli(s.NowMS()))
	e.Route, e.Reason = Route, ReasonUnavailable
	switch {
	case e.Code == abi.CodeUnauthenticated:
		e.Hint = "is llm.api_key right?"
	case e.Code == abi.CodeNotFound:
		e.Hint = "llm.base_url is the part before /chat/completions; is llm.model served there?"
	case chat.IsFinal(e):
		e.Reason = ReasonRefused
	}
	return e
}

func native(status int64, body []byte) *abi.NativeError {
	return &abi.NativeError{Status: &status, Body: clip(string(body), abi.NativeBodyLimit)}
}

// clip cuts a text between characters.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// IsFailure reports whether an error is of the endpoint or of what the model said, and not of the state or the host.
func IsFailure(err error) bool { return abi.AsError(err).Route == Route }

// OutOfTime reports whether an error says that the caller's time is over, and not the model's: then nothing is known
// of the model, and nothing has failed.
func OutOfTime(c *sdk.Call, err error) bool {
	return abi.CodeOf(err) == abi.CodeTimeout && c.Remaining() < 1000
}
