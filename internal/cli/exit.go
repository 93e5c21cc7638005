package cli

import (
	"errors"

	"github.com/memhost/memhost/abi"
)

// The exit codes, as `memhost help exit-codes` lists them.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitRetry       = 3
	ExitRefused     = 4
	exitConflict    = 5
	exitUnsupported = 6
	ExitPartly      = 7
	ExitDiffers     = 8
	ExitInterrupted = 130
)

const exitHelp = `0    done
1    failed: the backend answered with an error, state cannot be used, or a defect (backend, isolation_breach, internal, unavailable for good);
     conformance: a clause fails
2    the command line, the configuration or the input is wrong (invalid_argument, too_large)
3    failed for now, the same command may work later (unavailable, timeout, rate_limited); conformance: a clause is pending
4    refused (denied, unauthenticated, read_only)
5    conflict or not_found
6    unsupported: the provider lacks the capability
7    partly done: record could not record some of the events, swap --backfill and backfill watch ended before the
     memory serves; conformance: a clause is inconclusive
8    replay or manifest verify found a difference
130  interrupted

With --json an error is one object on standard output: {"error": {"code": ..., "message": ..., "hint": ..., "retryable": ..., ...}}.
`

// ExitCode returns the exit code for an error's class.
func ExitCode(err error) int {
	e := abi.AsError(err)
	switch e.Code {
	case abi.CodeInvalidArgument, abi.CodeTooLarge:
		return ExitUsage
	case abi.CodeUnavailable, abi.CodeTimeout, abi.CodeRateLimited, abi.CodeBackend:
		if e.Retryable {
			return ExitRetry
		}
		return ExitFailed
	case abi.CodeDenied, abi.CodeUnauthenticated, abi.CodeReadOnly:
		return ExitRefused
	case abi.CodeConflict, abi.CodeNotFound:
		return exitConflict
	case abi.CodeUnsupported:
		return exitUnsupported
	}
	return ExitFailed
}

// ErrInterrupted ends a command that a signal stopped.
var ErrInterrupted = errors.New("interrupted")

// DoneError ends a command that has already printed its own message.
type DoneError struct{ code int }

// Done returns the error of a command that has already printed its own message, with its exit code.
func Done(code int) error { return &DoneError{code} }

// Error implements error.
func (e *DoneError) Error() string { return "done" }

// UsageError reports a mistake on the command line.
func UsageError(message, hint string) error {
	return abi.NewError(abi.CodeInvalidArgument, message).WithHint(hint)
}

// AsAdapterError converts any error to an error of the contract. An error of cobra's is a mistake on the command line;
// any other error is a defect.
func AsAdapterError(err error) *abi.Error {
	var e *abi.Error
	if errors.As(err, &e) {
		return e
	}
	return abi.AsError(err)
}
