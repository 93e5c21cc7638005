package pause_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/memhost/memhost/internal/base/pause"
)

func TestForWaitsUntilTheTimeOrTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		assert.NoError(t, pause.For(t.Context(), time.Minute))
		assert.Equal(t, time.Minute, time.Since(start))
		why := errors.New("why")
		ctx, end := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer end()
		assert.ErrorIs(t, pause.For(ctx, time.Hour), why)
		assert.Equal(t, time.Minute+time.Second, time.Since(start))
	})
}
