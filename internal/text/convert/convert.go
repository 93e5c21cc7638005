// Package convert reads conversations as people have them and makes events of them: JSON Lines of MemoryEvents, or of
// OpenAI-style message lists.
//
// Most callers need NewReader and Reader.Next. What is read twice gets the same ids and times, so that recording it
// again doubles nothing.
//
// Reading order: line.go (lines of a stream), reader.go (line to events), message.go (OpenAI's messages), turn.go
// (messages to turns, ids and times).
package convert

import (
	"fmt"
	"time"

	"github.com/memhost/memhost/abi"
)

// Format says what a line holds.
type Format string

// The formats of a line. FormatAuto tells them apart: a list, or an object with messages but without event_id, turn_id
// and timestamp, is a conversation.
const (
	FormatAuto     Format = "auto"
	FormatEvents   Format = "events"
	FormatMessages Format = "messages"
)

// Formats lists them, the default first.
func Formats() []Format { return []Format{FormatAuto, FormatEvents, FormatMessages} }

// Options say how lines are read. The zero value reads MemoryEvents that are complete.
type Options struct {
	// Format is FormatAuto when empty.
	Format Format
	// RunID, UserID, AgentID and SessionID are used where a line names none. What a line says itself is never changed.
	RunID, UserID, AgentID, SessionID string
	// Start is the time of a session's first turn, and Step what lies between two (default one minute), where messages
	// carry no time of their own. A zero Start makes such messages an error: a time taken from the clock would differ
	// when the same file is read again.
	Start time.Time
	Step  time.Duration
	// MaxLine bounds a line, in bytes; default 16 MiB, which is also what a slot accepts.
	MaxLine int
	// SkipAttachments leaves out the parts of a message that are not text (images, sound, files), which are an error
	// otherwise. Item.Attachments counts them.
	SkipAttachments bool
}

const defaultStep = time.Minute

func (o Options) withDefaults() (Options, error) {
	switch o.Format {
	case "":
		o.Format = FormatAuto
	case FormatAuto, FormatEvents, FormatMessages:
	default:
		return o, abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("format: found %q, want auto, events or messages", string(o.Format)))
	}
	if o.MaxLine < 0 || o.Step < 0 {
		return o, abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("MaxLine %d, Step %s: want 0 or more", o.MaxLine, o.Step))
	}
	if o.MaxLine == 0 {
		o.MaxLine = DefaultMaxLine
	}
	if o.Step == 0 {
		o.Step = defaultStep
	}
	return o, nil
}

// Item is one event with where it came from.
type Item struct {
	Event *abi.MemoryEvent
	// Line counts from 1. A conversation gives several events of one line.
	Line int
	// Attachments is how many parts of its messages were left out.
	Attachments int
}

// LineError is what is wrong with one line. The lines after it can still be read.
type LineError struct {
	Line int
	// Err is an invalid_argument whose message starts with the path of the field, as in messages[1].role.
	Err *abi.Error
}

// Error is the line and the message.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Err.Message) }

// Unwrap returns Err.
func (e *LineError) Unwrap() error { return e.Err }

func invalid(path, format string, args ...any) *abi.Error {
	message := fmt.Sprintf(format, args...)
	if path != "" {
		message = path + ": " + message
	}
	return abi.NewError(abi.CodeInvalidArgument, message)
}
