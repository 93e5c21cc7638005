// Package convert converts conversations to events. It reads JSON Lines of MemoryEvents, or of OpenAI-style message
// lists.
//
// Most callers need NewReader and Reader.Next. The same input always gets the same ids and times, so that recording it
// again creates no duplicates.
//
// Reading order: line.go (lines of a stream), reader.go (line to events), message.go (OpenAI's messages), turn.go
// (messages to turns, ids and times).
package convert

import (
	"fmt"
	"time"

	"github.com/memhost/memhost/abi"
)

// Format is the format of a line.
type Format string

// The formats of a line. FormatAuto detects the format: a list, or an object with messages but without event_id,
// turn_id and timestamp, is a conversation.
const (
	FormatAuto     Format = "auto"
	FormatEvents   Format = "events"
	FormatMessages Format = "messages"
)

// Formats returns all formats, the default first.
func Formats() []Format { return []Format{FormatAuto, FormatEvents, FormatMessages} }

// Options say how to read lines. The zero value reads complete MemoryEvents.
type Options struct {
	// Format is the format; empty means FormatAuto.
	Format Format
	// RunID, UserID, AgentID and SessionID are the defaults for lines that don't have them.
	RunID, UserID, AgentID, SessionID string
	// Start is the time of a session's first turn, and Step the time between two turns (default one minute), for
	// messages without a time. With a zero Start such messages are an error, because the time of reading would differ
	// when the same file is read again.
	Start time.Time
	Step  time.Duration
	// MaxLine bounds a line, in bytes; default 16 MiB, which is also a slot's limit.
	MaxLine int
	// SkipAttachments skips the parts of a message that are not text (images, sound, files), which are otherwise an
	// error. Item.Attachments counts them.
	SkipAttachments bool
	// CheckScope is asked about the scope of each event; an error makes its line a bad one. Nil: every scope is right.
	CheckScope func(abi.MemoryScope) error
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

// Item is one event and where it came from.
type Item struct {
	Event *abi.MemoryEvent
	// Line is the line number, from 1. A conversation has several events on one line.
	Line int
	// Attachments is how many parts of its messages were skipped.
	Attachments int
}

// LineError is an error in one line. The lines after it can still be read.
type LineError struct {
	Line int
	// Err is an invalid_argument whose message starts with the path of the field, such as messages[1].role.
	Err *abi.Error
}

// Error returns the line number and the message.
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
