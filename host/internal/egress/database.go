package egress

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	_ "time/tzdata" // a ZONED DATETIME may name any zone, and the machine may lack zone files

	"github.com/memhost/memhost/abi"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j/config"
)

// boltSchemes are the schemes that a database address may have. bolt connects to that address only, neo4j also to those
// in the cluster's routing table. Connections are plain, use TLS (+s), or use TLS with any certificate (+ssc).
var boltSchemes = []string{"bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc"}

// database is the server behind a bolt origin, with one pool of connections. It is safe for concurrent use. It connects
// when a statement first needs a connection.
type database struct {
	address        string // scheme, host and port
	name           string // empty: the user's home database
	user, password string // without a password, connect without logging on
	now            func() time.Time

	// gate lets one caller at a time test address and credentials, until they have worked once.
	gate   chan struct{}
	proved atomic.Bool

	mu     sync.Mutex
	driver neo4j.DriverWithContext
	// in a cluster: makes writes visible to later reads, whichever server answers them
	memory  neo4j.BookmarkManager
	refusal error     // the server's rejection of the credentials
	until   time.Time // don't send them again before
}

// logOnPause is how long rejected credentials are not sent again: after three failures the database locks the user for
// all clients, even with the right password.
const logOnPause = 10 * time.Second

func newDatabase(address, name string, now func() time.Time) *database {
	return &database{address: address, name: name, now: now, gate: make(chan struct{}, 1)}
}

// logOnAs sets the credentials; an empty user means neo4j. It must be called before the first statement.
func (d *database) logOnAs(user, password string) {
	if user == "" {
		user = "neo4j"
	}
	d.user, d.password = user, password
}

// statement is one statement of the manifest, ready to run.
type statement struct {
	text        string
	params      map[string]any
	reads       bool
	timeout     time.Duration // of the transaction, if the context has no deadline
	rows, bytes int64         // limits of what is kept
}

// unsentError is why a statement was not sent.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

var errRowTooLarge = errors.New("a row is larger than the limit")

// run runs a statement once, in its own transaction, and returns its rows as JSON, cut at the limits. It never retries:
// connections are checked before use, and a statement that breaks off later may have taken effect.
//
// Errors: a Failure is what the database answered; an unsentError means that the statement was not sent. Rows that came
// before an error are returned for accounting.
func (d *database) run(ctx context.Context, s statement) (head *abi.BoltResult, rows []byte, err error) {
	ctx, watch := watchDials(ctx)
	defer watch.stop()
	defer func() { err = watch.explain(err) }()
	driver, err := d.open(ctx)
	if err != nil {
		return nil, nil, &unsentError{err}
	}
	mode := neo4j.AccessModeWrite
	if s.reads {
		mode = neo4j.AccessModeRead
	}
	session := driver.NewSession(ctx,
		neo4j.SessionConfig{AccessMode: mode, DatabaseName: d.name, BookmarkManager: d.memory})
	defer func() { _ = session.Close(ctx) }() // its error would come after the answer
	if deadline, ok := ctx.Deadline(); ok {
		s.timeout = time.Until(deadline)
	}
	// In whole milliseconds; 0 would mean no timeout.
	result, err := session.Run(ctx, s.text, s.params, neo4j.WithTxTimeout(max(time.Millisecond, s.timeout)))
	if err != nil {
		return nil, nil, d.note(err)
	}
	head = new(abi.BoltResult)
	if head.Columns, err = result.Keys(); err != nil {
		return nil, nil, d.note(err)
	}
	var rowErr error
	for record := new(neo4j.Record); !head.More && result.NextRecord(ctx, &record); {
		if head.Rows == s.rows {
			head.More = true
			break
		}
		before := len(rows)
		if rows, rowErr = appendRow(rows, record.Values); rowErr != nil {
			break
		}
		if int64(len(rows)) > s.bytes {
			rows, head.More = rows[:before], true
			if head.Rows == 0 {
				rowErr = errRowTooLarge
			}
			break
		}
		head.Rows++
	}
	// After a cut, the server discards the remaining rows but runs the statement to its end: a write takes effect as a
	// whole, however many of its rows are kept.
	summary, err := result.Consume(ctx)
	if err != nil {
		return nil, rows, d.note(err)
	}
	if rowErr != nil {
		return nil, rows, rowErr
	}
	head.Counters, head.Server = countersOf(summary.Counters()), summary.Server().Agent()
	return head, rows, nil
}

// open returns the driver, logged on. Until this has worked once, one caller tries, and the others wait for its result.
func (d *database) open(ctx context.Context) (neo4j.DriverWithContext, error) {
	if d.proved.Load() {
		return d.current()
	}
	select {
	case d.gate <- struct{}{}:
		defer func() { <-d.gate }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	driver, err := d.current()
	if err != nil || d.proved.Load() {
		return driver, err
	}
	if err := driver.VerifyConnectivity(ctx); err != nil {
		return nil, d.note(err)
	}
	d.proved.Store(true)
	return driver, nil
}

// current returns the driver, or the rejection of the credentials while it applies.
func (d *database) current() (neo4j.DriverWithContext, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refusal != nil && d.now().Before(d.until) {
		return nil, d.refusal
	}
	d.refusal = nil
	if d.driver != nil {
		return d.driver, nil
	}
	auth := neo4j.NoAuth()
	if d.password != "" {
		auth = neo4j.BasicAuth(d.user, d.password, "")
	}
	driver, err := neo4j.NewDriverWithContext(d.address, auth, func(c *config.Config) {
		c.UserAgent = "memhost"
		c.TelemetryDisabled = true
		c.SocketConnectTimeout = dialTimeout
		c.ConnectionAcquisitionTimeout = -1 // no limit: the call's deadline applies
		c.ConnectionLivenessCheckTimeout = 0
	})
	if err != nil {
		return nil, err
	}
	d.driver = driver
	if strings.HasPrefix(d.address, "neo4j") {
		d.memory = neo4j.NewBookmarkManager(neo4j.BookmarkManagerConfig{})
	}
	return driver, nil
}

// note converts an error of the driver to one of the host, and remembers a rejection of the credentials.
func (d *database) note(err error) error {
	var connectivity *neo4j.ConnectivityError // it does not unwrap
	if errors.As(err, &connectivity) {
		err = connectivity.Inner
	}
	var failure *neo4j.Neo4jError
	switch {
	case errors.As(err, &failure):
		err = &Failure{Code: failure.Code, Message: failure.Msg}
	case neverLeft(err):
		return &unsentError{err}
	default:
		return err
	}
	if refusesCredentials(failure.Code) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.refusal, d.until = err, d.now().Add(logOnPause)
		d.proved.Store(false)
	}
	return err
}

func refusesCredentials(code string) bool {
	switch code {
	case "Neo.ClientError.Security.Unauthorized", "Neo." + rateLimited, "Neo.ClientError.Security.CredentialsExpired":
		return true
	}
	return false
}

// close closes every connection. No statement may be running.
func (d *database) close(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.driver != nil {
		_ = d.driver.Close(ctx)
		d.driver = nil
	}
	d.proved.Store(false)
}

// countersOf lists what a statement changed, by Bolt's names with _ instead of -.
func countersOf(c neo4j.Counters) map[string]int64 {
	counters := map[string]int64{}
	for name, n := range map[string]int{
		"nodes_created":         c.NodesCreated(),
		"nodes_deleted":         c.NodesDeleted(),
		"relationships_created": c.RelationshipsCreated(),
		"relationships_deleted": c.RelationshipsDeleted(),
		"properties_set":        c.PropertiesSet(),
		"labels_added":          c.LabelsAdded(),
		"labels_removed":        c.LabelsRemoved(),
		"indexes_added":         c.IndexesAdded(),
		"indexes_removed":       c.IndexesRemoved(),
		"constraints_added":     c.ConstraintsAdded(),
		"constraints_removed":   c.ConstraintsRemoved(),
		"system_updates":        c.SystemUpdates(),
	} {
		if n != 0 {
			counters[name] = int64(n)
		}
	}
	return counters
}
