package bolt

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"
)

// The messages of Bolt 5.
//
// Source: Bolt message specification, https://neo4j.com/docs/bolt/current/bolt/message/.
const (
	msgHello     = 0x01
	msgGoodbye   = 0x02
	msgReset     = 0x0F
	msgRun       = 0x10
	msgBegin     = 0x11
	msgCommit    = 0x12
	msgRollback  = 0x13
	msgDiscard   = 0x2F
	msgPull      = 0x3F
	msgTelemetry = 0x54
	msgRoute     = 0x66
	msgLogon     = 0x6A
	msgLogoff    = 0x6B
	msgSuccess   = 0x70
	msgRecord    = 0x71
	msgIgnored   = 0x7E
	msgFailure   = 0x7F
)

// newest is the highest minor version of Bolt 5 that the server speaks.
const newest = 8

// maxMessage bounds a message of a client, in bytes.
const maxMessage = 64 << 20

var errBye = errors.New("the client said goodbye, or the session is over")

// state is how far a session has got.
type state int

const (
	fresh   state = iota // HELLO is due
	unknown              // LOGON is due
	ready
	streaming
	failed // everything but RESET is ignored
)

// session is one connection.
type session struct {
	server *Server
	conn   net.Conn
	out    *bufio.Writer
	minor  byte
	state  state
	user   string
	tx     *Query // an explicit transaction's database, mode and timeout
	query  Query
	answer Answer
	sent   int // rows of answer
}

func newSession(s *Server, conn net.Conn) *session {
	return &session{server: s, conn: conn, out: bufio.NewWriterSize(conn, 64<<10)}
}

// incoming is a message, or what ended them.
type incoming struct {
	message Struct
	err     error
}

// serve speaks until the connection ends.
func (s *session) serve(ctx context.Context) {
	in := bufio.NewReaderSize(s.conn, 16<<10)
	if !s.negotiate(in) {
		return
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	messages := make(chan incoming)
	resets := make(chan struct{}, 1)
	s.server.serving.Go(func() {
		defer close(messages)
		for {
			m, err := readMessage(in)
			if err != nil {
				end()
			} else if m.Tag == msgReset { // it interrupts what runs, before its turn comes
				select {
				case resets <- struct{}{}:
				default:
				}
			}
			select {
			case messages <- incoming{m, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	})
	for m := range messages {
		if m.err != nil || s.take(ctx, resets, m.message) != nil {
			return
		}
	}
}

// negotiate answers the first of the client's four proposals that it speaks; 0 for none.
func (s *session) negotiate(in io.Reader) bool {
	var hello [20]byte
	if _, err := io.ReadFull(in, hello[:]); err != nil || binary.BigEndian.Uint32(hello[:]) != 0x6060B017 {
		return false
	}
	var chosen [4]byte
	for i := 4; i < len(hello); i += 4 {
		back, minor, major := hello[i+1], hello[i+2], hello[i+3]
		if spoken := min(minor, newest); major == 5 && int(spoken) >= int(minor)-int(back) {
			chosen, s.minor = [4]byte{0, 0, spoken, 5}, spoken
			break
		}
	}
	_, err := s.conn.Write(chosen[:])
	return err == nil && chosen[3] != 0
}

// readMessage joins the chunks of a message, and skips those without content, which keep a connection alive.
func readMessage(in io.Reader) (Struct, error) {
	var data []byte
	for {
		var size [2]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return Struct{}, err
		}
		n := int(binary.BigEndian.Uint16(size[:]))
		if n == 0 && len(data) == 0 {
			continue
		}
		if n == 0 {
			break
		}
		if len(data)+n > maxMessage {
			return Struct{}, errors.New("the message is too large")
		}
		at := len(data)
		data = append(data, make([]byte, n)...)
		if _, err := io.ReadFull(in, data[at:]); err != nil {
			return Struct{}, err
		}
	}
	value, rest, err := Unpack(data)
	if err != nil {
		return Struct{}, err
	}
	m, ok := value.(Struct)
	if !ok || len(rest) > 0 {
		return Struct{}, errors.New("not one structure")
	}
	return m, nil
}

// send writes a message in chunks.
func (s *session) send(tag byte, fields ...any) {
	data := Pack(nil, Struct{tag, fields})
	for len(data) > 0 {
		n := min(len(data), 0xFFFF)
		_ = binary.Write(s.out, binary.BigEndian, uint16(n))
		_, _ = s.out.Write(data[:n])
		data = data[n:]
	}
	_, _ = s.out.Write([]byte{0, 0})
}

func (s *session) succeed(metadata map[string]any) error {
	if metadata == nil {
		metadata = map[string]any{}
	}
	s.send(msgSuccess, metadata)
	return s.out.Flush()
}

func (s *session) fail(f *Failure) error {
	s.state, s.tx = failed, nil
	if s.minor >= 7 {
		s.send(msgFailure, map[string]any{"neo4j_code": f.Code, "message": f.Message, "gql_status": "50N42",
			"description": "error: general processing exception - unexpected error. " + f.Message})
	} else {
		s.send(msgFailure, map[string]any{"code": f.Code, "message": f.Message})
	}
	return s.out.Flush()
}

// take answers one message. An error ends the session.
func (s *session) take(ctx context.Context, resets <-chan struct{}, m Struct) error {
	switch {
	case m.Tag == msgGoodbye:
		return errBye
	case m.Tag == msgReset:
		select {
		case <-resets:
		default:
		}
		s.state, s.tx = ready, nil
		return s.succeed(nil)
	case s.state == failed:
		s.send(msgIgnored)
		return s.out.Flush()
	case s.state == fresh && m.Tag == msgHello:
		return s.hello(dictionary(m, 0))
	case s.state == unknown && m.Tag == msgLogon:
		return s.logOn(dictionary(m, 0))
	case s.state == ready && m.Tag == msgLogoff:
		s.state = unknown
		return s.succeed(nil)
	case s.state == ready && m.Tag == msgRun:
		return s.run(ctx, resets, m)
	case s.state == ready && m.Tag == msgBegin && s.tx == nil:
		tx := s.transaction(dictionary(m, 0))
		s.tx = &tx
		return s.succeed(nil)
	case s.state == ready && s.tx != nil && (m.Tag == msgCommit || m.Tag == msgRollback):
		s.tx = nil
		return s.succeed(map[string]any{"bookmark": "FB:fake"})
	case s.state == ready && m.Tag == msgRoute:
		return s.route(m)
	case s.state == ready && m.Tag == msgTelemetry:
		return s.succeed(nil)
	case s.state == streaming && (m.Tag == msgPull || m.Tag == msgDiscard):
		return s.pull(dictionary(m, 0), m.Tag == msgDiscard)
	}
	_ = s.fail(&Failure{"Neo.ClientError.Request.Invalid", "Message cannot be handled by a session in this state."})
	return errBye
}

func dictionary(m Struct, i int) map[string]any {
	if i >= len(m.Fields) {
		return nil
	}
	d, _ := m.Fields[i].(map[string]any)
	return d
}

func text(d map[string]any, key string) string {
	v, _ := d[key].(string)
	return v
}

func number(d map[string]any, key string) int64 {
	v, _ := d[key].(int64)
	return v
}

func (s *session) hello(d map[string]any) error {
	s.state = unknown
	if s.minor == 0 { // 5.0 has the credentials here
		if f := s.server.logOn(text(d, "scheme"), text(d, "principal"), text(d, "credentials")); f != nil {
			_ = s.fail(f)
			return errBye
		}
		s.user, s.state = text(d, "principal"), ready
	}
	return s.succeed(map[string]any{"server": s.server.options.Agent, "connection_id": "bolt-1",
		"hints": map[string]any{"connection.recv_timeout_seconds": int64(120)}})
}

func (s *session) logOn(d map[string]any) error {
	if f := s.server.logOn(text(d, "scheme"), text(d, "principal"), text(d, "credentials")); f != nil {
		_ = s.fail(f)
		return errBye
	}
	s.user, s.state = text(d, "principal"), ready
	return s.succeed(nil)
}

func (s *session) transaction(d map[string]any) Query {
	q := Query{Database: text(d, "db"), Mode: "w", Timeout: time.Duration(number(d, "tx_timeout")) * time.Millisecond,
		User: s.user}
	if text(d, "mode") == "r" {
		q.Mode = "r"
	}
	bookmarks, _ := d["bookmarks"].([]any)
	for _, b := range bookmarks {
		name, _ := b.(string)
		q.Bookmarks = append(q.Bookmarks, name)
	}
	return q
}

// run answers RUN. The statement has run to its end when its columns are sent.
func (s *session) run(ctx context.Context, resets <-chan struct{}, m Struct) error {
	q := s.transaction(dictionary(m, 2))
	if s.tx != nil {
		q = *s.tx
	}
	if len(m.Fields) > 0 {
		q.Statement, _ = m.Fields[0].(string)
	}
	q.Params = dictionary(m, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ran := make(chan struct{})
	s.server.serving.Go(func() {
		select {
		case <-resets:
			cancel()
		case <-ran:
		}
	})
	s.query, s.answer, s.sent = q, s.server.run(ctx, q), 0
	close(ran)
	switch {
	case s.answer.Drop:
		return errBye
	case s.answer.Failure != nil:
		return s.fail(s.answer.Failure)
	}
	s.state = streaming
	columns := s.answer.Columns
	if columns == nil {
		columns = []string{}
	}
	return s.succeed(map[string]any{"t_first": int64(1), "fields": columns, "qid": int64(0)})
}

// pull sends or discards the next n rows, all that are left for -1.
func (s *session) pull(d map[string]any, discard bool) error {
	n := number(d, "n")
	total := max(len(s.answer.Rows), len(s.answer.PackedRows))
	for left := total - s.sent; left > 0 && n != 0; left, n = left-1, n-1 {
		if s.answer.DropAfter > 0 && s.sent >= s.answer.DropAfter {
			_ = s.out.Flush()
			return errBye
		}
		switch {
		case discard:
		case s.answer.PackedRows != nil:
			s.send(msgRecord, s.answer.PackedRows[s.sent])
		default:
			s.send(msgRecord, s.answer.Rows[s.sent])
		}
		s.sent++
	}
	if s.sent < total {
		return s.succeed(map[string]any{"has_more": true})
	}
	s.state = ready
	done := map[string]any{"bookmark": "FB:fake", "type": "r", "t_last": int64(1), "db": orNeo4j(s.query.Database)}
	if s.query.Mode == "w" {
		done["type"] = "rw"
	}
	if len(s.answer.Counters) > 0 {
		stats := map[string]any{"contains-updates": true}
		for name, count := range s.answer.Counters {
			stats[name] = count
		}
		done["stats"] = stats
	}
	return s.succeed(done)
}

func (s *session) route(m Struct) error {
	routes := Routes{[]string{s.server.address}, []string{s.server.address}, []string{s.server.address}}
	if s.server.options.Route != nil {
		routes = s.server.options.Route()
	}
	role := func(name string, addresses []string) any {
		return map[string]any{"role": name, "addresses": addresses}
	}
	return s.succeed(map[string]any{"rt": map[string]any{"ttl": int64(300), "db": orNeo4j(text(dictionary(m, 2), "db")),
		"servers": []any{role("READ", routes.Readers), role("WRITE", routes.Writers), role("ROUTE", routes.Routers)}}})
}
