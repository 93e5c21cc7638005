package main

import (
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
)

// clockKey holds the newest time of an event or a change, and the host's clock at that moment, separated by a blank.
// Facts expire by the timeline: months that are replayed in seconds count as months.
const clockKey = "clock"

// advanceTimeline advances the timeline to a time in whole seconds, unless it is already there.
func (l *ledger) advanceTimeline(at string) {
	stored, version := l.Get(clockKey)
	if newest, _, _ := strings.Cut(string(stored), " "); at > newest {
		l.Put(clockKey, []byte(at+" "+l.Now), version)
	}
}

// timeline returns the current time of the scope's timeline: its newest time plus the time that has passed on the
// host's clock since then. Without a timeline it is the host's clock; if the clock went back, it is the newest time.
func (l *ledger) timeline() time.Time {
	now, _ := abi.ParseTime(l.Now) // the host's own
	stored, version := l.Get(clockKey)
	newest, arrived, _ := strings.Cut(string(stored), " ")
	at, err := abi.ParseTime(newest)
	since, err2 := abi.ParseTime(arrived)
	if version == 0 || err != nil || err2 != nil {
		return now
	}
	return at.Add(max(0, now.Sub(since)))
}

// atEventTime gives changes the time of an event, until its result is called.
func (l *ledger) atEventTime(e *abi.MemoryEvent) (done func()) {
	l.of = state.InSeconds(e.Timestamp)
	l.advanceTimeline(l.of)
	return func() { l.of = "" }
}
