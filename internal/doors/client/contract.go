package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

var _ host.Contract = (*Client)(nil)

// SetupScope implements host.Contract.
func (c *Client) SetupScope(ctx context.Context, scope abi.MemoryScope) (*abi.SetupReceipt, error) {
	return post[abi.SetupReceipt](ctx, c, abi.OpSetupScope, wire.PathScopes, &scope)
}

// RecordEvent implements host.Contract.
func (c *Client) RecordEvent(ctx context.Context, event *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	receipt, err := post[abi.WriteReceipt](ctx, c, abi.OpRecordEvent, wire.PathEvents, event)
	if err == nil {
		err = c.receiptOf(abi.OpRecordEvent, event.EventID, receipt)
	}
	if err != nil {
		return nil, err
	}
	return receipt, nil
}

// RecordEvents implements host.Contract. The whole batch is one request, which the slot's body limit bounds.
func (c *Client) RecordEvents(ctx context.Context, batch *abi.EventBatch) (*abi.BatchReceipts, error) {
	answer, err := post[abi.BatchReceipts](ctx, c, abi.OpRecordEvents, wire.PathEventsBatch, batch)
	if err == nil {
		err = c.receiptsOf(batch, answer)
	}
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// Retrieve implements host.Contract.
func (c *Client) Retrieve(ctx context.Context, request *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	return post[abi.RetrieveResult](ctx, c, abi.OpRetrieve, wire.PathRetrieve, request)
}

// FormatContext implements host.Contract.
func (c *Client) FormatContext(ctx context.Context, request *abi.FormatRequest) (*abi.FormatResult, error) {
	return post[abi.FormatResult](ctx, c, abi.OpFormatContext, wire.PathFormat, request)
}

// ResetScope implements host.Contract.
func (c *Client) ResetScope(ctx context.Context, scope abi.MemoryScope) (*abi.ResetReceipt, error) {
	return post[abi.ResetReceipt](ctx, c, abi.OpResetScope, wire.PathScopesReset, &scope)
}

// Health implements host.Contract.
func (c *Client) Health(ctx context.Context) (*abi.BackendHealth, error) {
	return get[abi.BackendHealth](ctx, c, abi.OpHealth, wire.PathHealth)
}

// SetMode implements host.Contract.
func (c *Client) SetMode(ctx context.Context, mode *abi.AdapterMode) (*abi.ModeReceipt, error) {
	return send[abi.ModeReceipt](ctx, c, abi.OpSetMode, http.MethodPut, wire.PathMode, mode)
}

// Mode implements host.Contract. With a scoped token, which may not read the mode, nothing is sent.
func (c *Client) Mode(ctx context.Context) (*abi.ModeReceipt, error) {
	if strings.HasPrefix(c.token, wire.ScopedTokenPrefix) {
		return nil, abi.NewError(abi.CodeDenied, "a scoped token cannot read the mode").WithReason("scoped_token")
	}
	return get[abi.ModeReceipt](ctx, c, wire.OpMode, wire.PathMode)
}

// Capabilities implements host.Contract.
func (c *Client) Capabilities(ctx context.Context) (*report.Capabilities, error) {
	return get[report.Capabilities](ctx, c, wire.OpCapabilities, wire.PathCapabilities)
}

// Cluster reports which hosts serve the slot, and what they agree on.
func (c *Client) Cluster(ctx context.Context) (*report.Cluster, error) {
	return get[report.Cluster](ctx, c, wire.OpCluster, wire.PathCluster)
}

// ListScopes requests a page of the scopes that the slot knows. The slot must keep a listing.
func (c *Client) ListScopes(ctx context.Context, q report.ScopeQuery) (*report.ScopePage, error) {
	list, err := c.listScopes(ctx, &q)
	if err != nil {
		return nil, err
	}
	page := &report.ScopePage{Next: list.Next, Default: list.Default}
	for _, l := range list.Scopes {
		page.Scopes = append(page.Scopes, report.ListedScope{ScopeMapping: report.ScopeMapping{Scope: l.Scope,
			Generation: l.Generation, NativeScope: l.NativeScope, Since: l.Since}, Queued: l.Queued, Pending: l.Pending,
			Lost: l.Lost, Events: l.Events, LastAt: l.LastAt})
	}
	return page, nil
}

// listScopes asks for a plain page with GET, which every slot has.
func (c *Client) listScopes(ctx context.Context, q *report.ScopeQuery) (*wire.ScopeList, error) {
	limit := min(q.Limit, report.MaxPage)
	if q.Contains != "" || q.OnlyOpen || q.Counts {
		return post[wire.ScopeList](ctx, c, wire.OpSearchScopes, wire.PathScopesList, &wire.ScopeListRequest{After: q.After,
			Limit: limit, Contains: q.Contains, OnlyOpen: q.OnlyOpen, Counts: q.Counts})
	}
	values := url.Values{}
	if q.After != "" {
		values.Set("after", q.After)
	}
	if limit > 0 {
		values.Set("limit", strconv.FormatInt(limit, 10))
	}
	return get[wire.ScopeList](ctx, c, wire.OpListScopes, wire.PathScopes+"?"+values.Encode())
}

// ListEvents requests a page of a scope's events. The slot must keep a listing.
func (c *Client) ListEvents(ctx context.Context, q report.EventQuery) (*report.EventPage, error) {
	request := wire.EventListRequest(q)
	request.Limit = min(q.Limit, report.MaxPage)
	list, err := post[wire.EventList](ctx, c, wire.OpListEvents, wire.PathEventsList, &request)
	if err != nil {
		return nil, err
	}
	page := &report.EventPage{Generation: list.Generation, Next: list.Next}
	for _, e := range list.Events {
		page.Events = append(page.Events, report.ListedEvent(e))
	}
	return page, nil
}

// Manifest implements host.Contract.
func (c *Client) Manifest(ctx context.Context) (*report.RunManifest, error) {
	return get[report.RunManifest](ctx, c, wire.OpManifest, wire.PathManifest)
}

// Readiness implements host.Contract.
func (c *Client) Readiness(ctx context.Context, request *abi.ReadinessRequest) (*abi.BackendReadiness, error) {
	return post[abi.BackendReadiness](ctx, c, abi.OpReadiness, wire.PathReadiness, request)
}

// Inventory implements host.Contract.
func (c *Client) Inventory(ctx context.Context, request *abi.InventoryRequest) (*abi.Inventory, error) {
	return post[abi.Inventory](ctx, c, abi.OpInventory, wire.PathInventory, request)
}

// Provenance implements host.Contract.
func (c *Client) Provenance(ctx context.Context, request *abi.ProvenanceRequest) (*abi.Provenance, error) {
	return post[abi.Provenance](ctx, c, abi.OpProvenance, wire.PathProvenance, request)
}

// NativeQuery implements host.Contract.
func (c *Client) NativeQuery(ctx context.Context, request *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	return post[abi.NativeQueryResult](ctx, c, abi.OpNativeQuery, wire.PathNativeQuery, request)
}

// NativeMutation implements host.Contract.
func (c *Client) NativeMutation(ctx context.Context, request *abi.NativeMutation) (*abi.MutationReceipt, error) {
	return post[abi.MutationReceipt](ctx, c, abi.OpNativeMutation, wire.PathMutations, request)
}

// ApplyFeedback implements host.Contract.
func (c *Client) ApplyFeedback(ctx context.Context, request *abi.MemoryFeedback) (*abi.FeedbackReceipt, error) {
	return post[abi.FeedbackReceipt](ctx, c, abi.OpApplyFeedback, wire.PathFeedback, request)
}

// Forget implements host.Contract.
func (c *Client) Forget(ctx context.Context, request *abi.ForgetRequest) (*abi.ForgetReceipt, error) {
	return post[abi.ForgetReceipt](ctx, c, abi.OpForget, wire.PathForget, request)
}

// decodable is a pointer to an answer.
type decodable[A any] interface {
	*A
	abi.Decodable
}

func get[A any, P decodable[A]](ctx context.Context, c *Client, op, path string) (*A, error) {
	return send[A, P](ctx, c, op, http.MethodGet, path, nil)
}

func post[A any, P decodable[A]](ctx context.Context, c *Client, op, path string, request abi.Encodable) (*A, error) {
	return send[A, P](ctx, c, op, http.MethodPost, path, request)
}

func send[A any, P decodable[A]](ctx context.Context, c *Client, op, method, path string, request abi.Encodable) (*A,
	error) {
	answer := new(A)
	if err := c.call(ctx, op, method, path, request, P(answer)); err != nil {
		return nil, err
	}
	return answer, nil
}
