package seat

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/model"
	"github.com/memhost/memhost/eval/subject"
	"github.com/memhost/memhost/internal/base/pause"
)

// chat is the seat of a server with /v1/chat/completions, whose scope is fixed when it starts.
type chat struct {
	argv    []string
	model   lab.Model
	seed    uint64
	timeout time.Duration
	getenv  func(string) string
}

func newChat(s *lab.Subject, folder string, seed uint64, timeout time.Duration, getenv func(string) string) (*chat, error) {
	argv, err := lookup(s.Command, folder)
	return &chat{argv, s.Model, seed, timeout, getenv}, err
}

// Kind implements Seat.
func (*chat) Kind() string { return "chat" }

// portPlace is replaced in a chat's command by the port that it must listen on. The port is also in MEMHOST_CHAT_PORT.
const portPlace = "{port}"

// Sit implements Seat. The server must start listening within the time limit of one answer.
func (c *chat) Sit(ctx context.Context, start *subject.Start) (subject.Subject, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	argv := append([]string(nil), c.argv...)
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], portPlace, port)
	}
	m := c.model
	m.URL = "http://127.0.0.1:" + port + "/v1"
	endpoint, err := model.NewClient(m, c.getenv)
	if err != nil {
		return nil, err
	}
	endpoint.Once()
	p, err := startProcess(argv, start, c.timeout)
	if err != nil {
		return nil, err
	}
	go func() { _, _ = io.Copy(io.Discard, bufio.NewReader(p.out)) }()
	s := &chatServer{process: p, chat: c, client: endpoint, put: start.Put}
	if err := s.listening(ctx, "127.0.0.1:"+port); err != nil {
		p.kill()
		return nil, err
	}
	return s, nil
}

// freePort returns a free port on loopback.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", abi.WrapError(abi.CodeUnavailable, "a port for the subject: "+err.Error(), err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// chatServer is a chat server in one conversation.
type chatServer struct {
	*process
	*chat
	client   *model.Client
	put      model.Put
	messages []model.Message
}

// listening waits until the server accepts connections.
func (s *chatServer) listening(ctx context.Context, address string) error {
	const between = 20 * time.Millisecond
	until := time.Now().Add(s.process.timeout)
	for {
		if c, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			return c.Close()
		}
		select {
		case <-s.exited:
			return subject.Failed(abi.CodeBackend, "the subject exited: "+s.ended())
		default:
		}
		if time.Now().After(until) {
			return subject.Failed(abi.CodeTimeout, fmt.Sprintf("the subject did not listen on %s within %s", address, s.process.timeout))
		}
		if err := pause.For(ctx, between); err != nil {
			return err
		}
	}
}

// Say implements Subject.
func (s *chatServer) Say(ctx context.Context, text string) (*subject.Answer, error) {
	s.messages = append(s.messages, model.Message{Role: "user", Content: text})
	reply, err := s.client.Chat(ctx, s.messages, s.seed, s.put)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, subject.AsFailure(err) // the server is the subject: the run does not wait for it
	}
	s.messages = append(s.messages, model.Message{Role: "assistant", Content: reply.Text})
	return answerOf(reply), nil
}

// End implements Subject. A server does not exit on its own, so it gets a signal.
func (s *chatServer) End(ctx context.Context) []journal.Breach {
	interrupt(s.cmd)
	return slices.DeleteFunc(s.end(ctx), func(b journal.Breach) bool { return b.Kind == "exit_status" })
}
