package conversations

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/transcript"
)

// claudeCodeLog reads the log of a session, which is one conversation.
type claudeCodeLog struct {
	in   *lines
	zone *time.Location
	seen map[string]bool // keys of recorded messages in all files: a resumed session repeats those of another one
	done bool
}

type claudeCodeEntry struct {
	Type      string          `json:"type"`
	UUID      string          `json:"uuid"`
	Parent    string          `json:"parentUuid"`
	SessionID string          `json:"sessionId"`
	PromptID  string          `json:"promptId"`
	Timestamp json.RawMessage `json:"timestamp"`
	Side      bool            `json:"isSidechain"`
	Meta      bool            `json:"isMeta"`
	Summary   bool            `json:"isCompactSummary"`
	Hidden    bool            `json:"isVisibleInTranscriptOnly"`
	APIError  bool            `json:"isApiErrorMessage"`
	Subtype   string          `json:"subtype"`
	// Payload is only present in a log of Codex.
	Payload json.RawMessage `json:"payload"`
	Message struct {
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	// Operation and Content belong to a queue-operation.
	Operation string          `json:"operation"`
	Content   json.RawMessage `json:"content"`
	// Attachment belongs to an entry of that type: what the program adds to the conversation while the agent works.
	Attachment claudeCodeAttachment `json:"attachment"`

	at      time.Time
	line    int
	pieces  []transcript.Piece
	prompt  transcript.Prompt // of a user's entry, or a queued prompt
	earlier string            // what a build before the release read as words
}

type claudeCodeAttachment struct {
	Type   string          `json:"type"`
	Prompt json.RawMessage `json:"prompt"`
	Mode   string          `json:"commandMode"`
	Origin struct {
		Kind string `json:"kind"`
	} `json:"origin"`
}

// isQueued reports whether the entry is a prompt that was typed while the agent worked.
func (e *claudeCodeEntry) isQueued() bool {
	return e.Type == "attachment" && e.Attachment.Type == "queued_command"
}

// key identifies an entry across all sessions: a copy in the log of a resumed session has the key of its original.
func (e *claudeCodeEntry) key() string {
	if isUUID(e.UUID) || e.UUID == "" {
		return e.UUID
	}
	text, _ := json.Marshal([]any{e.UUID, e.at, e.pieces, e.prompt})
	return digest(string(text))
}

func (l *claudeCodeLog) next() (*conversation, error) {
	if l.done {
		return nil, io.EOF
	}
	l.done = true
	t := newConversation(l.zone)
	var entries []*claudeCodeEntry
	typed := false
	for {
		e := new(claudeCodeEntry)
		err := l.in.next(e)
		if err == io.EOF {
			break
		}
		var bad *badLine
		if errors.As(err, &bad) {
			t.badLines = append(t.badLines, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		typed = typed || e.Type != ""
		if e.Payload != nil && e.SessionID == "" {
			return nil, broken("is a log of codex: read it with --from codex")
		}
		if e.line = l.in.number; !e.read(t) {
			continue
		}
		entries = append(entries, e)
	}
	if len(entries) > 0 && !typed {
		return nil, broken("no line has a type: not a log of Claude Code, or one of another version")
	}
	t.counts.CutOff += l.in.cutOff
	replaced, earlierReplaced := replacedEntries(entries, (*claudeCodeEntry).isPrompt),
		replacedEntries(entries, (*claudeCodeEntry).wasPrompt)
	prompts := map[string]bool{}
	queue := promptQueue{}
	for _, e := range entries {
		if t.session == "" {
			t.session = e.SessionID
		}
		repeated := e.UUID != "" && l.seen[e.key()]
		switch {
		case e.Type == "queue-operation":
			queue.note(e)
			t.counts.ProgramEntries++
		case e.Type != "user" && e.Type != "assistant" && !e.isQueued():
			t.countEntry(e)
		case e.Side:
			t.counts.SideConversations++
		case replaced[e.UUID]:
			t.counts.Replaced++
		case repeated:
			t.counts.Repeated++
		case e.Meta || e.Summary || e.Hidden || e.APIError:
			t.counts.Instructions++
		default:
			m := t.addClaudeCode(e, prompts)
			if e.Type != "attachment" && !earlierReplaced[e.UUID] {
				t.noteEarlier(abi.Role(e.Type), e.earlier, m)
			}
			queue.taken(e.prompt.Words)
			if m != nil && e.UUID != "" {
				m.key = e.key()
			}
		}
	}
	t.counts.TakenBack += len(queue.open)
	return t, nil
}

// read reads an entry's time and words, and drops the rest, so that a log's tool outputs are not held in memory. ok is
// false for an entry whose time cannot be parsed, which then counts as a bad line.
func (e *claudeCodeEntry) read(t *conversation) (ok bool) {
	at, err := readTime(e.Timestamp, t.zone)
	if err != nil {
		if e.Type == "user" || e.Type == "assistant" || e.isQueued() {
			t.badLines = append(t.badLines, newBadLine(e.line, "timestamp: "+err.Message, err.Hint))
			return false
		}
	}
	content := e.Message.Content
	if e.isQueued() {
		content = e.Attachment.Prompt
	}
	e.at, e.pieces, e.earlier = at, transcript.Blocks(content), earlierReminder.ReplaceAllString(earlierWords(content), "")
	if e.Type == "user" || e.isQueued() {
		var scratch conversation
		scratch.counts = newCounts()
		e.prompt = transcript.ReadPrompt(scratch.wordsOf(e.pieces))
		if !earlierPrompt(e.earlier) {
			e.earlier = ""
		}
	}
	if e.isQueued() && (e.Attachment.Mode != "" && e.Attachment.Mode != "prompt" ||
		e.Attachment.Origin.Kind != "" && e.Attachment.Origin.Kind != "human") {
		e.prompt = transcript.Prompt{Instructions: 1}
	}
	if e.Type != "assistant" {
		for i := range e.pieces {
			if e.pieces[i].Kind == transcript.Words {
				e.pieces[i].Text = ""
			}
		}
	}
	e.Message.Content, e.Attachment.Prompt, e.Timestamp = nil, nil, nil
	return true
}

// programEntries are types of entries without words of a conversation.
var programEntries = []string{"system", "summary", "progress", "file-history-snapshot", "attachment", "ai-title",
	"custom-title", "agent-name", "agent-color", "agent-setting", "permission-mode", "mode", "worktree-state", "last-prompt",
	"tag", "pr-link", "attribution-snapshot", "content-replacement", "task-summary", "saved_hook_context", "result",
	"bridge-session", "speculation-accept", "context-collapse", "hook-additional-context"}

func (t *conversation) countEntry(e *claudeCodeEntry) {
	if slices.Contains(programEntries, e.Type) {
		t.counts.ProgramEntries++
		return
	}
	of := e.Type
	if of == "" {
		of = "without a type"
	}
	t.counts.Unknown[of]++
}

// addClaudeCode adds the words of an entry. prompts are the ids of prompts that already started a turn.
func (t *conversation) addClaudeCode(e *claudeCodeEntry, prompts map[string]bool) *message {
	if e.Type == "assistant" {
		calls := t.counts.ToolCalls
		m := t.say(abi.RoleAssistant, t.wordsOf(e.pieces), e.at, "")
		t.working = t.working || calls < t.counts.ToolCalls
		if m != nil {
			m.id = entryID(e.SessionID, e.UUID)
		}
		return m
	}
	outputs := t.counts.ToolOutputs
	t.wordsOf(e.pieces)
	defer func() { t.working = t.working || outputs < t.counts.ToolOutputs }()
	p := &e.prompt
	t.counts.Instructions += p.Instructions
	t.counts.Others += p.Others
	switch {
	case p.Output:
		t.dropCommand()
	case p.Words == "" && p.Others > 0:
		t.dropCommand()
		t.toOthers = true
	}
	if p.Words == "" {
		return nil
	}
	t.dropCommand()
	joins := e.isQueued() || !t.answered()
	m := t.say(abi.RoleUser, p.Words, e.at, "")
	if m == nil {
		return nil
	}
	m.joins, m.command = joins && len(t.said) > 1, p.Command
	if p.Command && !p.Bare {
		m.command = false
	}
	if id := e.PromptID; id != "" && !prompts[id] && !m.joins {
		m.id = entryID(e.SessionID, id)
		prompts[id] = true
	} else {
		m.id = entryID(e.SessionID, e.UUID)
	}
	return m
}

// entryID is an entry's id, unique across sessions.
func entryID(session, id string) string {
	if id == "" || isUUID(id) {
		return id
	}
	return session + "\x00" + id
}

// promptQueue tracks the prompts that are typed while the agent works. A prompt that was taken back leaves the queue,
// and the log does not contain its words.
type promptQueue struct{ open []string }

func (q *promptQueue) note(e *claudeCodeEntry) {
	var text string
	if e.Operation == "enqueue" && json.Unmarshal(e.Content, &text) == nil {
		if p := transcript.ReadPrompt(text); p.Words != "" {
			q.open = append(q.open, p.Words)
		}
	}
}

// taken removes a prompt that the agent received from the queue.
func (q *promptQueue) taken(words string) {
	if at := slices.Index(q.open, words); at >= 0 {
		q.open = slices.Delete(q.open, at, at+1)
	}
}

// lastTime is the time of a log's last entry. A resumed session has its own log, which starts with a copy of the
// previous one and always ends later. So if logs are read in this order, the original keeps its messages, whichever
// logs are read together.
func lastTime(f file) (last time.Time, err error) {
	in, err := f.open()
	if err != nil {
		return last, err
	}
	defer func() { _ = in.Close() }()
	for l := newLines(in); ; {
		var e struct {
			Timestamp json.RawMessage `json:"timestamp"`
		}
		err := l.next(&e)
		var bad *badLine
		if err != nil && !errors.As(err, &bad) { // an unreadable file is reported when it is read
			return last, nil
		}
		if at, err := readTime(e.Timestamp, time.UTC); err == nil {
			last = orElse(at, last)
		}
	}
}

// byLastTime sorts logs by the time of their last entries, then by name.
func byLastTime(files []file) error {
	times := map[string]time.Time{}
	for _, f := range files {
		at, err := lastTime(f)
		if err != nil {
			return err
		}
		times[f.name] = at
	}
	slices.SortFunc(files, func(a, b file) int {
		return cmp.Or(times[a.name].Compare(times[b.name]), strings.Compare(a.name, b.name))
	})
	return nil
}

// isPrompt reports whether a person wrote an entry.
func (e *claudeCodeEntry) isPrompt() bool {
	return e.Type == "user" && e.prompt.Words != "" && (!e.prompt.Command || !e.prompt.Bare)
}

// wasPrompt is isPrompt as older builds decided it.
func (e *claudeCodeEntry) wasPrompt() bool { return e.Type == "user" && e.earlier != "" }

// replacedEntries returns the messages after a prompt that the person took back: of several prompts that follow one
// message only the last counts. Other forks are kept, because tools that run concurrently create them, too.
func replacedEntries(entries []*claudeCodeEntry, isPrompt func(*claudeCodeEntry) bool) map[string]bool {
	last := map[string]string{} // parent -> its last prompt
	prompt := func(e *claudeCodeEntry) bool { return isPrompt(e) && !e.Side && !e.Meta && e.Parent != "" }
	for _, e := range entries {
		if prompt(e) {
			last[e.Parent] = e.UUID
		}
	}
	replaced := map[string]bool{}
	for _, e := range entries { // parents come before their children
		if e.UUID == "" {
			continue
		}
		if replaced[e.Parent] || prompt(e) && last[e.Parent] != e.UUID {
			replaced[e.UUID] = true
		}
	}
	return replaced
}

// FindPrompt looks for a person's words in the log of a session, starting from its end, and returns the id of the turn
// that starts with the last entry containing them; "" if there is none. It only reads the last 8 MiB, because an agent
// waits for it.
func FindPrompt(path, words string) string {
	const most = 8 << 20
	in, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = in.Close() }()
	if info, err := in.Stat(); err == nil && info.Size() > most {
		if _, err := in.Seek(-most, io.SeekEnd); err != nil {
			return ""
		}
	}
	found := ""
	for l, t := newLines(in), newConversation(time.UTC); ; {
		e := new(claudeCodeEntry)
		err := l.next(e)
		var bad *badLine
		switch {
		case errors.As(err, &bad): // the first line may be incomplete
			continue
		case err != nil:
			return found
		}
		if e.read(t) && e.prompt.Words == words && !e.Side && !e.Meta && e.UUID != "" {
			found = TurnID(ClaudeCode, e.SessionID, cmp.Or(e.PromptID, e.UUID))
		}
	}
}
