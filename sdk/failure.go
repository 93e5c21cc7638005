package sdk

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
)

// ReasonUnusable is the reason of an error for an answer that reports success but cannot be used.
const ReasonUnusable = "unusable_answer"

// Failure returns the typed error for an answer with an error status. detail is the backend's message, or "". The
// error's Native keeps the answer itself.
//
//	Failure("search", {status 429, retry-after: 12}, body, "slow down")
//	{"code": "rate_limited", "message": "search: the backend answered 429: slow down", "retryable": true,
//	 "retry_after_ms": 12000, "route": "search", "native": {"status": 429, "body": "..."}}
//
// If this backend uses a status in its own way, the caller corrects Code, Retryable and Hint of the error afterwards.
func Failure(route string, head *abi.HTTPResponse, body []byte, detail string) *abi.Error {
	message := route + ": the backend answered " + Itoa(head.Status)
	if detail != "" {
		message += ": " + detail
	}
	e := abi.NewError(CodeOfStatus(head.Status), message)
	e.Route, e.Native, e.RetryAfterMS = route, Native(head.Status, body), RetryAfter(head)
	return e
}

// Unusable returns the error for an answer that reports success but cannot be used: code backend, reason
// unusable_answer. what completes "the answer ", as in "is not JSON" or "has no field results".
func Unusable(route string, status int64, body []byte, what string) *abi.Error {
	e := abi.NewError(abi.CodeBackend, route+": the answer "+what).WithReason(ReasonUnusable)
	e.Route, e.Native = route, Native(status, body)
	return e
}

// CodeOfStatus returns the error code for an HTTP status that is not a success:
//
//	400 422  invalid_argument    408 504  timeout      502 503  unavailable
//	401      unauthenticated     409      conflict     other    backend
//	403      denied              413      too_large
//	404 410  not_found           429      rate_limited
func CodeOfStatus(status int64) abi.Code {
	switch status {
	case 400, 422:
		return abi.CodeInvalidArgument
	case 401:
		return abi.CodeUnauthenticated
	case 403:
		return abi.CodeDenied
	case 404, 410:
		return abi.CodeNotFound
	case 408, 504:
		return abi.CodeTimeout
	case 409:
		return abi.CodeConflict
	case 413:
		return abi.CodeTooLarge
	case 429:
		return abi.CodeRateLimited
	case 502, 503:
		return abi.CodeUnavailable
	}
	return abi.CodeBackend
}

// Native keeps the backend's answer, cut to abi.NativeBodyLimit, with U+FFFD for bytes that are not UTF-8.
func Native(status int64, body []byte) *abi.NativeError {
	body = body[:min(len(body), abi.NativeBodyLimit)]
	return &abi.NativeError{Status: &status, Body: strings.ToValidUTF8(string(body), "\uFFFD")}
}

// RetryAfter parses the header Retry-After into ms: whole seconds, at most a day. It returns nil if there is no such
// header, or if it is a date.
func RetryAfter(head *abi.HTTPResponse) *int64 {
	const day = 24 * 60 * 60
	seconds, err := strconv.ParseInt(strings.TrimSpace(head.Headers["retry-after"]), 10, 64)
	if err != nil || seconds < 0 {
		return nil
	}
	return Ptr(min(seconds, day) * 1000)
}

// ReadText reads a string into into. It skips a value of another type and leaves into unchanged.
func ReadText(d *wirejson.Decoder, into *string) (err error) {
	if d.Next() != wirejson.String {
		return d.Skip()
	}
	*into, err = d.Str()
	return err
}

// ReadTexts reads an array of strings, or one string as an array of one. It skips elements and values of other types,
// and a single empty string.
func ReadTexts(d *wirejson.Decoder) (list []string, err error) {
	if d.Next() != wirejson.Array {
		var one string
		if err := ReadText(d, &one); err != nil || one == "" {
			return nil, err
		}
		return []string{one}, nil
	}
	err = d.Arr(func(d *wirejson.Decoder) error {
		if d.Next() != wirejson.String {
			return d.Skip()
		}
		one, err := d.Str()
		list = append(list, one)
		return err
	})
	return list, err
}
