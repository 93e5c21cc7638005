package mcpdoor

import (
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Handler is the door over streamable HTTP, for a server that has checked Host, Origin and token: it is behind the
// same guard as the rest of the HTTP door (server.Options.Mounts), which is why the SDK's own check of the Host header
// is off. That check would refuse a reverse proxy under a name of its own, which the guard lets in when it shows the
// token. maxBody bounds a request, in bytes.
//
// No sessions are kept: each request is independent, so that clients go on after a restart of the slot as if nothing
// had been. The door sends nothing of its own accord, and answers with one JSON object instead of a stream of events.
func (d *Door) Handler(maxBody int64) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return d.server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, DisableLocalhostProtection: true,
			MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true})
}
