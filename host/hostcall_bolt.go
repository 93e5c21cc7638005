package host

import (
	"bytes"
	"context"
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
		if err := m.parse(stack[0], stack[1], &r); err != nil {
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
	decl := route.decl
	if err := c.willSend(decl.Class); err != nil {
		return nil, nil, err
	}
	began := time.Now()
	seen := abi.IO{Route: decl.Name, Class: string(decl.Class), BytesOut: int64(len(r.Params))}
	answer, err := c.intercepted(func() NativeCall {
		return NativeCall{Route: decl.Name, Class: decl.Class, Origin: decl.Origin, Protocol: abi.ProtocolBolt, Statement: decl.Statement, Body: r.Params}
	}, func(ctx context.Context) (NativeAnswer, error) {
		head, rows, err := route.origin.database.run(ctx, statement{text: decl.Statement, params: params, reads: decl.Class == abi.ClassRead,
			timeout: c.provider.deadline(c.op), rows: c.provider.limits.Rows, bytes: c.provider.limits.BodyBytes})
		return NativeAnswer{Body: rows, Bolt: head}, err
	})
	took := time.Since(began)
	c.backend += took
	seen.Status, seen.MS, seen.BytesIn = boltStatus(err), ms(took), int64(len(answer.Body))
	c.io = append(c.io, seen)
	c.didSend(decl.Class, boltLanding(decl.Statement, err))
	if err != nil {
		return nil, nil, c.boltError(route, err)
	}
	if answer.Bolt == nil {
		answer.Bolt = &abi.BoltResult{Rows: int64(bytes.Count(answer.Body, []byte{'\n'}))}
	}
	return answer.Bolt, c.provider.redactor.bytes(answer.Body), nil
}

// boltStatus gives the outcome of a statement a number as HTTP has them, for a trace: Bolt knows SUCCESS and FAILURE, and the first word of a failure's
// code says whose fault it was. 0: there was no answer.
func boltStatus(err error) int64 {
	var failure *NativeFailure
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

// boltLanding judges what became of a statement that writes. A transaction that failed by the client's fault was rolled back, unless the statement has
// transactions of its own (CALL ... IN TRANSACTIONS).
func boltLanding(text string, err error) landing {
	var unsent *unsentError
	switch {
	case errors.As(err, &unsent):
		return landedNot
	case err != nil && strings.Contains(strings.ToUpper(text), "TRANSACTIONS"):
		return landedPerhaps
	}
	return landingOf(int(boltStatus(err)))
}

// boltError says why there are no rows.
func (c *call) boltError(r *route, err error) *abi.Error {
	at := r.origin.base.Scheme + "://" + r.origin.base.Host
	var unreadable *rowError
	var failure *NativeFailure
	switch {
	case errors.Is(err, errRowTooLarge):
		return abi.WrapError(abi.CodeTooLarge, fmt.Sprintf("%s answered route %s with a row of more than %d bytes", at, r.decl.Name, c.provider.limits.BodyBytes), err)
	case errors.As(err, &unreadable):
		return abi.WrapError(abi.CodeBackend, fmt.Sprintf("%s answered route %s with a value that cannot be read: %v", at, r.decl.Name, err), err)
	case errors.Is(err, errAddress):
		return abi.WrapError(abi.CodeDenied, fmt.Sprintf("%s: %v", at, err), err).WithReason("address")
	case errors.As(err, &failure):
		return failureError(at, r.decl, failure)
	case c.ctx.Err() != nil || c.remaining() == 0:
		return abi.WrapError(abi.CodeTimeout, fmt.Sprintf("%s did not answer route %s in time", at, r.decl.Name), err)
	}
	var usage *neo4j.UsageError
	if errors.As(err, &usage) {
		return abi.WrapError(abi.CodeBackend, fmt.Sprintf("%s, route %s: %v", at, r.decl.Name, err), err).
			WithHint("is the address that of Neo4j's Bolt connector (7687), not of its HTTP one (7474)?")
	}
	var unsent *unsentError
	if errors.As(err, &unsent) {
		return abi.WrapError(abi.CodeUnavailable, fmt.Sprintf("%s cannot be reached for route %s: %v", at, r.decl.Name, err), err).
			WithHint("is Neo4j running, and are address and scheme (bolt, or bolt+s for TLS) right?")
	}
	return abi.WrapError(abi.CodeUnavailable, fmt.Sprintf("the connection to %s broke in route %s: %v", at, r.decl.Name, err), err)
}

// failureError gives a failure of the database its code of the contract. Neo4j's own goes into reason, with its message into native.
//
// Source: Neo4j status codes, https://neo4j.com/docs/status-codes/5/errors/all-errors/.
func failureError(at string, decl abi.RouteDecl, failure *NativeFailure) *abi.Error {
	code, hint := abi.CodeBackend, ""
	var retry *int64
	name, _ := strings.CutPrefix(failure.Code, "Neo.")
	switch {
	case name == "ClientError.Security.AuthenticationRateLimit":
		pause := logOnPause.Milliseconds()
		code, retry = abi.CodeUnauthenticated, &pause
		hint = "after three wrong passwords Neo4j locks the user for some seconds (dbms.security.auth_lock_time), and refuses the right password too"
	case name == "ClientError.Security.Forbidden":
		code, hint = abi.CodeDenied, "the user lacks a privilege for this statement"
	case strings.HasPrefix(name, "ClientError.Security."):
		code, hint = abi.CodeUnauthenticated, "are user and password of the config block right?"
	case name == "ClientError.Transaction.TransactionTimedOut" || name == "ClientError.Transaction.TransactionTimedOutClientConfiguration":
		code = abi.CodeTimeout
	case name == "ClientError.Cluster.NotALeader" || name == "ClientError.General.ForbiddenOnReadOnlyDatabase":
		code, hint = abi.CodeUnavailable, "this server of the cluster may not write now; an address of scheme neo4j finds the one that may"
	case strings.HasPrefix(name, "TransientError."):
		code = abi.CodeUnavailable
	case name == "ClientError.Statement.AccessMode":
		hint = fmt.Sprintf("route %s is of class %s, but its statement writes: a defect of the module's manifest", decl.Name, decl.Class)
	case name == "ClientError.Database.DatabaseNotFound":
		hint = "is the database's name in the config block right?"
	}
	e := abi.WrapError(code, fmt.Sprintf("%s refused route %s: %s", at, decl.Name, failure.Message), failure).WithReason(failure.Code).WithHint(hint)
	if retry != nil {
		e.Retryable, e.RetryAfterMS = true, retry
	}
	e.Native = &abi.NativeError{Body: failure.Error()}
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
