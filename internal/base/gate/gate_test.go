package gate

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAClosedGateKeepsCallersOut(t *testing.T) {
	ctx := context.Background()
	var g Gate
	require.NoError(t, g.Enter(ctx))
	within, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	require.False(t, g.Close(within), "somebody is inside")
	require.NoError(t, g.Enter(ctx), "it is open again")
	g.Leave()
	g.Leave()

	require.True(t, g.Close(ctx))
	gone, leave := context.WithCancelCause(ctx)
	why := errors.New("gone")
	leave(why)
	require.ErrorIs(t, g.Enter(gone), why)
	entered := make(chan error)
	go func() { entered <- g.Enter(ctx) }()
	g.Open()
	require.NoError(t, <-entered)
	g.Leave()
}

func TestClosingWaitsForWhoIsInside(t *testing.T) {
	ctx := context.Background()
	var g Gate
	require.NoError(t, g.Enter(ctx))
	closed := make(chan bool)
	go func() { closed <- g.Close(ctx) }()
	g.Leave()
	require.True(t, <-closed)
	g.Open()
}
