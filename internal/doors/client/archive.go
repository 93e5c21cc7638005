package client

import (
	"context"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

var _ host.Archive = (*Client)(nil)

// ArchiveStats implements host.Archive.
func (c *Client) ArchiveStats(ctx context.Context) (*abi.ArchiveStats, error) {
	return get[abi.ArchiveStats](ctx, c, wire.OpArchiveStats, wire.PathArchive)
}

// ArchivePage implements host.Archive.
func (c *Client) ArchivePage(ctx context.Context, request *abi.ArchiveRequest) (*abi.ArchivePage, error) {
	return post[abi.ArchivePage](ctx, c, wire.OpArchivePage, wire.PathArchivePage, request)
}

// ArchiveAdd implements host.Archive.
func (c *Client) ArchiveAdd(ctx context.Context, batch *abi.EventBatch) (*abi.ArchiveReceipt, error) {
	return post[abi.ArchiveReceipt](ctx, c, wire.OpArchiveAdd, wire.PathArchiveEvents, batch)
}

// ErasePersona erases all that the slot's data folder knows of a person.
func (c *Client) ErasePersona(ctx context.Context, request *abi.PersonaRequest) (*abi.PersonaReceipt, error) {
	return post[abi.PersonaReceipt](ctx, c, wire.OpErasePersona, wire.PathPersona, request)
}

// ArchiveCheck implements host.Archive.
func (c *Client) ArchiveCheck(ctx context.Context) (*abi.ArchiveCheck, error) {
	return get[abi.ArchiveCheck](ctx, c, wire.OpArchiveCheck, wire.PathArchiveCheck)
}
