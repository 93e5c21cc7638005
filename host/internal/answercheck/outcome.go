package answercheck

import "github.com/memhost/memhost/abi"

// FailsForNow reports whether an operation that failed with err may soon succeed.
func FailsForNow(err error) bool {
	e := abi.AsError(err)
	switch e.Code {
	case abi.CodeUnavailable, abi.CodeTimeout, abi.CodeRateLimited:
		return e.Reason != "closed"
	case abi.CodeBackend:
		return e.Native != nil && e.Native.Status != nil && *e.Native.Status >= 500
	}
	return false
}

// Undecided reports whether the status of a receipt leaves open what has arrived of its event.
func Undecided(status abi.WriteStatus) bool {
	return status == abi.StatusUncertain || status == abi.StatusPartial
}
