package egress

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	_ "time/tzdata" // a ZONED DATETIME may name any zone, and the machine may have no zone files

	"github.com/memhost/memhost/abi"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j/config"
)

// boltSchemes are what an address of a database may start with: bolt goes to that address alone, neo4j also to those of
// the cluster's routing table; plain, by TLS (+s), or by TLS with any certificate (+ssc).
var boltSchemes = []string{"bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc"}

// database is the server behind a bolt origin, with one pool of connections. It is safe for concurrent use. A
// connection is made when a statement needs one.
type database struct {
	address        string // scheme, host and port
	name           string // empty: the user's home database
	user, password string // without a password nobody logs on
	now            func() time.Time

	// gate lets one caller at a time find out whether address and credentials are right, until one has.
	gate   chan struct{}
	proved atomic.Bool

	mu     sync.Mutex
	driver neo4j.DriverWithContext
	// of a cluster: what was written is seen by the next read, whichever server answers it
	memory  neo4j.BookmarkManager
	refusal error     // what the server said to the credentials
	until   time.Time // before that they are not shown again
}

// logOnPause is how long refused credentials are not sent again: three failures lock the user for everybody, even with
// the right password.
const logOnPause = 10 * time.Second

func newDatabase(address, name string, now func() time.Time) *database {
	return &database{address: address, name: name, now: now, gate: make(chan struct{}, 1)}
}

// logOnAs sets the credentials; an empty user is neo4j. It is called before the first statement.
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
	timeout     time.Duration // of the transaction, where the context has no end
	rows, bytes int64         // the most that is kept
}

// unsentError is why a statement was not sent.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

var errRowTooLarge = errors.New("a row is larger than the limit")

// run runs a statement once, in a transaction of its own, and returns its rows as JSON, cut at the limits. Nothing is
// tried again: a connection is checked before it is used, and what breaks after that may have taken effect.
//
// Errors: a Failure is what the database answered, an unsentError why the statement was not sent. Rows that came before
// an error are returned for the account.
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
	// In whole milliseconds; 0 would mean no timeout at all.
	result, err := session.Run(ctx, s.text, s.params, neo4j.WithTxTimeout(max(time.Millisecond, s.timeout)))
	if err != nil {
		return nil, nil, d.note(err)
	}
	head = new(abi.BoltResult)
	if head.Columns, err = result.Keys(); err != nil {
		return nil, nil, d.note(err)
	}
	var kept error
	for record := new(neo4j.Record); !head.More && result.NextRecord(ctx, &record); {
		if head.Rows == s.rows {
			head.More = true
			break
		}
		before := len(rows)
		if rows, kept = appendRow(rows, record.Values); kept != nil {
			break
		}
		if int64(len(rows)) > s.bytes {
			rows, head.More = rows[:before], true
			if head.Rows == 0 {
				kept = errRowTooLarge
			}
			break
		}
		head.Rows++
	}
	// The server discards what follows a cut, and the statement runs to its end: a write takes effect as a whole,
	// however many of its rows are kept.
	summary, err := result.Consume(ctx)
	if err != nil {
		return nil, rows, d.note(err)
	}
	if kept != nil {
		return nil, rows, kept
	}
	head.Counters, head.Server = countersOf(summary.Counters()), summary.Server().Agent()
	return head, rows, nil
}

// open returns the driver, logged on. Until that has worked once, one caller tries, and the others wait for its result.
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

// current returns the driver, or the refusal that still stands.
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
		c.ConnectionAcquisitionTimeout = -1 // none: the deadline of the call counts
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

// note puts an error of the driver into words of the host, and remembers a refusal of the credentials.
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

// close closes every connection. No statement may be under way.
func (d *database) close(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.driver != nil {
		_ = d.driver.Close(ctx)
		d.driver = nil
	}
	d.proved.Store(false)
}

// countersOf lists what a statement changed, by the names that Bolt has for it, with _ for -.
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
