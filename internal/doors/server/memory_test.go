package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// TestCallsBeyondTheMemoryWait: calls in progress stay within the limit, further ones get a time to wait, and all
// memory is free when the calls have ended, however they ended.
func TestCallsBeyondTheMemoryWait(t *testing.T) {
	const mib = 1 << 20
	event := func(bytes int) string {
		return strings.Replace(anEvent, `"hi"`, `"`+strings.Repeat("x", bytes)+`"`, 1)
	}
	retrieve := func(tokens int) string {
		return fmt.Sprintf(`{"scope":{"run_id":"r","persona_id":"p"},"query":"q","budget":{"max_tokens":%d}}`, tokens)
	}
	for name, c := range map[string]struct {
		path, body string
		fits       int // how often it fits at a time
	}{
		"bodies":              {wire.PathEvents, event(mib), 2},
		"small bodies":        {wire.PathEvents, anEvent, 8},
		"contexts":            {wire.PathRetrieve, retrieve(18_000), 2},
		"a budget beyond all": {wire.PathRetrieve, retrieve(1 << 40), 1},
	} {
		t.Run(name, func(t *testing.T) {
			entered, leave := make(chan struct{}), make(chan struct{})
			s, _ := newServer(t, &servertest.Slot{Answer: func(context.Context, string, any) (any, error) {
				entered <- struct{}{}
				<-leave
				return nil, abi.NewError(abi.CodeBackend, "of no matter")
			}}, func(o *server.Options) { o.CallMemory = 30 * mib })
			for range 2 {
				var wg sync.WaitGroup
				for range c.fits {
					wg.Go(func() { ask(s.Handler(), "POST", c.path, c.body) })
					select {
					case <-entered:
					case <-time.After(10 * time.Second):
						t.Fatal("a call that fits did not reach the slot")
					}
				}
				if c.fits < 8 {
					w := ask(s.Handler(), "POST", c.path, c.body)
					require.Equal(t, 429, w.Code, w.Body)
					require.Equal(t, "1", w.Header().Get("Retry-After"))
					require.Equal(t, "memory", problem(t, w).Reason)
				}
				for range c.fits {
					leave <- struct{}{}
				}
				wg.Wait()
			}
		})
	}
	s, _ := newServer(t, untouchable(t), func(o *server.Options) { o.CallMemory = 8 * mib })
	w := ask(s.Handler(), "POST", wire.PathEvents, event(mib))
	require.Equal(t, 413, w.Code)
	e := problem(t, w)
	require.Equal(t, "memory", e.Reason)
	require.Contains(t, e.Hint, "docs/operate.md")
}
