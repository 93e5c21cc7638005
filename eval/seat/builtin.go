package seat

import (
	"context"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/model"
	"github.com/memhost/memhost/eval/subject"
	"github.com/memhost/memhost/internal/doors/client"
)

// builtin is the seat of a simple agent that calls an OpenAI-compatible endpoint.
type builtin struct {
	client   *model.Client
	template string
	once     bool
	seed     uint64
}

func newBuiltin(s *lab.Subject, seed uint64, getenv func(string) string) (*builtin, error) {
	if err := model.CheckTemplate("subject.template", s.Template); err != nil {
		return nil, err
	}
	c, err := model.NewClient(s.Model, getenv)
	if err != nil {
		e := *abi.AsError(err)
		e.Message = "subject." + e.Message
		return nil, &e
	}
	return &builtin{client: c, template: s.Template, once: s.Retrieve == lab.RetrieveSession, seed: seed}, nil
}

// userPlace is the place in a template for the user's name and profile.
const userPlace = "{{user}}"

// Kind implements Seat.
func (*builtin) Kind() string { return "builtin" }

// Sit implements Seat.
func (b *builtin) Sit(_ context.Context, start *subject.Start) (subject.Subject, error) {
	slot, err := client.New(start.Door.HTTP, start.Door.Token)
	if err != nil {
		return nil, err
	}
	return &loop{builtin: b, memory: memory{start: start, slot: slot}}, nil
}

// memory is the slot as used by a subject in this process.
type memory struct {
	start *subject.Start
	slot  *client.Client
}

// retrieve makes a retrieval with a text of the user and the session's labels. An agent whose memory fails answers
// without it; the door has recorded the error.
func (m *memory) retrieve(ctx context.Context, text string) (string, error) {
	q := &abi.RetrieveRequest{Query: text, Scope: m.start.Scope, SessionID: m.start.Session, Scenario: m.start.Scenario,
		Context: m.start.Context, Attribute: m.start.Attribute, AsOf: m.start.Now}
	if m.start.MaxTokens > 0 {
		q.Budget.MaxTokens = &m.start.MaxTokens
	}
	if m.start.MinTokens > 0 {
		q.Budget.MinTokens = &m.start.MinTokens
	}
	result, err := m.slot.Retrieve(ctx, q)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", nil //nolint:nilerr // in the door's account
	}
	return result.FormattedContext, nil
}

// End implements Subject.
func (m *memory) End(context.Context) []journal.Breach {
	m.slot.Close()
	return nil
}

// loop is the built-in agent in one conversation.
type loop struct {
	*builtin
	memory
	context  string
	messages []model.Message
}

// Say implements Subject. The template only contains the user's newest text: earlier contexts are not repeated.
func (l *loop) Say(ctx context.Context, text string) (*subject.Answer, error) {
	if len(l.messages) == 0 || !l.once {
		var err error
		if l.context, err = l.retrieve(ctx, text); err != nil {
			return nil, err
		}
	}
	template := strings.ReplaceAll(l.template, userPlace, l.start.User.String())
	prompt := model.Fill(template, l.context, text, "", l.start.Now)
	reply, err := l.client.Chat(ctx, append(l.messages, model.Message{Role: "user", Content: prompt}), l.seed, l.start.Put)
	if err != nil {
		return nil, unlessGone(err)
	}
	if strings.TrimSpace(reply.Text) == "" {
		return nil, subject.Failed(abi.CodeBackend, "the model's answer is empty (finish_reason: "+reply.FinishReason+")")
	}
	l.messages = append(l.messages, model.Message{Role: "user", Content: text}, model.Message{Role: "assistant", Content: reply.Text})
	return answerOf(reply), nil
}

func answerOf(r *model.Reply) *subject.Answer {
	return &subject.Answer{Text: r.Text, Usage: r.Usage, Model: r.Model, Stub: r.Stub, RequestSHA256: r.RequestSHA256,
		AnswerSHA256: r.AnswerSHA256}
}

// unlessGone turns an endpoint's error into a failure of the subject, unless every other request would fail, too: that
// ends the cell, and a resumption tries again.
func unlessGone(err error) error {
	e := abi.AsError(err)
	switch e.Code {
	case abi.CodeUnavailable, abi.CodeRateLimited, abi.CodeUnauthenticated:
		failure := *e
		failure.Message = "subject: " + e.Message
		return &failure
	}
	return subject.AsFailure(e)
}
