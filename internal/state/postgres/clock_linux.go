package postgres

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is a clock that cannot be set, and that keeps running while the machine sleeps.
func sinceBoot() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // every Linux since 2.6.39 has it
	return time.Duration(t.Nano())
}
