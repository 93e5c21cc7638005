package mcpdoor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lineLimit bounds a message of a client, in bytes, like a body of the HTTP door.
const lineLimit = 16 << 20

// ServeStdio serves one client on a stream of lines, until in or ctx ends. Requests that have been read by then get
// patience to be answered. Only the protocol is written to out.
//
// A client that ends its stream right after a request (a script, or one that is being stopped) would otherwise lose the
// answer, because the SDK cancels requests in progress when its reader ends. So the end of in is hidden from it until
// every answer is written.
func (d *Door) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, patience time.Duration) error {
	l := &lines{out: out, patience: patience, stop: ctx.Done(), incoming: make(chan []byte), ended: make(chan struct{}),
		closed: make(chan struct{}),
		open:   map[jsonrpc.ID]struct{}{}, answered: make(chan struct{}, 1)}
	go l.read(in)
	session, err := d.server.Connect(context.WithoutCancel(ctx), l, nil)
	if err != nil {
		return err
	}
	if err := session.Wait(); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, mcp.ErrConnectionClosed) {
		return err
	}
	return nil
}

// lines is a transport with a single connection: one JSON-RPC message per line.
//
// The SDK's own transport ends the session at an invalid message. This one answers the line with an error and
// continues.
type lines struct {
	patience time.Duration
	stop     <-chan struct{} // nothing more is read
	incoming chan []byte
	ended    chan struct{} // in has ended
	closed   chan struct{}
	once     sync.Once
	queue    []jsonrpc.Message // of a batch; read by one goroutine only

	mu   sync.Mutex // guards out and open
	out  io.Writer
	open map[jsonrpc.ID]struct{} // requests without an answer
	// answered is signalled when open may have become empty.
	answered chan struct{}
}

// Connect implements mcp.Transport.
func (l *lines) Connect(context.Context) (mcp.Connection, error) { return l, nil }

// SessionID implements mcp.Connection: there is one session.
func (l *lines) SessionID() string { return "" }

// Close implements mcp.Connection. The goroutine that reads in may hang until the process ends.
func (l *lines) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// read splits in into lines. A line that is too long is skipped and answered with an error.
func (l *lines) read(in io.Reader) {
	defer close(l.ended)
	reader := bufio.NewReaderSize(in, 64<<10)
	var line []byte
	long := false
	for {
		part, err := reader.ReadSlice('\n')
		if long = long || len(line)+len(part) > lineLimit; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		switch {
		case long:
			l.complain(jsonrpc.CodeInvalidRequest, fmt.Sprintf("a line of more than %d bytes", lineLimit))
		case len(bytes.TrimSpace(line)) > 0:
			select {
			case l.incoming <- line:
			case <-l.closed:
				return
			}
		}
		line, long = nil, false
		if err != nil {
			return
		}
	}
}

// Read implements mcp.Connection.
func (l *lines) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if len(l.queue) > 0 {
			m := l.queue[0]
			l.queue = l.queue[1:]
			l.begin(m)
			return m, nil
		}
		select {
		case line := <-l.incoming:
			l.queue = l.parse(line)
			continue
		default:
		}
		select {
		case line := <-l.incoming:
			l.queue = l.parse(line)
		case <-l.ended:
			return nil, l.drain()
		case <-l.stop:
			return nil, l.drain()
		case <-l.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// parse parses a line: a message, or an array of several in protocols before 2025-06-18.
func (l *lines) parse(line []byte) (messages []jsonrpc.Message) {
	line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF")) // shells on Windows start with a byte order mark
	parts := []json.RawMessage{line}
	if !json.Valid(line) {
		l.complain(jsonrpc.CodeParseError, "the line is not JSON")
		return nil
	}
	if bytes.TrimSpace(line)[0] == '[' {
		if err := json.Unmarshal(line, &parts); err != nil || len(parts) == 0 {
			l.complain(jsonrpc.CodeInvalidRequest, "an empty batch")
			return nil
		}
	}
	for _, part := range parts {
		m, err := jsonrpc.DecodeMessage(part)
		if err != nil {
			l.complain(jsonrpc.CodeInvalidRequest, "no JSON-RPC 2.0 message: "+err.Error())
			continue
		}
		messages = append(messages, m)
	}
	return messages
}

// complain answers an invalid message, which has no id.
func (l *lines) complain(code int64, message string) {
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil,
		"error": map[string]any{"code": code, "message": message}})
	if err == nil {
		_ = l.put(text) // the next answer notices that a client has gone
	}
}

// Write implements mcp.Connection.
func (l *lines) Write(_ context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err == nil {
		err = l.put(text)
	}
	if r, ok := m.(*jsonrpc.Response); ok {
		l.end(r.ID)
	}
	return err
}

func (l *lines) put(text []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.out.Write(append(text, '\n'))
	return err
}

// begin and end track the requests without an answer.
func (l *lines) begin(m jsonrpc.Message) {
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		l.mu.Lock()
		l.open[r.ID] = struct{}{}
		l.mu.Unlock()
	}
}

func (l *lines) end(id jsonrpc.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, id)
	if len(l.open) == 0 {
		select {
		case l.answered <- struct{}{}:
		default:
		}
	}
}

// drain waits until every request is answered, and then returns the end of the input.
func (l *lines) drain() error {
	over := time.NewTimer(l.patience)
	defer over.Stop()
	for {
		l.mu.Lock()
		n := len(l.open)
		l.mu.Unlock()
		if n == 0 {
			return io.EOF
		}
		select {
		case <-l.answered:
		case <-l.closed:
			return io.EOF
		case <-over.C:
			return io.EOF
		}
	}
}
