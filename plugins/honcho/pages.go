package main

import (
	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// pageSize is the most that Honcho's lists give.
const pageSize = 100

// list fetches one page of a list by a route.
//
//go:noinline
func (s *settings) list(c *sdk.Call, r request, number, size int64, newestFirst bool) ([]jsontext.Raw, page, error) {
	r.query = []abi.QueryParam{{Key: "page", Value: sdk.Itoa(number)}, {Key: "size", Value: sdk.Itoa(size)}}
	if newestFirst {
		r.query = append(r.query, abi.QueryParam{Key: "reverse", Value: "true"})
	}
	if r.body == nil {
		r.body = []byte("{}")
	}
	answer, err := s.send(c, r)
	if err != nil {
		return nil, page{}, err
	}
	items, head, err := readPage(answer.body)
	if err != nil {
		return nil, page{}, unusable(r.route, answer.status, answer.body, "is no list: "+err.Error())
	}
	return items, head, nil
}

// listIDs is list for ids only; nothing else of the page is kept.
func (s *settings) listIDs(c *sdk.Call, r request, number, size int64, newestFirst bool) ([]string, page, error) {
	items, head, err := s.list(c, r, number, size, newestFirst)
	if err != nil {
		return nil, head, err
	}
	ids, err := readIDs(items)
	if err != nil {
		return nil, head, unusable(r.route, 200, nil, "is no list of things with ids: "+err.Error())
	}
	c.Reuse(head.body)
	return ids, head, nil
}

// count asks a list for its total only.
//
//go:noinline
func (s *settings) count(c *sdk.Call, r request) (int64, error) {
	_, head, err := s.list(c, r, 1, 1, false)
	return head.total, err
}

// sessions lists active sessions of the scope, one page. In a fixed workspace they are those that the peer belongs to.
func (s *settings) sessions(c *sdk.Call, n *native, peer string, number int64) ([]string, page, error) {
	r := request{route: "sessions_list", workspace: n.workspace}
	if s.fixed != "" {
		r.route, r.peer, r.body = "peer_sessions", peer, filters(func(e *jsontext.Encoder) { e.FieldStart("is_active"); e.Bool(true) })
	}
	return s.listIDs(c, r, number, pageSize, false)
}

// members are the peers whose sessions together are all of the scope's: one stands for all in a workspace of the scope's own.
func (s *settings) members(n *native) []string {
	if s.fixed == "" {
		return []string{n.user}
	}
	return n.peers()
}

// filters is the body of a list or search with the filters that write puts in.
//
//go:noinline
func filters(write func(e *jsontext.Encoder)) []byte {
	var e jsontext.Encoder
	e.ObjStart()
	e.FieldStart("filters")
	e.ObjStart()
	write(&e)
	e.ObjEnd()
	e.ObjEnd()
	return e.Bytes()
}

// field writes a text. What is filtered by never comes from outside unescaped: "*" would drop the condition.
//
//go:noinline
func field(e *jsontext.Encoder, name, value string) {
	e.FieldStart(name)
	e.Str(value)
}

// about filters conclusions by whose they are: the self-collection of the user's peer, which is the one that the deriver writes by default.
func (n *native) about(e *jsontext.Encoder) {
	field(e, "observer_id", n.user)
	field(e, "observed_id", n.user)
}

// within begins a field that is an object.
//
//go:noinline
func within(e *jsontext.Encoder, name string) {
	e.FieldStart(name)
	e.ObjStart()
}

// flag writes a boolean.
//
//go:noinline
func flag(e *jsontext.Encoder, name string, value bool) {
	e.FieldStart(name)
	e.Bool(value)
}
