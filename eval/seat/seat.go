// Package seat has the ways to connect an agent under evaluation:
//
//	builtin   a simple agent on an OpenAI-compatible endpoint that makes its own retrievals
//	command   a process that communicates in JSON lines
//	chat      a server with /v1/chat/completions whose scope is fixed when it starts
//	stub      a rule-based stand-in for an agent, for demonstrations and tests
package seat

import (
	"time"

	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/subject"
)

// New creates the seat that a lab file names. folder is the lab file's folder, which replaces {lab} in a command.
//
// Errors: invalid_argument, with the path of the key.
func New(l *lab.Lab, folder string, getenv func(string) string) (subject.Seat, error) {
	s := l.Subject
	timeout := time.Duration(s.TimeoutMS) * time.Millisecond
	switch s.Seat {
	case lab.SeatCommand:
		return newCommand(s.Command, folder, timeout)
	case lab.SeatChat:
		return newChat(s, folder, l.Seed, timeout, getenv)
	case lab.SeatStub:
		return Stub{}, nil
	}
	return newBuiltin(s, l.Seed, getenv)
}
