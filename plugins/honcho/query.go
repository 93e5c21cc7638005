package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// queries are Honcho's own reads, each restricted to the scope: workspace, peers and the filters that separate scopes
// are set here, never by the caller. A query of method GET builds no body. The chats have class write, because they run
// an LLM and create the peer and the workspace if these are missing.
var queries = []struct {
	name  string
	takes []string
	route string
	// peer: the path contains the user's peer.
	peer  bool
	build func(q *query) wire.Object
}{
	{"chat", []string{"query", "session_id", "session_ids", "reasoning_level", "response_format"},
		"chat", true, func(q *query) wire.Object {
			return append(q.question(), "filters", q.allowlist())
		}},
	{"workspace_chat", []string{"query", "session_id", "reasoning_level", "response_format"},
		"workspace_chat", false, func(q *query) wire.Object {
			if q.shared() {
				q.params.fail(abi.NewError(abi.CodeUnsupported, "name: workspace_chat reads a whole workspace, and this "+
					"one holds other scopes").WithHint("it is offered without fixed_workspace and workspace_template"))
			}
			return q.question()
		}},
	{"representation", []string{"query", "session_id", "session_ids", "search_top_k", "max_conclusions",
		"include_most_frequent"},
		"representation", true, func(q *query) wire.Object {
			text, _ := sanitize(q.params.text("query"))
			return wire.Object{"search_query", wire.Some(text), "session_id", q.optionalSession(),
				"filters", q.allowlist(),
				"search_top_k", q.params.value("search_top_k", wirejson.Number, "an integer"),
				"max_conclusions", q.params.value("max_conclusions", wirejson.Number, "an integer"),
				"include_most_frequent", q.params.value("include_most_frequent", wirejson.Bool, "true or false")}
		}},
	{"peer_context", []string{"query", "max_conclusions"}, "peer_context", true, func(q *query) wire.Object {
		if text, _ := cutQuery(q.params.text("query"), int(q.queryChars)); text != "" {
			q.add("search_query", text)
		}
		q.numbers("max_conclusions")
		return nil
	}},
	{"card", nil, "card", true, func(*query) wire.Object { return nil }},
	{"search", []string{"query", "limit"}, "search", false, func(q *query) wire.Object {
		q.ofPeer("peer_search")
		return wire.Object{"query", q.needQuery(), "limit", q.params.value("limit", wirejson.Number, "an integer")}
	}},
	{"conclusions_query", []string{"query", "session_ids", "top_k", "distance"},
		"conclusions_query", false, func(q *query) wire.Object {
			return wire.Object{"query", q.needQuery(), "top_k", q.params.value("top_k", wirejson.Number, "a number"),
				"distance", q.params.value("distance", wirejson.Number, "a number"),
				"filters", q.about("session_id", q.sessions())}
		}},
	{"conclusions_list", []string{"session_ids", "level", "times_derived", "page", "size"},
		"conclusions_list", false, func(q *query) wire.Object {
			level, least := q.params.text("level"), q.params.integer("times_derived")
			if !slices.Contains([]string{"", "explicit", "deductive", "inductive", "contradiction"}, level) {
				q.params.wrong("level", "want explicit, deductive, inductive or contradiction")
			}
			q.numbers("page", "size")
			return wire.Object{"filters", q.about("session_id", q.sessions(), "level", wire.Some(level),
				"times_derived", wire.If(least > 0, wire.Object{"gte", least}))}
		}},
	{"summaries", []string{"session_id"}, "summaries", false, func(q *query) wire.Object {
		q.request.session = q.session(q.params.need("session_id"))
		return nil
	}},
	{"messages", []string{"session_id", "page", "size"}, "messages_list", false, func(q *query) wire.Object {
		q.request.session = q.session(q.params.need("session_id"))
		q.numbers("page", "size")
		return wire.Object{}
	}},
	{"sessions", []string{"page", "size"}, "sessions_list", false, func(q *query) wire.Object {
		q.ofPeer("peer_sessions")
		q.numbers("page", "size")
		return wire.Object{}
	}},
	{"queue_status", nil, "queue_status", false, func(q *query) wire.Object {
		if q.shared() {
			q.add("sender_id", q.user)
		}
		return nil
	}},
}

func queryNames() []string {
	names := make([]string, len(queries))
	for i := range queries {
		names[i] = queries[i].name
	}
	return names
}

// query is a native query under construction.
type query struct {
	*backend
	params  params
	request request
}

func (q *query) add(name, value string) {
	q.request.query = append(q.request.query, abi.QueryParam{Key: name, Value: value})
}

// numbers adds parameters to the URL, if they are set.
func (q *query) numbers(names ...string) {
	for _, name := range names {
		if n := q.params.integer(name); n != 0 {
			q.add(name, sdk.Itoa(n))
		}
	}
}

// ofPeer uses another route in a fixed workspace, which holds other scopes.
func (q *query) ofPeer(route string) {
	if q.shared() {
		q.request.route, q.request.peer = route, q.user
	}
}

func (q *query) needQuery() string {
	text, _ := sanitize(q.params.need("query"))
	return text
}

func (q *query) optionalSession() any { return optionalSession(q.native, &q.params) }

// question holds the parameters of both chats.
func (q *query) question() wire.Object {
	return wire.Object{"query", q.needQuery(), "session_id", q.optionalSession(),
		"reasoning_level", q.params.value("reasoning_level", wirejson.String, "a string"),
		"response_format", q.params.value("response_format", wirejson.Object, "a JSON Schema")}
}

// maxAllowed is the maximum number of sessions in Honcho's allowlist.
const maxAllowed = 1000

// sessions returns the filter for the parameter session_ids, nil if it is not set.
func (q *query) sessions() any {
	if len(q.params.given["session_ids"]) == 0 {
		return nil
	}
	var ids []string
	q.params.read("session_ids", &ids)
	if len(ids) == 0 || len(ids) > maxAllowed || slices.Contains(ids, "") {
		q.params.wrong("session_ids", "want 1 to 1000 sessions")
	}
	for i, id := range ids {
		ids[i] = q.session(id)
	}
	return wire.Object{"in", ids}
}

// allowlist is Honcho's session allowlist, used in place of a single session.
func (q *query) allowlist() any {
	sessions := q.sessions()
	if sessions == nil {
		return nil
	}
	if len(q.params.given["session_id"]) > 0 {
		q.params.wrong("session_ids", "give session_id or session_ids, not both")
	}
	return wire.Object{"session_id", sessions}
}

// nativeQuery runs one of Honcho's own reads and returns its answer unchanged.
//
// Errors: invalid_argument for an unknown name or parameter; Honcho's own.
func nativeQuery(b *backend, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	at := slices.Index(queryNames(), r.Name)
	if at < 0 {
		return nil, unknownName("query", r.Name, queryNames())
	}
	known := queries[at]
	q := &query{backend: b, params: params{given: r.Params}, request: request{route: known.route}}
	if known.peer {
		q.request.peer = b.user
	}
	q.params.rejectUnknown(known.takes...)
	if body := known.build(q); body != nil {
		q.request.body = body.JSON()
	}
	if q.params.err != nil {
		return nil, q.params.err
	}
	answer, err := b.send(q.request)
	if err != nil {
		if e := abi.AsError(err); r.Name == "workspace_chat" && e.Code == abi.CodeNotFound {
			e.Code, e.Reason, e.Hint = abi.CodeUnsupported, "not_offered", "Honcho 3.0.12 and before have no workspace chat"
			return nil, e
		}
		return nil, err
	}
	t := b.trace(q.request.route)
	if r.Name == "chat" || r.Name == "workspace_chat" {
		t.ReadSideEffects = []string{"Honcho's chat runs an LLM, and makes the peer and the workspace where they are " +
			"missing"}
	}
	return &abi.NativeQueryResult{Name: r.Name, Result: answer.body, Trace: t}, nil
}

// unknownName returns the error for an unknown native query or mutation.
func unknownName(what, name string, known []string) error {
	e := abi.NewError(abi.CodeInvalidArgument, "name: no native "+what+" of honcho")
	e.Hint = "there are " + strings.Join(known, ", ")
	if near := abi.Nearest(name, known); near != "" {
		e.Hint = "did you mean " + near + "? " + e.Hint
	}
	return e
}
