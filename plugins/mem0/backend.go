package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// backend is mem0 during one operation.
type backend struct {
	*sdk.Call
	*settings
	surface *surface
	ids     scopeIDs
}

// withBackend adapts an operation on a backend to the sdk.
func withBackend[In, Out any](operation func(*backend, In) (Out, error)) func(*sdk.Call, In) (Out, error) {
	return func(c *sdk.Call, in In) (out Out, err error) {
		b, err := open(c)
		if err != nil {
			return out, err
		}
		return operation(b, in)
	}
}

// open determines what the server is, unless this instance knows, and the scope's ids there. An operation that needs
// the whole configuration is rejected if the server does not support all of it.
func open(c *sdk.Call) (*backend, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	b := &backend{Call: c, settings: s, ids: idsOf(s.config, c.Scope, c.Generation)}
	if b.surface, err = b.findSurface(); err != nil {
		return nil, err
	}
	switch c.Op {
	case abi.OpSetupScope, abi.OpRecordEvent, abi.OpRetrieve:
		err = b.checkFeatures()
	}
	return b, err
}

func (b *backend) platform() bool { return b.surface.api == apiPlatform }

// route returns the name of a route that both surfaces have.
func (b *backend) route(name string) string {
	if b.platform() {
		return "platform_" + name
	}
	return name
}

// request is one native call. A body is JSON.
type request struct {
	route  string
	params map[string]string
	query  []abi.QueryParam
	body   []byte
}

// ask is send for an answer that is a JSON object; it reads members of it into their places.
//
// Errors: those of send; backend with reason unusable_answer.
func (b *backend) ask(r request, places ...any) (abi.Raw, error) {
	body, err := b.send(r)
	if err != nil {
		return nil, err
	}
	return body, read(r.route, body, places...)
}

// read reads members of a 2xx answer that is an object.
func read(route string, body abi.Raw, places ...any) error {
	if err := wire.Open(body, places...); err != nil {
		return unusable(route, body, err.Error())
	}
	return nil
}

// send makes the call and returns the body of a 2xx answer; any other answer is an error that contains it.
func (b *backend) send(r request) (abi.Raw, error) {
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
	headers := map[string]string{"accept": "application/json"}
	if name, value := b.authorization(); name != "" {
		headers[name] = value
	}
	if len(r.body) > 0 {
		headers["content-type"] = "application/json"
	}
	return b.HTTP(abi.HTTPRequest{Route: r.route, Params: r.params, Query: r.query, Headers: headers}, r.body)
}

// authorization returns the header with the key. The self-hosted server does not accept Token, and a wrong Bearer there
// overrides a valid X-API-Key.
func (b *backend) authorization() (name, value string) {
	const key = "{{secret:api_key}}"
	mode := b.auth
	if mode == "auto" && b.surface != nil && b.platform() {
		mode = "token"
	}
	switch {
	case !b.authorized:
		return "", ""
	case mode == "bearer":
		return "authorization", "Bearer " + key
	case mode == "token":
		return "authorization", "Token " + key
	default:
		return "x-api-key", key
	}
}

func memoryParam(id string) map[string]string {
	return map[string]string{"memory_id": id}
}

// unusable returns the error for a 2xx answer that is not what the route returns.
func unusable(route string, body []byte, why string) *abi.Error {
	return sdk.Unusable(route, 200, body, "is not one of mem0's: "+why)
}
