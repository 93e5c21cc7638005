package sdk

import "github.com/memhost/memhost/abi"

// Forgets reports whether a request by session or by time covers an event with this session and timestamp. It returns
// false for a request by ids.
func Forgets(r *abi.ForgetRequest, sessionID, timestamp string) bool {
	switch {
	case r.SessionID != "":
		return sessionID == r.SessionID
	case r.From == "":
		return false
	}
	from, err := abi.ParseTime(r.From)
	if err != nil {
		return false // the host has checked it
	}
	to, err := abi.ParseTime(r.To)
	if err != nil {
		return false
	}
	at, err := abi.ParseTime(timestamp)
	return err == nil && !at.Before(from) && !at.After(to)
}
