package client

import (
	"context"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

var _ host.Followers = (*Client)(nil)

// Backfill starts to fill another provider, which then serves.
func (c *Client) Backfill(ctx context.Context, request wire.BackfillRequest) (*abi.Backfill, error) {
	return post[abi.Backfill](ctx, c, wire.OpBackfill, wire.PathBackfill, &request)
}

// BackfillPlan describes what Backfill would send.
func (c *Client) BackfillPlan(ctx context.Context, request wire.BackfillRequest) (*abi.BackfillPlan, error) {
	return post[abi.BackfillPlan](ctx, c, wire.OpBackfillPlan, wire.PathBackfillPlan, &request)
}

// BackfillEvents implements host.Followers.
func (c *Client) BackfillEvents(ctx context.Context, request *abi.BackfillEvents) (*abi.ArchiveReceipt, error) {
	return post[abi.ArchiveReceipt](ctx, c, wire.OpBackfillGive, wire.PathBackfillGive, request)
}

// BackfillStatus implements host.Followers.
func (c *Client) BackfillStatus(ctx context.Context) (*abi.Backfill, error) {
	return get[abi.Backfill](ctx, c, wire.OpBackfillStatus, wire.PathBackfill)
}

// BackfillTurn implements host.Followers.
func (c *Client) BackfillTurn(ctx context.Context, request *abi.BackfillTurn) (*abi.Backfill, error) {
	return post[abi.Backfill](ctx, c, wire.OpBackfillTurn, wire.PathBackfillTurn, request)
}

// BackfillStop implements host.Followers.
func (c *Client) BackfillStop(ctx context.Context, request *abi.BackfillStop) (*abi.Backfill, error) {
	return post[abi.Backfill](ctx, c, wire.OpBackfillStop, wire.PathBackfillStop, request)
}

// Shadows implements host.Followers.
func (c *Client) Shadows(ctx context.Context) (*abi.ShadowList, error) {
	return get[abi.ShadowList](ctx, c, wire.OpShadows, wire.PathShadows)
}

// ShadowAnswers implements host.Followers.
func (c *Client) ShadowAnswers(ctx context.Context, request *abi.ShadowAnswersRequest) (*abi.ShadowAnswers, error) {
	return post[abi.ShadowAnswers](ctx, c, wire.OpShadowAnswers, wire.PathShadowAnswers, request)
}
