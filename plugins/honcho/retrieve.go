package main

import (
	"strconv"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// tokensPerConclusion is what a line of a representation comes to: Honcho does not bound a representation by tokens, only by their number.
const tokensPerConclusion = 40

// retrieve asks session context for what Honcho made of the user, in one call by default; with context switched off it searches messages.
//
// In:     max_tokens is sent as tokens, which bounds summary and messages; max_items as max_conclusions, which bounds the representation.
// Out:    raw is Honcho's answers. An unknown peer, session or workspace is no memory. Honcho gives no scores.
// Errors: Honcho's own, typed; isolation_breach where a message is of another workspace or session.
// Source: Honcho GET /v3/workspaces/{ws}/sessions/{s}/context (src/routers/sessions.py).
func retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	q := &retrieval{settings: s, call: c, native: s.native(c), request: r, result: &abi.RetrieveResult{Trace: s.trace()}}
	q.session = q.native.session(r.SessionID)
	if err := q.run(); err != nil {
		return nil, err
	}
	return q.result, nil
}

// retrieval is one retrieve.
type retrieval struct {
	settings *settings
	call     *sdk.Call
	native   *native
	session  string
	request  *abi.RetrieveRequest
	result   *abi.RetrieveResult

	context     *found // what the context holds; nil where it was not asked for
	conclusions int64  // as sent
	tokens      *int64
	query       string
}

func (q *retrieval) run() error {
	s, t := q.settings, q.result.Trace
	q.conclusions = q.most()
	words := q.words()
	var cut bool
	if q.query, cut = cutQuery(words, s.queryChars); cut {
		t.Warnings = append(t.Warnings, "query_cut: the query is longer than query_chars and was cut for the URL")
	}
	var err error
	if s.context {
		err = q.readContext()
	} else {
		err = q.readMessages()
	}
	if err != nil {
		return err
	}
	for _, name := range s.supplements {
		if err := q.supplement(name, words); err != nil {
			return err
		}
	}
	items, err := readItems(&q.result.Raw, q.context)
	if err != nil {
		last := q.result.Raw.Calls[len(q.result.Raw.Calls)-1]
		return unusable(last.Route, 200, last.Body, "cannot be read: "+abi.AsError(err).Message)
	}
	q.result.Evidence = items.evidence
	fitted := s.format(q.call, items, q.request.Budget)
	q.result.FormattedContext = fitted.Text
	q.report(fitted)
	return nil
}

// most is how many conclusions are asked for.
func (q *retrieval) most() int64 {
	n, b := q.settings.maxConclusions, q.request.Budget
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
	words := r.Query
	if q.settings.context {
		words = withWord(words, r.Scenario)
		if r.Context != "" && !sdk.CrossContext(r) {
			words = withWord(words, r.Context)
		}
		words = withWord(words, r.Attribute)
	}
	return sdk.TrimSpace(words)
}

func withWord(words, word string) string {
	if words == "" || word == "" {
		return words + word
	}
	return words + " " + word
}

func (q *retrieval) readContext() error {
	s := q.settings
	tokens := s.contextTokens
	if b := q.request.Budget.MaxTokens; b != nil {
		tokens = max(0, min(tokens, *b))
	}
	if !s.messages {
		tokens = 0
	}
	q.tokens = &tokens
	params := append(make([]abi.QueryParam, 0, 8), abi.QueryParam{Key: "tokens", Value: sdk.Itoa(tokens)},
		abi.QueryParam{Key: "summary", Value: strconv.FormatBool(s.summary)}, abi.QueryParam{Key: "peer_target", Value: q.native.user})
	params = q.selection(params)
	if s.limitToSession {
		params = append(params, abi.QueryParam{Key: "limit_to_session", Value: "true"})
	}
	answer, err := s.sendUnchecked(q.call, request{route: "context", workspace: q.native.workspace, session: q.session, query: params})
	if err != nil {
		return err
	}
	q.keep("context", answer.body)
	if answer.empty {
		return answer.check("context")
	}
	return q.readProse(answer)
}

// selection adds to a URL's query what chooses conclusions. As many by the query as there are at all makes the representation purely query-driven; without a
// query Honcho takes the newest.
func (q *retrieval) selection(params []abi.QueryParam) []abi.QueryParam {
	s := q.settings
	params = append(params, abi.QueryParam{Key: "max_conclusions", Value: sdk.Itoa(q.conclusions)})
	if q.query != "" {
		params = append(params, abi.QueryParam{Key: "search_query", Value: q.query}, abi.QueryParam{Key: "search_top_k", Value: sdk.Itoa(q.topK())})
		if s.searchMaxDistance != "" {
			params = append(params, abi.QueryParam{Key: "search_max_distance", Value: s.searchMaxDistance})
		}
	}
	return append(params, abi.QueryParam{Key: "include_most_frequent", Value: strconv.FormatBool(s.includeMostFrequent)})
}

func (q *retrieval) topK() int64 {
	if k := q.settings.searchTopK; k > 0 {
		return min(k, q.conclusions)
	}
	return q.conclusions
}

// readProse reads the answer and holds it to the scope: its messages must be of the workspace and the session.
func (q *retrieval) readProse(answer *reply) error {
	p := prose{at: bodyOf(0), of: q}
	d := jsontext.DecodeBytes(answer.body).Limit(abi.MaxDepth)
	err := eachField(d, p.readField)
	if err != nil || !d.AtEnd() {
		if invalid := answer.check("context"); invalid != nil {
			return invalid
		}
	}
	switch {
	case abi.CodeOf(err) == abi.CodeIsolationBreach:
		return abi.AsError(err)
	case err == nil && p.held < 2:
		err = abi.NewError(abi.CodeBackend, "neither id nor messages")
		fallthrough
	case err != nil:
		return unusable("context", answer.status, answer.body, "is no session context: "+err.Error())
	}
	q.context = p.all()
	return nil
}

// readMessages searches messages. Labels are hard filters here; their values cannot be "*", which would drop the condition.
func (q *retrieval) readMessages() error {
	s, r := q.settings, q.request
	route := request{route: "search", workspace: q.native.workspace}
	if s.fixed != "" {
		route.route, route.peer = "peer_search", q.native.user // the workspace holds other scopes
	}
	limit := s.maxConclusions
	if b := r.Budget.MaxItems; b != nil {
		limit = min(limit, max(*b, 1))
	}
	q.conclusions = limit
	var e jsontext.Encoder
	e.ObjStart()
	field(&e, "query", q.query)
	number(&e, "limit", limit)
	if labels := q.labels(); len(labels) > 0 {
		within(&e, "filters")
		within(&e, "metadata")
		for _, l := range labels {
			field(&e, l[0], label(l[1]))
		}
		e.ObjEnd()
		e.ObjEnd()
	}
	e.ObjEnd()
	route.body = e.Bytes()
	answer, err := s.send(q.call, route)
	if err != nil {
		return err
	}
	q.keep(route.route, answer.body)
	found, err := readMessageList(answer.body)
	if err != nil {
		return unusable(route.route, answer.status, answer.body, "is no list of messages: "+err.Error())
	}
	for i := range found {
		if found[i].workspace != q.native.workspace || s.fixed != "" && found[i].peer != q.native.user {
			return breach(route.route, "a message of another scope", found[i].raw)
		}
	}
	return nil
}

// labels are the request's labels by the keys under which record keeps them.
func (q *retrieval) labels() (labels [][2]string) {
	r := q.request
	for _, l := range [][3]string{{"scenario", "mh_scenario", r.Scenario}, {"context", "mh_context", r.Context}, {"attribute", "mh_attribute", r.Attribute}} {
		if l[2] != "" && (l[0] != "context" || !sdk.CrossContext(r)) {
			labels = append(labels, [2]string{l[1], l[2]})
		}
	}
	return labels
}

// supplement adds one native call. words is the whole query: a body has no limit of length but Honcho's own.
func (q *retrieval) supplement(name, words string) error {
	s, n := q.settings, q.native
	words, _ = sanitize(words)
	r := request{route: name, workspace: n.workspace, peer: n.user}
	var e jsontext.Encoder
	e.ObjStart()
	switch name {
	case "peer_context":
		r.query = q.selection(nil)
	case "representation":
		number(&e, "max_conclusions", q.conclusions)
		if words != "" {
			field(&e, "search_query", words)
			number(&e, "search_top_k", q.topK())
			q.distance(&e, "search_max_distance")
		}
		flag(&e, "include_most_frequent", s.includeMostFrequent)
	case "conclusions":
		r.route, r.peer = "conclusions_query", ""
		field(&e, "query", words)
		number(&e, "top_k", q.conclusions)
		q.distance(&e, "distance")
		within(&e, "filters")
		n.about(&e)
		e.ObjEnd()
	}
	e.ObjEnd()
	if name != "peer_context" {
		r.body = e.Bytes()
	}
	answer, err := s.send(q.call, r)
	if err != nil {
		return err
	}
	q.keep(r.route, answer.body)
	if r.route != "conclusions_query" {
		return nil
	}
	items, err := readList(answer.body)
	if err != nil {
		return unusable(r.route, answer.status, answer.body, "is no list: "+err.Error())
	}
	found, err := readConclusions(items)
	if err != nil {
		return unusable(r.route, answer.status, answer.body, "is no list of conclusions: "+err.Error())
	}
	for i := range found {
		if found[i].observer != n.user || found[i].observed != n.user {
			return breach(r.route, "a conclusion about another peer", found[i].raw)
		}
	}
	return nil
}

func (q *retrieval) distance(e *jsontext.Encoder, name string) {
	if d := q.settings.searchMaxDistance; d != "" {
		e.FieldStart(name)
		e.Raw(jsontext.Raw(d))
	}
}

//go:noinline
func (q *retrieval) keep(route string, body []byte) {
	q.result.Raw.Calls = append(q.result.Raw.Calls, abi.RawCall{Route: route, Body: body})
}
