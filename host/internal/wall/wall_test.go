package wall_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memhost/memhost/host/internal/wall"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var ann, bob = wall.Scope{1}, wall.Scope{2}

func readOnly(is bool) wall.Mode { return wall.Mode{ReadOnly: is} }

func TestASlotsModeHoldsForItsScopesAndAScopesForItself(t *testing.T) {
	w := wall.New(map[wall.Scope]wall.Mode{ann: readOnly(true)})
	assert.Nil(t, w.Admit(ann))
	assert.NotNil(t, w.Admit(bob))
	assert.NotNil(t, w.Admit(wall.Slot), "an operation without a scope is not concerned")
	assert.Equal(t, 1, w.ReadOnlyScopes())
	w.Set(map[wall.Scope]wall.Mode{wall.Slot: readOnly(true), ann: readOnly(false)})
	for _, s := range []wall.Scope{ann, bob, wall.Slot} {
		assert.Nil(t, w.Admit(s))
		assert.True(t, w.ReadOnly(s))
	}
	assert.False(t, w.Mode(ann).ReadOnly, "what was set for the scope alone")
	assert.Zero(t, w.ReadOnlyScopes())
}

func TestAPermitCountsUntilItIsReleased(t *testing.T) {
	w := wall.New(nil)
	first, second, other := w.Admit(ann), w.Admit(ann), w.Admit(bob)
	assert.EqualValues(t, 2, w.InFlight(ann))
	assert.EqualValues(t, 3, w.InFlight(ann, bob))
	assert.EqualValues(t, 3, w.InFlight(wall.Slot), "the slot's are all")
	first.Release()
	first.Release()
	assert.EqualValues(t, 1, w.InFlight(ann), "a second release counts nothing")
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		w.Wait(context.Background(), ann)
	}()
	second.Release()
	<-waited
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	w.Wait(ctx, wall.Slot)
	require.Error(t, ctx.Err(), "bob's is left, and the context ends the wait")
	other.Release()
	w.Wait(t.Context(), wall.Slot)
	(*wall.Permit)(nil).Release()
}

// After Set has made a scope read-only and InFlight was 0, no permit of it is left, whatever else happens.
func TestNothingPassesAWallThatWasRaisedAndHasNothingInFlight(t *testing.T) {
	w := wall.New(nil)
	var inside atomic.Int64
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if p := w.Admit(ann); p != nil {
					inside.Add(1)
					inside.Add(-1)
					p.Release()
				}
			}
		})
	}
	for range 2000 {
		w.Set(map[wall.Scope]wall.Mode{ann: readOnly(true)})
		w.Wait(t.Context(), ann)
		assert.Zero(t, w.InFlight(ann))
		assert.Zero(t, inside.Load())
		w.Set(map[wall.Scope]wall.Mode{ann: readOnly(false)})
	}
	close(stop)
	writers.Wait()
}

// A model with a map and a list predicts the results of any sequence of steps.
func TestAWallAnswersAsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, modes := wall.New(nil), map[wall.Scope]bool{}
		var permits []*wall.Permit
		var of []wall.Scope
		scope := rapid.SampledFrom([]wall.Scope{wall.Slot, ann, bob})
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			s := scope.Draw(t, "scope")
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				modes[s] = rapid.Bool().Draw(t, "read only")
				w.Set(map[wall.Scope]wall.Mode{s: readOnly(modes[s])})
			case 1:
				p := w.Admit(s)
				require.Equal(t, modes[wall.Slot] || modes[s], p == nil)
				if p != nil {
					permits, of = append(permits, p), append(of, s)
				}
			case 2:
				if n := len(permits); n > 0 {
					i := rapid.IntRange(0, n-1).Draw(t, "permit")
					permits[i].Release()
					permits, of = append(permits[:i:i], permits[i+1:]...), append(of[:i:i], of[i+1:]...)
				}
			}
			counts := map[wall.Scope]int64{}
			for _, s := range of {
				counts[s]++
			}
			require.EqualValues(t, len(of), w.InFlight(wall.Slot))
			require.Equal(t, counts[ann]+counts[bob], w.InFlight(ann, bob))
		}
	})
}
