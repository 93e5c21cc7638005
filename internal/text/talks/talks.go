// Package talks reads the conversations that people have with chat services and coding agents, as those services export
// them and those programs log them, and makes events of them.
//
// Most callers need Open and Reader.Next. What is kept is what a person and an assistant said to each other. Left out
// and counted: what tools were called with and what they answered, what a model thought, what a program put into the
// person's mouth (instructions, surroundings, reminders), branches that an edit or a new answer replaced, talks of
// sub-agents, and what looks like a credential. An attachment is named in the text, as in "[attachment: plan.pdf]".
//
// The same talk gets the same event ids whenever it is read, so recording it again doubles nothing. The last turn of a
// talk waits until it has been answered: half of it now and all of it later would be two events.
//
// Reading order: talks.go (the reader), talk.go (what one talk is made of), credential.go, files.go (files, folders and
// archives), then a file for each source.
package talks

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/convert"
)

// Source is whose form the talks have.
type Source string

// The sources.
const (
	// ChatGPT is the export of chatgpt.com: conversations.json, or the archive with it.
	ChatGPT Source = "chatgpt"
	// Claude is the export of claude.ai: conversations.json, or the archive with it.
	Claude Source = "claude"
	// ClaudeCode is the log of a session of Claude Code: ~/.claude/projects/*/*.jsonl.
	ClaudeCode Source = "claude-code"
	// Codex is the log of a session of Codex: ~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl.
	Codex Source = "codex"
	// OpenAIJSONL is a request of OpenAI's chat API on each line, with the answer where it was kept.
	OpenAIJSONL Source = "openai-jsonl"
)

// Sources lists them all.
func Sources() []Source { return []Source{ChatGPT, Claude, ClaudeCode, Codex, OpenAIJSONL} }

// Counts say what was read, and what of it was left out.
type Counts struct {
	// Files are those that were opened.
	Files    int `json:"files"`
	Talks    int `json:"talks"`
	Events   int `json:"events"`
	Messages int `json:"messages"`
	// Attachments were named in the text; their content is not recorded.
	Attachments int `json:"attachments_named"`
	// Credentials were replaced by "[credential left out]".
	Credentials  int `json:"credentials_left_out"`
	ToolCalls    int `json:"tool_calls_left_out"`
	ToolOutputs  int `json:"tool_outputs_left_out"`
	Thoughts     int `json:"thoughts_left_out"`
	Instructions int `json:"instructions_left_out"`
	// Replaced are messages of branches that an edit or a new answer replaced.
	Replaced int `json:"replaced_messages_left_out"`
	// SideTalks are messages between an agent and its sub-agents.
	SideTalks int `json:"sub_agent_messages_left_out"`
	// Repeated are messages that another file of the same command has, too.
	Repeated int `json:"repeated_messages_left_out"`
	// Unfinished are last turns without a whole answer. They are recorded once they have it.
	Unfinished int `json:"unfinished_turns_left_out"`
	// Empty are talks of which nothing was left.
	Empty int `json:"empty_talks_left_out"`
	// Derived are files with facts that a service drew from talks. They are no talks and are not recorded as such.
	Derived []string `json:"derived_left_out"`
	// First and Last are the times of the first and the last event, zero where there is none.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// Reader reads talks from files, one event at a time.
type Reader struct {
	source  Source
	options convert.Options
	files   []file
	current talkReader
	close   func() error
	name    string
	talk    int // of the current file, from 1
	ready   []convert.Item
	seen    map[string]bool     // ids of events, and of messages that became events, over all files
	said    map[string][]string // see codexLog
	counts  Counts
}

// talkReader reads the talks of one file.
type talkReader interface {
	// next returns the next talk.
	//
	// Errors: io.EOF after the last one; *abi.Error for one talk that cannot be read, after which the next one can;
	// *brokenError for a file that cannot be read on.
	next() (*talk, error)
}

// brokenError ends a file.
type brokenError struct{ err *abi.Error }

func (e *brokenError) Error() string { return e.err.Message }
func (e *brokenError) Unwrap() error { return e.err }

func broken(format string, args ...any) *brokenError {
	return &brokenError{invalid(format, args...)}
}

func invalid(format string, args ...any) *abi.Error {
	return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf(format, args...))
}

// Open finds the files to read: those named, those of the source in folders named, and those of the source in zip
// archives. Nothing is unpacked to disk. Scope, Start and Step of the options count; a session is named by its talk.
//
// Errors: invalid_argument for an unknown source, a file that cannot be opened, and an archive that is damaged,
// encrypted or has paths that lead out of it.
func Open(source Source, paths []string, o convert.Options) (*Reader, error) {
	if !slices.Contains(Sources(), source) {
		return nil, invalid("%q is not a source", string(source)).
			WithHint("want chatgpt, claude, claude-code, codex or openai-jsonl")
	}
	r := &Reader{source: source, options: o, seen: map[string]bool{}, said: map[string][]string{}}
	r.counts.Derived = []string{}
	for _, path := range paths {
		found, derived, err := find(source, path)
		if err != nil {
			return nil, err
		}
		r.files = append(r.files, found...)
		r.counts.Derived = append(r.counts.Derived, derived...)
	}
	if source == ClaudeCode {
		if err := byLastTime(r.files); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Counts is what has been read so far.
func (r *Reader) Counts() Counts { return r.counts }

// Name is the file of the event that Next returned last.
func (r *Reader) Name() string { return r.name }

// Close closes the file that is being read.
func (r *Reader) Close() error {
	if r.close == nil {
		return nil
	}
	closing := r.close
	r.current, r.close = nil, nil
	return closing()
}

// Next returns the next event. Item.Line is the place of its talk in its file, from 1.
//
// Errors: io.EOF after the last one; *convert.LineError for a talk, or the rest of a file, that cannot be read: its
// message names the file, and the next call continues after it.
func (r *Reader) Next() (convert.Item, error) {
	for len(r.ready) == 0 {
		if r.current == nil {
			if len(r.files) == 0 {
				return convert.Item{}, io.EOF
			}
			if err := r.openNext(); err != nil {
				return convert.Item{}, r.wrong(err)
			}
		}
		r.talk++
		t, err := r.current.next()
		if errors.Is(err, io.EOF) {
			_ = r.Close()
			continue
		}
		if err != nil {
			return convert.Item{}, r.wrong(err)
		}
		if r.ready, err = r.events(t); err != nil {
			return convert.Item{}, r.wrong(err)
		}
	}
	item := r.ready[0]
	r.ready = r.ready[1:]
	return item, nil
}

func (r *Reader) openNext() error {
	next := r.files[0]
	r.files = r.files[1:]
	r.name, r.talk = next.name, 0
	in, err := next.open()
	if err != nil {
		return err
	}
	r.counts.Files++
	r.close = in.Close
	switch r.source {
	case ChatGPT:
		r.current = newList(in, chatgptTalk)
	case Claude:
		r.current = newList(in, claudeTalk)
	case ClaudeCode:
		r.current = &claudeCodeLog{in: newLines(in), seen: r.seen}
	case Codex:
		r.current = &codexLog{in: newLines(in), said: r.said}
	case OpenAIJSONL:
		r.current = &openaiLines{in: newLines(in)}
	}
	return nil
}

// wrong names the file and the talk in an error. A file that cannot be read on is closed.
func (r *Reader) wrong(err error) error {
	var line *convert.LineError
	if errors.As(err, &line) {
		err = line.Err
	}
	e := *abi.AsError(err)
	if _, exports := r.current.(*list); exports {
		e.Message = fmt.Sprintf("talk %d: %s", r.talk, e.Message)
	} else if requests, ok := r.current.(*openaiLines); ok && !strings.HasPrefix(e.Message, "line ") {
		e.Message = fmt.Sprintf("line %d: %s", requests.in.number, e.Message)
	}
	if !strings.HasPrefix(e.Message, r.name) {
		e.Message = r.name + ": " + e.Message
	}
	var rest *brokenError
	if errors.As(err, &rest) || r.current == nil {
		_ = r.Close()
	}
	return &convert.LineError{Line: max(r.talk, 1), Err: &e}
}

// events makes events of a talk and counts it.
func (r *Reader) events(t *talk) ([]convert.Item, error) {
	t.finish()
	r.counts.add(&t.counts)
	if len(t.said) == 0 {
		r.counts.Empty++
		return nil, nil
	}
	if t.session == "" {
		return nil, invalid("the talk has no id: an export of another version?")
	}
	metadata := map[string]abi.Raw{"imported_from": abi.Raw(`"` + string(r.source) + `"`)}
	items, err := convert.Events(r.options, sessionID(r.source, t.session), t.said, metadata, r.talk)
	if err != nil {
		return nil, err
	}
	for _, id := range t.ids {
		if id != "" {
			r.seen[id] = true
		}
	}
	messages, all := 0, items
	items = nil
	for _, item := range all {
		n := len(item.Event.Messages)
		messages += n
		if r.seen[item.Event.EventID] || messages <= t.repeated { // another file has it, too
			r.counts.Repeated += n
			continue
		}
		r.seen[item.Event.EventID] = true
		items = append(items, item)
		r.counts.Messages += n
		at, err := abi.ParseTime(item.Event.Timestamp)
		if err != nil {
			return nil, err
		}
		if r.counts.First.IsZero() || at.Before(r.counts.First) {
			r.counts.First = at
		}
		if at.After(r.counts.Last) {
			r.counts.Last = at
		}
	}
	if len(items) > 0 {
		r.counts.Talks++
		r.counts.Events += len(items)
	}
	return items, nil
}

// sessionID names the session of a talk, as in chatgpt-68a1c2.
func sessionID(source Source, id string) string {
	return string(source) + "-" + strings.TrimSpace(id)
}

// add adds what one talk left out.
func (c *Counts) add(t *Counts) {
	c.Attachments += t.Attachments
	c.Credentials += t.Credentials
	c.ToolCalls += t.ToolCalls
	c.ToolOutputs += t.ToolOutputs
	c.Thoughts += t.Thoughts
	c.Instructions += t.Instructions
	c.Replaced += t.Replaced
	c.SideTalks += t.SideTalks
	c.Repeated += t.Repeated
	c.Unfinished += t.Unfinished
}

// unreadable names a file that cannot be opened.
func unreadable(name string, err error) *abi.Error {
	reason := err.Error()
	var bare *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reason = "does not exist"
	case errors.As(err, &bare):
		reason = bare.Err.Error()
	}
	return abi.WrapError(abi.CodeInvalidArgument, name+": "+reason, err)
}

// nothingIn says that a folder or an archive has no file of the source.
func nothingIn(source Source, name string) *abi.Error {
	want := "*.jsonl"
	if source == ChatGPT || source == Claude {
		want = "conversations*.json"
	}
	return invalid("%s: has no talks of %s: want a file %s in it", name, source, want)
}
