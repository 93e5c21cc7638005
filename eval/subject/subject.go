// Package subject is the agent under evaluation, the subject, as a test session sees it: what it is told and says, and
// what it may do behind the wall. Package seat has the ways to connect one.
//
// A subject is for one conversation: a fresh workspace, a process of its own, and a door of its own (Door) whose token
// records and retrieves in one scope and session. What a subject did is told by the door, never by the subject.
package subject

import (
	"context"
	"errors"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
)

// Start is what a subject is told before the user's first text. It is the line start of a command.
type Start struct {
	Type    string          `json:"type"` // "start"
	Session string          `json:"session"`
	Scope   abi.MemoryScope `json:"scope"`
	Door    Address         `json:"door"`
	// Workspace is an empty folder for this conversation. It is removed afterwards.
	Workspace string `json:"workspace"`
	Scenario  string `json:"scenario,omitempty"`
	Context   string `json:"context,omitempty"`
	Attribute string `json:"attribute,omitempty"`
	// Now is RFC 3339, by the pack's clock.
	Now string `json:"now,omitempty"`
	// MaxTokens is the budget of a retrieval; 0: no limit. The door enforces it.
	MaxTokens int64 `json:"max_tokens,omitempty"`

	// Put keeps a text, such as a request to a model, and returns its hash.
	Put func([]byte) (string, error) `json:"-"`
}

// Address is where a subject finds the slot.
type Address struct {
	HTTP  string `json:"http"`
	Token string `json:"token"`
}

// Answer is what a subject said to one text of the user.
type Answer struct {
	Text string
	// Usage is what the subject, or its endpoint, counted.
	Usage *journal.Usage
	// Model, Stub and the hashes are known where the runner itself asked a model.
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
	// Errors: ErrFailed for a subject that cannot be started; others end the cell, such as an endpoint that is gone.
	Sit(ctx context.Context, start *Start) (Subject, error)
}

// Subject is an agent in one conversation. It is not safe for concurrent use.
type Subject interface {
	// Say gives it the user's next text and returns its answer.
	//
	// Errors: as for Sit. After an error only End may be called.
	Say(ctx context.Context, text string) (*Answer, error)
	// End ends it, and returns once it has exited: by itself within the time limit, or killed. The breaches are what kept
	// it from ending well.
	End(ctx context.Context) []journal.Breach
}

// failure is an error of the subject itself: it counts as an answer without text, and the run goes on.
type failure struct{ cause *abi.Error }

// Error implements error.
func (f failure) Error() string { return f.cause.Error() }

// Unwrap returns the error of the contract.
func (f failure) Unwrap() error { return f.cause }

// Failed makes an error of the subject itself.
func Failed(code abi.Code, message string) error { return AsFailure(abi.NewError(code, message)) }

// AsFailure makes err one of the subject itself.
func AsFailure(err error) error { return failure{abi.AsError(err)} }

// IsFailure reports whether err is of the subject itself: it hung, exited, or said something unreadable. Any other error
// ends the cell.
func IsFailure(err error) bool {
	var f failure
	return errors.As(err, &f)
}
