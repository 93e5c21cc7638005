package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// tokensPerConclusion is what a line of a representation comes to: Honcho does not bound a representation by tokens,
// only by their number.
const tokensPerConclusion = 40

// retrieve asks session context for what Honcho made of the user, in one call by default; with context switched off it
// searches messages.
//
// In:     max_tokens is sent as tokens, which bounds summary and messages; max_items as max_conclusions, which bounds
// the representation.
// Out:    raw is Honcho's answers. An unknown peer, session or workspace is no memory. Honcho gives no scores.
// Errors: Honcho's own, typed; isolation_breach where a message is of another workspace or session.
// Source: Honcho GET /v3/workspaces/{ws}/sessions/{s}/context (src/routers/sessions.py).
func retrieve(b *backend, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	q := &retrieval{backend: b, request: r, session: b.session(r.SessionID),
		result: &abi.RetrieveResult{Trace: b.trace("")}}
	if err := q.run(); err != nil {
		return nil, err
	}
	return q.result, nil
}

// retrieval is one retrieve.
type retrieval struct {
	*backend
	session string
	request *abi.RetrieveRequest
	result  *abi.RetrieveResult

	conclusions int64 // as sent
	tokens      *int64
	query       string
	empty       bool // the first answer was declared as empty
}

func (q *retrieval) run() error {
	t := q.result.Trace
	q.conclusions = q.most()
	words := q.words()
	var cut bool
	if q.query, cut = cutQuery(words, int(q.queryChars)); cut {
		t.Warnings = append(t.Warnings, "query_cut: the query is longer than query_chars and was cut for the URL")
	}
	first := q.readMessages
	if q.backend.context {
		first = q.readContext
	}
	if err := first(); err != nil {
		return err
	}
	for _, name := range q.supplements {
		if err := q.supplement(name, words); err != nil {
			return err
		}
	}
	items, err := readItems(&q.result.Raw, q)
	if err != nil {
		return err
	}
	q.result.Evidence = items.evidence
	fitted := q.format(items, q.request.Budget)
	q.result.FormattedContext = fitted.Text
	q.report(fitted)
	return nil
}

// most is how many conclusions are asked for.
func (q *retrieval) most() int64 {
	n, b := q.maxConclusions, q.request.Budget
	if b.MaxItems != nil {
		n = min(n, *b.MaxItems)
	}
	if b.MaxTokens != nil {
		n = min(n, *b.MaxTokens/tokensPerConclusion)
	}
	return max(n, 1)
}

// words are the query with the labels that Honcho's context cannot filter by: they can only steer what is found.
func (q *retrieval) words() string {
	r := q.request
	words := []string{r.Query}
	if q.backend.context {
		words = append(words, r.Scenario)
		if !sdk.CrossContext(r) {
			words = append(words, r.Context)
		}
		words = append(words, r.Attribute)
	}
	return strings.TrimSpace(strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " "))
}

// ask makes a call and keeps its answer in raw. An unknown peer, session or workspace is no memory.
func (q *retrieval) ask(r request) error {
	answer, err := q.send(r)
	if err != nil {
		return err
	}
	q.empty = q.empty || answer.empty && len(q.result.Raw.Calls) == 0
	q.result.Raw.Calls = append(q.result.Raw.Calls, abi.RawCall{Route: r.route, Body: answer.body})
	return nil
}

func (q *retrieval) readContext() error {
	tokens := q.contextTokens
	if b := q.request.Budget.MaxTokens; b != nil {
		tokens = max(0, min(tokens, *b))
	}
	if !q.messages {
		tokens = 0
	}
	q.tokens = &tokens
	params := q.selection([]abi.QueryParam{{Key: "tokens", Value: sdk.Itoa(tokens)},
		{Key: "summary", Value: strconv.FormatBool(q.summary)}, {Key: "peer_target", Value: q.user}})
	if q.limitToSession {
		params = append(params, abi.QueryParam{Key: "limit_to_session", Value: "true"})
	}
	return q.ask(request{route: "context", session: q.session, query: params})
}

// selection adds to a URL's query what chooses conclusions. As many by the query as there are at all makes the
// representation purely query-driven; without a query Honcho takes the newest.
func (q *retrieval) selection(params []abi.QueryParam) []abi.QueryParam {
	params = append(params, abi.QueryParam{Key: "max_conclusions", Value: sdk.Itoa(q.conclusions)})
	if q.query != "" {
		params = append(params, abi.QueryParam{Key: "search_query", Value: q.query}, abi.QueryParam{Key: "search_top_k",
			Value: sdk.Itoa(q.topK())})
		if len(q.searchMaxDistance) > 0 {
			params = append(params, abi.QueryParam{Key: "search_max_distance", Value: string(q.searchMaxDistance)})
		}
	}
	return append(params, abi.QueryParam{Key: "include_most_frequent",
		Value: strconv.FormatBool(q.includeMostFrequent)})
}

func (q *retrieval) topK() int64 {
	if k := q.searchTopK; k > 0 {
		return min(k, q.conclusions)
	}
	return q.conclusions
}

// readMessages searches messages. Labels are hard filters here; their values cannot be "*", which would drop the
// condition.
func (q *retrieval) readMessages() error {
	r := request{route: "search"}
	if q.fixed != "" {
		r.route, r.peer = "peer_search", q.user // the workspace holds other scopes
	}
	q.conclusions = q.maxConclusions
	if b := q.request.Budget.MaxItems; b != nil {
		q.conclusions = min(q.conclusions, max(*b, 1))
	}
	context := q.request.Context
	if sdk.CrossContext(q.request) {
		context = ""
	}
	labels := wire.Object{"mh_scenario", wire.Some(label(q.request.Scenario)), "mh_context", wire.Some(label(context)),
		"mh_attribute", wire.Some(label(q.request.Attribute))}
	some := q.request.Scenario != "" || context != "" || q.request.Attribute != ""
	r.body = wire.Object{"query", q.query, "limit", q.conclusions,
		"filters", wire.If(some, wire.Object{"metadata", labels})}.JSON()
	return q.ask(r)
}

// supplement adds one native call. words is the whole query: a body has no limit of length but Honcho's own.
func (q *retrieval) supplement(name, words string) error {
	words, _ = sanitize(words)
	r := request{route: name, peer: q.user}
	switch name {
	case "peer_context":
		r.query = q.selection(nil)
	case "representation":
		body := wire.Object{"max_conclusions", q.conclusions}
		if words != "" {
			body = append(body, "search_query", words, "search_top_k", q.topK(), "search_max_distance",
				q.searchMaxDistance)
		}
		r.body = append(body, "include_most_frequent", q.includeMostFrequent).JSON()
	case "conclusions":
		r.route, r.peer = "conclusions_query", ""
		r.body = wire.Object{"query", words, "top_k", q.conclusions, "distance", q.searchMaxDistance,
			"filters", q.about()}.JSON()
	}
	return q.ask(r)
}
