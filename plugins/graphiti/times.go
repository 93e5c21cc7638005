package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi/jsontext"

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

// moment is a time of the backend's, read once. text is RFC 3339 in UTC, empty where there is none, or one without a zone, which nobody can place;
// given tells that there was something.
type moment struct {
	text  string
	given bool
}

func readMoment(d *jsontext.Decoder) (moment, error) {
	s, err := text(d)
	return momentOf(s), err
}

// momentOf reads what the servers write, and Java: 2025-03-01T09:30:00Z[UTC].
func momentOf(s string) moment {
	if s == "" {
		return moment{}
	}
	if i := strings.IndexByte(s, '['); i > 0 {
		s = s[:i]
	}
	if utc, ok := plainUTC(s); ok {
		return moment{utc, true}
	}
	t, err := abi.ParseTime(s)
	if err != nil {
		return moment{given: true}
	}
	return moment{format(t.UTC(), 9), true}
}

// plainUTC reads the form that nearly every time of the servers has, YYYY-MM-DDTHH:MM:SS[.fraction] with Z or +00:00, without a time.Time: calendar arithmetic
// would be the largest part of reading a fact.
func plainUTC(s string) (string, bool) {
	const shape = "dddd-dd-ddTdd:dd:dd"
	if len(s) <= len(shape) {
		return "", false
	}
	for i := 0; i < len(shape); i++ {
		if c := s[i]; shape[i] == 'd' && (c < '0' || c > '9') || shape[i] != 'd' && c != shape[i] {
			return "", false
		}
	}
	if month, day := s[5:7], s[8:10]; month < "01" || month > "12" || day < "01" || day > "28" || s[11:13] > "23" || s[14:16] > "59" || s[17:19] > "59" {
		return "", false // or the end of a month, which needs the calendar
	}
	end := len(shape)
	if s[end] == '.' {
		for end++; end < len(s) && s[end] >= '0' && s[end] <= '9'; end++ {
		}
		if end == len(shape)+1 || end > len(shape)+10 {
			return "", false
		}
	}
	switch s[end:] {
	case "Z":
		return s, true
	case "+00:00":
		return s[:end] + "Z", true
	}
	return "", false
}

// earlier orders two moments that have a text.
func (m moment) earlier(than moment) bool {
	const seconds = len("2006-01-02T15:04:05")
	a, b := m.text, than.text
	if a[:seconds] != b[:seconds] {
		return a[:seconds] < b[:seconds]
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
