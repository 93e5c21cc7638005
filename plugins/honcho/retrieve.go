package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// Honcho does not limit a representation by tokens, only by the number of conclusions.
const (
	tokensPerConclusion = 30  // approximate tokens of a representation's line with its time
	defaultConclusions  = 25  // default number of conclusions
	maxConclusions      = 100 // Honcho's maximum, of conclusions and of messages in a search
	defaultTokens       = 8000
	maxTokens           = 100_000
)

// retrieve requests the session context, which has Honcho's representation of the user, in one call by default. With
// another read strategy it searches messages, or lets Honcho's model answer. It uses one strategy, which the
// configuration chooses and the trace names.
//
// In:     max_tokens is sent as tokens, which bounds summary and messages; max_items as max_conclusions, which bounds
// the representation, and under the profile source-design as search_top_k.
// Out: raw is Honcho's answers. For an unknown peer, session or workspace the memory is empty. Honcho returns no
// scores.
// Errors: Honcho's own, typed; isolation_breach for a message of another workspace or session; unavailable, reason
// embeddings_down, if the representation is empty because the embedding provider fails.
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
	q.conclusions = q.itemLimit()
	words := q.words()
	var cut bool
	if q.query, cut = cutQuery(words, int(q.queryChars)); cut {
		t.Warnings = append(t.Warnings, "query_cut: the query is longer than query_chars and was cut for the URL")
	}
	read := map[string]func() error{readContext: q.readContext, readSearch: q.readMessages, readChat: q.readChat}
	err := read[q.read]()
	if err == nil && q.empty && !q.sourceDesign {
		err = q.checkNamed()
	}
	if err != nil {
		return err
	}
	if err = q.readSpeakers(); err != nil {
		return err
	}
	for _, name := range q.supplements {
		if err := q.supplement(name, words); err != nil {
			return err
		}
	}
	items, err := readItems(q.backend, &q.result.Raw, q)
	if err != nil {
		return err
	}
	if q.read == readContext && !q.sourceDesign {
		err = q.checkSearched(q.result.Raw.Calls[0].Body)
		if err != nil {
			return err
		}
	}
	q.result.Evidence = items.evidence
	fitted := q.format(items, q.request.Budget)
	fitted.Mark(q.result.Evidence, 0)
	q.result.FormattedContext = fitted.Text
	q.report(fitted)
	return nil
}

// itemLimit is how many conclusions, or messages with read: search, are asked for:
//
//	max_items 60                               60, the most is 100
//	max_tokens 1500, 30 a conclusion           50
//	neither                                    25
//	max_items 60, and 30 are configured        30
//	max_items 60, max_tokens 600               20, of conclusions
func (q *retrieval) itemLimit() int64 {
	b := q.request.Budget
	n := q.ItemsFor(b, defaultConclusions)
	if q.maxConclusions > 0 {
		n = min(q.ItemsFor(b, q.maxConclusions), q.maxConclusions)
	}
	if b.MaxTokens != nil && q.AskItems == 0 && !q.sourceDesign && q.read != readSearch {
		n = min(n, *b.MaxTokens/tokensPerConclusion)
	}
	return min(max(n, 1), maxConclusions)
}

// tokenLimit returns the value of the parameter tokens.
func (q *retrieval) tokenLimit() int64 {
	tokens := q.contextTokens
	if b := q.request.Budget.MaxTokens; b != nil {
		if tokens == 0 {
			tokens = maxTokens
		}
		return max(0, min(tokens, *b))
	}
	if tokens == 0 {
		return defaultTokens
	}
	return tokens
}

// words returns the query with the labels by which Honcho's context cannot filter: as words, they can still influence
// the search.
func (q *retrieval) words() string {
	r := q.request
	words := []string{r.Query}
	if q.read != readSearch {
		words = append(words, r.Scenario)
		if !sdk.CrossContext(r) {
			words = append(words, r.Context)
		}
		words = append(words, r.Attribute)
	}
	return strings.TrimSpace(strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " "))
}

// ask makes a call and keeps its answer in raw. An unknown peer, session or workspace is an empty memory.
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
	tokens := q.tokenLimit()
	if !q.messages {
		tokens = 0
	}
	q.tokens = &tokens
	params := q.selection([]abi.QueryParam{{Key: "tokens", Value: sdk.Itoa(tokens)},
		{Key: "summary", Value: strconv.FormatBool(q.summary)}, {Key: "peer_target", Value: q.user}})
	if q.limitToSession {
		params = append(params, abi.QueryParam{Key: "limit_to_session", Value: "true"})
	}
	err := q.ask(request{route: "context", session: q.session, query: params})
	if err != nil {
		return err
	}
	if q.sourceDesign {
		return nil
	}
	body := q.result.Raw.Calls[0].Body
	return q.lastMessage(q.session, wire.At(body, "summary"), wire.At(body, "messages"))
}

// checkSearched distinguishes an empty representation from a failed search. If the embedding provider is down, session
// context returns 200 without the query's conclusions, which may be all of them.
func (q *retrieval) checkSearched(context abi.Raw) error {
	if q.empty || q.query == "" || q.topK() < q.conclusions || q.limitToSession ||
		wire.Text(wire.At(context, "peer_representation")) != "" {
		return nil
	}
	held, err := q.count(request{route: "conclusions_list", body: filters(q.about())})
	if err != nil || held == 0 {
		return err
	}
	// This route fails in cases that context hides. If it succeeds, the conclusions are farther than
	// search_max_distance, or were derived between the two calls.
	_, err = q.send(request{route: "conclusions_query",
		body: wire.Object{"query", q.query, "top_k", 1, "filters", q.about()}.JSON()})
	if err == nil || abi.CodeOf(err) != abi.CodeBackend {
		return err
	}
	e := abi.AsError(err)
	e.Code, e.Reason, e.Retryable = abi.CodeUnavailable, "embeddings_down", true
	e.Message = "Honcho holds " + sdk.Itoa(held) + " conclusions and its search fails, which session context answers " +
		"as an empty representation: " + e.Message
	e.Hint = "look at Honcho's embedding provider; health with probe_embeddings asks it"
	return e
}

// lastMessage fetches the last message that a summary covers, whose time is the summary's, unless it is among those
// already read.
func (q *retrieval) lastMessage(session string, summary, messages abi.Raw) error {
	id := wire.Text(wire.At(summary, "message_id"))
	if !isNativeID(id) {
		return nil
	}
	for _, m := range wire.Items(messages) {
		if wire.Text(wire.At(m, "id")) == id {
			return nil
		}
	}
	return q.ask(request{route: "message", session: session, message: id})
}

// readChat lets Honcho's model answer the query. It is called only for a scope that exists, because chat creates a
// missing peer or workspace, which would be a write.
//
// Source: Honcho POST /v3/workspaces/{ws}/peers/{p}/chat; of a workspace and peer that exist it changes nothing.
func (q *retrieval) readChat() error {
	const mostChars = 10_000 // Honcho's own limit
	query, _ := cutQuery(q.words(), mostChars)
	if query == "" {
		return abi.NewError(abi.CodeInvalidArgument, "query: empty, and read: chat asks Honcho's model a question")
	}
	exists, err := q.exists()
	if err != nil || !exists {
		q.empty = true
		return err
	}
	return q.ask(request{route: "dialectic", peer: q.user,
		body: wire.Object{"query", query, "reasoning_level", q.reasoningLevel}.JSON()})
}

// selection adds to a URL the parameters that choose conclusions. If all of them may be chosen by the query, the
// representation depends on the query alone; without a query Honcho takes the newest. The adapter's published design
// names only the query and the number of conclusions found by it, so under source-design the other parameters are sent
// only if they are configured.
func (q *retrieval) selection(params []abi.QueryParam) []abi.QueryParam {
	if !q.sourceDesign || q.maxConclusions > 0 {
		params = append(params, abi.QueryParam{Key: "max_conclusions", Value: sdk.Itoa(q.conclusions)})
	}
	if q.query != "" {
		params = append(params, abi.QueryParam{Key: "search_query", Value: q.query}, abi.QueryParam{Key: "search_top_k",
			Value: sdk.Itoa(q.topK())})
		if len(q.searchMaxDistance) > 0 {
			params = append(params, abi.QueryParam{Key: "search_max_distance", Value: string(q.searchMaxDistance)})
		}
	}
	if q.sourceDesign && !q.includeMostFrequent {
		return params
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
	context := q.request.Context
	if sdk.CrossContext(q.request) {
		context = ""
	}
	labels := wire.Object{"mh_scenario", wire.Some(label(q.request.Scenario)), "mh_context", wire.Some(label(context)),
		"mh_attribute", wire.Some(label(q.request.Attribute))}
	some := q.request.Scenario != "" || context != "" || q.request.Attribute != ""
	body := wire.Object{"query", q.query, "limit", q.conclusions,
		"filters", wire.If(some, wire.Object{"metadata", labels})}.JSON()
	if !q.shared() {
		return q.ask(request{route: "search", body: body})
	}
	for _, peer := range q.people() { // the workspace holds other scopes
		if err := q.ask(request{route: "peer_search", peer: peer, body: body}); err != nil {
			return err
		}
	}
	return nil
}

// supplement makes one further native call. words is the whole query: a body has no length limit but Honcho's own.
func (q *retrieval) supplement(name, words string) error {
	words, _ = sanitize(words)
	r := request{route: name, peer: q.user}
	switch name {
	case "search":
		return q.searchMore(words)
	case "summaries":
		return q.pastSummaries()
	}
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
		return q.searchConclusions(words)
	}
	return q.ask(r)
}

// searchConclusions searches the conclusions about each of the scope's people: Honcho's search needs one peer.
func (q *retrieval) searchConclusions(words string) error {
	for _, peer := range q.people()[:min(len(q.people()), 1+maxSpeakers)] {
		body := wire.Object{"query", words, "top_k", q.conclusions, "distance", q.searchMaxDistance,
			"filters", wire.Object{"observer_id", peer, "observed_id", peer}}
		if err := q.ask(request{route: "conclusions_query", body: body.JSON()}); err != nil {
			return err
		}
	}
	return nil
}

// searchMore adds messages verbatim, of any speaker, because a representation of the user does not contain what the
// assistant said. A fixed workspace holds other scopes too, so there the messages of user and assistant are searched
// separately.
func (q *retrieval) searchMore(words string) error {
	limit := q.searchMessages
	if b := q.request.Budget.MaxItems; b != nil {
		limit = min(limit, max(*b, 1))
	}
	body := wire.Object{"query", words, "limit", limit}.JSON()
	if !q.shared() {
		return q.ask(request{route: "search", body: body})
	}
	for _, peer := range append(q.people(), q.agent) {
		err := q.ask(request{route: "peer_search", peer: peer, body: body})
		if err != nil {
			return err
		}
	}
	return nil
}

// pastSummaries adds the summaries of the newest sessions before the requesting one, each with the time of its last
// message.
func (q *retrieval) pastSummaries() error {
	list := request{route: "sessions_list", query: []abi.QueryParam{newestFirst}}
	if q.shared() {
		list.route, list.peer, list.body = "peer_sessions", q.user, filters(wire.Object{"is_active", true})
	}
	ids, _, err := idsOf(q.backend, list, 1, pageSize)
	if err != nil {
		return err
	}
	left := q.pastSessions
	for _, id := range ids {
		if id == q.session || strings.HasPrefix(id, againPrefix) || left == 0 {
			continue
		}
		left--
		r := request{route: "summaries", session: id}
		err = q.ask(r)
		if err != nil {
			return err
		}
		body := q.result.Raw.Calls[len(q.result.Raw.Calls)-1].Body
		if wire.Text(wire.At(body, "id")) != id {
			return breach(r.route, "another session", body)
		}
		err = q.lastMessage(id, latestSummary(body), nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// latestSummary returns the latest summary of a session, which covers the most: Honcho makes short ones three times as
// often as long ones.
func latestSummary(body abi.Raw) abi.Raw {
	short, long := wire.At(body, "short_summary"), wire.At(body, "long_summary")
	made := wire.Text(wire.At(long, "created_at"))
	var newest span
	newest.add(wire.Text(wire.At(short, "created_at")))
	newest.add(made)
	if long != nil && (short == nil || newest.newest == made) {
		return long
	}
	return short
}
