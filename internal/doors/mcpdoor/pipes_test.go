package mcpdoor_test

import (
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/memhost/memhost/host"
)

// hostContract is the slot as the door sees it.
type hostContract = host.Contract

// ends are a server's ends of two pipes.
type ends struct {
	in  io.Reader
	out io.Writer
}

// newPipes returns a client's transport, and the server's ends of it.
func newPipes() (*mcp.IOTransport, ends) {
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	return &mcp.IOTransport{Reader: toClient, Writer: fromClient}, ends{toServer, fromServer}
}
