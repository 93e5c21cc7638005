package follow

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
)

// failing answers with a backend failure; status 0 means that the backend could not be reached.
func failing(status int64) *abi.ReceiptOrError {
	e := abi.NewError(abi.CodeUnavailable, "no connection")
	if status != 0 {
		e = abi.NewError(abi.CodeBackend, "failed")
		e.Native = &abi.NativeError{Status: &status}
	}
	e.Retryable = true
	return &abi.ReceiptOrError{Error: e}
}

// One person's events fail until everyone else's have arrived; once the backend works, that person's events arrive too.
// Nothing is lost, and each person's events stay in order.
func TestAPersonWhoWaitsHoldsBackNobodyElse(t *testing.T) {
	const people, each = 40, 15
	for _, role := range []string{report.RoleShadow, report.RoleBackfill} {
		t.Run(role, func(t *testing.T) {
			r := newRoom(t, true)
			works := false // guarded by r.memory.mu
			r.memory.answer = func(_ int, e *abi.MemoryEvent) *abi.ReceiptOrError {
				if e.UserID == "p0" && !works {
					return failing(http.StatusInternalServerError)
				}
				return nil
			}
			turns := 0
			r.memory.turn = func(ctx context.Context) (bool, error) {
				turns++
				return false, nil
			}
			for n := range each {
				for p := range people {
					r.accept(t, fmt.Sprint("p", p), n, n+1)
				}
			}
			f := r.follower(t, role)
			f.Start()
			t.Cleanup(func() { f.End(t.Context()) })
			has := func(p int) int {
				r.memory.mu.Lock()
				defer r.memory.mu.Unlock()
				return len(r.memory.pages[fmt.Sprint("p", p)])
			}
			require.Eventually(t, func() bool {
				for p := 1; p < people; p++ {
					if has(p) < each {
						return false
					}
				}
				return true
			}, 20*time.Second, time.Millisecond)
			require.Zero(t, has(0))
			require.Eventually(t, func() bool {
				at, progress, err := f.Progress(t.Context())
				return err == nil && at == report.FollowerWaiting && progress.Error != nil && progress.Held == 0 &&
					progress.Events == people*each && progress.Done == people*each-each
			}, 10*time.Second, time.Millisecond)
			r.memory.mu.Lock()
			require.Zero(t, turns, "it does not serve without the person's events")
			works = true
			r.memory.mu.Unlock()
			require.Eventually(t, func() bool { return has(0) == each }, 30*time.Second, time.Millisecond)
			for p := range people {
				person := fmt.Sprint("p", p)
				require.Equal(t, ids(person, 0, each), r.memory.pages[person])
			}
		})
	}
}

func TestWhichFailuresPauseTheFollower(t *testing.T) {
	for name, c := range map[string]struct {
		answer *abi.ReceiptOrError
		pauses bool
	}{
		"no connection": {failing(0), true},
		"429":           {failing(http.StatusTooManyRequests), true},
		"503":           {failing(http.StatusServiceUnavailable), true},
		"401":           {failing(http.StatusUnauthorized), true},
		"500":           {failing(http.StatusInternalServerError), false},
		"504":           {failing(http.StatusGatewayTimeout), false},
		"timeout":       {&abi.ReceiptOrError{Error: abi.NewError(abi.CodeTimeout, "slow")}, false},
	} {
		require.Equal(t, c.pauses, meetsEverybody(c.answer.Error), name)
		f := &Follower{backoffs: map[abi.MemoryScope]backoff{}}
		ann, bob := abi.MemoryScope{PersonaID: "ann"}, abi.MemoryScope{PersonaID: "bob"}
		f.postpone(ann, &failure{why: c.answer.Error, counts: true})
		require.Equal(t, c.pauses, time.Now().Before(f.pausedUntil), name)
		require.False(t, f.due(ann), name)
		require.True(t, f.due(bob), name)
		require.Equal(t, 2, f.tryOf(ann), name)
		f.noteArrival(ann)
		require.True(t, f.due(ann), name)
		require.Equal(t, 1, f.tryOf(ann), name)
	}
}
