// Package conversations reads conversations with chat services and coding agents, from the services' exports and the
// agents' logs, and converts them to events.
//
// Most callers need Open and Reader.Next. It keeps what a person and an assistant said to each other, as decided by
// package transcript. Everything else is skipped and counted: tool calls and their outputs, a model's thoughts, what a
// program inserted into the person's messages (instructions, context, reminders), messages of other sessions, branches
// that an edit or a new answer replaced, conversations of sub-agents, what looks like a credential, and what this
// version does not know. An attachment is named in the text, as in "[attachment: plan.pdf]".
//
// A turn's event id is made from the source's own ids (EventID), so recording a conversation again creates no
// duplicates, even if a later version reads it differently. The last turn of a conversation is held back until it has
// been answered.
//
// Reading order: conversations.go (the reader), conversation.go (one conversation), times.go, credential.go, files.go
// (files, folders and archives), then a file for each source. earlier.go knows the ids of older builds.
package conversations

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/convert"
)

// Source is the origin, and so the format, of conversations.
type Source string

// The sources.
const (
	// ChatGPT is the export from chatgpt.com: conversations.json, or the archive with it.
	ChatGPT Source = "chatgpt"
	// Claude is the export from claude.ai: conversations.json, or the archive with it.
	Claude Source = "claude"
	// ClaudeCode is the log of a Claude Code session: ~/.claude/projects/*/*.jsonl.
	ClaudeCode Source = "claude-code"
	// Codex is the log of a Codex session: ~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl.
	Codex Source = "codex"
	// OpenAIJSONL is a file with a request to OpenAI's chat API on each line, with the answer if it was kept.
	OpenAIJSONL Source = "openai-jsonl"
	// Gemini is Google Takeout's export of Gemini ("My Activity", as JSON), and files saved by AI Studio.
	Gemini Source = "gemini"
)

// Sources returns all sources.
func Sources() []Source { return []Source{ChatGPT, Claude, ClaudeCode, Codex, OpenAIJSONL, Gemini} }

// Counts are what was read, and what was left out.
type Counts struct {
	// Files is the number of opened files.
	Files         int `json:"files"`
	Conversations int `json:"conversations"`
	Events        int `json:"events"`
	Messages      int `json:"messages"`
	// Attachments are named in the text; their content is not recorded.
	Attachments int `json:"attachments_named"`
	// Credentials were replaced by "[credential left out]".
	Credentials  int `json:"credentials_left_out"`
	ToolCalls    int `json:"tool_calls_left_out"`
	ToolOutputs  int `json:"tool_outputs_left_out"`
	Thoughts     int `json:"thoughts_left_out"`
	Instructions int `json:"instructions_left_out"`
	// Replaced are messages on branches that an edit or a new answer replaced.
	Replaced int `json:"replaced_messages_left_out"`
	// SideConversations are messages between an agent and its sub-agents.
	SideConversations int `json:"sub_agent_messages_left_out"`
	// Repeated are messages that another file of the same command contains.
	Repeated int `json:"repeated_messages_left_out"`
	// Others are messages of other sessions, agents and channels; AnswersToOthers are the assistant's answers to them.
	Others          int `json:"messages_of_others_left_out"`
	AnswersToOthers int `json:"answers_to_others_left_out"`
	// TakenBack are prompts that were typed while the agent worked, and then taken back.
	TakenBack int `json:"taken_back_prompts_left_out"`
	// ProgramEntries are entries of a log, or activities, without words of a conversation.
	ProgramEntries int `json:"program_entries_left_out"`
	// Unknown are entries, blocks and parts of types that this version does not know, by type.
	Unknown map[string]int `json:"unknown_left_out"`
	// CutOff are incomplete last lines.
	CutOff int `json:"cut_off_last_lines_left_out"`
	// BadTimes are invalid times; the time of the previous message is used instead.
	BadTimes int `json:"times_not_read"`
	// Known are turns that the slot already has under an old id. ReadDifferently are those of them whose text was read
	// differently then.
	Known           int `json:"known_turns_left_out"`
	ReadDifferently int `json:"known_turns_read_differently"`
	// Unfinished are last turns without a complete answer. They are recorded once they have one.
	Unfinished int `json:"unfinished_turns_left_out"`
	// Empty are conversations of which nothing was left.
	Empty int `json:"empty_conversations_left_out"`
	// Derived are files with facts that a service derived from conversations. They are not conversations, and are
	// skipped.
	Derived []string `json:"derived_left_out"`
	// First and Last are the times of the first and the last event; zero if there is none.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// Reader reads conversations from files, one event at a time.
type Reader struct {
	source        Source
	options       Options
	files         []file
	opened        int     // files before the current one
	problems      []error // of the conversation that was read last
	current       conversationReader
	close         func() error
	name          string
	conversation  int // of the current file, from 1
	ready         []convert.Item
	seen          map[string]bool     // ids of events, and keys of recorded messages, over all files
	said          map[string][]string // see codexLog
	openai        *openaiLog
	conversations map[string]bool // sessions that were counted
	counts        Counts
}

// Options say how to read conversations. Scope, Start and Step of the embedded options apply; the session id comes from
// the conversation.
type Options struct {
	convert.Options
	// Zone is the zone of times without one. Nil makes such a time an error.
	Zone *time.Location
	// Known are the ids of events that the slot has. A turn that it has under an old id is skipped and counted. Nil
	// means that nothing is known.
	Known *KnownIDs
	// InFolder selects an agent's logs by the folder in which a session started (Logs). Nil selects all.
	InFolder func(folder string) bool
}

// KnownIDs is a set of ids of events that a slot has.
type KnownIDs struct {
	all    map[string]bool
	begins map[string]bool // ids up to the dot
}

// NewKnownIDs creates a set of ids.
func NewKnownIDs(ids []string) *KnownIDs {
	k := &KnownIDs{all: map[string]bool{}, begins: map[string]bool{}}
	for _, id := range ids {
		if isEarlierID(id) {
			k.all[id] = true
		}
		if begin, _, ok := strings.Cut(id, "."); ok || strings.HasPrefix(id, string(OpenAIJSONL)+"-") {
			k.begins[begin] = true
		}
	}
	return k
}

// conversationReader reads the conversations in one file.
type conversationReader interface {
	// next returns the next conversation.
	//
	// Errors: io.EOF after the last one; *abi.Error and *badLine for an unreadable conversation, after which the next
	// one can be read; *brokenError for a file that cannot be read any further.
	next() (*conversation, error)
}

// brokenError means that the rest of a file is unreadable.
type brokenError struct{ err *abi.Error }

func (e *brokenError) Error() string { return e.err.Message }
func (e *brokenError) Unwrap() error { return e.err }

func broken(format string, args ...any) *brokenError {
	return &brokenError{invalid(format, args...)}
}

func invalid(format string, args ...any) *abi.Error {
	return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf(format, args...))
}

// Open finds the files to read: the given files, and those of the source in the given folders and zip archives. Nothing
// is unpacked to disk.
//
// Errors: invalid_argument for an unknown source, a file that cannot be opened, and an archive that is damaged,
// encrypted or has paths that point outside it.
func Open(source Source, paths []string, o Options) (*Reader, error) {
	if !slices.Contains(Sources(), source) {
		return nil, invalid("%q is not a source", string(source)).
			WithHint("want " + Names())
	}
	r := &Reader{source: source, options: o, seen: map[string]bool{}, said: map[string][]string{},
		conversations: map[string]bool{}}
	r.counts = newCounts()
	for _, path := range paths {
		found, derived, err := find(source, path)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			if o.InFolder == nil || o.InFolder(folderOf(f)) {
				r.files = append(r.files, f)
			}
		}
		r.counts.Derived = append(r.counts.Derived, derived...)
	}
	switch source {
	case ClaudeCode:
		if err := byLastTime(r.files); err != nil {
			return nil, err
		}
	case OpenAIJSONL:
		r.openai = findOpenAI(r.files, o.Zone)
	}
	return r, nil
}

// Names lists the sources in a sentence.
func Names() string {
	var names []string
	for _, s := range Sources() {
		names = append(names, string(s))
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func newCounts() Counts { return Counts{Derived: []string{}, Unknown: map[string]int{}} }

// Counts returns what has been read so far.
func (r *Reader) Counts() Counts { return r.counts }

// Name is the file of the event that Next returned last.
func (r *Reader) Name() string { return r.name }

// Close closes the present file.
func (r *Reader) Close() error {
	if r.close == nil {
		return nil
	}
	closing := r.close
	r.current, r.close = nil, nil
	return closing()
}

// Next returns the next event. Item.Line is the position of its conversation in its file, from 1.
//
// Errors: io.EOF after the last one; *convert.LineError for an unreadable conversation, or an unreadable rest of a
// file: its message names the file, and the next call continues after it.
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
		r.conversation++
		t, err := r.current.next()
		if errors.Is(err, io.EOF) {
			if requests, ok := r.current.(*openaiLines); ok {
				r.counts.CutOff += requests.in.cutOff
			}
			_ = r.Close()
			continue
		}
		if err != nil {
			return convert.Item{}, r.wrong(err)
		}
		r.problems = append(r.problems, t.badLines...)
		items, err := r.events(t)
		if err != nil {
			r.problems = append(r.problems, err)
		}
		r.ready = items
		if len(r.problems) > 0 {
			break
		}
	}
	if len(r.problems) > 0 { // report bad lines before the events of the others
		err := r.problems[0]
		r.problems = r.problems[1:]
		return convert.Item{}, r.wrong(err)
	}
	item := r.ready[0]
	r.ready = r.ready[1:]
	return item, nil
}

func (r *Reader) openNext() error {
	next := r.files[0]
	r.files = r.files[1:]
	r.name, r.conversation = next.name, 0
	in, err := next.open()
	if err != nil {
		r.opened++
		return err
	}
	r.counts.Files++
	r.close = in.Close
	zone := r.options.Zone
	switch r.source {
	case ChatGPT:
		r.current = newList(in, func(raw json.RawMessage) (*conversation, error) { return chatgptConversation(raw, zone) })
	case Claude:
		r.current = newList(in, func(raw json.RawMessage) (*conversation, error) { return claudeConversation(raw, zone) })
	case ClaudeCode:
		r.current = &claudeCodeLog{in: newLines(in), zone: zone, seen: r.seen}
	case Codex:
		r.current = &codexLog{in: newLines(in), zone: zone, said: r.said}
	case OpenAIJSONL:
		r.current = &openaiLines{in: newLines(in), zone: zone, file: r.opened, log: r.openai}
	case Gemini:
		r.current = newGeminiList(in, next.name, zone)
	}
	r.opened++
	return nil
}

// wrong adds file and conversation to an error. It closes a file that cannot be read any further.
func (r *Reader) wrong(err error) error {
	var line *convert.LineError
	if errors.As(err, &line) {
		err = line.Err
	}
	e := *abi.AsError(err)
	if _, exports := r.current.(*list); exports {
		e.Message = fmt.Sprintf("conversation %d: %s", r.conversation, e.Message)
	} else if requests, ok := r.current.(*openaiLines); ok && !strings.HasPrefix(e.Message, "line ") {
		e.Message = fmt.Sprintf("line %d: %s", requests.in.number, e.Message)
	}
	if !strings.HasPrefix(e.Message, r.name) {
		e.Message = r.name + ": " + e.Message
	}
	var rest *brokenError
	if errors.As(err, &rest) {
		_ = r.Close()
	}
	return &convert.LineError{Line: max(r.conversation, 1), Err: &e}
}

// events converts a conversation to events and counts it.
func (r *Reader) events(t *conversation) ([]convert.Item, error) {
	if t.problem != nil {
		return nil, t.problem
	}
	r.nameEarlier(t)
	t.finish()
	r.counts.add(&t.counts)
	if len(t.said) == 0 {
		if t.counts.Repeated == 0 {
			r.counts.Empty++
		}
		return nil, nil
	}
	if t.session == "" {
		return nil, invalid("the conversation has no id: an export of another version?")
	}
	list := make([]convert.ParsedMessage, len(t.said))
	for i, m := range t.said {
		list[i] = convert.ParsedMessage{Role: m.role, Text: m.text, At: m.at, Joins: m.joins}
	}
	metadata := map[string]abi.Raw{"imported_from": abi.Raw(`"` + string(r.source) + `"`)}
	items, err := convert.Events(r.options.Options, sessionID(r.source, t.session), list, metadata, r.conversation)
	if err != nil {
		return nil, err
	}
	for _, m := range t.said {
		if m.key != "" {
			r.seen[m.key] = true
		}
	}
	messages, all := 0, items
	items = nil
	for i, item := range all {
		n := len(item.Event.Messages)
		turn := t.said[messages : messages+n]
		messages += n
		if id := r.eventID(turn); id != "" {
			item.Event.EventID = id
		}
		if t.turnsBefore > 0 {
			item.Event.TurnID = fmt.Sprintf("turn-%04d", t.turnsBefore+i+1)
		}
		if r.seen[item.Event.EventID] || messages <= t.repeated { // another file has it, too
			r.counts.Repeated += n
			continue
		}
		r.seen[item.Event.EventID] = true
		if !r.leaveKnown(&item, turn) {
			continue
		}
		items = append(items, item)
		r.counts.Messages += len(item.Event.Messages)
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
	if key := sessionID(r.source, t.session); len(items) > 0 {
		if !r.conversations[key] {
			r.counts.Conversations++
		}
		r.conversations[key] = true
		r.counts.Events += len(items)
	}
	return items, nil
}

// nameEarlier sets the messages' old ids, if the slot may have such ids.
func (r *Reader) nameEarlier(t *conversation) {
	if r.options.Known == nil || len(r.options.Known.all) == 0 {
		return
	}
	session := t.earlierSession
	if session == "" {
		session = t.session
	}
	t.nameEarlier(r.options.Options, sessionID(r.source, session))
}

// eventID is the id of a turn: that of its first message. It is empty if the source has no ids.
func (r *Reader) eventID(turn []*message) string {
	first := turn[0]
	for _, m := range turn {
		if m.role == abi.RoleUser {
			first = m
			break
		}
	}
	switch {
	case first.alike != "":
		return string(r.source) + "-" + first.id
	case first.id != "":
		return EventID(r.source, first.id)
	}
	return ""
}

// leaveKnown removes from an event what the slot already has under an old id. It returns false if nothing is left.
func (r *Reader) leaveKnown(item *convert.Item, turn []*message) bool {
	known := r.options.Known
	if known == nil {
		return true
	}
	if first := turn[0]; first.history && known.begins[string(r.source)+"-"+first.alike] {
		r.counts.Known++
		return false
	}
	var left []abi.Message
	differently := false
	for i, m := range turn {
		if m.before == "" || !known.all[m.before] {
			left = append(left, item.Event.Messages[i])
			differently = differently || m.role == abi.RoleUser
		}
	}
	if len(left) == len(turn) {
		return true
	}
	if !differently { // nothing is left of the person's words
		r.counts.Known++
		if len(left) > 0 || r.readsDifferently(turn) {
			r.counts.ReadDifferently++
		}
		return false
	}
	item.Event.Messages = left
	return true
}

// readsDifferently reports whether what was recorded under the old ids has a different text.
func (r *Reader) readsDifferently(turn []*message) bool {
	for _, m := range turn {
		if m.beforeText != m.text {
			return true
		}
	}
	return false
}

// EventID is the id of a turn of a source: a digest of the source's own id of the entry that started it, or of session
// and entry if that id is not unique by itself (entryID).
func EventID(source Source, id string) string { return string(source) + "-" + digest(id) }

// TurnID is EventID for a turn of a session, from the ids that a hook knows.
func TurnID(source Source, session, turn string) string {
	return EventID(source, entryID(session, turn))
}

// digest hashes a list of texts to 32 hexadecimal digits.
func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d\x00%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// isUUID reports whether an id is unique across sessions.
func isUUID(id string) bool { return uuid.MatchString(id) }

// sessionID is the session id of a conversation, such as chatgpt-68a1c2.
func sessionID(source Source, id string) string {
	return string(source) + "-" + strings.TrimSpace(id)
}

// add adds the counts of one conversation.
func (c *Counts) add(t *Counts) {
	c.Attachments += t.Attachments
	c.Credentials += t.Credentials
	c.ToolCalls += t.ToolCalls
	c.ToolOutputs += t.ToolOutputs
	c.Thoughts += t.Thoughts
	c.Instructions += t.Instructions
	c.Replaced += t.Replaced
	c.SideConversations += t.SideConversations
	c.Repeated += t.Repeated
	c.Unfinished += t.Unfinished
	c.Others += t.Others
	c.AnswersToOthers += t.AnswersToOthers
	c.TakenBack += t.TakenBack
	c.ProgramEntries += t.ProgramEntries
	c.CutOff += t.CutOff
	c.BadTimes += t.BadTimes
	for of, n := range t.Unknown {
		c.Unknown[of] += n
	}
}

// unreadable is the error for a file that cannot be opened.
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

// reasonNothing is the error reason if a folder or an archive has no file of a source.
const reasonNothing = "no_conversations"

// nothingIn is the error for a folder or an archive without a file of the source.
func nothingIn(source Source, name string) *abi.Error {
	want := "*.jsonl"
	switch source {
	case ChatGPT, Claude:
		want = "conversations*.json"
	case Gemini:
		want = "MyActivity.json, or one that AI Studio saved,"
	}
	return invalid("%s: has no conversations of %s: want a file %s in it", name, source, want).WithReason(reasonNothing)
}
