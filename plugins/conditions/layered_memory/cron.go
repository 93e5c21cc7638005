package main

import (
	"strconv"
	"strings"
	"time"
)

// schedule is a cron expression of five fields, in UTC: minute, hour, day of the month, month, day of the week (0 or 7
// is Sunday). Each is a bit set.
type schedule struct {
	minute, hour, day, month, weekday uint64
	// If both kinds of day are restricted, one of them has to match, as in cron.
	anyDay, anyWeekday bool
}

// parseSchedule parses an expression: *, numbers, ranges a-b, steps /n, lists with commas.
func parseSchedule(text string) (s *schedule, ok bool) {
	fields := strings.Fields(text)
	if len(fields) != 5 {
		return nil, false
	}
	s = &schedule{anyDay: strings.HasPrefix(fields[2], "*"), anyWeekday: strings.HasPrefix(fields[4], "*")}
	for i, x := range []struct {
		to          *uint64
		least, most int
	}{{&s.minute, 0, 59}, {&s.hour, 0, 23}, {&s.day, 1, 31}, {&s.month, 1, 12}, {&s.weekday, 0, 7}} {
		if *x.to, ok = cronSet(fields[i], x.least, x.most); !ok {
			return nil, false
		}
	}
	s.weekday |= s.weekday >> 7 & 1
	return s, true
}

func cronSet(field string, least, most int) (set uint64, ok bool) {
	for _, part := range strings.Split(field, ",") {
		span, every, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			var err error
			if step, err = strconv.Atoi(every); err != nil || step < 1 {
				return 0, false
			}
		}
		from, to := least, most
		if span != "*" {
			first, last, isRange := strings.Cut(span, "-")
			var err error
			if from, err = strconv.Atoi(first); err != nil {
				return 0, false
			}
			switch {
			case isRange:
				if to, err = strconv.Atoi(last); err != nil {
					return 0, false
				}
			case !stepped:
				to = from
			}
		}
		if from < least || to > most || from > to {
			return 0, false
		}
		for n := from; n <= to; n += step {
			set |= 1 << n
		}
	}
	return set, true
}

// hasTime reports whether the schedule has a time after since and up to now. It ignores times more than a year ago.
func (s *schedule) hasTime(since, now time.Time) bool {
	now = now.UTC()
	since = since.UTC()
	for back := range 366 {
		day := now.AddDate(0, 0, -back)
		day = time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, time.UTC)
		if !day.AddDate(0, 0, 1).After(since) {
			return false
		}
		if !s.onDay(day) {
			continue
		}
		for minute := 24*60 - 1; minute >= 0; minute-- {
			at := day.Add(time.Duration(minute) * time.Minute)
			if at.After(now) || s.hour>>(minute/60)&1 == 0 || s.minute>>(minute%60)&1 == 0 {
				continue
			}
			return at.After(since)
		}
	}
	return false
}

func (s *schedule) onDay(day time.Time) bool {
	date, weekday := s.day>>day.Day()&1 == 1, s.weekday>>int(day.Weekday())&1 == 1
	if s.month>>int(day.Month())&1 == 0 {
		return false
	}
	if s.anyDay || s.anyWeekday {
		return date && weekday
	}
	return date || weekday
}
