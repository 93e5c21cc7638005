package abi

import (
	"time"

	"github.com/memhost/memhost/abi/wirejson"
)

// ParseTime reads an RFC 3339 date-time, and nothing else: the zone is required, T and Z may be lower case, the
// fraction of a second may have any number of digits (those past the ninth are dropped). A leap second, 23:59:60 in UTC
// on the last day of a month, is the first moment of the next one.
//
// Errors: invalid_argument; the message quotes s.
func ParseTime(s string) (time.Time, error) {
	t, ok := parseTime(s)
	if !ok {
		return time.Time{}, NewError(CodeInvalidArgument,
			wirejson.Quote(shortenString(s))+" is not an RFC 3339 time with zone, such as 2026-03-01T09:30:00Z")
	}
	return t, nil
}

// parseTime is called for each item that a module returns, so it is written without time.Date, which takes twice as
// long.
func parseTime(s string) (t time.Time, ok bool) {
	const shape = "2006-01-02T15:04:05"
	if len(s) <= len(shape) || s[4] != '-' || s[7] != '-' || s[10]|0x20 != 't' || s[13] != ':' || s[16] != ':' {
		return t, false
	}
	century, year, month, day := number2(s, 0), number2(s, 2), number2(s, 5), number2(s, 8)
	hour, minute, second := number2(s, 11), number2(s, 14), number2(s, 17)
	nanos, rest, ok1 := parseFraction(s[len(shape):])
	offset, ok2 := parseOffset(rest)
	if !ok1 || !ok2 || century > 99 || year > 99 || month < 1 || month > 12 || hour > 23 || minute > 59 || second > 60 {
		return t, false
	}
	year += century * 100
	if day < 1 || day > daysIn(year, month) {
		return t, false
	}
	t = time.Unix(int64(daysBefore(year, month)+day-1)*86400+int64(hour*3600+minute*60+second-offset), int64(nanos))
	zone := time.UTC
	if offset != 0 {
		zone = time.FixedZone("", offset)
	}
	t = t.In(zone)
	if second == 60 {
		if u := t.UTC(); u.Day() != 1 || u.Hour() != 0 || u.Minute() != 0 {
			return time.Time{}, false
		}
	}
	return t, true
}

// daysBefore counts the days from 1970-01-01 to the first of a month. Years begin in March, so that the leap day ends
// one (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", days_from_civil).
func daysBefore(year, month int) int {
	if month <= 2 {
		year--
		month += 12
	}
	year += 400 // of 146,097 days; avoids negative values
	return year*365 + year/4 - year/100 + year/400 + (153*(month-3)+2)/5 - 719468 - 146097
}

// parseFraction reads the nanoseconds after a point; 0 if there is no point.
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

// parseOffset reads the zone and returns it in seconds east of UTC.
func parseOffset(s string) (offset int, ok bool) {
	if s == "Z" || s == "z" {
		return 0, true
	}
	const shape = "+dd:dd"
	if len(s) != len(shape) || s[0] != '+' && s[0] != '-' || s[3] != ':' {
		return 0, false
	}
	hours, minutes := number2(s, 1), number2(s, 4)
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

// number2 returns the value of the two digits at i, or 100 if they are not digits.
func number2(s string, i int) int {
	tens, ones := s[i]-'0', s[i+1]-'0'
	if tens > 9 || ones > 9 {
		return 100
	}
	return int(tens)*10 + int(ones)
}
