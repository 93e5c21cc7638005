package abi

// Code is the class of an Error: the part on which a caller can act.
type Code string

// The error codes.
const (
	CodeInvalidArgument Code = "invalid_argument"
	CodeUnauthenticated Code = "unauthenticated"
	CodeDenied          Code = "denied"
	CodeNotFound        Code = "not_found"
	CodeConflict        Code = "conflict"
	CodeReadOnly        Code = "read_only"
	CodeUnsupported     Code = "unsupported"
	CodeTooLarge        Code = "too_large"
	CodeRateLimited     Code = "rate_limited"
	CodeUnavailable     Code = "unavailable"
	CodeTimeout         Code = "timeout"
	CodeBackend         Code = "backend"
	CodeIsolationBreach Code = "isolation_breach"
	CodeInternal        Code = "internal"
)

// Codes lists every error code.
func Codes() []Code {
	return []Code{CodeInvalidArgument, CodeUnauthenticated, CodeDenied, CodeNotFound, CodeConflict, CodeReadOnly,
		CodeUnsupported,
		CodeTooLarge, CodeRateLimited, CodeUnavailable, CodeTimeout, CodeBackend, CodeIsolationBreach, CodeInternal}
}

// HTTPStatus is the HTTP status for an error with this code, such as 400 for invalid_argument and 504 for timeout. With
// fromBackend, the backend rejected the slot's credentials, not the slot its caller's, so 401 and 403 become 502.
func (c Code) HTTPStatus(fromBackend bool) int {
	switch c {
	case CodeInvalidArgument:
		return 400
	case CodeUnauthenticated:
		if fromBackend {
			return 502
		}
		return 401
	case CodeDenied:
		if fromBackend {
			return 502
		}
		return 403
	case CodeNotFound:
		return 404
	case CodeConflict, CodeReadOnly:
		return 409
	case CodeTooLarge:
		return 413
	case CodeRateLimited:
		return 429
	case CodeUnsupported:
		return 501
	case CodeBackend, CodeIsolationBreach:
		return 502
	case CodeUnavailable:
		return 503
	case CodeTimeout:
		return 504
	default:
		return 500
	}
}

// Reasons that the host sets in addition to a code.
const (
	// ReasonContractBreach comes with internal: a guest's answer lacks a required field, or has a value that the
	// contract does not allow.
	ReasonContractBreach = "contract_breach"
	// ReasonForgotten comes with conflict: the event was forgotten on request, so recording it again is refused.
	ReasonForgotten = "forgotten"
)

// Codes of warnings: a warning is its code, a colon, a blank and a text.
const (
	// WarnMemoryPending is added by the host to a retrieval while writes of the scope are outstanding. It says how
	// many: "memory_pending: 3 events".
	WarnMemoryPending = "memory_pending"
	// WarnSpeakerLost says that messages had names of speakers, but the memory does not distinguish them: it attributes
	// all messages to the user.
	WarnSpeakerLost = "speaker_lost"
	// WarnBudgetUnused says why a budget was not filled: "budget_unused: the route search gives at most 10 items".
	WarnBudgetUnused = "budget_unused"
)

// NativeBodyLimit bounds Error.Native.Body, in bytes.
const NativeBodyLimit = 4 << 10

// Error is the contract's AdapterError, the only kind of error that crosses the slot.
type Error struct {
	Code Code `json:"code"`
	// Reason refines Code. The provider chooses it; see also the Reason constants.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message"`
	// Hint tells the reader what to do next.
	Hint         string       `json:"hint,omitempty"`
	Retryable    bool         `json:"retryable"`
	RetryAfterMS *int64       `json:"retry_after_ms,omitempty"`
	Operation    string       `json:"operation"`
	Route        string       `json:"route,omitempty"`
	Native       *NativeError `json:"native,omitempty"`
	// NothingStored says that nothing of the write arrived or can still arrive, so the event may be sent again at once.
	// A provider sets it in the error of a write; the host sets it for a native write that was never sent, for example
	// because the connection was refused.
	NothingStored bool `json:"nothing_stored,omitempty"`

	cause error
}

// NativeError keeps what the backend itself said, secrets removed and cut to NativeBodyLimit.
type NativeError struct {
	Status *int64 `json:"status,omitempty"`
	Body   string `json:"body"`
}

// NewError makes an error. Its Retryable is set if the code is unavailable, timeout or rate_limited.
func NewError(code Code, message string) *Error {
	return &Error{Code: code, Message: message,
		Retryable: code == CodeUnavailable || code == CodeTimeout || code == CodeRateLimited}
}

// WrapError is NewError with a cause, which Unwrap returns.
func WrapError(code Code, message string, cause error) *Error {
	e := NewError(code, message)
	e.cause = cause
	return e
}

// WithHint sets the hint, which says what to do next, and returns e.
func (e *Error) WithHint(hint string) *Error {
	e.Hint = hint
	return e
}

// WithReason sets the reason and returns e.
func (e *Error) WithReason(reason string) *Error {
	e.Reason = reason
	return e
}

// Error formats the code, the operation if it is set, and the message.
func (e *Error) Error() string {
	s := string(e.Code)
	if e.Operation != "" {
		s += " in " + e.Operation
	}
	return s + ": " + e.Message
}

// Unwrap returns the cause, if any.
func (e *Error) Unwrap() error { return e.cause }

// Is matches by code: errors.Is(err, &Error{Code: CodeConflict}).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == ""
}

// AsError returns err as an Error, and nil for nil. An error of another type becomes one with the code internal.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := find[*Error](err); ok {
		return e
	}
	return WrapError(CodeInternal, err.Error(), err)
}

// find is errors.As without reflection, which would add several KB to every guest: it returns the first error of type T
// in err's tree, or what an As method turns one into.
func find[T error](err error) (found T, ok bool) {
	for err != nil {
		if found, ok = err.(T); ok { //nolint:errorlint // this is the unwrapping
			return found, true
		}
		if as, has := err.(interface{ As(any) bool }); has && as.As(&found) {
			return found, true
		}
		switch wrapped := err.(type) { //nolint:errorlint // as above
		case interface{ Unwrap() error }:
			err = wrapped.Unwrap()
		case interface{ Unwrap() []error }:
			for _, one := range wrapped.Unwrap() {
				if found, ok = find[T](one); ok {
					return found, true
				}
			}
			return found, false
		default:
			return found, false
		}
	}
	return found, false
}

// CodeOf returns the code of err, or "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return AsError(err).Code
}
