package client

import (
	"context"

	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

var _ host.Followers = (*Client)(nil)

// Backfill starts to fill another provider, which then serves.
func (c *Client) Backfill(ctx context.Context, request wire.BackfillRequest) (*report.Backfill, error) {
	return post[report.Backfill](ctx, c, wire.OpBackfill, wire.PathBackfill, &request)
}

// BackfillPlan describes what Backfill would send.
func (c *Client) BackfillPlan(ctx context.Context, request wire.BackfillRequest) (*report.BackfillPlan, error) {
	return post[report.BackfillPlan](ctx, c, wire.OpBackfillPlan, wire.PathBackfillPlan, &request)
}

// BackfillEvents implements host.Followers.
func (c *Client) BackfillEvents(ctx context.Context, request *report.BackfillEvents) (*report.ArchiveReceipt, error) {
	return post[report.ArchiveReceipt](ctx, c, wire.OpBackfillGive, wire.PathBackfillGive, request)
}

// BackfillStatus implements host.Followers.
func (c *Client) BackfillStatus(ctx context.Context) (*report.Backfill, error) {
	return get[report.Backfill](ctx, c, wire.OpBackfillStatus, wire.PathBackfill)
}

// BackfillServe implements host.Followers.
func (c *Client) BackfillServe(ctx context.Context, request *report.BackfillServe) (*report.Backfill, error) {
	return post[report.Backfill](ctx, c, wire.OpBackfillServe, wire.PathBackfillServe, request)
}

// BackfillStop implements host.Followers.
func (c *Client) BackfillStop(ctx context.Context, request *report.BackfillStop) (*report.Backfill, error) {
	return post[report.Backfill](ctx, c, wire.OpBackfillStop, wire.PathBackfillStop, request)
}

// Shadows implements host.Followers.
func (c *Client) Shadows(ctx context.Context) (*report.ShadowList, error) {
	return get[report.ShadowList](ctx, c, wire.OpShadows, wire.PathShadows)
}

// ShadowAnswers implements host.Followers.
func (c *Client) ShadowAnswers(ctx context.Context, request *report.ShadowAnswersRequest) (*report.ShadowAnswers, error) {
	return post[report.ShadowAnswers](ctx, c, wire.OpShadowAnswers, wire.PathShadowAnswers, request)
}
