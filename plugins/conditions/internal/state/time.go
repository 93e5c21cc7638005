package state

import (
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// InSeconds converts a time to UTC and whole seconds, so that the texts sort chronologically; an invalid time is
// returned unchanged.
func InSeconds(s string) string {
	t, err := abi.ParseTime(s)
	if err != nil {
		return s
	}
	return Seconds(t)
}

// Seconds formats a time as InSeconds does.
func Seconds(t time.Time) string {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	return Decimal(year, 4) + "-" + Decimal(int(month), 2) + "-" + Decimal(day, 2) + "T" + Decimal(hour, 2) + ":" +
		Decimal(minute, 2) + ":" + Decimal(second, 2) + "Z"
}

// Decimal formats n with leading zeros. Package time's Format is large in a guest.
func Decimal(n, digits int) string {
	s := sdk.Itoa(n)
	return strings.Repeat("0", max(0, digits-len(s))) + s
}
