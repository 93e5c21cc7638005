package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// listRoutes show what went through the slot, from its own ledger. They are for people and for tools that inspect it:
// the MCP door has none of them.
func (s *Server) listRoutes() []route {
	defaultScope := exampleScope()
	unsupported := []abi.Code{abi.CodeUnsupported}
	return []route{
		{method: http.MethodGet, path: wire.PathScopes, operation: wire.OpListScopes, tag: tagScopes, local: true,
			summary: "List the scopes that the slot knows", codes: unsupported,
			about: "A page of the serving provider's scopes, with the backend's names for them and how many events are " +
				"open in each, and the scope of the slot's configuration. The backend is not asked.",
			parameters: []*huma.Param{
				{Name: "after", In: "query", Description: "next of the page before; absent for the first page.",
					Schema: &huma.Schema{Type: huma.TypeString}},
				{Name: "limit", In: "query", Description: "How many scopes the page has at most: 1 to 500, 100 when " +
					"absent.", Schema: &huma.Schema{Type: huma.TypeInteger}}},
			answer: &wire.ScopeList{Scopes: []wire.ListedScope{{Scope: exampleScope(), Generation: 1,
				NativeScope: map[string]string{"user_id": "user_a"}, Since: "2026-03-01T09:00:02Z", Queued: 1}}, Default: &defaultScope},
			handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				q, err := scopeQuery(r.URL.RawQuery)
				if err != nil {
					s.answer(w, r, wire.OpListScopes, (*wire.ScopeList)(nil), err)
					return
				}
				list, err := s.listScopes(r.Context(), q)
				s.answer(w, r, wire.OpListScopes, list, err)
			})},
		{method: http.MethodPost, path: wire.PathScopesList, operation: wire.OpSearchScopes, tag: tagScopes, local: true,
			summary: "Search the scopes that the slot knows", codes: unsupported,
			about: "Like GET /v1/scopes, for the scopes whose ids contain a text or that have open events, with the number " +
				"of their events and when the last one was sent. A page may be short, or empty, and have a next. The " +
				"backend is not asked.",
			request: &wire.ScopeListRequest{Limit: 50, Contains: "ann", Counts: true},
			answer: &wire.ScopeList{Scopes: []wire.ListedScope{{Scope: exampleScope(), Generation: 1,
				Since: "2026-03-01T09:00:02Z", Queued: 1, Events: new(int64(212)), LastAt: "2026-03-08T17:30:00Z"}}},
			handler: call(s, wire.OpSearchScopes, func(ctx context.Context, q *wire.ScopeListRequest) (*wire.ScopeList, error) {
				if err := q.Validate(); err != nil {
					return nil, err
				}
				return s.listScopes(ctx, &report.ScopeQuery{After: q.After, Limit: q.Limit, Contains: q.Contains,
					OnlyOpen: q.OnlyOpen, Counts: q.Counts})
			})},
		{method: http.MethodPost, path: wire.PathEventsList, operation: wire.OpListEvents, tag: tagMemory, local: true,
			summary: "List a scope's events with their receipts", codes: unsupported,
			about: "A page of what the delivery ledger knows of the scope's present generation, in the byte order of " +
				"the event ids. The ledger keeps no text. The backend is not asked.",
			request: &wire.EventListRequest{Scope: exampleScope(), Limit: 50, States: []string{"queued", "lost"}},
			answer: &wire.EventList{Generation: 1, Events: []wire.ListedEvent{{EventID: "e-1", SessionID: "s-1",
				State: "committed", SentAt: "2026-03-01T09:30:01Z", Receipt: exampleReceipt()}}},
			handler: call(s, wire.OpListEvents, s.listEvents)},
		{method: http.MethodGet, path: wire.PathOperations, operation: wire.OpOperations, tag: tagSlot, local: true,
			media: wire.MediaLines, summary: "Follow the operations as they end",
			about: "A stream of lines, each a JSON object: an operation that ended, with its code, times and native " +
				"calls, or a step of a swap. It has no text of a user or of memory. The slot never waits for a reader: " +
				"what a slow one misses is counted. At most 16 streams at a time. Ends when the slot stops.",
			parameters: []*huma.Param{{Name: "past", In: "query", Description: "true: first the operations of the last hour, " +
				"at most 2000, and then a line of kind alive.", Schema: &huma.Schema{Type: huma.TypeBoolean}}},
			codes: append(unsupported, abi.CodeRateLimited),
			answer: &wire.OperationLine{Kind: wire.LineOperation, At: "2026-03-01T09:30:01Z",
				Operation: abi.OpRetrieve, Provider: "mem0", LatencyMS: 12.5, BackendMS: 11.9, PluginMS: 0.4,
				IO: exampleTrace(abi.OpRetrieve).IO},
			handler: http.HandlerFunc(s.streamOperations)},
		{method: http.MethodGet, path: wire.PathModules, operation: wire.OpListModules, tag: tagSlot, local: true,
			summary: "List the modules that the program has", codes: unsupported,
			about: "What each is and may do, read off its bytes, with the JSON schema of its configuration. The " +
				"slot's configuration is not in it, and so no secret.",
			answer: &wire.ModuleList{Modules: []wire.Module{{Name: "mem0", Version: "0.1.0", SHA256: strings.Repeat("0", 64),
				Bytes: 250000, Engine: "wazero", Powers: []string{"http", "state"},
				Operations: []string{abi.OpRetrieve}, Capabilities: []string{"readiness"},
				Manifest: abi.Raw(`{"abi":"memhost/1"}`)}}},
			handler: ask(s, wire.OpListModules, func(context.Context) (*wire.ModuleList, error) {
				if s.options.Modules == nil {
					return nil, abi.NewError(abi.CodeUnsupported, "this slot lists no modules").WithReason("modules")
				}
				return &wire.ModuleList{Modules: s.options.Modules()}, nil
			})},
	}
}

func (s *Server) listScopes(ctx context.Context, q *report.ScopeQuery) (*wire.ScopeList, error) {
	if s.options.Listing == nil {
		return nil, noListing()
	}
	page, err := s.options.Listing.ListScopes(ctx, *q)
	if err != nil {
		return nil, err
	}
	list := &wire.ScopeList{Next: page.Next, Default: s.options.DefaultScope}
	for _, l := range page.Scopes {
		if s.options.Scopes.check("", l.Scope) != nil {
			continue // callers of this door may not name it
		}
		list.Scopes = append(list.Scopes, wire.ListedScope{Scope: l.Scope, Generation: l.Generation,
			NativeScope: l.NativeScope, Since: l.Since, Queued: l.Queued, Pending: l.Pending, Lost: l.Lost,
			Events: l.Events, LastAt: l.LastAt})
	}
	return list, nil
}

// scopeQuery parses the query of GET /v1/scopes. An unknown parameter is rejected, like an unknown field of a body.
func scopeQuery(query string) (*report.ScopeQuery, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, abi.WrapError(abi.CodeInvalidArgument, "the query of the address cannot be read: "+err.Error(), err)
	}
	q := new(report.ScopeQuery)
	for _, name := range sortedKeys(values) {
		value := values.Get(name)
		switch name {
		case "after":
			q.After = value
		case "limit":
			q.Limit, err = strconv.ParseInt(value, 10, 64)
			if err != nil || q.Limit < 1 || q.Limit > report.MaxPage {
				return nil, abi.NewError(abi.CodeInvalidArgument,
					fmt.Sprintf("limit: got %.40q, want 1 to %d", value, report.MaxPage))
			}
		default:
			return nil, abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("%.40q: unknown parameter", name)).
				WithHint("this route takes after and limit")
		}
	}
	return q, nil
}

func (s *Server) listEvents(ctx context.Context, q *wire.EventListRequest) (*wire.EventList, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	if err := s.options.Scopes.check("scope", q.Scope); err != nil {
		return nil, err
	}
	if s.options.Listing == nil {
		return nil, noListing()
	}
	page, err := s.options.Listing.ListEvents(ctx, report.EventQuery(*q))
	if err != nil {
		return nil, err
	}
	list := &wire.EventList{Generation: page.Generation, Next: page.Next}
	for _, l := range page.Events {
		list.Events = append(list.Events, wire.ListedEvent(l))
	}
	return list, nil
}

func noListing() error {
	return abi.NewError(abi.CodeUnsupported, "this slot does not list what went through it").WithReason("listing")
}
