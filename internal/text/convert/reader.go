package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/schema"
	"github.com/memhost/memhost/internal/text/unambiguous"
	"github.com/memhost/memhost/internal/text/whose"
)

// Reader reads events from JSON Lines. It skips empty lines.
type Reader struct {
	options  Options
	lines    source
	sessions map[sessionKey]*session
	at       int // number of the line being read
	in       io.Reader
	begun    bool
	pending  []Item
	failed   error
}

// NewReader reads from in. It also accepts JSON that spans several lines: a list of events or conversations, a list of
// messages, or a single one of these.
//
// Errors: invalid_argument for invalid options.
func NewReader(in io.Reader, o Options) (*Reader, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Reader{options: o, in: in, sessions: map[sessionKey]*session{}}, nil
}

// Next returns the next event, complete and valid.
//
// Errors: *LineError for a line that cannot be read, after which Next continues with the next line; io.EOF at the end;
// those of the stream, permanently.
func (r *Reader) Next() (Item, error) {
	if r.lines == nil && r.failed == nil {
		r.lines, r.failed = newSource(r.in, r.options)
	}
	for len(r.pending) == 0 {
		if err := r.failed; err != nil {
			var wrong *LineError
			if errors.As(err, &wrong) {
				r.failed = io.EOF // reported once
			}
			return Item{}, err
		}
		line, err := r.lines.next()
		r.at = r.lines.line()
		if first := err == nil && len(line) > 0 && !r.begun; first {
			r.begun = true
			if r.options.Format != FormatEvents && isMessage(line) {
				line, r.at, err = r.gather(bytes.Clone(line))
			}
		}
		var wrong *LineError
		switch {
		case errors.As(err, &wrong):
			r.failed = io.EOF // nothing after it can be read
			return Item{}, wrong
		case errors.Is(err, errLineTooLong):
			r.session(nil).pass()
			return Item{}, &LineError{r.at, abi.NewError(abi.CodeInvalidArgument,
				fmt.Sprintf("longer than %d bytes", r.options.MaxLine))}
		case err != nil:
			r.failed = err
			continue
		case len(line) == 0:
			continue
		}
		if r.pending, err = r.read(line); err == nil {
			err = r.checkScopes()
		}
		if err != nil {
			r.pending = nil
			return Item{}, &LineError{r.at, withFlagHint(abi.AsError(err))}
		}
	}
	item := r.pending[0]
	r.pending = r.pending[1:]
	return item, nil
}

// checkScopes asks Options.CheckScope about the events of one line.
func (r *Reader) checkScopes() error {
	if r.options.CheckScope == nil {
		return nil
	}
	for _, item := range r.pending {
		e := item.Event
		if err := r.options.CheckScope(abi.MemoryScope{RunID: e.RunID, PersonaID: e.UserID, AgentID: e.AgentID}); err != nil {
			return err
		}
	}
	return nil
}

// read converts one line to its events.
func (r *Reader) read(line []byte) ([]Item, error) {
	if !utf8.Valid(line) {
		r.session(nil).pass()
		return nil, invalid("", "not valid UTF-8")
	}
	format := r.options.Format
	if line[0] == '[' && isListOfLines(line) {
		var list []json.RawMessage
		if json.Unmarshal(line, &list) == nil {
			return r.readList(list)
		}
	}
	if format == FormatAuto {
		format = detect(line)
	}
	if format == FormatEvents {
		return r.readEvent(line)
	}
	return r.readConversation(line)
}

// readList reads the elements of a list as if each were on its own line.
func (r *Reader) readList(list []json.RawMessage) ([]Item, error) {
	var items []Item
	for i, value := range list {
		if value[0] == '[' && isListOfLines(value) {
			return nil, invalid(fmt.Sprintf("[%d]", i), "want an event or a conversation, got a list of them")
		}
		some, err := r.read(value)
		if err != nil {
			e := *abi.AsError(err)
			e.Message = fmt.Sprintf("[%d]: %s", i, e.Message)
			return nil, &e
		}
		items = append(items, some...)
	}
	return items, nil
}

// detect distinguishes a conversation from an event by the top-level keys.
func detect(line []byte) Format {
	if line[0] == '[' {
		return FormatMessages
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(line, &keys); err != nil {
		return FormatEvents // its reader reports the error
	}
	for _, own := range []string{"event_id", "turn_id", "timestamp"} {
		if _, ok := keys[own]; ok {
			return FormatEvents
		}
	}
	if _, ok := keys["messages"]; ok {
		return FormatMessages
	}
	return FormatEvents
}

// readEvent reads a MemoryEvent and fills in missing ids.
func (r *Reader) readEvent(line []byte) ([]Item, error) {
	if line[0] != '{' {
		return nil, invalid("", "want a MemoryEvent, a JSON object")
	}
	e := new(abi.MemoryEvent)
	err := abi.UnmarshalStrict(line, e)
	if err != nil {
		if renamed, hint := whose.Rename(line); hint != "" {
			*e = abi.MemoryEvent{}
			err = abi.UnmarshalStrict(renamed, e)
		}
	}
	if err != nil {
		return nil, explain(toMetadata(err), line)
	}
	if err := unambiguous.Check(line); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		field *string
		value string
	}{{&e.RunID, r.options.RunID}, {&e.UserID, r.options.UserID}, {&e.AgentID, r.options.AgentID},
		{&e.SessionID, r.options.SessionID}} {
		if *f.field == "" {
			*f.field = f.value
		}
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	return []Item{{Event: e, Line: r.at}}, nil
}

// toMetadata hints where to put an unknown field that does not resemble any known one.
func toMetadata(err error) error {
	e := *abi.AsError(err)
	field, _, found := strings.Cut(e.Message, ": unknown field, want one of ")
	switch {
	case !found || strings.Contains(field, ".") || e.Hint != "":
	case field == "events":
		e.Hint = "these are several events: write the list alone, without the object around it, or each event on a line"
	default:
		e.Hint = "anything else goes into metadata"
	}
	return &e
}

// readConversation reads a list of messages, or an object with one, and splits it into turns.
func (r *Reader) readConversation(line []byte) ([]Item, error) {
	v, err := schema.Decode(line, nil)
	if err != nil {
		r.session(nil).pass()
		return nil, explain(errors.New(strings.TrimPrefix(err.Error(), "line 1: ")), line)
	}
	c, err := r.parseConversation(v)
	s := r.session(c)
	if err != nil {
		s.pass()
		return nil, err
	}
	items, err := c.events(s, r.options)
	if err != nil {
		s.pass()
		return nil, err
	}
	for i := range items {
		items[i].Line = r.at
	}
	s.advance(len(items))
	return items, nil
}

// explain adds the usual cause to an error in the JSON text.
func explain(err error, line []byte) error {
	e := *abi.AsError(err)
	e.Code, e.Retryable = abi.CodeInvalidArgument, false
	if e.Hint == "" && !json.Valid(line) {
		e.Hint = "every line holds one whole JSON value; a value over several lines must be the only one"
	}
	return &e
}

// withFlagHint adds the flag that provides an id which a line lacks.
func withFlagHint(e *abi.Error) *abi.Error {
	if e.Hint != "" {
		return e
	}
	for _, f := range []struct{ field, flag string }{{"run_id", "--run"}, {"user_id", "--user"},
		{"session_id", "--session"}} {
		if e.Message == f.field+": missing or empty" {
			e.Hint = "give it in the line, or for all lines with " + f.flag
		}
	}
	return e
}
