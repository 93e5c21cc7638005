package answercheck

import "github.com/memhost/memhost/abi"

// FailsForNow reports whether err is temporary, so that the operation may succeed soon.
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

// Undecided reports whether a receipt's status leaves open how much of its event has arrived.
func Undecided(status abi.WriteStatus) bool {
	return status == abi.StatusUncertain || status == abi.StatusPartial
}
