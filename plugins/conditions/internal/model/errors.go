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
	// ReasonRefused: the endpoint rejects the request itself, so a retry would fail too.
	ReasonRefused = "llm_refused"
)

// BadOutput returns the error for an answer that cannot be used. body is the answer; it may be nil.
func BadOutput(message string, status int64, body []byte) *abi.Error {
	e := abi.NewError(abi.CodeBackend, message).WithReason(ReasonBadOutput)
	e.Route = Route
	if body != nil {
		e.Native = native(status, body)
	}
	return e
}

// statusError returns the error for an error status.
func statusError(s *state.State, head *abi.HTTPResponse, body []byte) error {
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

// clip shortens a text without splitting a character.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// IsFailure reports whether an error comes from the endpoint or the model's answer, and not from the state or the host.
func IsFailure(err error) bool { return abi.AsError(err).Route == Route }

// OutOfTime reports whether the caller's deadline passed, not the model's. That says nothing about the model, so it is
// not a failure.
func OutOfTime(c *sdk.Call, err error) bool {
	return abi.CodeOf(err) == abi.CodeTimeout && c.Remaining() < 1000
}
