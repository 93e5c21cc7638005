//go:build unix

package pgserver

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"slices"
	"sync"
)

// Wire counts what a driver sends, by the frontend messages of PostgreSQL's protocol, version 3, without TLS:
//
//	startup  length (4 bytes, itself included), text
//	others   kind (1 byte), length, text
//
// A driver waits for the server after a message Sync or Query: each is a round trip. A Parse gives a statement a name,
// and a Bind names the statement that is run. The zero value is ready for use.
type Wire struct {
	mu   sync.Mutex
	sent Sent
}

// Sent is what was sent.
type Sent struct {
	// Trips are the round trips: how often the driver had to wait for an answer.
	Trips int
	// Statements are those that were run, in their order.
	Statements []string
}

// Dial opens a connection that is counted.
func (w *Wire) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &wireConn{Conn: conn, wire: w, names: map[string]string{}}, nil
}

// Take returns what was sent since the last call.
func (w *Wire) Take() Sent {
	w.mu.Lock()
	defer w.mu.Unlock()
	sent := w.sent
	w.sent = Sent{}
	return sent
}

type wireConn struct {
	net.Conn
	wire    *Wire
	started bool
	rest    []byte            // the start of a message that has not arrived completely
	names   map[string]string // of prepared statements
}

func (c *wireConn) Write(b []byte) (int, error) {
	c.wire.mu.Lock()
	c.rest = append(c.rest, b...)
	for c.next() {
	}
	c.wire.mu.Unlock()
	return c.Conn.Write(b)
}

// next counts the first message of rest, and reports whether it was whole.
func (c *wireConn) next() bool {
	at := 0
	if c.started {
		at = 1
	}
	if len(c.rest) < at+4 {
		return false
	}
	end := at + int(binary.BigEndian.Uint32(c.rest[at:]))
	if len(c.rest) < end {
		return false
	}
	kind, text := c.rest[0], c.rest[at+4:end]
	if c.started {
		c.count(kind, text)
	}
	c.started, c.rest = true, slices.Delete(c.rest, 0, end)
	return true
}

func (c *wireConn) count(kind byte, text []byte) {
	first, after, _ := bytes.Cut(text, []byte{0})
	second, _, _ := bytes.Cut(after, []byte{0})
	sent := &c.wire.sent
	switch kind {
	case 'P': // a name, the statement
		c.names[string(first)] = string(second)
	case 'B': // a portal, the statement's name
		sent.Statements = append(sent.Statements, c.names[string(second)])
	case 'Q':
		sent.Statements = append(sent.Statements, string(first))
		sent.Trips++
	case 'S':
		sent.Trips++
	}
}
