package abi

import (
	"time"

	"github.com/memhost/memhost/abi/jsontext"
)

// ParseTime reads an RFC 3339 date-time, and nothing else: the zone is required, T and Z may be lower case, the fraction
// of a second may have any number of digits (those past the ninth are dropped). A leap second, 23:59:60 in UTC on the
// last day of a month, is the first moment of the next one.
//
// Errors: invalid_argument; the message quotes s.
func ParseTime(s string) (time.Time, error) {
	t, ok := parseTime(s)
	if !ok {
		return time.Time{}, NewError(CodeInvalidArgument,
			jsontext.Quote(shortenString(s))+" is not an RFC 3339 time with zone, such as 2026-03-01T09:30:00Z")
	}
	return t, nil
}

func parseTime(s string) (t time.Time, ok bool) {
	const shape = "dddd-dd-ddTdd:dd:dd"
	if len(s) <= len(shape) {
		return t, false
	}
	for i := range len(shape) {
		switch c := s[i]; shape[i] {
		case 'd':
			ok = isDigit(c)
		case 'T':
			ok = c == 'T' || c == 't'
		default:
			ok = c == shape[i]
		}
		if !ok {
			return t, false
		}
	}
	year, month, day := number2(s[0:])*100+number2(s[2:]), number2(s[5:]), number2(s[8:])
	hour, minute, second := number2(s[11:]), number2(s[14:]), number2(s[17:])
	nanos, rest, ok1 := parseFraction(s[len(shape):])
	offset, ok2 := parseOffset(rest)
	if !ok1 || !ok2 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || hour > 23 || minute > 59 || second > 60 {
		return t, false
	}
	zone := time.UTC
	if offset != 0 {
		zone = time.FixedZone("", offset)
	}
	t = time.Date(year, time.Month(month), day, hour, minute, second, nanos, zone)
	if second == 60 {
		if u := t.UTC(); u.Day() != 1 || u.Hour() != 0 || u.Minute() != 0 {
			return t, false
		}
	}
	return t, true
}

// parseFraction reads the nanoseconds behind a point, where there is one.
func parseFraction(s string) (nanos int, rest string, ok bool) {
	if s[0] != '.' {
		return 0, s, true
	}
	i := 1
	for unit := 100_000_000; i < len(s) && isDigit(s[i]); i++ {
		nanos += int(s[i]-'0') * unit
		unit /= 10
	}
	return nanos, s[i:], i > 1
}

// parseOffset reads the zone, in seconds east of UTC.
func parseOffset(s string) (offset int, ok bool) {
	if s == "Z" || s == "z" {
		return 0, true
	}
	const shape = "+dd:dd"
	if len(s) != len(shape) || s[0] != '+' && s[0] != '-' || s[3] != ':' ||
		!isDigit(s[1]) || !isDigit(s[2]) || !isDigit(s[4]) || !isDigit(s[5]) {
		return 0, false
	}
	hours, minutes := number2(s[1:]), number2(s[4:])
	offset = hours*3600 + minutes*60
	if s[0] == '-' {
		offset = -offset
	}
	return offset, hours < 24 && minutes < 60
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// number2 is the value of the two digits at the start of s.
func number2(s string) int { return int(s[0]-'0')*10 + int(s[1]-'0') }
