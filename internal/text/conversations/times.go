package conversations

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
)

// reasonNoZone is the error reason for a time without a zone.
const reasonNoZone = "no_zone"

// readTime parses a time in the formats that services and programs use:
//
//	"2026-03-01T09:30:00Z", "2026-03-01 09:30:00+01:00"   RFC 3339, also with a space
//	"2026-03-01 09:30:00"                                 without a zone: in zone
//	1775000000.25, 1775000000250, "1775000000"            seconds since 1970; from 1e11 on milliseconds, from 1e14 on
//	                                                      microseconds, from 1e17 on nanoseconds; also as text
//
// An empty value, null, "" and 0 mean no time: the zero time without an error.
//
// Errors: invalid_argument, with reason no_zone for a time without a zone if zone is nil.
func readTime(raw json.RawMessage, zone *time.Location) (time.Time, *abi.Error) {
	text := string(raw)
	if len(raw) > 0 && raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return time.Time{}, invalid("%.40s is no time", raw)
		}
	}
	text = strings.TrimSpace(text)
	if text == "" || text == "null" {
		return time.Time{}, nil
	}
	if number, err := strconv.ParseFloat(text, 64); err == nil || math.IsInf(number, 0) {
		return sinceEpoch(number, text)
	}
	withT := strings.Replace(text, " ", "T", 1)
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04Z07:00",
		"2006-01-02T15:04:05 UTC", "2006-01-02T15:04:05 Z0700", "2006-01-02T15:04:05.999999999 Z07:00"} {
		if at, err := time.Parse(layout, withT); err == nil {
			return at.UTC(), nil
		}
	}
	for _, layout := range []string{"2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02"} {
		in := zone
		if in == nil {
			in = time.UTC
		}
		at, err := time.ParseInLocation(layout, withT, in)
		switch {
		case err == nil && zone != nil:
			return at.UTC(), nil
		case err == nil:
			return time.Time{}, invalid("%.40q has no zone", text).WithReason(reasonNoZone).
				WithHint("say which one it means: --zone UTC, --zone Europe/Paris or --zone +01:00")
		}
	}
	return time.Time{}, invalid("%.40q is no time: want RFC 3339, or seconds or milliseconds since 1970", text)
}

// sinceEpoch converts seconds, or a smaller unit that is detected by size, to a time with microseconds.
func sinceEpoch(n float64, text string) (time.Time, *abi.Error) {
	const latest = 1e11 // seconds, some three thousand years from now
	if n == 0 {
		return time.Time{}, nil
	}
	for _, unit := range []float64{1, 1e3, 1e6, 1e9} {
		if seconds := n / unit; seconds > 0 && seconds < latest {
			return time.UnixMicro(int64(math.Round(seconds * 1e6))).UTC(), nil
		}
	}
	return time.Time{}, invalid("%.40s is no time: want seconds or milliseconds since 1970", text)
}
