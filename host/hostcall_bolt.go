package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

// hostBoltRun runs the statement of one route of the manifest and holds its rows for the guest.
func hostBoltRun(c *call, m guestMemory, stack []uint64) {
	stack[0] = func() uint64 {
		var r abi.BoltRequest
		if err := abi.UnmarshalStrict(m.view(stack[0], stack[1]), &r); err != nil {
			return c.refuse(err)
		}
		head, rows, err := c.query(&r)
		if err != nil {
			e := *abi.AsError(err)
			e.Route = r.Route
			return c.refuse(&e)
		}
		return c.answer(head, rows)
	}()
}

// query checks a statement against policy and mode, runs it and accounts for it.
func (c *call) query(r *abi.BoltRequest) (*abi.BoltResult, []byte, error) {
	route, err := c.routeFor(r.Route, abi.ProtocolBolt)
	if err != nil {
		return nil, nil, err
	}
	params, err := boltParams(r.Params)
	if err != nil {
		return nil, nil, err
	}
	began := time.Now()
	seen := abi.IO{Route: route.decl.Name, Class: string(route.decl.Class), BytesOut: int64(len(r.Params))}
	head, rows, err := route.origin.database.run(c.ctx, statement{text: route.decl.Statement, params: params,
		reads: route.decl.Class == abi.ClassRead, deadline: c.deadline, rows: c.provider.limits.Rows, bytes: c.provider.limits.BodyBytes})
	took := time.Since(began)
	c.backend += took
	seen.Status, seen.MS, seen.BytesIn = boltStatus(err), ms(took), int64(len(rows))
	c.io = append(c.io, seen)
	if err != nil {
		return nil, nil, c.boltError(route, err)
	}
	return head, c.provider.redactor.bytes(rows), nil
}

// boltStatus gives the outcome of a statement a number as HTTP has them, for a trace: Bolt knows SUCCESS and FAILURE, and the first word of a failure's
// code says whose fault it was. 0: there was no answer.
func boltStatus(err error) int64 {
	if err == nil || errors.Is(err, errRowTooLarge) {
		return 200
	}
	var unreadable *rowError
	if errors.As(err, &unreadable) {
		return 200
	}
	failure := failureIn(err)
	switch {
	case failure == nil:
		return 0
	case failure.Classification() == "ClientError":
		return 400
	case failure.Classification() == "TransientError":
		return 503
	}
	return 500
}

// failureIn finds what the database itself said. The driver's own wrapper does not unwrap.
func failureIn(err error) *neo4j.Neo4jError {
	var connectivity *neo4j.ConnectivityError
	if errors.As(err, &connectivity) {
		err = connectivity.Inner
	}
	var failure *neo4j.Neo4jError
	if errors.As(err, &failure) {
		return failure
	}
	return nil
}

// boltError says why there are no rows.
func (c *call) boltError(r *route, err error) *abi.Error {
	at := r.origin.base.Scheme + "://" + r.origin.base.Host
	var refused *abi.Error
	var unreadable *rowError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, errRowTooLarge):
		return abi.WrapError(abi.CodeTooLarge, fmt.Sprintf("%s answered route %s with a row of more than %d bytes", at, r.decl.Name, c.provider.limits.BodyBytes), err)
	case errors.As(err, &unreadable):
		return abi.WrapError(abi.CodeBackend, fmt.Sprintf("%s answered route %s with a value that cannot be read: %v", at, r.decl.Name, err), err)
	case errors.Is(err, errAddress):
		return abi.WrapError(abi.CodeDenied, fmt.Sprintf("%s: %v", at, err), err).WithReason("address")
	}
	if failure := failureIn(err); failure != nil {
		return failureError(at, r.decl, failure)
	}
	if c.ctx.Err() != nil || c.remaining() == 0 {
		return abi.WrapError(abi.CodeTimeout, fmt.Sprintf("%s did not answer route %s in time", at, r.decl.Name), err)
	}
	var usage *neo4j.UsageError
	if errors.As(err, &usage) {
		return abi.WrapError(abi.CodeBackend, fmt.Sprintf("%s, route %s: %v", at, r.decl.Name, err), err).
			WithHint("is the address that of Neo4j's Bolt connector (7687), not of its HTTP one (7474)?")
	}
	return abi.WrapError(abi.CodeUnavailable, fmt.Sprintf("%s cannot be reached for route %s: %v", at, r.decl.Name, err), err).
		WithHint("is Neo4j running, and are address and scheme (bolt, or bolt+s for TLS) right?")
}

// failureError gives a failure of the database its code of the contract. Neo4j's own goes into reason, with its message into native.
//
// Source: Neo4j status codes, https://neo4j.com/docs/status-codes/5/errors/all-errors/.
func failureError(at string, decl abi.RouteDecl, failure *neo4j.Neo4jError) *abi.Error {
	code, hint := abi.CodeBackend, ""
	retryable := false
	name, _ := strings.CutPrefix(failure.Code, "Neo.")
	switch {
	case name == "ClientError.Security.AuthenticationRateLimit":
		code, retryable = abi.CodeUnauthenticated, true
		hint = "after three wrong passwords Neo4j locks the user for some seconds (dbms.security.auth_lock_time), and refuses the right password too"
	case name == "ClientError.Security.Forbidden":
		code, hint = abi.CodeDenied, "the user lacks a privilege for this statement"
	case strings.HasPrefix(name, "ClientError.Security."):
		code, hint = abi.CodeUnauthenticated, "are user and password of the config block right?"
	case name == "ClientError.Transaction.TransactionTimedOut" || name == "ClientError.Transaction.TransactionTimedOutClientConfiguration":
		code = abi.CodeTimeout
	case failure.IsRetriableCluster():
		code, hint = abi.CodeUnavailable, "this server of the cluster may not write now; an address of scheme neo4j finds the one that may"
	case failure.Classification() == "TransientError":
		code = abi.CodeUnavailable
	case name == "ClientError.Statement.AccessMode":
		hint = fmt.Sprintf("route %s is of class %s, but its statement writes: a defect of the module's manifest", decl.Name, decl.Class)
	case name == "ClientError.Database.DatabaseNotFound":
		hint = "is the database's name in the config block right?"
	}
	e := abi.WrapError(code, fmt.Sprintf("%s refused route %s: %s", at, decl.Name, failure.Msg), failure).WithReason(failure.Code).WithHint(hint)
	e.Retryable = e.Retryable || retryable
	e.Native = &abi.NativeError{Body: failure.Code + ": " + failure.Msg}
	return e
}

// boltParams reads the parameters of a statement.
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

// boltValue reads one JSON value as a value of Cypher. at is its path, for messages.
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
				return nil, abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("%s: has the key %q twice", at, short(name)))
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
			return nil, abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("%s: %s is no whole number of 64 bits", at, short(n.String())))
		}
		return i, nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("%s: %s is no number of 64 bits", at, short(n.String())))
	}
	return f, nil
}
