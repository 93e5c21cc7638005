//go:build !linux

package postgres

import "time"

var start = time.Now()

// sinceBoot is a clock that cannot be set. On some systems it stops while the machine sleeps.
func sinceBoot() time.Duration { return time.Since(start) }
