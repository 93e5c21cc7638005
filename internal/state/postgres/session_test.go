//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
	"github.com/memhost/memhost/internal/state/postgres"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/pgserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func put(s *postgres.Store, value string) error {
	var b state.Batch
	b.Put(space, "k", []byte(value), state.AnyVersion)
	_, err := s.Commit(context.Background(), &b)
	return err
}

func TestASecondHostIsRefusedWhileTheFirstServes(t *testing.T) {
	brief.Leave(t)
	opts := postgres.Options{URL: pgserver.Start(t).URL, One: true, Session: time.Second, Version: "1.2.3"}
	first := open(t, opts)
	_, err := postgres.Open(t.Context(), opts)
	require.ErrorIs(t, err, state.ErrServed)
	require.ErrorContains(t, err, "belongs to another host: pid ")
	require.ErrorContains(t, err, "memhost 1.2.3")
	require.Equal(t, "another_host_serves", abi.AsError(err).Reason)
	require.True(t, abi.AsError(err).Retryable)
	require.NoError(t, put(first, "the refused one did no harm"))
	require.NoError(t, first.Close())
	second, err := postgres.Open(t.Context(), opts)
	require.NoError(t, err, "nobody serves any more")
	require.NoError(t, put(second, "second"))
	require.NoError(t, second.Close())
}

func TestOneOfManyHostsThatStartTogetherServes(t *testing.T) {
	brief.Leave(t)
	opts := postgres.Options{URL: pgserver.Start(t).URL, One: true, Session: time.Second}
	_, err := postgres.Migrate(t.Context(), opts)
	require.NoError(t, err)
	const hosts = 6
	stores, errs := make([]*postgres.Store, hosts), make([]error, hosts)
	var wg sync.WaitGroup
	for i := range hosts {
		wg.Go(func() { stores[i], errs[i] = postgres.Open(context.Background(), opts) })
	}
	wg.Wait()
	serving := 0
	for i := range hosts {
		if errs[i] == nil {
			serving++
			require.NoError(t, put(stores[i], "served"))
			require.NoError(t, stores[i].Close())
			continue
		}
		require.ErrorIs(t, errs[i], state.ErrServed)
	}
	require.Equal(t, 1, serving)
}

// network is a connection to the server that can be cut: connections then break, and new ones fail.
type network struct {
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func (n *network) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut {
		return nil, errors.New("the network is cut")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, kind, address)
	if err == nil {
		n.conns = append(n.conns, conn)
	}
	return conn, err
}

func (n *network) setCut(cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut = cut; !cut {
		return
	}
	for _, conn := range n.conns {
		_ = conn.Close()
	}
	n.conns = nil
}

func TestAHostThatLostItsSessionNeitherReadsNorWrites(t *testing.T) {
	brief.Leave(t)
	opts := postgres.Options{URL: pgserver.Start(t).URL, One: true, Session: time.Second}
	var way network
	lonely := opts
	lonely.Dial = way.dial
	first := open(t, lonely)
	require.NoError(t, put(first, "first"))
	way.setCut(true)
	second, err := postgres.Open(t.Context(), opts)
	require.NoError(t, err, "the first host's session has ended")
	defer func() { require.NoError(t, second.Close()) }()
	require.NoError(t, put(second, "second"))
	_, err = first.Get(t.Context(), space, "k")
	require.ErrorIs(t, err, state.ErrUnavailable)
	require.ErrorContains(t, err, "could not renew its session")
	require.ErrorContains(t, err, "the network is cut", "it says why")

	way.setCut(false)
	// A connection that broke may fail first.
	require.Eventually(t, func() bool { return errors.Is(put(first, "late"), state.ErrOwned) }, 10*time.Second,
		10*time.Millisecond, "whatever the first host believes")
	_, err = first.Get(t.Context(), space, "k")
	require.ErrorIs(t, err, state.ErrOwned)
	require.True(t, abi.AsError(err).Retryable, "the same call may reach the host that serves")
	v, err := second.Get(t.Context(), space, "k")
	require.NoError(t, err)
	require.Equal(t, "second", string(v.Data))
}

func TestAHostServesOnAfterTheDatabaseWasGone(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	s := open(t, postgres.Options{URL: server.URL, One: true, Session: time.Second, Timeout: time.Second})
	require.NoError(t, put(s, "before"))
	server.Kill()
	require.Eventually(t, func() bool {
		_, err := s.Get(t.Context(), space, "k")
		return err != nil && abi.AsError(err).Retryable
	}, 10*time.Second, 10*time.Millisecond)
	server.Run()
	require.Eventually(t, func() bool {
		v, err := s.Get(t.Context(), space, "k")
		return err == nil && string(v.Data) == "before"
	}, 30*time.Second, 10*time.Millisecond)
	require.NoError(t, put(s, "after"))
}

// TestATakeOverWaitsForACommitUnderWay: the running commit of a host whose session has ended holds the session's row;
// the host that takes over sees its outcome.
func TestATakeOverWaitsForACommitUnderWay(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	opts := postgres.Options{URL: server.URL, One: true, Session: time.Second}
	var way network
	lonely := opts
	lonely.Dial = way.dial
	open(t, lonely)
	way.setCut(true)
	conn, err := pgx.Connect(t.Context(), server.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	commit, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = commit.Exec(t.Context(), "SELECT 1 FROM memhost.sessions FOR KEY SHARE")
	require.NoError(t, err)
	within, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = postgres.Open(within, opts)
	require.Error(t, err, "the commit has not ended")
	require.NoError(t, commit.Commit(t.Context()))
	s, err := postgres.Open(t.Context(), opts)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// TestEveryCallEndsWhileTheServerHangs: no context has a deadline, and no connection breaks.
func TestEveryCallEndsWhileTheServerHangs(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	opts := postgres.Options{URL: server.URL, Many: true, Session: time.Minute, ReadTimeout: 200 * time.Millisecond,
		Timeout: time.Second}
	s := open(t, opts)
	require.NoError(t, put(s, "value"))
	server.Pause()
	t.Cleanup(server.Continue)
	ctx := context.Background()
	calls := map[string]func() error{
		"get":           func() error { _, err := s.Get(ctx, space, "k"); return err },
		"list":          func() error { _, err := s.List(ctx, space, state.ListQuery{Values: true}); return err },
		"read log":      func() error { _, err := s.ReadLog(ctx, space, state.LogQuery{Log: "l"}); return err },
		"last sequence": func() error { _, err := s.LastSeq(ctx, space, "l"); return err },
		"count":         func() error { _, err := s.Count(ctx, space, ""); return err },
		"usage":         func() error { _, err := s.Usage(ctx, space); return err },
		"record":        func() error { _, err := s.Record(ctx, "t", []byte("k")); return err },
		"records":       func() error { _, err := s.Records(ctx, "t", nil, nil, 0); return err },
		"read records": func() error {
			_, _, err := s.ReadTogether(ctx, []fleet.Ref{{Table: "t", Key: []byte("k")}}, nil)
			return err
		},
		"tables": func() error { _, err := s.Tables(ctx); return err },
		"spaces": func() error { _, err := s.Spaces(ctx); return err },
		"logs":   func() error { _, err := s.Logs(ctx, space); return err },
		"hosts":  func() error { _, err := s.Hosts(ctx); return err },
		"end":    func() error { _, err := s.End(ctx, fleet.Session{1}); return err },
		"commit": func() error { return put(s, "other") },
		"open":   func() error { _, err := postgres.Open(ctx, opts); return err },
	}
	var wg sync.WaitGroup
	for name, call := range calls {
		wg.Go(func() {
			began := time.Now()
			err := call()
			if name == "commit" && errors.Is(err, state.ErrUncertain) {
				err = state.ErrUnavailable // it may have been sent before the server was suspended
			}
			assert.ErrorIs(t, err, state.ErrUnavailable, name)
			t.Logf("%s ended after %s: %v", name, time.Since(began).Round(time.Millisecond), err)
		})
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("a call has not ended")
	}
	server.Continue()
	wg.Wait()
	v, err := s.Get(ctx, space, "k")
	require.NoError(t, err, "the store is usable again")
	require.NotEmpty(t, v.Data)
}
