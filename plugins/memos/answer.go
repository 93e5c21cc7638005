package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// backend is MemOS during one operation, with the scope's cube.
type backend struct {
	*sdk.Call
	*settings
	cube string
}

// withBackend adapts an operation on a backend to the sdk.
func withBackend[In, Out any](operation func(*backend, In) (Out, error)) func(*sdk.Call, In) (Out, error) {
	return func(c *sdk.Call, in In) (out Out, err error) {
		s, err := sdk.Settings(c, parseSettings)
		if err != nil {
			return out, err
		}
		return operation(&backend{Call: c, settings: s, cube: s.cubeOf(c.Scope, c.Generation)}, in)
	}
}

// answer is MemOS's envelope {code, message, data} (api/product_models.py: BaseResponse), with its unparsed body.
type answer struct {
	body    abi.Raw
	code    int64
	message string
	// data is nil if the envelope has none, or null.
	data abi.Raw
}

// post sends a JSON body by a route.
func (b *backend) post(route string, body wire.Object) (*answer, error) {
	return b.send(abi.HTTPRequest{Route: route, Headers: b.jsonHeaders}, body.JSON())
}

// get asks a route without a body.
func (b *backend) get(route string, query ...abi.QueryParam) (*answer, error) {
	return b.send(abi.HTTPRequest{Route: route, Query: query, Headers: b.headers}, nil)
}

// memories posts a JSON body to a route that returns groups of memories, and checks that all belong to these cubes.
//
// Errors: those of send and of groupReader.
func (b *backend) memories(route string, body wire.Object, cube string,
	others ...string) ([]*group, *answer, error) {
	var r groupReader
	a, err := b.sendFor(abi.HTTPRequest{Route: route, Headers: b.jsonHeaders}, body.JSON(), r.fields())
	if err != nil {
		return nil, nil, err
	}
	groups, err := r.groups(route, a, cube, others...)
	return groups, a, err
}

// send returns a successful envelope. Everything else is an error that keeps what the server said.
//
// Errors: those of the host call, unchanged; by the server's status; backend if the answer is not an envelope, or
// reports a failure inside.
func (b *backend) send(r abi.HTTPRequest, body []byte) (*answer, error) {
	return b.sendFor(r, body, nil)
}

// sendFor is send that reads data into the caller's places.
func (b *backend) sendFor(r abi.HTTPRequest, body []byte, data any) (*answer, error) {
	head, text, err := b.HTTP(r, body)
	if err != nil {
		return nil, err
	}
	a, ok := openAnswer(text, data)
	switch {
	case head.Status != 200:
		return nil, refusal(r.Route, head, a)
	case !ok:
		return nil, unusable(r.Route, a, "the answer is no JSON that MemOS gives")
	case a.code != 200:
		return nil, failure(abi.CodeBackend, r.Route, head.Status,
			"code "+sdk.Itoa(a.code)+" inside an answer of status 200: "+a.message, text)
	}
	return a, nil
}

// openAnswer reads an envelope; GET /health has none and is read as one with code 200. data is the place for the
// envelope's data, nil for the answer's field.
func openAnswer(body abi.Raw, data any) (a *answer, ok bool) {
	a = &answer{body: body, code: 200}
	if data == nil {
		data = &a.data
	}
	var code abi.Raw
	err := wire.Open(body, "code", &code, "message", &a.message, "detail", &a.message, "data", data)
	if err == nil && code != nil {
		a.code, err = strconv.ParseInt(string(code), 10, 64)
	}
	return a, err == nil
}

// racedMessage is the text of a KeyError in neo4j.py, _parse_node: Neo4j lists a node without its properties while
// another transaction deletes it, and every node that MemOS writes has an id.
const racedMessage = "'id'"

// reasonRace is the reason of an error with the text raced.
const reasonRace = "list_raced"

// refusal returns the error for a status other than 200 (api/exceptions.py).
func refusal(route string, head *abi.HTTPResponse, a *answer) error {
	message := a.message
	if message == "" {
		message = "status " + sdk.Itoa(head.Status)
	}
	code, hint := sdk.CodeOfStatus(head.Status), ""
	switch status := head.Status; {
	case status == 404 && a.message == "Not Found":
		code = abi.CodeBackend
		hint = "the server has no such route: MemOS before 2.0.20 and its former apps (start_api, product_api) used " +
			"other paths; run memos.api.server_api"
	case status == 500 && storeDown(a.message):
		code, hint = abi.CodeUnavailable, "is the graph database running? MemOS connects again by itself when it is "+
			"back"
	}
	e := failure(code, route, head.Status, message, a.body).WithHint(hint)
	if code == abi.CodeUnavailable && head.Status == 500 {
		e.Reason = "store"
	}
	if head.Status == 500 && a.message == racedMessage {
		e.Reason, e.Retryable = reasonRace, true
		e.Hint = "MemOS's list met a memory that its scheduler was deleting; ask again"
	}
	if code == abi.CodeRateLimited {
		e.RetryAfterMS = sdk.RetryAfter(head)
	}
	return e
}

// storeDown reports whether a 500 contains the graph driver's message about a lost connection.
func storeDown(message string) bool {
	for _, word := range []string{"connect", "Connection", "ServiceUnavailable", "SessionExpired",
		"Unable to retrieve routing"} {
		if strings.Contains(message, word) {
			return true
		}
	}
	return false
}

// failure returns an error that contains the server's answer.
func failure(code abi.Code, route string, status int64, message string, body abi.Raw) *abi.Error {
	e := abi.NewError(code, route+": "+message)
	e.Route, e.Native = route, sdk.Native(status, body)
	return e
}

// unusable returns the error for an answer of status 200 without the expected content.
func unusable(route string, a *answer, what string) *abi.Error {
	return sdk.Unusable(route, 200, a.body, "is not one of MemOS: "+what)
}

// breach returns the error for an item of another scope.
func breach(route string, a *answer, cube, found string) *abi.Error {
	return failure(abi.CodeIsolationBreach, route, 200,
		"asked for cube "+cube+", and the answer holds an item of "+strconv.Quote(found), a.body).
		WithHint("with GRAPH_DB_BACKEND=neo4j the server needs MOS_NEO4J_SHARED_DB=true, or it keeps no cubes apart")
}
