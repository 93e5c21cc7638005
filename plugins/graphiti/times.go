package main

import (
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
)

// utc returns a time in the servers' format, in UTC with Z and at most microseconds, and in Unix ms. A time without a
// zone would become a LOCAL DATETIME, which the list of episodes leaves out.
//
// Errors: invalid_argument, also for a year that Python's datetime does not support.
func utc(field, timestamp string) (string, int64, error) {
	t, err := abi.ParseTime(timestamp)
	if err != nil {
		return "", 0, abi.NewError(abi.CodeInvalidArgument, field+": "+abi.AsError(err).Message)
	}
	t = t.UTC()
	if !inCalendar(t) {
		return "", 0, abi.NewError(abi.CodeInvalidArgument, field+": the year must be 1 to 9999 in UTC")
	}
	return format(t, 6), t.UnixMilli(), nil
}

func inCalendar(t time.Time) bool { return t.Year() >= 1 && t.Year() <= 9999 }

// graphTime is a time from the backend.
type graphTime struct {
	// micros (Unix us) and text (RFC 3339 in UTC) are the time; zero and "" if there is none, or if it has no zone and
	// so no defined value. A time.Time here would add 16 KB to the module: readInto receives an item as an any, which
	// keeps the type's methods, String and its time zones included.
	micros int64
	text   string
	// isSet: the backend has a value.
	isSet bool
}

// momentOf parses the formats of the servers and of Java: 2025-03-01T09:30:00Z[UTC].
func momentOf(s string) graphTime {
	s, _, _ = strings.Cut(s, "[")
	t, err := abi.ParseTime(s)
	t = t.UTC()
	if err != nil || !inCalendar(t) {
		return graphTime{isSet: s != ""}
	}
	if local, ok := strings.CutSuffix(s, "+00:00"); ok {
		s = local + "Z"
	}
	if s[len(s)-1] != 'Z' {
		s = format(t, 9)
	}
	return graphTime{t.UnixMicro(), s, true}
}

// millis parses a time into Unix ms, 0 for anything else.
func millis(s string) int64 {
	t, err := abi.ParseTime(s)
	if err != nil {
		return 0
	}
	return t.UnixMilli()
}

// stampMS formats Unix ms as RFC 3339.
func stampMS(ms int64) string { return format(time.UnixMilli(ms).UTC(), 3) }

// format formats a time in UTC of the years 1 to 9999 as RFC 3339, with at most digits digits of the fraction and no
// trailing zeros. time.Format would add 20 KB to the module.
func format(t time.Time, digits int) string {
	out := make([]byte, 0, 32)
	for _, f := range [...]struct {
		n, width int
		after    byte
	}{{t.Year(), 4, '-'}, {int(t.Month()), 2, '-'}, {t.Day(), 2, 'T'}, {t.Hour(), 2, ':'}, {t.Minute(), 2, ':'},
		{t.Second(), 2, '.'},
		{t.Nanosecond(), 9, 'Z'}} {
		out = append(out, "000000000"[:f.width]...)
		for i := len(out) - 1; f.n > 0; i-- {
			out[i] += byte(f.n % 10)
			f.n /= 10
		}
		out = append(out, f.after)
	}
	whole := len("2006-01-02T15:04:05.") + digits
	return strings.TrimSuffix(strings.TrimRight(string(out[:whole]), "0"), ".") + "Z"
}
