package model

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/simulate"
	"github.com/memhost/memhost/sdk/chat"
)

// UserModel is a model that plays the users of test sessions. It knows what the user wants, and may say it too early:
// scoring checks every conversation for that.
type UserModel struct {
	client *Client
	name   string
	turns  int
	seed   uint64
	put    Put
}

var _ simulate.Simulator = (*UserModel)(nil)

// NewUserModel creates the simulator of a lab whose block simulator names a model. Requests and answers are stored in
// the run's folder.
//
// Errors: invalid_argument for a key that is not in the environment.
func NewUserModel(l *lab.Lab, folder string, getenv func(string) string) (*UserModel, error) {
	client, err := NewClient(l.Simulator.Model, getenv)
	if err != nil {
		return nil, prefixed("simulator.", err)
	}
	return &UserModel{client: client, name: l.Simulator.Model.Model, turns: l.Simulator.Turns, seed: l.Seed,
		put: rundir.Blobs(folder).Put}, nil
}

// Name implements simulate.Simulator.
func (u *UserModel) Name() string { return u.name }

// userPrompt is the instruction for a model that plays a user.
const userPrompt = `You play a person who talks to an assistant that should know them. %s
Never say it before the assistant has answered. Answer with one JSON object and nothing else:
{"action": "accept" | "correct" | "repeat" | "give_up", "text": "the next thing that the person says"}
accept: the assistant's last answer uses what the person wants. Leave text empty.
correct: it uses something else. Say in text what the person wants.
repeat: it asks or says nothing useful. Ask again in text, without saying what the person wants.
give_up: it will not get there. Leave text empty.`

// Open implements simulate.Simulator: the model rephrases the opening.
func (u *UserModel) Open(ctx context.Context, s *simulate.Setting) (simulate.Conversation, error) {
	wants := "The person asks for something that they never told: they want to hear that the assistant does not know it."
	if s.Value != "" {
		wants = fmt.Sprintf("What the person wants: %s (%s).", s.Value, about(s.Attribute, s.Context))
	}
	c := &modelUser{UserModel: u, messages: []Message{{"system", fmt.Sprintf(userPrompt, wants)},
		{"user", "Begin. Say this in your own words, as the text of the action repeat: " + s.Opening}}}
	r, err := c.next(ctx)
	if err != nil {
		return nil, err
	}
	if r.Text == "" {
		return nil, prefixed("simulator: ", abi.NewError(abi.CodeBackend, "the model did not begin the conversation"))
	}
	c.opening = r.Text
	return c, nil
}

// about describes an attribute and the context that it applies to.
func about(attribute, context string) string {
	name := strings.ReplaceAll(attribute, "_", " ")
	if context != "" {
		name += ", " + context
	}
	return name
}

// modelUser is one conversation of a model that plays a user.
type modelUser struct {
	*UserModel
	messages []Message
	opening  string
	answers  int
}

// Opening implements simulate.Conversation.
func (c *modelUser) Opening() string { return c.opening }

// React implements simulate.Conversation. After the lab's maximum number of answers the user gives up.
func (c *modelUser) React(ctx context.Context, answer string) (journal.Reaction, error) {
	c.messages = append(c.messages, Message{"user", "The assistant: " + answer})
	r, err := c.next(ctx)
	if err != nil {
		return r, err
	}
	if c.answers++; c.answers >= c.turns && r.Action != journal.ActionAccept {
		r.Action = journal.ActionGiveUp
	}
	switch r.Action {
	case journal.ActionAccept, journal.ActionGiveUp:
		r.Text = ""
	case journal.ActionCorrect, journal.ActionRepeat:
		if strings.TrimSpace(r.Text) == "" {
			return r, prefixed("simulator: ", abi.NewError(abi.CodeBackend, "the model gave an action without a text"))
		}
	default:
		return r, prefixed("simulator: ", abi.NewError(abi.CodeBackend, fmt.Sprintf("the model gave the action %q", r.Action)))
	}
	return r, nil
}

// next asks the model for the user's next action.
func (c *modelUser) next(ctx context.Context) (journal.Reaction, error) {
	var r journal.Reaction
	reply, err := c.client.Chat(ctx, c.messages, c.seed, c.put)
	if err != nil {
		return r, prefixed("simulator: ", err)
	}
	if missing := reply.missing(); missing != nil {
		return r, prefixed("simulator: ", missing)
	}
	c.messages = append(c.messages, Message{"assistant", reply.Text})
	text, _ := chat.StripThoughts(reply.Text)
	from, to := strings.Index(text, "{"), strings.LastIndex(text, "}")
	if from < 0 || to < from || json.Unmarshal([]byte(text[from:to+1]), &r) != nil {
		return r, prefixed("simulator: ", abi.NewError(abi.CodeBackend, fmt.Sprintf("the model's answer is no action: %.80q", text)))
	}
	r.Usage = reply.Usage
	return r, nil
}
