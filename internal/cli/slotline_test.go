package cli

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/doors/client"
)

// lineTo returns a line whose searches find the given doors, one after the other, and then fail.
func lineTo(t *testing.T, gone func(error) error, doors ...*Door) (l *SlotLine, searches *atomic.Int64) {
	searches = new(atomic.Int64)
	l = NewSlotLine(t.Context(), func(context.Context) (*Door, error) {
		n := int(searches.Add(1))
		if n > len(doors) {
			return nil, errors.New("no slot")
		}
		return doors[n-1], nil
	}, gone)
	t.Cleanup(l.Close)
	return l, searches
}

// served returns a door to a running slot. closed counts how often it is closed.
func served(address string) (d *Door, closed *atomic.Int64) {
	closed = new(atomic.Int64)
	return &Door{Address: address, Close: func() { closed.Add(1) }}, closed
}

var errBroken = abi.NewError(abi.CodeUnavailable, "the connection broke").WithReason(client.ReasonConnection)

func TestSlotLine(t *testing.T) {
	t.Run("a slot is looked for once, and kept", func(t *testing.T) {
		d, closed := served("http://a")
		l, searches := lineTo(t, nil, d)
		for range 3 {
			require.NoError(t, l.Use(t.Context(), func(_ context.Context, c host.Contract) error {
				require.Same(t, d, c)
				return nil
			}))
		}
		require.EqualValues(t, 1, searches.Load())
		l.Close()
		require.EqualValues(t, 1, closed.Load())
		err := l.Use(t.Context(), nil)
		require.ErrorIs(t, err, &abi.Error{Code: abi.CodeUnavailable})
		require.Equal(t, "stopping", abi.AsError(err).Reason)
	})

	t.Run("a slot that is gone is looked for once more", func(t *testing.T) {
		a, closed := served("http://a")
		b, _ := served("http://b")
		l, _ := lineTo(t, nil, a, b)
		var asked []string
		require.NoError(t, l.Use(t.Context(), func(_ context.Context, c host.Contract) error {
			asked = append(asked, c.(*Door).Address)
			if c == host.Contract(a) {
				return errBroken
			}
			return nil
		}))
		require.Equal(t, []string{"http://a", "http://b"}, asked)
		require.EqualValues(t, 1, closed.Load())
	})

	t.Run("what is gone twice is said in the user's words, and found by the next call", func(t *testing.T) {
		a, _ := served("http://a")
		b, _ := served("http://b")
		c, _ := served("http://c")
		l, _ := lineTo(t, func(error) error { return errors.New("start it again") }, a, b, c)
		require.EqualError(t, l.Use(t.Context(), func(context.Context, host.Contract) error {
			return errBroken
		}), "start it again")
		require.NoError(t, l.Use(t.Context(), func(context.Context, host.Contract) error { return nil }))
	})

	for name, test := range map[string]struct {
		address string
		err     error
	}{
		"an error of the slot itself is no lost slot": {"http://a",
			abi.NewError(abi.CodeUnavailable, "the backend is down")},
		"an own slot is never lost": {"", errBroken},
	} {
		t.Run(name, func(t *testing.T) {
			d, closed := served(test.address)
			l, searches := lineTo(t, func(error) error { return errors.New("not to be said") }, d)
			require.Equal(t, test.err, l.Use(t.Context(), func(context.Context, host.Contract) error {
				return test.err
			}))
			require.EqualValues(t, []int64{1, 0}, []int64{searches.Load(), closed.Load()})
		})
	}

	t.Run("a search goes on when its caller's time is over", func(t *testing.T) {
		d, _ := served("")
		searching, found := make(chan struct{}), make(chan struct{})
		l := NewSlotLine(t.Context(), func(context.Context) (*Door, error) {
			close(searching)
			<-found
			return d, nil
		}, nil)
		defer l.Close()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-searching
			cancel()
		}()
		_, err := l.Get(ctx)
		require.ErrorIs(t, err, &abi.Error{Code: abi.CodeUnavailable})
		require.Equal(t, reasonOpening, abi.AsError(err).Reason)
		close(found)
		got, err := l.Get(t.Context())
		require.NoError(t, err)
		require.Same(t, d, got)
	})

	t.Run("a line that ends ends its search, and closes what that has found", func(t *testing.T) {
		d, closed := served("")
		searching := make(chan struct{})
		l := NewSlotLine(t.Context(), func(ctx context.Context) (*Door, error) {
			close(searching)
			<-ctx.Done()
			return d, nil // just now
		}, nil)
		failed := make(chan error)
		go func() {
			_, err := l.Get(context.Background())
			failed <- err
		}()
		<-searching
		l.Close()
		require.EqualValues(t, 1, closed.Load())
		require.Equal(t, "stopping", abi.AsError(<-failed).Reason)
	})
}
