package client

import (
	"context"
	"io"
	"mime"
	"net/http"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

var _ host.Archive = (*Client)(nil)

// ArchiveStats implements host.Archive.
func (c *Client) ArchiveStats(ctx context.Context) (*report.ArchiveStats, error) {
	return get[report.ArchiveStats](ctx, c, wire.OpArchiveStats, wire.PathArchive)
}

// ArchivePage implements host.Archive.
func (c *Client) ArchivePage(ctx context.Context, request *report.ArchiveRequest) (*report.ArchivePage, error) {
	return post[report.ArchivePage](ctx, c, wire.OpArchivePage, wire.PathArchivePage, request)
}

// ArchiveAdd implements host.Archive.
func (c *Client) ArchiveAdd(ctx context.Context, batch *abi.EventBatch) (*report.ArchiveReceipt, error) {
	return post[report.ArchiveReceipt](ctx, c, wire.OpArchiveAdd, wire.PathArchiveEvents, batch)
}

// ErasePersona erases everything that the slot's data folder has about a person.
func (c *Client) ErasePersona(ctx context.Context, request *report.PersonaRequest) (*report.PersonaReceipt, error) {
	return post[report.PersonaReceipt](ctx, c, wire.OpErasePersona, wire.PathPersona, request)
}

// ArchiveCheck implements host.Archive.
func (c *Client) ArchiveCheck(ctx context.Context) (*report.ArchiveCheck, error) {
	return get[report.ArchiveCheck](ctx, c, wire.OpArchiveCheck, wire.PathArchiveCheck)
}

// Backup writes a backup of the slot's data folder to w, as GET /v1/backup sends it.
//
// Errors: unavailable with ReasonConnection if it was cut off; the error of w.
func (c *Client) Backup(ctx context.Context, w io.Writer) error {
	response, err := c.send(ctx, wire.OpBackup, http.MethodGet, wire.PathBackup, nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); media != wire.MediaGzip {
		text, err := c.text(ctx, wire.OpBackup, response)
		if err != nil {
			return err
		}
		return c.refusal(wire.OpBackup, response, text, wire.MediaGzip)
	}
	body := &bodyReader{Reader: response.Body}
	_, err = io.Copy(w, body)
	if body.err != nil {
		return c.unreachable(ctx, wire.OpBackup, body.err)
	}
	return err
}

// bodyReader keeps the read error, because io.Copy does not distinguish it from a write error.
type bodyReader struct {
	io.Reader
	err error
}

func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}
