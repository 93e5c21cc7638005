package mcpdoor

import (
	"bufio"
	"bytes"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Handler is the door over streamable HTTP, for a server that has checked Host, Origin and token: it is behind the same
// guard as the rest of the HTTP door (server.Options.Mounts). That is why the SDK's own check of the Host header is
// off: it would reject a reverse proxy with a name of its own, which the guard admits if it sends the token. maxBody
// bounds a request, in bytes.
//
// No sessions are kept: each request is independent, so that clients continue after a restart of the slot. The door
// sends nothing on its own, and answers with one JSON object instead of a stream of events.
func (d *Door) Handler(maxBody int64) http.Handler {
	streamable := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return d.server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, DisableLocalhostProtection: true,
			MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			r.Body = boundBatch(w, r.Body)
		}
		streamable.ServeHTTP(w, r)
	})
}

// maxBatch bounds a batch of requests, in bytes. Old versions of the protocol have batches, and the answer to a request
// of 45 bytes has 4 KB.
const maxBatch = 64 << 10

// boundBatch returns a request's body. If the body is a list, reading it fails after maxBatch bytes.
func boundBatch(w http.ResponseWriter, body io.ReadCloser) io.ReadCloser {
	in := bufio.NewReader(body)
	for {
		first, err := in.Peek(1)
		if err != nil || !bytes.Contains([]byte(" \t\r\n"), first) {
			rest := struct {
				io.Reader
				io.Closer
			}{in, body}
			if err == nil && first[0] == '[' {
				return http.MaxBytesReader(w, rest, maxBatch)
			}
			return rest
		}
		_, _ = in.Discard(1)
	}
}
