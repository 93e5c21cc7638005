//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
	"github.com/memhost/memhost/internal/state/postgres"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/pgserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var scope = []byte("scope")

func with(add ...func(*state.Batch)) *state.Batch {
	var b state.Batch
	for _, a := range add {
		a(&b)
	}
	return &b
}

// TestHostsWriteAScopeInTurns: hosts write pairs of entries, in two batches each, while one of them is disconnected
// while it holds the lock. All pairs stay together except that one.
func TestHostsWriteAScopeInTurns(t *testing.T) {
	brief.Leave(t)
	opts := postgres.Options{URL: pgserver.Start(t).URL, Many: true, Session: time.Second}
	var way network
	lonely := opts
	lonely.Dial = way.dial
	entry := func(text string) func(*state.Batch) {
		return func(b *state.Batch) { b.Append(space, "log", []byte(text)) }
	}
	lost := open(t, lonely)
	lock, err := fleet.New(lost, lost).Begin(t.Context(), scope)
	require.NoError(t, err)
	_, err = lost.Commit(t.Context(), with(lock.Take, entry("lost")))
	require.NoError(t, err)
	way.setCut(true)

	const hosts, each = 3, 10
	var mu sync.Mutex
	takenOver := 0
	var wg sync.WaitGroup
	for range hosts {
		s := open(t, opts)
		f := fleet.New(s, s)
		wg.Go(func() {
			for done := 0; done < each; {
				lock, err := f.Begin(context.Background(), scope)
				if !assert.NoError(t, err) {
					return
				}
				if _, err = s.Commit(context.Background(), with(lock.Take, entry("begun"))); err != nil {
					if !assert.True(t, lock.Moved(err), "%v", err) {
						return
					}
					continue
				}
				if from, ok := lock.From(); ok {
					assert.Equal(t, lost.Self(), from)
					mu.Lock()
					takenOver++
					mu.Unlock()
				}
				_, err = s.Commit(context.Background(), with(lock.Release, entry("ended")))
				assert.NoError(t, err)
				done++
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, takenOver)
	way.setCut(false)
	require.Eventually(t, func() bool { // it starts a new session, and has lost the lock
		_, err := lost.Commit(context.Background(), with(lock.Release, entry("late")))
		return lock.Moved(err)
	}, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, put(lost, "it serves again"))

	s := open(t, opts)
	log, err := s.ReadLog(t.Context(), space, state.LogQuery{Log: "log"})
	require.NoError(t, err)
	require.Len(t, log.Items, 1+2*hosts*each)
	require.Equal(t, "lost", string(log.Items[0].Data))
	for i, e := range log.Items[1:] {
		require.Equal(t, []string{"begun", "ended"}[i%2], string(e.Data))
	}
}

func TestAHostThatServesAloneRefusesOthers(t *testing.T) {
	opts := postgres.Options{URL: pgserver.Start(t).URL, Session: time.Second}
	one, many := opts, opts
	one.One, many.Many = true, true
	first, second := open(t, many), open(t, many)
	_, err := postgres.Open(t.Context(), one)
	require.ErrorIs(t, err, state.ErrServed)
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
	alone := open(t, one)
	_, err = postgres.Open(t.Context(), many)
	require.ErrorIs(t, err, state.ErrServed)
	require.NoError(t, alone.Close())
}

// TestARecordThatComesAndGoesIsExpectedSoundly: writers put a record that they expect to be absent, and delete it.
func TestARecordThatComesAndGoesIsExpectedSoundly(t *testing.T) {
	opts := postgres.Options{URL: pgserver.Start(t).URL}
	const writers, each = 4, 30
	var mu sync.Mutex
	inside := map[string]bool{}
	var wg sync.WaitGroup
	for range writers {
		s := open(t, opts)
		wg.Go(func() {
			for done := 0; done < each; {
				_, err := s.Commit(context.Background(), with(func(b *state.Batch) {
					b.ExpectRecord("locks", scope, nil)
					b.PutRecord("locks", scope, []byte("held"))
				}))
				if errors.Is(err, state.ErrConflict) {
					continue
				}
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				assert.False(t, inside["held"], "two batches found the record absent")
				inside["held"] = true
				mu.Unlock()
				mu.Lock()
				inside["held"] = false
				mu.Unlock()
				_, err = s.Commit(context.Background(), with(func(b *state.Batch) {
					b.ExpectRecord("locks", scope, []byte("held"))
					b.DeleteRecord("locks", scope)
				}))
				assert.NoError(t, err)
				done++
			}
		})
	}
	wg.Wait()
}

// TestARecordsPreconditionIsCheckedFirst: an operation whose lock went to another host gets that error, and not one
// about the version of a key that the other host has written.
func TestARecordsPreconditionIsCheckedFirst(t *testing.T) {
	inFile, err := state.Open(t.TempDir(), state.Options{Durability: state.DurabilityProcess})
	require.NoError(t, err)
	defer func() { require.NoError(t, inFile.Close()) }()
	for _, s := range []state.Store{inFile, open(t, postgres.Options{URL: pgserver.Start(t).URL})} {
		var b state.Batch
		b.Put(space, "k", []byte("v"), 7)
		b.ExpectRecord("turns", []byte("scope"), []byte("held"))
		_, err := s.Commit(t.Context(), &b)
		var e *state.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, state.Table("turns"), e.Conflict.Table)
	}
}
