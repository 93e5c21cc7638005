package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// backend is Honcho during one operation, with the ids by which it addresses the scope.
type backend struct {
	*sdk.Call
	*settings
	*native
	// speakerMode is how this scope distinguishes its named speakers; scopeSpeakers are the speakers who have peers.
	speakerMode   string
	scopeSpeakers []speaker
}

// withBackend adapts an operation on a backend to the sdk.
func withBackend[In, Out any](operation func(*backend, In) (Out, error)) func(*sdk.Call, In) (Out, error) {
	return func(c *sdk.Call, in In) (out Out, err error) {
		s, err := settingsOf(c)
		if err != nil {
			return out, err
		}
		b := &backend{Call: c, settings: s, native: s.native(c)}
		if err = b.loadSpeakers(); err != nil {
			return out, err
		}
		return operation(b, in)
	}
}

// request is one native call.
type request struct {
	route string
	// Path parameters; an empty one is not part of the route's path. An empty workspace means the scope's, unless the
	// path has none.
	workspace, session, peer, message, conclusion string
	noWorkspace                                   bool
	query                                         []abi.QueryParam
	body                                          []byte
}

// reply is an answer of Honcho with a 2xx status, or with one that the manifest declares as empty.
type reply struct {
	status int64
	empty  bool
	body   abi.Raw
}

// send makes a call. A status that is neither a success nor declared as empty is an error, and so is a success whose
// body is not JSON.
func (b *backend) send(r request) (*reply, error) {
	head, body, err := b.exchange(r)
	if err != nil {
		return nil, err
	}
	if !head.Empty && (head.Status < 200 || head.Status > 299) {
		return nil, failure(r.route, head, body)
	}
	if len(body) > 0 || head.Status != 204 {
		if err := wire.Check(body); err != nil {
			return nil, sdk.Unusable(r.route, head.Status, body, "is not JSON: "+err.Error())
		}
	}
	return &reply{head.Status, head.Empty, body}, nil
}

// exchange makes a call and returns any answer of Honcho.
func (b *backend) exchange(r request) (*abi.HTTPResponse, []byte, error) {
	if r.workspace == "" && !r.noWorkspace {
		r.workspace = b.workspace
	}
	params := map[string]string{}
	for _, p := range [][2]string{{"workspace", r.workspace}, {"session", r.session}, {"peer", r.peer},
		{"message", r.message}, {"conclusion", r.conclusion}} {
		if p[1] != "" {
			params[p[0]] = p[1]
		}
	}
	return b.HTTP(abi.HTTPRequest{Route: r.route, Params: params, Query: r.query, Headers: b.headers}, r.body)
}

// failure returns the typed error for an answer that is not a success. It keeps the body unchanged.
func failure(route string, head *abi.HTTPResponse, body []byte) *abi.Error {
	message := detail(body)
	e := sdk.Failure(route, head, body, message)
	most := limitIn(body)
	switch status := head.Status; {
	case status == 401 || status == 403: // Honcho answers 401 for every denial
		e.Code = abi.CodeUnauthenticated
		e.Hint = "look at api_key: a workspace-scoped key cannot create other workspaces (set fixed_workspace, or " +
			"use an admin key), and a key made with expires_at never works"
	case status == 409 && strings.Contains(message, "Unable to create or get"):
		e.Hint = "the API's cache may still hold what was deleted; without Redis that lasts " +
			"CACHE_DEFAULT_TTL_SECONDS (300 s)"
	case status == 500:
		e.Hint = "Honcho does not say why: its log does. Database, embedding provider, LLM, and a session lock " +
			"waited for longer than 5 s all look like this"
	case status >= 300 && status <= 399:
		e.Hint = "the server redirects: write its own address into url, without /v3 and without a slash at the end"
	case e.Code == abi.CodeInvalidArgument && most != "" && strings.Contains(message, "tokens"):
		e.Hint = "the server takes at most " + most + " tokens: set context_tokens to that"
	}
	return e
}

// maxDetail is the maximum length of Honcho's message within an error message; native has the rest.
const maxDetail = 500

// detail returns the message of Honcho's error. It has two forms: a string, and a list of {loc, msg, input}, whose
// input repeats the whole invalid value and is left out here.
func detail(body abi.Raw) string {
	if wire.Check(body) != nil {
		return ""
	}
	value := wire.At(body, "detail")
	words := []string{wire.Text(value)}
	for i, item := range wire.Items(value) {
		var loc []abi.Raw
		var what string
		wire.Pick(item, "loc", &loc, "msg", &what)
		where := make([]string, len(loc))
		for j, step := range loc {
			if where[j] = wire.Text(step); wire.Kind(step) != wirejson.String {
				where[j] = string(step)
			}
		}
		words = append(words[:i], strings.Join(where, ".")+": "+what)
	}
	return clip(strings.Join(words, "; "), maxDetail)
}

// limitIn returns the upper limit that a 422 list contains: "ctx": {"le": 100000}.
func limitIn(body []byte) string {
	_, rest, _ := strings.Cut(string(body), `"le":`)
	rest = strings.TrimLeft(rest, " ")
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	return rest[:end]
}

// clip returns the beginning of a text, at most n bytes, without splitting a character.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
