package main

import (
	"errors"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// backend is mem0 as one operation sees it.
type backend struct {
	*sdk.Call
	settings *settings
	surface  *surface
	ids      scopeIDs
}

// open finds out what the server is, if this instance does not know yet, and which ids the scope has there.
func open(c *sdk.Call) (*backend, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	b := &backend{Call: c, settings: s, ids: s.idsFor(c)}
	b.surface, err = b.findSurface()
	return b, err
}

func (b *backend) platform() bool { return b.surface.api == apiPlatform }

// request is one native call. A body is JSON.
type request struct {
	route  string
	params abi.Members[string]
	query  []abi.QueryParam
	body   []byte
}

// send makes the call and returns the body of a 2xx answer; any other answer is an error that keeps it.
func (b *backend) send(r request) ([]byte, error) {
	head, body, err := b.exchange(r)
	if err != nil {
		return nil, err
	}
	if head.Status < 200 || head.Status > 299 {
		return nil, failure(r.route, head, body)
	}
	return body, nil
}

func (b *backend) exchange(r request) (*abi.HTTPResponse, []byte, error) {
	return b.HTTP(abi.HTTPRequest{Route: r.route, Params: r.params, Query: r.query, Headers: b.headers(len(r.body) > 0)}, r.body)
}

// headers of a request with or without a body. They are the same for the life of a surface, and nobody changes them.
func (b *backend) headers(body bool) abi.Members[string] {
	var kept *abi.Members[string]
	if b.surface != nil {
		if kept = &b.surface.headers; body {
			kept = &b.surface.bodyHeaders
		}
		if *kept != nil {
			return *kept
		}
	}
	headers := abi.Members[string]{{Name: "accept", Value: "application/json"}}
	if name, value := b.authorization(); name != "" {
		headers = append(headers, abi.Member[string]{Name: name, Value: value})
	}
	if body {
		headers = append(headers, abi.Member[string]{Name: "content-type", Value: "application/json"})
	}
	if kept != nil {
		*kept = headers
	}
	return headers
}

// authorization is the header that carries the key. The self-hosted server knows no Token, and a wrong Bearer there hides a valid X-API-Key.
func (b *backend) authorization() (name, value string) {
	const key = "{{secret:api_key}}"
	mode := b.settings.auth
	if mode == "auto" {
		mode = "x_api_key"
		if b.surface != nil && b.platform() {
			mode = "token"
		}
	}
	switch {
	case !b.settings.authorized:
		return "", ""
	case mode == "bearer":
		return "authorization", "Bearer " + key
	case mode == "token":
		return "authorization", "Token " + key
	default:
		return "x-api-key", key
	}
}

func memoryParam(id string) abi.Members[string] {
	return abi.Members[string]{{Name: "memory_id", Value: id}}
}

// readObject walks a JSON object that a route answered. Errors: backend, where it is none.
func readObject(route string, body []byte, field func(d *jsontext.Decoder, key string) error) error {
	d := jsontext.DecodeBytes(body)
	err := d.Obj(field)
	if err == nil {
		err = atEnd(d)
	}
	return unusable(route, body, err)
}

// readArray walks a JSON array that a route answered.
func readArray(route string, body []byte, element func(d *jsontext.Decoder) error) error {
	d := jsontext.DecodeBytes(body)
	err := d.Arr(element)
	if err == nil {
		err = atEnd(d)
	}
	return unusable(route, body, err)
}

func atEnd(d *jsontext.Decoder) error {
	if d.Next() != jsontext.Invalid {
		return errors.New("more than one JSON value")
	}
	return nil
}

// unusable is the error of a 2xx answer that is not what the route answers.
func unusable(route string, body []byte, err error) error {
	if err == nil && jsontext.ValidUTF8(body) {
		return nil
	}
	var found *abi.Error
	if errors.As(err, &found) {
		return found // what the reader found in it, not how it reads
	}
	e := abi.NewError(abi.CodeBackend, "mem0 answered route "+route+" with something that is not its answer").WithReason("unusable_answer")
	e.Route, e.Native = route, &abi.NativeError{Status: sdk.Ptr(int64(200)), Body: clip(body)}
	if err != nil {
		e.Message += ": " + err.Error()
	}
	return e
}

// clip keeps the beginning of a body, as much as an error carries, as valid text.
func clip(body []byte) string {
	return strings.ToValidUTF8(string(body[:min(len(body), abi.NativeBodyLimit)]), "?")
}

// readText is a string; any other value is skipped and gives "".
func readText(d *jsontext.Decoder) (string, error) {
	if d.Next() != jsontext.String {
		return "", d.Skip()
	}
	return d.Str()
}

// readNumber is a number; any other value is skipped and not told.
func readNumber(d *jsontext.Decoder) (n number, err error) {
	if d.Next() != jsontext.Number {
		return n, d.Skip()
	}
	n.told = true
	n.value, err = d.Float64()
	return n, err
}

// readFlag is true or false; any other value is skipped and counts as false.
func readFlag(d *jsontext.Decoder) (bool, error) {
	if d.Next() != jsontext.Bool {
		return false, d.Skip()
	}
	return d.Bool()
}

// eachIn walks an object, or an array by elements with an empty key; any other value is skipped.
func eachIn(d *jsontext.Decoder, visit func(d *jsontext.Decoder, key string) error) error {
	switch d.Next() {
	case jsontext.Object:
		return d.Obj(visit)
	case jsontext.Array:
		return d.Arr(func(d *jsontext.Decoder) error { return visit(d, "") })
	default:
		return d.Skip()
	}
}
