package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// scopeID is the native id of the call's scope and generation.
func (s *settings) scopeID(c *sdk.Call) string {
	generation := strconv.FormatInt(c.Generation, 10)
	switch s.fault {
	case naiveScope:
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
				return r
			}
			return '_'
		}, s.provider+"_"+c.Scope.RunID+"_"+c.Scope.PersonaID+"_"+generation)
	case foldsCase:
		return s.native(strings.ToLower(c.Scope.RunID), strings.ToLower(c.Scope.PersonaID), c.Scope.AgentID,
			generation)
	case noGeneration:
		return s.native(c.Scope.RunID, c.Scope.PersonaID, c.Scope.AgentID, "1")
	}
	return s.native(c.Scope.RunID, c.Scope.PersonaID, c.Scope.AgentID, generation)
}

func (s *settings) native(parts ...string) string {
	return sdk.NativeID(sdk.IDRules{Plain: sdk.AlphaNumeric, Escape: '_', Separator: '-'},
		append([]string{s.provider, s.space}, parts...)...)
}

// call sends a request about the call's scope. An answer that means nothing there is nil.
func (s *settings) call(c *sdk.Call, route string, query []abi.QueryParam, body []byte) ([]byte, error) {
	r := abi.HTTPRequest{Route: route, Query: query}
	switch route {
	case "health", "remove_prefix":
	default:
		r.Params = map[string]string{"scope": s.scopeID(c)}
	}
	return s.send(c, r, body)
}

// send is call with a request that is complete.
func (s *settings) send(c *sdk.Call, r abi.HTTPRequest, body []byte) ([]byte, error) {
	route := r.Route
	if body != nil {
		sdk.Put(&r.Headers, "content-type", "application/json")
	}
	head, answer, err := c.HTTP(r, body)
	switch {
	case err != nil:
		return nil, err
	case head.Empty:
		return nil, nil
	case head.Status >= 300:
		return nil, s.failed(route, head, answer)
	}
	if !wirejson.Valid(answer) {
		return nil, s.unusable(route, head, answer)
	}
	return answer, nil
}

// failed is the error for an answer that is one.
func (s *settings) failed(route string, head *abi.HTTPResponse, body []byte) error {
	code := abi.CodeBackend
	switch head.Status {
	case 401:
		code = abi.CodeUnauthenticated
	case 404:
		code = abi.CodeNotFound
	case 409:
		code = abi.CodeConflict
	case 429:
		code = abi.CodeRateLimited
	case 502, 503:
		code = abi.CodeUnavailable
	}
	if s.fault == untyped {
		code = abi.CodeInternal
	}
	e := s.explained(code, "the backend answered "+strconv.FormatInt(head.Status, 10), route, head, body)
	if after, err := strconv.ParseInt(head.Headers["retry-after"], 10, 64); err == nil && s.fault != noRetryAfter {
		e.RetryAfterMS = sdk.Ptr(after * 1000)
	}
	return e
}

// unusable is the error for an answer that cannot be read.
func (s *settings) unusable(route string, head *abi.HTTPResponse, body []byte) error {
	return s.explained(abi.CodeBackend, "the backend's answer cannot be used", route, head, body)
}

func (s *settings) explained(code abi.Code, message, route string, head *abi.HTTPResponse, body []byte) *abi.Error {
	if s.fault == trapsOnErrors {
		panic(message)
	}
	e := abi.NewError(code, route+": "+message)
	e.Route = route
	if s.fault != hidesNative {
		e.Native = &abi.NativeError{Status: &head.Status, Body: string(body)}
	}
	return e
}

// item is one item of the backend.
type item struct {
	id, eventID, text, kind, createdAt, session string
	score                                       *float64
}

// parseItems reads {"items": [...]}; it wants the list to be there.
func parseItems(body []byte) ([]item, error) {
	items, there := []item{}, false
	err := wirejson.DecodeBytes(body).Obj(func(d *wirejson.Decoder, key string) error {
		if key != "items" {
			return d.Skip()
		}
		there = true
		return d.Arr(func(d *wirejson.Decoder) error {
			it, err := parseItem(d)
			items = append(items, it)
			return err
		})
	})
	if err == nil && !there {
		err = abi.NewError(abi.CodeBackend, "the answer holds no items")
	}
	return items, err
}

func parseItem(d *wirejson.Decoder) (it item, err error) {
	err = d.Obj(func(d *wirejson.Decoder, key string) (err error) {
		switch key {
		case "id":
			it.id, err = d.Str()
		case "event_id":
			it.eventID, err = d.Str()
		case "text":
			it.text, err = d.Str()
		case "type":
			it.kind, err = d.Str()
		case "created_at":
			it.createdAt, err = d.Str()
		case "session":
			it.session, err = d.Str()
		case "score":
			var score float64
			score, err = d.Float64()
			it.score = &score
		default:
			err = d.Skip()
		}
		return err
	})
	return it, err
}

// field reads one text of an object; "" if it is missing.
func field(body []byte, name string) string {
	text := ""
	_ = wirejson.DecodeBytes(body).Obj(func(d *wirejson.Decoder, key string) (err error) {
		if key != name || d.Next() != wirejson.String {
			return d.Skip()
		}
		text, err = d.Str()
		return err
	})
	return text
}
