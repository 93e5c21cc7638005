package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

func TestSchedules(t *testing.T) {
	for _, c := range []struct {
		cron, since, now string
		due              bool
	}{
		{"0 3 * * *", "2026-01-12T03:00:00Z", "2026-01-13T02:59:00Z", false},
		{"0 3 * * *", "2026-01-12T03:00:00Z", "2026-01-13T03:00:00Z", true},
		{"0 3 * * *", "2026-01-01T00:00:00Z", "2026-01-20T01:00:00Z", true},
		{"*/15 9-17 * * 1-5", "2026-01-09T17:50:00Z", "2026-01-11T12:00:00Z", false}, // Saturday and Sunday
		{"*/15 9-17 * * 1-5", "2026-01-09T17:50:00Z", "2026-01-12T09:00:00Z", true},
		{"0 0 * * 7", "2026-01-10T12:00:00Z", "2026-01-11T00:00:00Z", true},
		{"0 0 29 2 *", "2025-12-01T00:00:00Z", "2026-03-01T00:00:00Z", false},
		{"0 0 13 * 5", "2026-01-10T00:00:00Z", "2026-01-13T00:00:00Z", true}, // the 13th, or a Friday
		{"5,35 0 1 1,6 *", "2026-01-01T00:05:00Z", "2026-01-01T00:34:59Z", false},
		{"0 3 * * *", "2026-01-12T03:30:00Z", "2026-01-12T03:00:00Z", false}, // the clock was set back
	} {
		s, ok := parseSchedule(c.cron)
		require.True(t, ok, c.cron)
		since, err := time.Parse(time.RFC3339, c.since)
		require.NoError(t, err)
		now, err := time.Parse(time.RFC3339, c.now)
		require.NoError(t, err)
		assert.Equal(t, c.due, s.hasTime(since, now), "%s from %s to %s", c.cron, c.since, c.now)
	}
	for _, bad := range []string{"", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8",
		"5-1 * * * *", "*/0 * * * *", "a * * * *", "1- * * * *", "* * * * * *"} {
		_, ok := parseSchedule(bad)
		assert.False(t, ok, "%q", bad)
	}
}

func FuzzSchedule(f *testing.F) {
	f.Add("*/15 9-17 * * 1-5")
	f.Fuzz(func(t *testing.T, text string) {
		if s, ok := parseSchedule(text); ok {
			now := time.Date(2026, 1, 12, 9, 0, 0, 0, time.UTC)
			assert.False(t, s.hasTime(now, now), "nothing lies between a time and itself")
		}
	})
}

func TestDreamByCron(t *testing.T) {
	b := newBench(t, `"profile":"local","update_policy":"every_event","dream":{"cron":"0 3 * * *"}`)
	b.Now = "2026-01-12T12:00:00Z" // the day of the turns
	b.Record(b.Turn("s1", "I like oolong tea."))
	b.Wait() // the first time: no run yet, so the missed one is made up for
	b.Later(time.Hour)
	b.Record(b.Turn("s1", "I live in Oslo."))
	b.Wait()
	assert.NotContains(t, b.Files()[userFile], "Oslo", "12:00 to 13:00 has no 03:00")
	b.Later(15 * time.Hour)
	b.Idle()
	assert.Contains(t, b.Files()[userFile], "Oslo")

	_, err := parseSettings(&abi.GuestConfig{Config: abi.Raw(`{"dream":{"cron":"0 25 * * *"}}`)})
	assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
}
