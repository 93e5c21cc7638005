package sdk

// UTC converts an RFC 3339 time to UTC: "2026-03-06T01:00:00+01:00" becomes "2026-03-06T00:00:00Z". A time in UTC, and
// any other text, is returned unchanged.
//
// A hook records its computer's local time, an import records UTC; contexts show all times in UTC, so that the turns of
// one person appear in order.
func UTC(at string) string {
	// Package time would add too much to a module. The date changes by at most one day.
	n := len(at) - len("+01:00")
	if n < len("2026-03-01T09:30") || at[n] != '+' && at[n] != '-' || at[n+3] != ':' {
		return at
	}
	two := func(i int) int { return int(at[i]-'0')*10 + int(at[i+1]-'0') }
	offset := two(n+1)*60 + two(n+4)
	if at[n] == '+' {
		offset = -offset
	}
	minutes, year, month, day := two(11)*60+two(14)+offset, two(0)*100+two(2), two(5), two(8)
	days := func() int {
		leap := year%4 == 0 && (year%100 != 0 || year%400 == 0)
		switch {
		case month == 2 && leap:
			return 29
		case month == 2:
			return 28
		case month == 4 || month == 6 || month == 9 || month == 11:
			return 30
		}
		return 31
	}
	switch {
	case month < 1 || month > 12 || day < 1 || day > days() || minutes < -1440 || minutes >= 2880:
		return at
	case minutes < 0:
		if minutes, day = minutes+1440, day-1; day == 0 {
			if month--; month == 0 {
				month, year = 12, year-1
			}
			day = days()
		}
	case minutes >= 1440:
		if minutes, day = minutes-1440, day+1; day > days() {
			day = 1
			if month++; month == 13 {
				month, year = 1, year+1
			}
		}
	}
	text := []byte(at[:n] + "Z")
	put := func(i, n int) { text[i], text[i+1] = byte('0'+n/10%10), byte('0'+n%10) }
	put(0, year/100)
	put(2, year%100)
	put(5, month)
	put(8, day)
	put(11, minutes/60)
	put(14, minutes%60)
	return string(text)
}
