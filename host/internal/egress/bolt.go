package egress

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

// Failure is the error for a failure that a Bolt server returned.
type Failure struct {
	// Code is the server's, such as Neo.ClientError.Statement.SyntaxError.
	Code, Message string
}

// Error implements error.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// sendBolt is Send for a Bolt call.
func (c *Call) sendBolt(ctx context.Context) (Answer, error) {
	head, rows, err := c.Route.origin.database.run(ctx, c.bolt)
	var unsent *unsentError
	if !errors.As(err, &unsent) {
		c.sent.Add(1)
	}
	return Answer{Body: rows, Bolt: head}, err
}

// BoltAnswer turns the result of Send into what the guest gets: head and rows, without secrets. ctx is the context of
// the whole operation.
//
// Errors: too_large for a row beyond the limit; backend for a value that JSON cannot represent and for most failures of
// the database; denied, unauthenticated, timeout or unavailable depending on the failure or on how the connection
// broke.
func (c *Call) BoltAnswer(ctx context.Context, answer Answer, err error) (*abi.BoltResult, []byte, error) {
	if err != nil {
		return nil, nil, c.boltError(ctx, err)
	}
	if answer.Bolt == nil {
		answer.Bolt = &abi.BoltResult{Rows: int64(bytes.Count(answer.Body, []byte{'\n'}))}
	}
	clean := c.Route.redactor
	head := *answer.Bolt
	head.Columns = slices.Clone(head.Columns)
	for i, name := range head.Columns {
		head.Columns[i] = clean.Text(name)
	}
	head.Counters = make(map[string]int64, len(answer.Bolt.Counters))
	for name, n := range answer.Bolt.Counters {
		head.Counters[clean.Text(name)] = n
	}
	head.Server = clean.Text(head.Server)
	return &head, clean.Bytes(answer.Body), nil
}

// boltStatus turns the outcome of a statement into an HTTP-like status, for a trace. Bolt has SUCCESS (200) and
// FAILURE. The first word of a failure's code says who is at fault: the client (400), the database (500), or no one
// because it is temporary (503). 0 means no answer.
func boltStatus(err error) int64 {
	var failure *Failure
	var unreadable *rowError
	switch {
	case err == nil || errors.Is(err, errRowTooLarge) || errors.As(err, &unreadable):
		return 200
	case !errors.As(err, &failure):
		return 0
	case strings.HasPrefix(failure.Code, "Neo.ClientError."):
		return 400
	case strings.HasPrefix(failure.Code, "Neo.TransientError."):
		return 503
	}
	return 500
}

// boltEffect judges the effect of a statement that writes. A transaction that failed because of the client was rolled
// back, unless the statement starts its own transactions (CALL ... IN TRANSACTIONS).
func boltEffect(text string, err error) Effect {
	var unsent *unsentError
	switch {
	case errors.As(err, &unsent):
		return EffectNone
	case err != nil && strings.Contains(strings.ToUpper(text), "TRANSACTIONS"):
		return EffectUnknown
	}
	return EffectOfStatus(int(boltStatus(err)))
}

// boltError explains why there are no rows.
func (c *Call) boltError(ctx context.Context, err error) *abi.Error {
	at, route := c.Route.origin.address(), c.Route.Name
	because := func(code abi.Code, format string, args ...any) *abi.Error {
		return abi.WrapError(code, fmt.Sprintf(format, args...), err)
	}
	var unreadable *rowError
	var failure *Failure
	var usage *neo4j.UsageError
	var unsent *unsentError
	switch {
	case errors.Is(err, errRowTooLarge):
		return because(abi.CodeTooLarge, "%s answered route %s with a row of more than %d bytes", at, route,
			c.Route.bodyBytes)
	case errors.As(err, &unreadable):
		return because(abi.CodeBackend, "%s answered route %s with a value that cannot be read: %v", at, route, err)
	case errors.Is(err, errAddress):
		return because(abi.CodeDenied, "%s: %v", at, err).WithReason("address")
	case errors.As(err, &failure):
		return failureError(at, &c.Route.RouteDecl, failure)
	case timedOut(ctx):
		return because(abi.CodeTimeout, "%s did not answer route %s in time", at, route)
	case errors.As(err, &usage):
		return because(abi.CodeBackend, "%s, route %s: %v", at, route, err).
			WithHint("is the address that of Neo4j's Bolt connector (7687), not of its HTTP one (7474)?")
	case errors.As(err, &unsent):
		return because(abi.CodeUnavailable, "%s cannot be reached for route %s: %v", at, route, err).
			WithHint("is Neo4j running, and are address and scheme (bolt, or bolt+s for TLS) right?")
	}
	return because(abi.CodeUnavailable, "the connection to %s broke in route %s: %v", at, route, err)
}

// failures maps the database's codes, without their first word "Neo.", to those of the contract. The first matching
// prefix applies; any other code is backend.
//
// Source: Neo4j status codes, https://neo4j.com/docs/status-codes/5/errors/all-errors/.
var failures = []struct {
	prefix string
	code   abi.Code
	hint   string
}{
	{rateLimited, abi.CodeUnauthenticated, "after three wrong passwords Neo4j locks the user for some seconds " +
		"(dbms.security.auth_lock_time), and refuses the right password too"},
	{"ClientError.Security.Forbidden", abi.CodeDenied, "the user lacks a privilege for this statement"},
	{"ClientError.Security.", abi.CodeUnauthenticated, "are user and password of the config block right?"},
	{"ClientError.Transaction.TransactionTimedOut", abi.CodeTimeout, ""}, // set by the server or the client
	{"ClientError.Cluster.NotALeader", abi.CodeUnavailable, hintLeader},
	{"ClientError.General.ForbiddenOnReadOnlyDatabase", abi.CodeUnavailable, hintLeader},
	{"TransientError.", abi.CodeUnavailable, ""},
	{"ClientError.Statement.AccessMode", abi.CodeBackend,
		"the route is of class read, but its statement writes: a defect of the module's manifest"},
	{"ClientError.Database.DatabaseNotFound", abi.CodeBackend, "is the database's name in the config block right?"},
}

const (
	rateLimited = "ClientError.Security.AuthenticationRateLimit"
	hintLeader  = "this server of the cluster may not write now; an address of scheme neo4j finds the one that may"
)

// failureError converts a failure of the database to an error of the contract. Neo4j's own code goes into reason, its
// message into native.
func failureError(at string, decl *abi.RouteDecl, failure *Failure) *abi.Error {
	code, hint := abi.CodeBackend, ""
	name := strings.TrimPrefix(failure.Code, "Neo.")
	for _, f := range failures {
		if strings.HasPrefix(name, f.prefix) {
			code, hint = f.code, f.hint
			break
		}
	}
	e := abi.WrapError(code, fmt.Sprintf("%s refused route %s: %s", at, decl.Name, failure.Message), failure).
		WithReason(failure.Code).WithHint(hint)
	if name == rateLimited {
		pause := logOnPause.Milliseconds()
		e.Retryable, e.RetryAfterMS = true, &pause
	}
	e.Native = &abi.NativeError{Body: failure.Error()}
	return e
}

// boltParams parses the parameters of a statement.
func boltParams(text abi.Raw) (map[string]any, error) {
	if len(text) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	value, err := boltValue(d, "params")
	if err != nil {
		return nil, err
	}
	params, ok := value.(map[string]any)
	if !ok {
		return nil, abi.NewError(abi.CodeInvalidArgument, "params: want an object")
	}
	return params, nil
}

// boltValue parses one JSON value into a value of Cypher. at is its path, for messages.
func boltValue(d *json.Decoder, at string) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, at+": not JSON: "+err.Error())
	}
	switch t := token.(type) {
	case json.Number:
		return boltNumber(t, at)
	case json.Delim:
		if t == '[' {
			list := []any{}
			for i := 0; d.More(); i++ {
				v, err := boltValue(d, fmt.Sprintf("%s[%d]", at, i))
				if err != nil {
					return nil, err
				}
				list = append(list, v)
			}
			_, err := d.Token()
			return list, err
		}
		object := map[string]any{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, abi.NewError(abi.CodeInvalidArgument, at+": not JSON: "+err.Error())
			}
			name, _ := key.(string)
			if _, twice := object[name]; twice {
				return nil, abi.NewError(abi.CodeInvalidArgument,
					fmt.Sprintf("%s: has the key %q twice", at, short(name)))
			}
			if object[name], err = boltValue(d, at+"."+short(name)); err != nil {
				return nil, err
			}
		}
		_, err := d.Token()
		return object, err
	}
	return token, nil
}

func boltNumber(n json.Number, at string) (any, error) {
	if !strings.ContainsAny(n.String(), ".eE") {
		i, err := n.Int64()
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument,
				fmt.Sprintf("%s: %s is no whole number of 64 bits", at, short(n.String())))
		}
		return i, nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("%s: %s is no number of 64 bits", at, short(n.String())))
	}
	return f, nil
}
