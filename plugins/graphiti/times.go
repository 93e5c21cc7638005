package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
)

// utc is a time as both servers take it: UTC, with Z, in microseconds. A time without zone would be stored as LOCAL DATETIME and drop out of the episode list.
//
// Errors: invalid_argument for a year that Python's datetime does not have.
func utc(field, timestamp string) (string, int64, error) {
	t, err := abi.ParseTime(timestamp)
	if err != nil {
		return "", 0, abi.NewError(abi.CodeInvalidArgument, field+": "+abi.AsError(err).Message)
	}
	t = t.UTC()
	if t.Year() < 1 || t.Year() > 9999 {
		return "", 0, abi.NewError(abi.CodeInvalidArgument, field+": the year must be 1 to 9999 in UTC")
	}
	return format(t, 6), t.UnixMilli(), nil
}

// stamp is a backend's time in RFC 3339, and empty where it has none or one without a zone, which nobody can place.
// Java prints zoned times as 2025-03-01T09:30:00Z[UTC].
func stamp(s string) string {
	if i := strings.IndexByte(s, '['); i > 0 {
		s = s[:i]
	}
	t, err := abi.ParseTime(s)
	if err != nil {
		return ""
	}
	return format(t.UTC(), 9)
}

// millis is a backend's time in Unix ms, 0 where it has none.
func millis(s string) int64 {
	t, err := abi.ParseTime(s)
	if err != nil {
		return 0
	}
	return t.UnixMilli()
}

// stampMS is a time of Unix ms in RFC 3339.
func stampMS(ms int64) string { return format(time.UnixMilli(ms).UTC(), 3) }

// format is RFC 3339 in UTC, with as many digits of the second's fraction as there are, at most the given number. time.Format would cost the module 20 KB.
func format(t time.Time, digits int) string {
	out := make([]byte, 0, 32)
	number := func(n, width int) {
		s := strconv.Itoa(n)
		for i := len(s); i < width; i++ {
			out = append(out, '0')
		}
		out = append(out, s...)
	}
	number(t.Year(), 4)
	for _, f := range [...]struct {
		before byte
		n      int
	}{{'-', int(t.Month())}, {'-', t.Day()}, {'T', t.Hour()}, {':', t.Minute()}, {':', t.Second()}} {
		out = append(out, f.before)
		number(f.n, 2)
	}
	if nanos := t.Nanosecond(); nanos != 0 {
		point := len(out)
		out = append(out, '.')
		number(nanos, 9)
		end := point + 1 + digits
		for end > point+1 && out[end-1] == '0' {
			end--
		}
		if end == point+1 {
			end = point
		}
		out = out[:end]
	}
	return string(append(out, 'Z'))
}
