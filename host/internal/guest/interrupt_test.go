package guest

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// borderFunc is a Border for tests.
type borderFunc func(*Ask) Answer

func (f borderFunc) Answer(a *Ask) Answer { return f(a) }

func TestUnitsFollowTheClock(t *testing.T) {
	give := func(c *Call) int64 {
		stack := []uint64{0}
		moreUnits(callContext{context.Background(), c}, stack)
		return int64(stack[0])
	}
	now := time.Now()
	c := &Call{Began: now, Deadline: now.Add(time.Hour)}
	assert.EqualValues(t, maxUnits, give(c))
	c.Began = now.Add(-10 * time.Minute) // as if the last stretch had taken that long
	assert.EqualValues(t, minUnits, give(c))
	c.pace.units, c.pace.looked = minUnits, time.Since(c.Began)
	for range 10 {
		c.pace.looked = time.Since(c.Began)
		give(c)
	}
	assert.Greater(t, c.pace.units, int64(minUnits), "quick stretches grow again")
	assert.LessOrEqual(t, c.pace.units, int64(maxUnits))
	c.Deadline = now
	assert.Panics(t, func() { give(c) })
}

// TestAGuestThatComputesForLongHasAThreadOfItsOwn only tests the threads; `make bench` has a row that shows that others
// are not delayed.
func TestAGuestThatComputesForLongHasAThreadOfItsOwn(t *testing.T) {
	defer runtime.UnlockOSThread() // in case shareThread has not done it
	more := func(c *Call) *Call {
		c.Deadline = time.Now().Add(time.Hour)
		moreUnits(callContext{context.Background(), c}, []uint64{0})
		return c
	}
	assert.False(t, more(&Call{Began: time.Now()}).pace.ownThread, "a short call")
	before := time.Now().Add(-time.Second)
	assert.False(t, more(&Call{Began: before, Queued: time.Second}).pace.ownThread, "one that waited for an instance")
	assert.False(t, more(&Call{Began: before, Account: Account{Backend: time.Second}}).pace.ownThread,
		"one that waited for its backend")
	c := more(&Call{Began: before})
	assert.True(t, c.pace.ownThread, "one that computed")
	c.Border = borderFunc(func(*Ask) Answer {
		assert.False(t, c.pace.ownThread, "while the host does something for it")
		return Answer{}
	})
	c.Do(imports[0], [2][]byte{}, [1]int64{})
	assert.True(t, more(c).pace.ownThread, "and goes on")
	c.shareThread()
	assert.False(t, c.pace.ownThread, "when it has returned")
}
