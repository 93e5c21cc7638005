package model

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// Reasons of an error of a model.
const (
	ReasonUnavailable = "llm_unavailable"
	ReasonBadOutput   = "llm_bad_output"
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
func refused(head *abi.HTTPResponse, body []byte) *abi.Error {
	status := head.Status
	e := abi.NewError(abi.CodeBackend, "the endpoint answered "+sdk.Itoa(status)).WithReason(ReasonUnavailable)
	switch {
	case status == 401 || status == 403:
		e.Code = abi.CodeUnauthenticated
		e.Hint = "is llm.api_key right?"
	case status == 429:
		e.Code = abi.CodeRateLimited
	case status == 408 || status == 425 || status >= 500:
		e.Code = abi.CodeUnavailable
	case status == 404:
		e.Code = abi.CodeNotFound
		e.Hint = "llm.base_url is the part before /chat/completions; is llm.model served there?"
	}
	e.Retryable = status == 408 || status == 425 || status == 429 || status >= 500
	e.Route, e.Native = Route, native(status, body)
	if seconds, err := strconv.ParseInt(strings.TrimSpace(head.Headers["retry-after"]), 10, 64); err == nil &&
		seconds >= 0 {
		e.RetryAfterMS = sdk.Ptr(min(seconds, 86400) * 1000)
	}
	return e
}

func native(status int64, body []byte) *abi.NativeError {
	return &abi.NativeError{Status: &status, Body: clip(string(body), 4096)}
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
