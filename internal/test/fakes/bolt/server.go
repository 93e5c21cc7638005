package bolt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"sync"
	"time"
)

// Options describe a server. The zero value allows every client.
type Options struct {
	// User and Password, when Password is set, are what a client must log on with. User is neo4j by default.
	User, Password string
	// Agent is what the server calls itself; Neo4j/5.26.2 by default.
	Agent string
	// Now is the clock of the lock after wrong passwords; time.Now by default.
	Now func() time.Time
	// TLS, when set, makes every connection begin with a handshake.
	TLS *tls.Config
	// Route is the routing table; nil names the server itself for everything.
	Route func() Routes
}

// Routes are addresses (host:port) of a cluster by what they may be asked for.
type Routes struct{ Readers, Writers, Routers []string }

// Query is one statement as it came.
type Query struct {
	Statement string
	Params    map[string]any
	// Database is the name that the client gave, empty for none.
	Database string
	// Mode is "r" or "w".
	Mode string
	// Timeout is the transaction's; 0 for none.
	Timeout time.Duration
	// User is the name of the user who logged on; empty for none.
	User string
	// Bookmarks are the transactions that the client needs to see.
	Bookmarks []string
}

// Statement is something that the server can be asked.
type Statement struct {
	// Writes says that it is refused in mode r.
	Writes bool
	// Answer answers it. Its context ends with the connection, with a RESET, and with the transaction's timeout.
	Answer func(context.Context, Query) Answer
}

// Answer is the result of a statement. Values are those that Pack takes.
type Answer struct {
	Columns []string
	Rows    [][]any
	// PackedRows are whole rows, packed, instead of Rows: for a benchmark, which is not to measure Pack.
	PackedRows []Packed
	// Counters are named as in nodes-created.
	Counters map[string]int64
	// Failure, when set, is the answer instead of rows.
	Failure *Failure
	// Drop closes the connection instead of answering; DropAfter closes it after this number of rows.
	Drop      bool
	DropAfter int
}

// Failure is an error of the database.
type Failure struct{ Code, Message string }

// Error implements error.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// lockAfter failures a user is locked for lockTime: Neo4j's dbms.security.auth_max_failed_attempts and auth_lock_time.
const (
	lockAfter = 3
	lockTime  = 5 * time.Second
)

// Server is a database that listens on a port of 127.0.0.1. It is safe for concurrent use.
type Server struct {
	options Options
	address string

	mu         sync.Mutex
	statements map[string]Statement
	listener   net.Listener
	open       map[net.Conn]context.CancelFunc
	ran        []Query
	logons     int
	accepted   int
	failures   int
	lockedTill time.Time
	serving    sync.WaitGroup
}

// TB is what Start needs of a test.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Start runs a server until the test ends.
func Start(t TB, o Options) *Server {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(s.Stop)
	return s
}

// New runs a server until Stop.
func New(o Options) (*Server, error) {
	if o.User == "" {
		o.User = "neo4j"
	}
	if o.Agent == "" {
		o.Agent = "Neo4j/5.26.2"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{options: o, statements: map[string]Statement{}, open: map[net.Conn]context.CancelFunc{},
		address: "127.0.0.1:0"}
	if err := s.Listen(); err != nil {
		return nil, err
	}
	s.address = s.listener.Addr().String()
	return s, nil
}

// Handle sets what answers a statement, by its exact text.
func (s *Server) Handle(statement string, h Statement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statements[statement] = h
}

// Address is host and port, URL the same with a scheme before it.
func (s *Server) Address() string { return s.address }

// URL is the server's address for a driver.
func (s *Server) URL(scheme string) string { return scheme + "://" + s.address }

// Ran lists the statements that were answered, in order.
func (s *Server) Ran() []Query {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ran)
}

// Logons counts attempts to log on, right or wrong.
func (s *Server) Logons() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logons
}

// Accepted counts the connections that were ever made, Connections those that are open now.
func (s *Server) Accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// Connections counts the open connections.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Listen takes the port again after a Stop. The statements are still there, the lock after wrong passwords is not.
func (s *Server) Listen() error {
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		return err
	}
	if s.options.TLS != nil {
		listener = tls.NewListener(listener, s.options.TLS)
	}
	s.mu.Lock()
	s.listener, s.failures, s.lockedTill = listener, 0, time.Time{}
	s.mu.Unlock()
	s.serving.Go(func() { s.accept(listener) })
	return nil
}

// Stop closes the port and every connection, and waits until nothing runs any more.
func (s *Server) Stop() {
	s.mu.Lock()
	_ = s.listener.Close()
	for conn, cancel := range s.open {
		cancel()
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
}

func (s *Server) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		s.mu.Lock()
		if s.listener != listener {
			s.mu.Unlock()
			cancel()
			_ = conn.Close()
			return
		}
		s.open[conn] = cancel
		s.accepted++
		s.mu.Unlock()
		s.serving.Go(func() {
			newSession(s, conn).serve(ctx)
			s.mu.Lock()
			delete(s.open, conn)
			s.mu.Unlock()
			cancel()
			_ = conn.Close()
		})
	}
}

// logOn checks credentials; the failure is what Neo4j says. Three wrong ones lock the user for a while.
func (s *Server) logOn(scheme, user, password string) *Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logons++
	if s.options.Password == "" {
		return nil
	}
	now := s.options.Now()
	switch {
	case now.Before(s.lockedTill):
		return &Failure{"Neo.ClientError.Security.AuthenticationRateLimit",
			"The client has provided incorrect authentication details too many times in a row."}
	case scheme == "basic" && user == s.options.User && password == s.options.Password:
		s.failures = 0
		return nil
	}
	if s.failures++; s.failures >= lockAfter {
		s.failures, s.lockedTill = 0, now.Add(lockTime)
	}
	return &Failure{"Neo.ClientError.Security.Unauthorized",
		"The client is unauthorized due to authentication failure."}
}

var parameter = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)

// run answers a statement.
func (s *Server) run(ctx context.Context, q Query) Answer {
	s.mu.Lock()
	h, known := s.statements[q.Statement]
	s.mu.Unlock()
	fail := func(code, format string, args ...any) Answer {
		return Answer{Failure: &Failure{code, fmt.Sprintf(format, args...)}}
	}
	if !known {
		return fail("Neo.ClientError.Statement.SyntaxError", "this server has not been told of the statement %q",
			q.Statement)
	}
	for _, m := range parameter.FindAllStringSubmatch(q.Statement, -1) {
		if _, ok := q.Params[m[1]]; !ok {
			return fail("Neo.ClientError.Statement.ParameterMissing", "Expected parameter(s): %s", m[1])
		}
	}
	if h.Writes && q.Mode == "r" {
		return fail("Neo.ClientError.Statement.AccessMode",
			"Writing in read access mode not allowed. Attempted write to %s", orNeo4j(q.Database))
	}
	s.mu.Lock()
	s.ran = append(s.ran, q)
	s.mu.Unlock()
	if q.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.Timeout)
		defer cancel()
	}
	answer := h.Answer(ctx, q)
	switch err := ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return fail("Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration",
			"The transaction has been terminated. Retry your operation in a new transaction, and you should see a "+
				"successful result. "+
				"The transaction has not completed within the timeout specified at its start by the client.")
	case err != nil:
		return fail("Neo.ClientError.Transaction.Terminated", "The transaction has been terminated.")
	}
	return answer
}

func orNeo4j(database string) string {
	if database == "" {
		return "neo4j"
	}
	return database
}
