package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// request is one native call.
type request struct {
	route string
	// Path parameters; an empty one is not of the route's path.
	workspace, session, peer, conclusion string
	query                                []abi.QueryParam
	body                                 []byte
}

// reply is what Honcho answered with a 2xx status, or with one that the manifest declares as empty.
type reply struct {
	status int64
	empty  bool
	body   []byte
}

// send makes a call. Any status that is no success and not declared as empty is an error, and so is a success whose body is not JSON.
//
//go:noinline
func (s *settings) send(c *sdk.Call, r request) (*reply, error) {
	answer, err := s.sendUnchecked(c, r)
	if err != nil {
		return nil, err
	}
	if err := answer.check(r.route); err != nil {
		return nil, err
	}
	return answer, nil
}

// sendUnchecked is send for a caller that reads the whole body, and calls check where it fails to.
//
//go:noinline
func (s *settings) sendUnchecked(c *sdk.Call, r request) (*reply, error) {
	head, body, err := s.exchange(c, r)
	if err != nil {
		return nil, err
	}
	switch {
	case head.Empty:
	case head.Status < 200 || head.Status > 299:
		return nil, failure(r.route, head, body)
	}
	return &reply{status: head.Status, empty: head.Empty, body: body}, nil
}

// check is an error where the body is not JSON.
//
//go:noinline
func (r *reply) check(route string) error {
	if len(r.body) > 0 && !abi.ValidJSON(r.body) || len(r.body) == 0 && r.status != 204 {
		return unusable(route, r.status, r.body, "is not JSON")
	}
	return nil
}

// exchange makes a call and returns whatever Honcho answered.
//
//go:noinline
func (s *settings) exchange(c *sdk.Call, r request) (*abi.HTTPResponse, []byte, error) {
	params := make(abi.Members[string], 0, 4)
	inPath(&params, "workspace", r.workspace)
	inPath(&params, "session", r.session)
	inPath(&params, "peer", r.peer)
	inPath(&params, "conclusion", r.conclusion)
	return c.HTTP(abi.HTTPRequest{Route: r.route, Params: params, Query: r.query, Headers: s.headers}, r.body)
}

//go:noinline
func inPath(params *abi.Members[string], name, value string) {
	if value != "" {
		*params = append(*params, abi.Member[string]{Name: name, Value: value})
	}
}

// failure is the typed error of an answer that is no success. The body is kept as it came.
//
//go:noinline
func failure(route string, head *abi.HTTPResponse, body []byte) *abi.Error {
	code, hint := abi.CodeBackend, ""
	said := detail(body)
	switch head.Status {
	case 400, 422:
		code = abi.CodeInvalidArgument
	case 401, 403: // Honcho answers 401 for every denial
		code = abi.CodeUnauthenticated
		hint = "look at api_key: a workspace-scoped key cannot create other workspaces (set fixed_workspace, or use an admin key), and a key made with expires_at never works"
	case 404:
		code = abi.CodeNotFound
	case 409:
		code = abi.CodeConflict
		if strings.Contains(said, "Unable to create or get") {
			hint = "the API's cache may still hold what was deleted; without Redis that lasts CACHE_DEFAULT_TTL_SECONDS (300 s)"
		}
	case 413:
		code = abi.CodeTooLarge
	case 429:
		code = abi.CodeRateLimited
	case 502, 503:
		code = abi.CodeUnavailable
	case 504:
		code = abi.CodeTimeout
	case 500:
		hint = "Honcho does not say why: its log does. Database, embedding provider, LLM, and a session lock waited for longer than 5 s all look like this"
	default:
		if head.Status >= 300 && head.Status <= 399 {
			hint = "the server redirects: write its own address into url, without /v3 and without a slash at the end"
		}
	}
	if most := limitIn(body); code == abi.CodeInvalidArgument && most != "" && strings.Contains(said, "tokens") {
		hint = "the server takes at most " + most + " tokens: set context_tokens to that"
	}
	message := "Honcho answered " + route + " with status " + sdk.Itoa(head.Status)
	if said != "" {
		message += ": " + said
	}
	e := abi.NewError(code, message).WithHint(hint)
	e.Route, e.Native = route, nativeError(head.Status, body)
	if seconds, err := strconv.ParseFloat(head.Headers.Get("retry-after"), 64); err == nil && seconds >= 0 && seconds < 1e6 {
		e.RetryAfterMS = sdk.Ptr(int64(seconds * 1000))
	}
	return e
}

// unusable is the error of an answer that cannot be read.
//
//go:noinline
func unusable(route string, status int64, body []byte, what string) *abi.Error {
	e := abi.NewError(abi.CodeBackend, "Honcho's answer to "+route+" "+what)
	e.Route, e.Native = route, nativeError(status, body)
	return e
}

//go:noinline
func nativeError(status int64, body []byte) *abi.NativeError {
	if len(body) > abi.NativeBodyLimit {
		body = body[:abi.NativeBodyLimit]
	}
	return &abi.NativeError{Status: &status, Body: strings.ToValidUTF8(string(body), "\uFFFD")}
}

// maxDetail bounds what a message repeats of Honcho's words; native has the rest.
const maxDetail = 500

// detail is what Honcho's error says in words. It has two shapes: a string, and a list of {loc, msg, input}, whose input repeats the whole offending
// value and is left out here.
func detail(body []byte) string {
	var said []string
	if !abi.ValidJSON(body) {
		return ""
	}
	_ = eachField(jsontext.DecodeBytes(body), func(d *jsontext.Decoder, key string) error {
		if key != "detail" {
			return d.Skip()
		}
		switch d.Next() {
		case jsontext.String:
			text, err := d.Str()
			said = append(said, text)
			return err
		case jsontext.Array:
			return d.Arr(func(d *jsontext.Decoder) error {
				var where []string
				var what string
				err := eachField(d, func(d *jsontext.Decoder, key string) (err error) {
					switch {
					case key == "loc" && d.Next() == jsontext.Array:
						return d.Arr(func(d *jsontext.Decoder) error {
							if d.Next() == jsontext.String {
								part, err := d.Str()
								where = append(where, part)
								return err
							}
							raw, err := d.Raw()
							where = append(where, string(raw))
							return err
						})
					case key == "msg" && d.Next() == jsontext.String:
						what, err = d.Str()
						return err
					}
					return d.Skip()
				})
				said = append(said, strings.Join(where, ".")+": "+what)
				return err
			})
		}
		return d.Skip()
	})
	return clip(strings.Join(said, "; "), maxDetail)
}

// limitIn is the number that a 422 list gives as its upper limit: "ctx": {"le": 100000}.
func limitIn(body []byte) string {
	_, rest, _ := strings.Cut(string(body), `"le":`)
	rest = strings.TrimLeft(rest, " ")
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	return rest[:end]
}

// clip is the beginning of a text, up to so many bytes, ending between characters.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
