package main

import (
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
)

// clockKey holds the newest time that an event or a change has, and the host's clock when it came, with a blank between
// them. What expires does so by the timeline: months that are replayed in seconds are months.
const clockKey = "clock"

// came notes that the timeline has gone on to a time in whole seconds, unless it is there already.
func (l *ledger) came(at string) {
	stored, version := l.Get(clockKey)
	if newest, _, _ := strings.Cut(string(stored), " "); at > newest {
		l.Put(clockKey, []byte(at+" "+l.Now), version)
	}
}

// timeline is the present on the scope's timeline: the newest time on it, and as much more as the host's clock has gone
// on since that came. A scope without one, and a clock that went back, have the host's clock and that newest time.
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

// remembering makes what is done until the call of its result bear the time of an event.
func (l *ledger) remembering(e *abi.MemoryEvent) (done func()) {
	l.of = state.InSeconds(e.Timestamp)
	l.came(l.of)
	return func() { l.of = "" }
}
