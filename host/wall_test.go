package host

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stallingBackend is a backend that counts requests that are not reads, and that can block requests: each request for the
// blocked path is announced, and answered once it is released.
type stallingBackend struct {
	writes    atomic.Int64
	hold      atomic.Value // the path, a string
	arrived   chan struct{}
	mayGoOn   chan struct{}
	serverURL string
}

func newStalling(t *testing.T, hold string) *stallingBackend {
	b := &stallingBackend{arrived: make(chan struct{}), mayGoOn: make(chan struct{})}
	b.hold.Store(hold)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			b.writes.Add(1)
		}
		if r.URL.Path == b.hold.Load() {
			b.arrived <- struct{}{}
			<-b.mayGoOn
		}
	}))
	t.Cleanup(server.Close)
	b.serverURL = server.URL
	return b
}

func setReadOnly(t *testing.T, s *Slot, scope *abi.MemoryScope) *abi.ModeReceipt {
	t.Helper()
	m, err := s.SetMode(t.Context(), &abi.AdapterMode{ReadOnly: true, Reason: "test", Scope: scope})
	require.NoError(t, err)
	return m
}

// Every operation that is not a write needs a permit for each call: the wall is raised before each of its calls, by the
// slot's mode and by the scope's.
func TestTheWallHoldsFromTheNextCallOn(t *testing.T) {
	calls := []string{"get", "post", "get", "post"}
	for _, op := range []string{abi.OpRetrieve, abi.OpFormatContext, abi.OpInventory, abi.OpProvenance,
		abi.OpNativeQuery, abi.OpHealth, abi.OpReadiness, abi.OpFindEvent} {
		for raise := range len(calls) + 1 {
			for _, scope := range []*abi.MemoryScope{nil, &TestScope} {
				if scope != nil && op == abi.OpHealth {
					continue // it has no scope
				}
				t.Run(fmt.Sprintf("%s/before call %d/scope %v", op, raise, scope != nil), func(t *testing.T) {
					b := newStalling(t, "")
					s := NetSlot(t, b.serverURL, Options{})
					ctx, o := s.beginOn(t.Context(), s.current.Load().provider, op)
					var err error
					defer o.end(&err)
					if op != abi.OpHealth {
						sc, err := o.provider.scopeOf(TestScope)
						require.NoError(t, err)
						require.NoError(t, o.at(ctx, sc))
					}
					o.Deadline = time.Now().Add(time.Minute)
					o.guard()
					want, up := int64(0), false
					for i, route := range calls {
						if i == raise {
							m := setReadOnly(t, s, scope)
							assert.Zero(t, m.InFlight)
							assert.Nil(t, m.Complete)
							up = true
						}
						_, _, err := o.Powers.HTTP(ctx, &abi.HTTPRequest{Route: route}, nil)
						switch {
						case route == "get":
							require.NoError(t, err, "reads pass")
						case op == abi.OpFormatContext:
							RequireCode(t, err, abi.CodeDenied, "format_context may only read")
						case up:
							RequireCode(t, err, abi.CodeReadOnly, "class write")
						default:
							require.NoError(t, err)
							want++
						}
					}
					assert.Equal(t, want, b.writes.Load())
				})
			}
		}
	}
}

// The guest is in a slow read when the wall is raised, and sends a write afterwards.
func TestASlowReadDoesNotOutliveTheWall(t *testing.T) {
	b := newStalling(t, "/get")
	s := NetSlot(t, b.serverURL, Options{})
	failure := make(chan error)
	go func() {
		_, err := s.Retrieve(context.Background(), Ask("http get; http post body={}"))
		failure <- err
	}()
	<-b.arrived
	m := setReadOnly(t, s, nil)
	assert.Zero(t, m.InFlight, "a read neither counts nor is waited for")
	close(b.mayGoOn)
	RequireCode(t, <-failure, abi.CodeReadOnly, "class write")
	assert.Zero(t, b.writes.Load())
}

// A retrieval's write is in progress when the wall is raised, with and without time to wait for it.
func TestRaisingTheWallWaitsForAReadsCallThatIsNoRead(t *testing.T) {
	for _, scope := range []*abi.MemoryScope{nil, &TestScope} {
		b := newStalling(t, "/post")
		s := NetSlot(t, b.serverURL, Options{Limits: Limits{ModeWait: time.Millisecond}})
		done := make(chan error)
		go func() {
			_, err := s.Retrieve(context.Background(), Ask("http post body={}"))
			done <- err
		}()
		<-b.arrived
		m := setReadOnly(t, s, scope)
		assert.EqualValues(t, 1, m.InFlight)
		require.NotNil(t, m.Complete)
		assert.False(t, *m.Complete)
		b.mayGoOn <- struct{}{}
		require.NoError(t, <-done)
		m = setReadOnly(t, s, scope)
		assert.Zero(t, m.InFlight)
		assert.Nil(t, m.Complete)
	}
}

// The wall is raised at one host while an operation runs at another.
func TestTheWallOfOneHostHoldsForTheNextCallAtAnother(t *testing.T) {
	shared, b := newShared(t), newStalling(t, "/get")
	limits := Options{Limits: Limits{ModeWait: time.Millisecond}, NoReadinessPolls: true}
	one, other := shared.join().slot(t, b.serverURL, limits), shared.join().slot(t, b.serverURL, limits)
	failure := make(chan error)
	retrieve := func(query string) {
		_, err := other.Retrieve(context.Background(), Ask(query))
		failure <- err
	}
	go retrieve("http get; http post body={}")
	<-b.arrived
	assert.Zero(t, setReadOnly(t, one, nil).InFlight)
	b.mayGoOn <- struct{}{}
	RequireCode(t, <-failure, abi.CodeReadOnly, "class write")
	assert.Zero(t, b.writes.Load())

	_, err := one.SetMode(t.Context(), &abi.AdapterMode{Reason: "over"})
	require.NoError(t, err)
	b.hold.Store("/post")
	for _, scope := range []*abi.MemoryScope{nil, &TestScope} {
		go retrieve("http post body={}")
		<-b.arrived
		m := setReadOnly(t, one, scope)
		assert.EqualValues(t, 1, m.InFlight, "the other host's call is known")
		assert.NotNil(t, m.Complete)
		b.mayGoOn <- struct{}{}
		require.NoError(t, <-failure)
		require.Zero(t, setReadOnly(t, one, scope).InFlight)
		_, err = one.SetMode(t.Context(), &abi.AdapterMode{Reason: "over", Scope: scope})
		require.NoError(t, err)
	}
}

// A provider on trial, or one that was opened to erase a person, is behind the slot's own wall.
func TestAProviderThatDoesNotServeIsBehindTheSameWall(t *testing.T) {
	b := newStalling(t, "/post")
	s := NetSlot(t, b.serverURL, Options{Limits: Limits{ModeWait: time.Millisecond}})
	trial := s.trial(s.current.Load().provider)
	done := make(chan error)
	go func() {
		_, err := trial.RecordEvent(context.Background(), Event("e1", "http post body={}"))
		done <- err
	}()
	<-b.arrived
	assert.EqualValues(t, 1, setReadOnly(t, s, nil).InFlight)
	close(b.mayGoOn)
	require.NoError(t, <-done)
	r, err := trial.RecordEvent(t.Context(), Event("e2", "http post body={}"))
	require.NoError(t, err)
	assert.Equal(t, abi.StatusSkippedReadOnly, r.Status)
}
