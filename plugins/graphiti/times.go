package main

import (
	"strings"
	"time"

	"github.com/memhost/memhost/abi/words"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
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
	if len(timestamp) == len("2006-01-02T15:04:05Z") && plainUTC(timestamp) != "" { // as most are
		return timestamp, t.UnixMilli(), nil
	}
	return format(t, 6), t.UnixMilli(), nil
}

// moment is a time of the backend's. text is RFC 3339 in UTC, empty where there is none, or one without a zone, which nobody can place;
// given tells that there was something.
type moment struct {
	text  string
	given bool
}

// momentOf reads what the servers write, and Java: 2025-03-01T09:30:00Z[UTC].
func momentOf(s string) moment {
	if s == "" {
		return moment{}
	}
	if utc := plainUTC(s); utc != "" {
		return moment{utc, true}
	}
	return rareMoment(s)
}

// rareMoment is momentOf for what is not in the plain form.
//
//go:noinline
func rareMoment(s string) moment {
	if i := strings.IndexByte(s, '['); i > 0 {
		return momentOf(s[:i])
	}
	t, err := abi.ParseTime(s)
	if err != nil {
		return moment{given: true}
	}
	return moment{format(t.UTC(), 9), true}
}

// What plainUTC compares eight bytes with: exclusive-or leaves a digit's value, and 0 of any other character; adding the most sets the highest bit of what is more.
const (
	plainDay  = "0000-00-"
	plainTime = "00:00:00"
	mostDay   = 0x7f76767f76767676 // 9999-99-, the first character in the lowest byte
	mostTime  = 0x767a7f767a7f7676 // 99:59:59
)

// plainUTC reads the form that nearly every time of the servers has, YYYY-MM-DDTHH:MM:SS[.fraction] with Z or +00:00, without a time.Time: calendar arithmetic
// would be the largest part of reading a fact. It looks at eight characters at a time. Empty: another form.
func plainUTC(s string) string {
	const shape = len("2006-01-02T15:04:05")
	if len(s) <= shape || s[10] != 'T' {
		return ""
	}
	day, clock := words.At(s, 0)^words.At(plainDay, 0), words.At(s, 11)^words.At(plainTime, 0)
	if (day|(day+mostDay)|clock|(clock+mostTime))&words.High != 0 || s[8] < '0' || s[8] > '2' || s[9] < '0' || s[9] > '9' {
		return ""
	}
	month, inMonth, hour := byte(day>>40)*10+byte(day>>48), (s[8]-'0')*10+s[9]-'0', byte(clock)*10+byte(clock>>8)
	if month < 1 || month > 12 || inMonth < 1 || inMonth > 28 || hour > 23 {
		return "" // or the end of a month, which needs the calendar
	}
	end := shape
	if s[end] == '.' {
		for end++; end < len(s) && s[end]-'0' <= 9; end++ {
		}
		if end == shape+1 || end > shape+10 {
			return ""
		}
	}
	switch s[end:] {
	case "Z":
		return s
	case "+00:00":
		return s[:end] + "Z"
	}
	return ""
}

// earlier orders two moments that have a text.
func (m moment) earlier(than moment) bool {
	const seconds = len("2006-01-02T15:04:05")
	a, b := m.text, than.text
	i := 0
	for i < 16 && words.At(a, i) == words.At(b, i) { // most are of one day
		i += 8
	}
	for ; i < seconds; i++ {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return a[seconds:len(a)-1] < b[seconds:len(b)-1] // fractions, without the Z
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
		s := sdk.Itoa(n)
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
