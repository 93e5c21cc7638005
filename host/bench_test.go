package host

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// openWith is a host with a way of interruption of the caller's choice. What the host itself costs is measured by internal/bench, through measure.go.
func openWith(b testing.TB, way interruption) *Host {
	h := open(b, Options{})
	ctx := context.Background()
	require.NoError(b, h.engine.runtime.Close(ctx))
	require.NoError(b, h.cache.Close(ctx))
	require.NoError(b, h.openEngine(ctx, way))
	return h
}
