package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// route is one method and path of the door.
type route struct {
	method, path string
	// operation is the contract's name of the operation.
	operation string
	tag       string
	summary   string
	about     string
	// codes are the errors that it may return besides those of every route.
	codes []abi.Code
	// parameters are those of the URL's query.
	parameters []*huma.Param
	// request is an example of the body, nil if there is none; answer an example of the answer.
	request, answer abi.Encodable
	// media is the media type of the answer; empty means JSON.
	media string
	// takes lists the media types of a body that is a file, without an example.
	takes []string
	// local routes never ask a backend; open ones never require a token.
	local, open bool
	handler     http.Handler
}

// Tags of the document.
const (
	tagMemory     = "memory"
	tagScopes     = "scopes"
	tagSlot       = "slot"
	tagCapability = "capabilities"
	tagArchive    = "archive"
	tagFollow     = "followers"
	tagProcess    = "process"
)

// routes is the table.
func (s *Server) routes() []route {
	var all []route
	for _, part := range [][]route{s.memoryRoutes(), s.scopeRoutes(), s.listRoutes(), s.runRoutes(), s.slotRoutes(),
		s.capabilityRoutes(), s.archiveRoutes(), s.importRoutes(), s.followRoutes(), s.processRoutes()} {
		all = append(all, part...)
	}
	return all
}

func (s *Server) memoryRoutes() []route {
	return []route{
		{method: http.MethodPost, path: wire.PathEvents, operation: abi.OpRecordEvent, tag: tagMemory,
			summary: "Record a turn of conversation",
			about: "Delivers the event once. The same event_id with the same content answers with its first receipt " +
				"and duplicate: true; with other content it is a conflict. " +
				"The receipt says truthfully what became of the event: queued is not committed, and uncertain means " +
				"that the outcome is not known. Recording an event again is always safe.",
			codes: []abi.Code{abi.CodeConflict}, request: exampleEvent(), answer: exampleReceipt(),
			handler: call(s, abi.OpRecordEvent, func(ctx context.Context, q *abi.MemoryEvent) (*abi.WriteReceipt,
				error) {
				if err := s.options.Scopes.checkEvent(q); err != nil {
					return nil, err
				}
				if err := scopedToken(ctx).checkEvent(q); err != nil {
					return nil, err
				}
				ctx, release := detached(ctx)
				defer release()
				return s.options.Slot.RecordEvent(ctx, q)
			})},
		{method: http.MethodPost, path: wire.PathEventsBatch, operation: abi.OpRecordEvents, tag: tagMemory,
			summary: "Record several turns",
			about: "Answers 200 with a receipt or an error for each event, in the order of the request; one wrong " +
				"event stops no other. Order within a scope is kept.",
			request: &abi.EventBatch{Events: []abi.MemoryEvent{*exampleEvent()}}, answer: exampleReceipts(),
			handler: callDecoded(s, abi.OpRecordEvents, decodeBatch, s.recordBatch)},
		{method: http.MethodPost, path: wire.PathRetrieve, operation: abi.OpRetrieve, tag: tagMemory,
			summary: "Ask for context",
			about: "formatted_context is one memory-context element for the prompt, or the empty string when there " +
				"is no memory. raw keeps the backend's answers as they came; evidence points into it. " +
				"An outage is an error, never an empty result.",
			request: exampleRetrieve(), answer: exampleResult(),
			handler: scoped(s, abi.OpRetrieve, func(q *abi.RetrieveRequest) abi.MemoryScope {
				return q.Scope
			}, func(slot host.Contract, ctx context.Context, q *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
				if err := scopedToken(ctx).checkRetrieve(q); err != nil {
					return nil, err
				}
				release, err := s.takeBudget(q.Budget)
				defer release()
				if err != nil {
					return nil, err
				}
				return slot.Retrieve(ctx, q)
			})},
		{method: http.MethodPost, path: wire.PathFormat, operation: abi.OpFormatContext, tag: tagMemory,
			summary: "Format an earlier result again",
			about: "The same result, budget and scope give the same string as the retrieval did. The backend is " +
				"not asked.",
			request: &abi.FormatRequest{Result: *exampleResult(), Budget: exampleRetrieve().Budget,
				Scope: exampleScope()},
			answer: &abi.FormatResult{FormattedContext: exampleResult().FormattedContext, TokenCount: 31},
			handler: callDecoded(s, abi.OpFormatContext, decodeFormat,
				func(ctx context.Context, q *abi.FormatRequest) (*abi.FormatResult, error) {
					if err := s.options.Scopes.check("scope", q.Scope); err != nil {
						return nil, err
					}
					return s.options.Slot.FormatContext(ctx, q)
				})},
	}
}

// decodeFormat accepts a result exactly as it was returned: raw in it is the backend's own JSON, which may contain a
// name twice.
func decodeFormat(body []byte) (*abi.FormatRequest, error) {
	q := new(abi.FormatRequest)
	return q, abi.UnmarshalStrict(body, q)
}

func (s *Server) scopeRoutes() []route {
	scope := exampleScope()
	return []route{
		{method: http.MethodPost, path: wire.PathScopes, operation: abi.OpSetupScope, tag: tagScopes,
			summary: "Make a scope ready",
			about:   "Never needed: the first write does it. While the slot is read-only it only checks.",
			request: &scope, answer: exampleSetup(),
			handler: bareScope(s, abi.OpSetupScope, host.Contract.SetupScope)},
		{method: http.MethodPost, path: wire.PathScopesReset, operation: abi.OpResetScope, tag: tagScopes,
			summary: "Erase a scope's memory",
			about: "Starts the scope's next generation, into which no earlier event can come. remains says what the " +
				"backend could not remove, and why. Refused while the slot is read-only.",
			codes: []abi.Code{abi.CodeReadOnly}, request: &scope, answer: exampleReset(),
			handler: bareScope(s, abi.OpResetScope, host.Contract.ResetScope)},
	}
}

func (s *Server) slotRoutes() []route {
	return []route{
		{method: http.MethodGet, path: wire.PathMode, operation: wire.OpMode, tag: tagSlot, local: true,
			summary: "Tell the read-only mode", answer: exampleMode(),
			handler: askSlot(s, wire.OpMode, host.Contract.Mode)},
		{method: http.MethodPut, path: wire.PathMode, operation: abi.OpSetMode, tag: tagSlot, local: true,
			summary: "Raise or lower the read-only wall",
			about: "While it is up, writing operations answer skipped_read_only without entering the plugin, and no " +
				"native call that is not a read leaves the slot. in_flight counts what was let through before and still runs: " +
				"0 means that nothing can change the backend any more. With complete false, ask again.",
			codes: []abi.Code{abi.CodeUnsupported}, request: &abi.AdapterMode{ReadOnly: true, Reason: "evaluation"},
			answer: exampleMode(),
			handler: callDecoded(s, abi.OpSetMode, decodeMode,
				func(ctx context.Context, q *abi.AdapterMode) (*abi.ModeReceipt, error) {
					if q.Scope != nil {
						if err := s.options.Scopes.check("scope", *q.Scope); err != nil {
							return nil, err
						}
					}
					return s.options.Slot.SetMode(ctx, q)
				})},
		{method: http.MethodGet, path: wire.PathHealth, operation: abi.OpHealth, tag: tagSlot,
			summary: "Ask the backend how it is", answer: exampleHealth(),
			about:   "Asks the backend itself. For the process alone there are /healthz and /readyz.",
			handler: askSlot(s, abi.OpHealth, host.Contract.Health)},
		{method: http.MethodGet, path: wire.PathCapabilities, operation: wire.OpCapabilities, tag: tagSlot, local: true,
			summary: "List what the provider can do", answer: exampleCapabilities(),
			handler: askSlot(s, wire.OpCapabilities, host.Contract.Capabilities)},
		{method: http.MethodGet, path: wire.PathManifest, operation: wire.OpManifest, tag: tagSlot, local: true,
			summary: "Tell what serves, and since when", answer: exampleManifest(),
			about: "The run manifest: module with its sha256, configuration with its hash, capabilities, and the " +
				"steps that led here.",
			handler: askSlot(s, wire.OpManifest, host.Contract.Manifest)},
		{method: http.MethodGet, path: wire.PathCluster, operation: wire.OpCluster, tag: tagSlot, local: true,
			summary: "Tell which hosts serve the slot, and what they agree on", answer: exampleCluster(),
			codes: []abi.Code{abi.CodeUnsupported},
			about: "Any host of a slot that is kept in a database answers for all of them. A slot on a file has one host. " +
				"The backend is not asked.",
			handler: ask(s, wire.OpCluster, func(ctx context.Context) (*report.Cluster, error) {
				if s.options.Cluster == nil {
					return nil, abi.NewError(abi.CodeUnsupported, "this slot does not tell its hosts").WithReason("cluster")
				}
				return s.options.Cluster(ctx)
			})},
		{method: http.MethodPost, path: wire.PathSwap, operation: wire.OpSwap, tag: tagSlot,
			summary: "Exchange the provider while the slot serves",
			about: "Calls under way end on the old provider. When a step fails the old one keeps serving, and the " +
				"error says which step.",
			codes:   []abi.Code{abi.CodeUnsupported, abi.CodeNotFound},
			request: &wire.SwapRequest{Condition: "full_history", Config: abi.Raw(`{}`)}, answer: exampleManifest(),
			handler: call(s, wire.OpSwap, s.swap)},
	}
}

// decodeMode requires read_only in the body: a body without it must not end the read-only mode.
func decodeMode(body []byte) (*abi.AdapterMode, error) {
	q := new(abi.AdapterMode)
	if err := decode(body, q); err != nil {
		return nil, err
	}
	given := false
	// null, which is not an object, sets nothing
	_ = wirejson.DecodeBytes(body).Obj(func(d *wirejson.Decoder, name string) error {
		given = given || name == "read_only" && d.Next() == wirejson.Bool
		return d.Skip()
	})
	if !given {
		return nil, abi.NewError(abi.CodeInvalidArgument,
			"read_only: missing, want true or false").WithHint("the mode is as it was; GET tells it")
	}
	return q, nil
}

func (s *Server) swap(ctx context.Context, q *wire.SwapRequest) (*report.RunManifest, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	if s.options.Swapper == nil {
		return nil, abi.NewError(abi.CodeUnsupported, "this slot's provider cannot be exchanged").WithReason("swap")
	}
	return s.options.Swapper.Swap(ctx, *q)
}

// readyWithin is how long /readyz waits for the store.
const readyWithin = 2 * time.Second

func (s *Server) processRoutes() []route {
	live := func(status string) *wire.Liveness {
		return &wire.Liveness{Service: wire.Service, Status: status, Version: s.options.Version}
	}
	return []route{
		{method: http.MethodGet, path: wire.PathLive, tag: tagProcess, local: true, open: true,
			summary: "Tell that the process is up", answer: live("ok"), about: "Never needs a token.",
			handler: ask(s, "", func(context.Context) (*wire.Liveness, error) { return live("ok"), nil })},
		{method: http.MethodGet, path: wire.PathReady, tag: tagProcess, local: true, open: true,
			summary: "Tell whether the slot serves", answer: live("ready"),
			about: "503 while the slot stops, or has no provider. Never needs a token. The backend is not asked: " +
				"that is what /v1/health does.",
			handler: ask(s, "", func(ctx context.Context) (*wire.Liveness, error) {
				if err := s.ready(ctx); err != nil {
					return nil, err
				}
				return live("ready"), nil
			})},
	}
}

// ready returns why the slot does not serve, or nil.
func (s *Server) ready(ctx context.Context) error {
	if s.stopping.Load() {
		return abi.NewError(abi.CodeUnavailable, "the slot is stopping").WithReason("stopping")
	}
	within, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		_, err := s.options.Slot.Capabilities(within) // cheaper than the manifest, and just as conclusive
		answered <- err
	}()
	select {
	case err := <-answered:
		if err != nil {
			return err
		}
	case <-within.Done():
		return abi.NewError(abi.CodeUnavailable, fmt.Sprintf("the slot's store did not answer within %s",
			readyWithin)).WithReason("state").WithHint("see that the database runs and can be reached from here")
	}
	return nil
}
