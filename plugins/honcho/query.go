package main

import (
	"slices"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// queries are Honcho's own reads, each within the scope: workspace, peers and the filters that separate scopes are set here, never by the caller.
//
// chat is of class write: it runs an LLM and makes the peer, and the workspace, where they are missing.
var queries = []struct {
	name  string
	takes []string
	build func(q *query, e *jsontext.Encoder)
}{
	{"chat", []string{"query", "session_id", "reasoning_level", "response_format"}, func(q *query, e *jsontext.Encoder) {
		q.request.route, q.request.peer = "chat", q.native.user
		text, _ := sanitize(q.params.need("query"))
		field(e, "query", text)
		q.optionalSession(e)
		q.params.copy(e, jsontext.String, "a string", "reasoning_level")
		q.params.copy(e, jsontext.Object, "a JSON Schema", "response_format")
	}},
	{"representation", []string{"query", "session_id", "search_top_k", "max_conclusions", "include_most_frequent"}, func(q *query, e *jsontext.Encoder) {
		q.request.route, q.request.peer = "representation", q.native.user
		if text, _ := sanitize(q.params.text("query")); text != "" {
			field(e, "search_query", text)
		}
		q.optionalSession(e)
		q.params.copy(e, jsontext.Number, "an integer", "search_top_k", "max_conclusions")
		q.params.copy(e, jsontext.Bool, "true or false", "include_most_frequent")
	}},
	{"peer_context", []string{"query", "max_conclusions"}, func(q *query, _ *jsontext.Encoder) {
		q.request.route, q.request.peer = "peer_context", q.native.user
		if text, _ := cutQuery(q.params.text("query"), q.settings.queryChars); text != "" {
			q.add("search_query", text)
		}
		q.number("max_conclusions")
	}},
	{"card", nil, func(q *query, _ *jsontext.Encoder) { q.request.route, q.request.peer = "card", q.native.user }},
	{"search", []string{"query", "limit"}, func(q *query, e *jsontext.Encoder) {
		if q.request.route = "search"; q.settings.fixed != "" {
			q.request.route, q.request.peer = "peer_search", q.native.user
		}
		text, _ := sanitize(q.params.need("query"))
		field(e, "query", text)
		q.params.copy(e, jsontext.Number, "an integer", "limit")
	}},
	{"conclusions_query", []string{"query", "top_k", "distance"}, func(q *query, e *jsontext.Encoder) {
		q.request.route = "conclusions_query"
		text, _ := sanitize(q.params.need("query"))
		field(e, "query", text)
		q.params.copy(e, jsontext.Number, "a number", "top_k", "distance")
		q.filters(e, q.native.about)
	}},
	{"conclusions_list", []string{"level", "times_derived", "page", "size"}, func(q *query, e *jsontext.Encoder) {
		q.request.route = "conclusions_list"
		q.filters(e, func(e *jsontext.Encoder) {
			q.native.about(e)
			if level := q.params.text("level"); level != "" {
				if !slices.Contains([]string{"explicit", "deductive", "inductive", "contradiction"}, level) {
					q.params.wrong("level", "want explicit, deductive, inductive or contradiction")
				}
				field(e, "level", level)
			}
			if least := q.params.whole("times_derived"); least > 0 {
				within(e, "times_derived")
				number(e, "gte", least)
				e.ObjEnd()
			}
		})
		q.number("page")
		q.number("size")
	}},
	{"summaries", []string{"session_id"}, func(q *query, _ *jsontext.Encoder) {
		q.request.route, q.request.session = "summaries", q.native.session(q.params.need("session_id"))
	}},
	{"messages", []string{"session_id", "page", "size"}, func(q *query, _ *jsontext.Encoder) {
		q.request.route, q.request.session = "messages_list", q.native.session(q.params.need("session_id"))
		q.number("page")
		q.number("size")
	}},
	{"sessions", []string{"page", "size"}, func(q *query, e *jsontext.Encoder) {
		if q.request.route = "sessions_list"; q.settings.fixed != "" {
			q.request.route, q.request.peer = "peer_sessions", q.native.user
		}
		q.number("page")
		q.number("size")
	}},
	{"queue_status", nil, func(q *query, _ *jsontext.Encoder) {
		if q.request.route = "queue_status"; q.settings.fixed != "" {
			q.add("sender_id", q.native.user)
		}
	}},
}

func queryNames() []string {
	names := make([]string, len(queries))
	for i := range queries {
		names[i] = queries[i].name
	}
	return names
}

// bodiless are routes of method GET.
var bodiless = []string{"peer_context", "card", "summaries", "queue_status"}

// query is one native query while it is built.
type query struct {
	settings *settings
	native   *native
	params   params
	request  request
}

func (q *query) add(name, value string) {
	q.request.query = append(q.request.query, abi.QueryParam{Key: name, Value: value})
}

//go:noinline
func (q *query) number(name string) {
	if n := q.params.whole(name); n != 0 {
		q.add(name, sdk.Itoa(n))
	}
}

func (q *query) optionalSession(e *jsontext.Encoder) {
	if id := q.params.text("session_id"); id != "" {
		field(e, "session_id", q.native.session(id))
	}
}

func (q *query) filters(e *jsontext.Encoder, write func(*jsontext.Encoder)) {
	within(e, "filters")
	write(e)
	e.ObjEnd()
}

// nativeQuery asks one of Honcho's own reads and returns its answer verbatim.
//
// Errors: invalid_argument for a name or a parameter that is not known; Honcho's own.
func nativeQuery(c *sdk.Call, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	for i := range queries {
		known := &queries[i]
		if known.name != r.Name {
			continue
		}
		q := &query{settings: s, native: s.native(c), params: params{given: r.Params}}
		q.request.workspace = q.native.workspace
		q.params.only(known.takes...)
		var e jsontext.Encoder
		e.ObjStart()
		known.build(q, &e)
		e.ObjEnd()
		if q.params.err != nil {
			return nil, q.params.err
		}
		if !slices.Contains(bodiless, q.request.route) {
			q.request.body = e.Bytes()
		}
		answer, err := s.send(c, q.request)
		if err != nil {
			return nil, err
		}
		t := s.trace()
		t.NativeOperation = q.request.route
		if r.Name == "chat" {
			t.ReadSideEffects = []string{"Honcho's chat runs an LLM, and makes the peer and the workspace where they are missing"}
		}
		return &abi.NativeQueryResult{Name: r.Name, Result: answer.body, Trace: t}, nil
	}
	e := abi.NewError(abi.CodeInvalidArgument, "name: no native query of honcho")
	if near := abi.Nearest(r.Name, queryNames()); near != "" {
		e.Hint = "did you mean " + near + "?"
	}
	return nil, e
}
