//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/postgres"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/pgserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAcknowledgedBatchesSurviveTheServersKill: writers of several stores commit while the server is killed and
// restarted. Every acknowledged batch is there once and complete, and rejected ones are not there.
func TestAcknowledgedBatchesSurviveTheServersKill(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	opts := postgres.Options{URL: server.URL, Timeout: 30 * time.Second}
	kills := 10
	if brief.Tests() {
		kills = 2
	}
	const writers = 4
	var stop atomic.Bool
	var total, refused atomic.Int64
	var there [writers]int64
	var wg sync.WaitGroup
	for w := range writers {
		s := open(t, opts)
		wg.Go(func() {
			own := state.Space{0: byte(w)}
			for !stop.Load() {
				n := there[w] + 1
				text := []byte(strconv.FormatInt(n, 10))
				var b state.Batch
				b.Append(own, "log", text)
				b.Put(own, "counter", text, state.AnyVersion)
				b.PutRecord("ledger", own[:], text)
				b.Append(state.Space{0: 99}, "common", text)
				res, err := s.Commit(context.Background(), &b)
				if err != nil {
					refused.Add(1)
					if !assert.NotErrorIs(t, err, state.ErrUncertain) || !assert.ErrorIs(t, err, state.ErrUnavailable) {
						return
					}
					continue
				}
				if !assert.Equal(t, n, res.Seqs[0], "no more and no less than the acknowledged ones") {
					return
				}
				there[w] = n
				total.Add(1)
			}
		})
	}
	for range kills {
		for from := total.Load(); total.Load() < from+50 && !t.Failed(); {
			time.Sleep(time.Millisecond) // let the writers make progress
		}
		server.Kill()
		server.Run()
	}
	stop.Store(true)
	wg.Wait()
	s := open(t, opts)
	for w := range writers {
		own := state.Space{0: byte(w)}
		text := strconv.FormatInt(there[w], 10)
		last, err := s.LastSeq(t.Context(), own, "log")
		require.NoError(t, err)
		require.Equal(t, there[w], last)
		v, err := s.Get(t.Context(), own, "counter")
		require.NoError(t, err)
		require.Equal(t, text, string(v.Data))
		r, err := s.Record(t.Context(), "ledger", own[:])
		require.NoError(t, err)
		require.Equal(t, text, string(r))
	}
	last, err := s.LastSeq(t.Context(), state.Space{0: 99}, "common")
	require.NoError(t, err)
	require.Equal(t, total.Load(), last)
	t.Logf("%d batches survived %d kills, %d were refused", total.Load(), kills, refused.Load())
}

// TestPreconditionsHoldBetweenHosts: writers of several stores compete for a counter by its version, and for one in a
// record by its value, which is absent at first. Each counter has exactly one precondition.
func TestPreconditionsHoldBetweenHosts(t *testing.T) {
	opts := postgres.Options{URL: pgserver.Start(t).URL}
	const writers, each = 6, 20
	increments := []func(*postgres.Store) (*state.Batch, error){incrementKey, incrementRecord}
	var wg sync.WaitGroup
	for range writers {
		s := open(t, opts)
		wg.Go(func() {
			for done := 0; done < each; {
				b, err := increments[done%2](s)
				if !assert.NoError(t, err) {
					return
				}
				switch _, err = s.Commit(context.Background(), b); {
				case err == nil:
					done++
				case !errors.Is(err, state.ErrConflict):
					assert.NoError(t, err)
					return
				}
			}
		})
	}
	wg.Wait()
	s := open(t, opts)
	want := strconv.Itoa(writers * each / 2)
	v, err := s.Get(t.Context(), space, "counter")
	require.NoError(t, err)
	require.Equal(t, want, string(v.Data))
	r, err := s.Record(t.Context(), "t", []byte("counter"))
	require.NoError(t, err)
	require.Equal(t, want, string(r))
}

func incrementKey(s *postgres.Store) (*state.Batch, error) {
	v, err := s.Get(context.Background(), space, "counter")
	n, _ := strconv.Atoi(string(v.Data)) // 0 at first
	var b state.Batch
	b.Put(space, "counter", fmt.Append(nil, n+1), v.Version)
	return &b, err
}

func incrementRecord(s *postgres.Store) (*state.Batch, error) {
	was, err := s.Record(context.Background(), "t", []byte("counter"))
	n, _ := strconv.Atoi(string(was)) // 0 at first
	var b state.Batch
	b.ExpectRecord("t", []byte("counter"), was)
	b.PutRecord("t", []byte("counter"), fmt.Append(nil, n+1))
	return &b, err
}
