// Package timelapse has a clock with which waiting takes no real time.
package timelapse

import (
	"context"
	"sync/atomic"
	"time"
)

// Clock runs with real time, but a pause advances it at once instead of waiting. A host and a fake backend that share a
// Clock see each other's delays without the test taking that long. The zero value is ready to use.
type Clock struct{ ahead atomic.Int64 }

// Now is real time and all pauses until now.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Pause moves the clock on by d.
func (c *Clock) Pause(_ context.Context, d time.Duration) { c.ahead.Add(int64(d)) }
