// Package resend has the rules by which events are sent to a slot again, for all that send many of them.
package resend

import (
	"time"

	"github.com/memhost/memhost/abi"
)

// The pause before a retry doubles from FirstPause to LongestPause. A slot may ask for more, up to LongestAsked.
const (
	FirstPause   = 500 * time.Millisecond
	LongestPause = 30 * time.Second
	LongestAsked = 2 * time.Minute
)

// MostFailedInRow is after how many failures in a row the slot is at fault, and not the events.
const MostFailedInRow = 25

// OfSlot reports whether an error concerns the slot as a whole, so that every other event would fail, too.
func OfSlot(e *abi.Error) bool {
	switch e.Code {
	case abi.CodeUnauthenticated, abi.CodeDenied, abi.CodeUnsupported, abi.CodeUnavailable, abi.CodeReadOnly:
		return true
	}
	return false
}

// Unsettled returns the error of a receipt that leaves open whether the event arrived, if recording it again can settle
// that: the slot then asks its backend first, and sends only what is missing.
func Unsettled(receipt *abi.WriteReceipt) *abi.Error {
	open := receipt.Status == abi.StatusUncertain || receipt.Status == abi.StatusPartial
	if !open || receipt.RetryAfterMS == nil {
		return nil
	}
	e := abi.NewError(abi.CodeTimeout, "event "+receipt.EventID+" is "+string(receipt.Status)).WithReason("uncertain")
	e.Retryable, e.RetryAfterMS = true, receipt.RetryAfterMS
	return e
}

// Pause returns how long to wait after e before the next try. try counts from 0.
func Pause(try int, e *abi.Error) time.Duration {
	pause := min(FirstPause<<min(try, 10), LongestPause)
	if e.RetryAfterMS != nil {
		pause = max(pause, min(time.Duration(*e.RetryAfterMS)*time.Millisecond, LongestAsked))
	}
	return pause
}
