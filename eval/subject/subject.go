// Package subject defines the agent under evaluation, the subject, as a test session uses it: its input and output, and
// what it may do while the slot is read-only. Package seat has the ways to connect one.
//
// A subject serves one conversation, with a fresh workspace, its own process, and its own Door, whose token is for
// recording and retrieving in one scope and session. The door reports what a subject did; the subject's own reports are
// not used.
package subject

import (
	"context"
	"errors"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
)

// Start is what a subject gets before the user's first text. A command receives it as its line start.
type Start struct {
	Type    string          `json:"type"` // "start"
	Session string          `json:"session"`
	Scope   abi.MemoryScope `json:"scope"`
	Door    Address         `json:"door"`
	// Workspace is the absolute path of an empty folder for this conversation. It is removed afterwards.
	Workspace string `json:"workspace"`
	Scenario  string `json:"scenario,omitempty"`
	Context   string `json:"context,omitempty"`
	Attribute string `json:"attribute,omitempty"`
	// Now is the time by the pack's clock, RFC 3339.
	Now string `json:"now,omitempty"`
	// User is what the subject gets to know about the user; without a name in most conditions.
	User User `json:"user"`
	// MaxTokens and MinTokens are the budget of a retrieval; 0 means none. The door applies it, whatever a subject asks for.
	MaxTokens int64 `json:"max_tokens,omitempty"`
	MinTokens int64 `json:"min_tokens,omitempty"`

	// Put stores a text, such as a request to a model, and returns its hash.
	Put func([]byte) (string, error) `json:"-"`
}

// User is a user as a subject knows them. Without a name they are anonymous.
type User struct {
	Name    string `json:"name,omitempty"`
	Profile string `json:"profile,omitempty"`
}

// String is the user in a prompt: "the user", or the name, with the profile in brackets.
func (u User) String() string {
	switch {
	case u.Name == "":
		return "the user"
	case u.Profile == "":
		return u.Name
	}
	return u.Name + " (" + u.Profile + ")"
}

// Address is where a subject reaches the slot.
type Address struct {
	HTTP  string `json:"http"`
	Token string `json:"token"`
}

// Answer is a subject's answer to one text of the user.
type Answer struct {
	Text string
	// Usage is the count of the subject, or of its endpoint.
	Usage *journal.Usage
	// Model, Stub and the hashes are set if the runner itself called a model.
	Model                       string
	Stub                        bool
	RequestSHA256, AnswerSHA256 string
}

// Seat starts subjects. It is safe for concurrent use.
type Seat interface {
	// Kind is builtin, command, chat or stub.
	Kind() string
	// Sit starts a subject for one conversation.
	//
	// Errors: a failure (IsFailure) if the subject cannot be started; other errors end the cell, for example if an
	// endpoint is gone.
	Sit(ctx context.Context, start *Start) (Subject, error)
}

// Subject is an agent in one conversation. It is not safe for concurrent use.
type Subject interface {
	// Say passes the user's next text to the subject and returns its answer.
	//
	// Errors: as for Sit. After an error only End may be called.
	Say(ctx context.Context, text string) (*Answer, error)
	// End ends the subject, and returns once it has exited on its own within the time limit, or was killed. The
	// breaches say what kept it from ending normally.
	End(ctx context.Context) []journal.Breach
}

// failure is an error of the subject itself: it counts as an answer without text, and the run continues.
type failure struct{ cause *abi.Error }

// Error implements error.
func (f failure) Error() string { return f.cause.Error() }

// Unwrap returns the error of the contract.
func (f failure) Unwrap() error { return f.cause }

// Failed creates a failure of the subject.
func Failed(code abi.Code, message string) error { return AsFailure(abi.NewError(code, message)) }

// AsFailure converts err to a failure of the subject.
func AsFailure(err error) error { return failure{abi.AsError(err)} }

// IsFailure reports whether err is a failure of the subject: it hung, exited, or sent something unreadable. Any other
// error ends the cell.
func IsFailure(err error) bool {
	var f failure
	return errors.As(err, &f)
}
