// Package timelapse has a clock on which nobody waits.
package timelapse

import (
	"context"
	"sync/atomic"
	"time"
)

// Clock goes with real time, and a pause moves it on at once. A host and a fake backend that share one see each other's
// delays as they would be, in no time. The zero value is ready, and shows the time of day.
type Clock struct{ ahead atomic.Int64 }

// Now is real time and all pauses until now.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Pause moves the clock on by d.
func (c *Clock) Pause(_ context.Context, d time.Duration) { c.ahead.Add(int64(d)) }
