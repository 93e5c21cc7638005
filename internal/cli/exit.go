package cli

import (
	"errors"

	"github.com/memhost/memhost/abi"
)

// The exit codes, as `memhost help exit-codes` lists them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitRetry       = 3
	exitRefused     = 4
	exitConflict    = 5
	exitUnsupported = 6
	exitPartly      = 7
	exitDiffers     = 8
	exitInterrupted = 130
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

// exitCode is the exit code of an error's class.
func exitCode(err error) int {
	e := abi.AsError(err)
	switch e.Code {
	case abi.CodeInvalidArgument, abi.CodeTooLarge:
		return exitUsage
	case abi.CodeUnavailable, abi.CodeTimeout, abi.CodeRateLimited, abi.CodeBackend:
		if e.Retryable {
			return exitRetry
		}
		return exitFailed
	case abi.CodeDenied, abi.CodeUnauthenticated, abi.CodeReadOnly:
		return exitRefused
	case abi.CodeConflict, abi.CodeNotFound:
		return exitConflict
	case abi.CodeUnsupported:
		return exitUnsupported
	}
	return exitFailed
}

// errInterrupted ends a command that a signal stopped.
var errInterrupted = errors.New("interrupted")

// doneError ends a command that has already printed its own message.
type doneError struct{ code int }

func (e *doneError) Error() string { return "done" }

// usageError is a mistake on the command line.
func usageError(message, hint string) error {
	return abi.NewError(abi.CodeInvalidArgument, message).WithHint(hint)
}

// asAdapterError makes every error an error of the contract. An error of cobra's is a mistake on the command line; any
// other error is a defect.
func asAdapterError(err error) *abi.Error {
	var e *abi.Error
	if errors.As(err, &e) {
		return e
	}
	return abi.AsError(err)
}
