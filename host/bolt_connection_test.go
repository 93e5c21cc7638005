package host_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/fakes/bolt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLateStatementIsATimeout(t *testing.T) {
	s := graph(t, bolt.Options{Password: host.TestSecret})
	slot := graphSlot(t, s, host.Options{})
	host.Retrieved(t, slot, "bolt one")
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	s.Handle(oneStatement, bolt.Statement{Answer: func(ctx context.Context, _ bolt.Query) bolt.Answer {
		<-ctx.Done()
		return bolt.Answer{}
	}})
	_, err := slot.Retrieve(ctx, host.Ask("bolt one"))
	e := host.RequireCode(t, err, abi.CodeTimeout)
	assert.True(t, e.Retryable)

	deaf := make(chan struct{})
	t.Cleanup(func() { close(deaf) })
	s.Handle(oneStatement, bolt.Statement{Answer: func(context.Context, bolt.Query) bolt.Answer {
		<-deaf
		return bolt.Answer{}
	}})
	ctx, cancel = context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err = slot.Retrieve(ctx, host.Ask("bolt one"))
	host.RequireCode(t, err, abi.CodeTimeout)
	assert.Contains(t, host.Retrieved(t, slot, `bolt rows {"n":1}`)[0], "row 1",
		"the connection that hung is not used again")
}

func TestWrongPasswordIsShownToTheServerOnceInAWhile(t *testing.T) {
	var mu sync.Mutex
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	s := graph(t, bolt.Options{Password: "another-password"})
	slot := graphSlot(t, s, host.Options{Now: clock})
	for range 3 {
		_, err := slot.Retrieve(context.Background(), host.Ask("bolt one"))
		e := host.RequireCode(t, err, abi.CodeUnauthenticated, "are user and password")
		assert.Equal(t, "Neo.ClientError.Security.Unauthorized", e.Reason)
		assert.Equal(t, "one", e.Route)
		assert.Equal(t, "Neo.ClientError.Security.Unauthorized: The client is unauthorized due to authentication "+
			"failure.", e.Native.Body)
		assert.False(t, e.Retryable)
	}
	assert.Equal(t, 1, s.Logons(), "three would have locked the user, the right password included")
	mu.Lock()
	now = now.Add(10 * time.Second) // how long a rejection is remembered
	mu.Unlock()
	_, err := slot.Retrieve(context.Background(), host.Ask("bolt one"))
	host.RequireCode(t, err, abi.CodeUnauthenticated)
	assert.Equal(t, 2, s.Logons())
}

func TestManyCallersWithAWrongPasswordAskOnce(t *testing.T) {
	s := graph(t, bolt.Options{Password: "another-password"})
	slot := graphSlot(t, s, host.Options{Limits: host.Limits{Pool: 8}})
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			_, err := slot.Retrieve(context.Background(), host.Ask("bolt one"))
			assert.Equal(t, abi.CodeUnauthenticated, abi.CodeOf(err))
		})
	}
	callers.Wait()
	assert.Equal(t, 1, s.Logons())
}

func TestLockedUserIsTold(t *testing.T) {
	s := graph(t, bolt.Options{Password: host.TestSecret})
	for range 3 {
		c := graphConfig(s.URL("bolt"))
		c.Secrets["P"] = host.Secret{Value: func() (string, error) {
			return "wrong-password", nil
		}, Origin: c.Secrets["P"].Origin}
		_, err := host.OpenSlot(t, host.Open(t, host.Options{}), c).Retrieve(context.Background(), host.Ask("bolt one"))
		require.Error(t, err)
	}
	_, err := graphSlot(t, s, host.Options{}).Retrieve(context.Background(), host.Ask("bolt one"))
	e := host.RequireCode(t, err, abi.CodeUnauthenticated, "locks the user for some seconds")
	assert.Equal(t, "Neo.ClientError.Security.AuthenticationRateLimit", e.Reason)
	assert.True(t, e.Retryable)
}

func TestServerThatWasRestartedIsUsedAgain(t *testing.T) {
	s := graph(t, bolt.Options{Password: host.TestSecret})
	slot := graphSlot(t, s, host.Options{})
	host.RunCommands(t, slot, "e1", `bolt create {"id":1}`)
	s.Stop()
	_, err := slot.Retrieve(context.Background(), host.Ask("bolt one"))
	host.RequireCode(t, err, abi.CodeUnavailable, "cannot be reached", "is Neo4j running")
	require.NoError(t, s.Listen())
	host.Retrieved(t, slot, "bolt one")
	s.Stop()
	require.NoError(t, s.Listen())
	host.RunCommands(t, slot, "e2", `bolt create {"id":2}`)
	assert.Len(t, s.Ran(), 3, "a dead connection is found out before the statement is sent, and no statement is sent "+
		"twice")
}

func TestConnectionThatBreaksIsAnErrorAndNoEmptyResult(t *testing.T) {
	s := graph(t, bolt.Options{Password: host.TestSecret})
	slot := graphSlot(t, s, host.Options{})
	rows := make([][]any, 10)
	for i := range rows {
		rows[i] = []any{int64(i)}
	}
	for name, a := range map[string]bolt.Answer{"before an answer": {Drop: true},
		"in the middle of the rows": {Columns: []string{"value"}, Rows: rows, DropAfter: 5}} {
		t.Run(name, func(t *testing.T) {
			s.Handle(givenStatement, reply(a))
			before := len(s.Ran())
			_, err := slot.Retrieve(context.Background(), host.Ask(`bolt given {"value":1}`))
			e := host.RequireCode(t, err, abi.CodeUnavailable)
			assert.Equal(t, "given", e.Route)
			assert.True(t, e.Retryable)
			assert.Len(t, s.Ran(), before+1, "and nothing is sent again")
			host.Retrieved(t, slot, "bolt one")
		})
	}
}

func TestRefusedAddressIsRefusedWhateverNamedIt(t *testing.T) {
	for _, url := range []string{"bolt://169.254.169.254", "neo4j://[fe80::1]:7687", "bolt+s://0.0.0.0",
		"bolt://[::ffff:169.254.169.254]:7687"} {
		_, err := host.OpenSlot(t, host.Open(t, host.Options{}), host.ProbeConfig(fmt.Sprintf(`{"db":%q}`,
			url))).Retrieve(context.Background(), host.Ask("bolt one"))
		e := host.RequireCode(t, err, abi.CodeDenied, "always refused")
		assert.Equal(t, "address", e.Reason)
	}
	t.Run("a routing table", func(t *testing.T) {
		elsewhere := []string{"169.254.169.254:7687"}
		var s *bolt.Server
		s = graph(t, bolt.Options{Password: host.TestSecret, Route: func() bolt.Routes {
			return bolt.Routes{Readers: elsewhere, Writers: []string{s.Address()}, Routers: []string{s.Address()}}
		}})
		slot := host.OpenSlot(t, host.Open(t, host.Options{}), graphConfig(s.URL("neo4j")))
		_, err := slot.Retrieve(context.Background(), host.Ask("bolt one"))
		host.RequireCode(t, err, abi.CodeDenied, "169.254.169.254:7687")
		assert.Empty(t, s.Ran())
	})
}

func TestClusterIsRoutedAndReadsSeeWhatWasWritten(t *testing.T) {
	s := graph(t, bolt.Options{Password: host.TestSecret})
	slot := host.OpenSlot(t, host.Open(t, host.Options{}), graphConfig(s.URL("neo4j")))
	host.RunCommands(t, slot, "e1", `bolt create {"id":1}`)
	host.Retrieved(t, slot, "bolt one")
	require.Len(t, s.Ran(), 2)
	assert.Equal(t, "w", s.Ran()[0].Mode)
	assert.Equal(t, "r", s.Ran()[1].Mode)
	assert.NotEmpty(t, s.Ran()[1].Bookmarks)
}

func TestTLSWantsACertificateUnlessToldOtherwise(t *testing.T) {
	web := httptest.NewTLSServer(nil)
	web.Close()
	s := graph(t, bolt.Options{Password: host.TestSecret, TLS: web.TLS})
	host.Retrieved(t, host.OpenSlot(t, host.Open(t, host.Options{}), graphConfig(s.URL("bolt+ssc"))), "bolt one")
	_, err := host.OpenSlot(t, host.Open(t, host.Options{}), graphConfig(s.URL("bolt+s"))).Retrieve(context.Background(),
		host.Ask("bolt one"))
	host.RequireCode(t, err, abi.CodeUnavailable, "certificate")
}

func TestHTTPPortIsNoDatabase(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"))
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	_, err = host.OpenSlot(t, host.Open(t, host.Options{}), graphConfig("bolt://"+listener.Addr().String())).Retrieve(
		context.Background(), host.Ask("bolt one"))
	host.RequireCode(t, err, abi.CodeBackend, "not of its HTTP one")
}

func TestConnectionsEndWithTheProvider(t *testing.T) {
	s := graph(t, bolt.Options{Password: host.TestSecret})
	h := host.Open(t, host.Options{})
	slot, err := h.Open(context.Background(), graphConfig(s.URL("bolt")))
	require.NoError(t, err)
	host.Retrieved(t, slot, "bolt one")
	assert.Equal(t, 1, s.Connections())
	require.NoError(t, slot.Close(context.Background()))
	require.Eventually(t, func() bool { return s.Connections() == 0 }, 10*time.Second, time.Millisecond)
}

func TestManyCallersShareThePool(t *testing.T) {
	s := graph(t, bolt.Options{Password: host.TestSecret})
	slot := graphSlot(t, s, host.Options{Limits: host.Limits{Pool: 4}})
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			n := i + 1
			r, err := slot.Retrieve(context.Background(), host.Ask(fmt.Sprintf(`bolt_count rows {"n":%d}`, n)))
			if assert.NoError(t, err) {
				assert.Contains(t, string(r.Raw.Calls[0].Body), fmt.Sprintf("%d rows, %d values", n, 2*n))
			}
		})
	}
	callers.Wait()
	assert.LessOrEqual(t, s.Accepted(), 4)
}

func TestPortOfADatabaseIsTheUsualOneWhereNoneIsGiven(t *testing.T) {
	c := graphConfig("bolt://127.0.0.1")
	c.Secrets["P"] = host.Secret{Value: c.Secrets["P"].Value, Origin: "bolt://127.0.0.1:7687"}
	host.OpenSlot(t, host.Open(t, host.Options{}), c)
	c.Secrets["P"] = host.Secret{Value: c.Secrets["P"].Value, Origin: "bolt://127.0.0.1:7688"}
	_, err := host.Open(t, host.Options{}).Open(context.Background(), c)
	host.RequireCode(t, err, abi.CodeInvalidArgument, "bound to bolt://127.0.0.1:7688")
}
