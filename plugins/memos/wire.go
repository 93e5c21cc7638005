package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// answer is MemOS's envelope {code, message, data} (api/product_models.py: BaseResponse), and the body that it came in.
type answer struct {
	body    []byte
	code    int64
	message string
	// data is nil where the envelope has none, or null.
	data jsontext.Raw
}

// post sends a JSON body by a route.
func (s *settings) post(c *sdk.Call, route string, body []byte) (*answer, error) {
	return s.send(c, abi.HTTPRequest{Route: route, Headers: s.jsonHeaders}, body)
}

// get asks a route without a body.
func (s *settings) get(c *sdk.Call, route string, query ...abi.QueryParam) (*answer, error) {
	return s.send(c, abi.HTTPRequest{Route: route, Query: query, Headers: s.headers}, nil)
}

// memories posts a JSON body by a route that answers with groups of memories, and refuses one of another cube. What is as it should be is read in one pass; of
// everything else send and readGroups say what is wrong with it.
//
// Errors: those of send and readGroups.
func (s *settings) memories(c *sdk.Call, route string, body []byte, cube string) ([]group, *answer, error) {
	head, text, err := c.HTTP(abi.HTTPRequest{Route: route, Headers: s.jsonHeaders}, body)
	if err != nil {
		return nil, nil, err
	}
	if q := (quick{code: 200}); head.Status == 200 && abi.UnmarshalOwned(text, &q) == nil && q.code == 200 && q.has {
		a := &answer{body: text, code: 200}
		if err := checkOwner(route, a, cube, q.groups); err != nil {
			return nil, nil, err
		}
		return q.groups, a, nil
	}
	a, err := judge(route, head, text)
	if err != nil {
		return nil, nil, err
	}
	groups, err := readGroups(route, a, cube)
	return groups, a, err
}

// quick is an envelope whose data is read as groups while the envelope is.
type quick struct {
	code   int64
	groups []group
	// has tells that there were groups.
	has bool
}

// Decode implements abi.Decodable.
func (q *quick) Decode(d *jsontext.Decoder, _ abi.Mode) error {
	fields, err := d.ObjIter()
	for err == nil && fields.Next() {
		switch key := fields.Name(); {
		case key == "code":
			q.code, err = d.Int64()
		case key == "data" && d.Next() != jsontext.Null:
			q.has = true
			q.groups, err = groupsIn(d)
		default:
			err = d.Skip()
		}
	}
	if err != nil {
		return err
	}
	return fields.Err()
}

// send returns a successful envelope. Everything else is an error that keeps what the server said.
//
// Errors: those of the way there as the host gave them; else by status, and backend for an answer that is no envelope or says otherwise inside.
func (s *settings) send(c *sdk.Call, r abi.HTTPRequest, body []byte) (*answer, error) {
	head, text, err := c.HTTP(r, body)
	if err != nil {
		return nil, err
	}
	return judge(r.Route, head, text)
}

// judge is send for what has come back.
//
//go:noinline
func judge(route string, head *abi.HTTPResponse, text []byte) (*answer, error) {
	a, ok := openAnswer(text)
	switch {
	case head.Status != 200:
		return nil, refusal(route, head, a, text)
	case !ok:
		return nil, failure(abi.CodeBackend, route, head.Status, "the answer is no JSON that MemOS gives", text).WithReason("unusable")
	case a.code != 200:
		return nil, failure(abi.CodeBackend, route, head.Status, "code "+sdk.Itoa(a.code)+" inside an answer of status 200: "+a.message, text)
	}
	return a, nil
}

// openAnswer reads an envelope; GET /health has none and reads as one of code 200.
func openAnswer(body []byte) (*answer, bool) {
	a := &answer{body: body, code: 200}
	err := abi.UnmarshalOwned(body, a)
	return a, err == nil
}

// dataOf is data of an answer that memories gave.
func (a *answer) dataOf() jsontext.Raw {
	if a.data == nil {
		opened, _ := openAnswer(a.body)
		a.data = opened.data
	}
	return a.data
}

// Decode implements abi.Decodable, whose users look for depth and for what follows the value.
func (a *answer) Decode(d *jsontext.Decoder, _ abi.Mode) error {
	return d.Obj(func(d *jsontext.Decoder, key string) (err error) {
		switch key {
		case "code":
			a.code, err = d.Int64()
			return err
		case "message", "detail":
			return readText(d, &a.message)
		case "data":
			if d.Next() == jsontext.Null {
				return d.Null()
			}
			a.data, err = d.Raw()
			return err
		}
		return d.Skip()
	})
}

// refusal is the error of a status that is not 200 (api/exceptions.py).
func refusal(route string, head *abi.HTTPResponse, a *answer, text []byte) error {
	message := a.message
	if message == "" {
		message = "status " + sdk.Itoa(head.Status)
	}
	code := abi.CodeBackend
	switch status := head.Status; {
	case status == 400 || status == 422:
		code = abi.CodeInvalidArgument
	case status == 401:
		code = abi.CodeUnauthenticated
	case status == 403:
		code = abi.CodeDenied
	case status == 404 || status == 410:
		code = abi.CodeNotFound
	case status == 409:
		code = abi.CodeConflict
	case status == 408 || status == 504:
		code = abi.CodeTimeout
	case status == 413:
		code = abi.CodeTooLarge
	case status == 429:
		code = abi.CodeRateLimited
	case status == 502 || status == 503 || status == 500 && storeDown(a.message):
		code = abi.CodeUnavailable
	}
	e := failure(code, route, head.Status, message, text)
	switch {
	case code == abi.CodeRateLimited:
		e.RetryAfterMS = retryAfter(head.Headers.Get("retry-after"))
	case head.Status == 404 && a.message == "Not Found":
		e.Code = abi.CodeBackend
		e.Hint = "the server has no such route: MemOS before 2.0.20 and its former apps (start_api, product_api) used other paths; run memos.api.server_api"
	case code == abi.CodeUnavailable && head.Status == 500:
		e.Reason = "store"
		e.Hint = "is the graph database running? MemOS connects again by itself when it is back"
	}
	return e
}

// storeDown tells a 500 that holds the graph driver's words for a lost connection from any other.
func storeDown(message string) bool {
	for _, word := range []string{"connect", "Connection", "ServiceUnavailable", "SessionExpired", "Unable to retrieve routing"} {
		if strings.Contains(message, word) {
			return true
		}
	}
	return false
}

// retryAfter reads the header's seconds; a date, or nothing, is nil.
func retryAfter(header string) *int64 {
	seconds, err := strconv.ParseInt(strings.TrimSpace(header), 10, 64)
	if err != nil || seconds < 0 || seconds > 1<<31 {
		return nil
	}
	return sdk.Ptr(seconds * 1000)
}

// failure is an error that keeps what the server said.
func failure(code abi.Code, route string, status int64, message string, body []byte) *abi.Error {
	e := abi.NewError(code, route+": "+message)
	e.Route = route
	e.Native = &abi.NativeError{Status: &status, Body: string(body[:min(len(body), abi.NativeBodyLimit)])}
	return e
}

// unusable is the error of an answer of status 200 that does not hold what it should.
func unusable(route string, a *answer, what string) *abi.Error {
	return failure(abi.CodeBackend, route, 200, what, a.body).WithReason("unusable")
}

// breach is the error of an item that belongs to somebody else.
func breach(route string, a *answer, cube, found string) *abi.Error {
	return failure(abi.CodeIsolationBreach, route, 200, "asked for cube "+cube+", and the answer holds an item of "+strconv.Quote(found), a.body).
		WithHint("with GRAPH_DB_BACKEND=neo4j the server needs MOS_NEO4J_SHARED_DB=true, or it keeps no cubes apart")
}

// object writes a JSON object.
func object(fields func(e *jsontext.Encoder)) []byte {
	var e jsontext.Encoder
	e.SetBytes(make([]byte, 0, 640)) // what most need
	e.ObjStart()
	fields(&e)
	e.ObjEnd()
	return e.Bytes()
}

func putText(e *jsontext.Encoder, name, value string) {
	e.FieldStart(name)
	e.Str(value)
}

func putNumber(e *jsontext.Encoder, name string, value int64) {
	e.FieldStart(name)
	e.Int64(value)
}

func putBool(e *jsontext.Encoder, name string, value bool) {
	e.FieldStart(name)
	e.Bool(value)
}

func putTexts(e *jsontext.Encoder, name string, values ...string) {
	e.FieldStart(name)
	e.ArrStart()
	for _, value := range values {
		e.Str(value)
	}
	e.ArrEnd()
}
