package talks

import (
	"cmp"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
)

// claudeCodeLog reads a session's log: one talk.
type claudeCodeLog struct {
	in   *lines
	seen map[string]bool // ids of recorded messages, over all files: a resumed session repeats those of another
	done bool
}

type claudeCodeEntry struct {
	Type      string `json:"type"`
	UUID      string `json:"uuid"`
	Parent    string `json:"parentUuid"`
	SessionID string `json:"sessionId"`
	Timestamp string `json:"timestamp"`
	Side      bool   `json:"isSidechain"`
	Meta      bool   `json:"isMeta"`
	Summary   bool   `json:"isCompactSummary"`
	APIError  bool   `json:"isApiErrorMessage"`
	// Payload is there only in a log of codex.
	Payload json.RawMessage `json:"payload"`
	Message struct {
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

func (l *claudeCodeLog) next() (*talk, error) {
	if l.done {
		return nil, io.EOF
	}
	l.done = true
	var entries []claudeCodeEntry
	typed := false
	for {
		var e claudeCodeEntry
		err := l.in.next(&e)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		typed = typed || e.Type != ""
		if e.Payload != nil && e.SessionID == "" {
			return nil, broken("is a log of codex: read it with --from codex")
		}
		e.Message.Content = withoutOutputs(e.Message.Content)
		entries = append(entries, e)
	}
	if len(entries) > 0 && !typed {
		return nil, broken("no line has a type: not a log of Claude Code, or one of another version")
	}
	t := new(talk)
	replaced := replacedEntries(entries)
	for i := range entries {
		e := &entries[i]
		if t.session == "" {
			t.session = e.SessionID
		}
		if e.Type != "user" && e.Type != "assistant" {
			continue
		}
		switch {
		case e.Side:
			t.counts.SideTalks++
		case replaced[e.UUID]:
			t.counts.Replaced++
		case e.Meta || e.Summary || e.APIError:
			t.counts.Instructions++
		case e.UUID != "" && l.seen[e.UUID]:
			t.counts.Repeated++
		default:
			t.addClaudeCode(e)
		}
	}
	return t, nil
}

// lastTime is the time of a log's last entry. A resumed session is in a log of its own, which begins with a copy of the
// one before and always ends later: so the first log, read first, keeps its messages, whichever logs come with it.
func lastTime(f file) (last time.Time, err error) {
	in, err := f.open()
	if err != nil {
		return last, err
	}
	defer func() { _ = in.Close() }()
	for l := newLines(in); ; {
		var e struct {
			Timestamp string `json:"timestamp"`
		}
		if l.next(&e) != nil { // what cannot be read is an error when its turn comes
			return last, nil
		}
		last = orElse(rfc3339(e.Timestamp), last)
	}
}

// byLastTime sorts logs by their last entries, then by name.
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

// withoutOutputs keeps of a content only the types of the blocks that are no words, so that a log's tool outputs need
// not be held until its end.
func withoutOutputs(content json.RawMessage) json.RawMessage {
	if len(content) == 0 || content[0] != '[' {
		return content
	}
	kept, err := json.Marshal(blocksOf(content))
	if err != nil {
		return content
	}
	return kept
}

func (t *talk) addClaudeCode(e *claudeCodeEntry) {
	calls, outputs := t.counts.ToolCalls, t.counts.ToolOutputs
	words, put := withoutReminders(t.wordsOf(blocksOf(e.Message.Content)))
	t.counts.Instructions += put
	if e.Type == "user" && !isPrompt(words) {
		if strings.TrimSpace(words) != "" {
			t.counts.Instructions++
		}
		words = ""
	}
	said := len(t.said)
	t.say(abi.Role(e.Type), words, rfc3339(e.Timestamp))
	if len(t.said) > said {
		t.ids = append(t.ids, e.UUID)
	}
	t.working = t.working || calls < t.counts.ToolCalls || outputs < t.counts.ToolOutputs
}

// reminder is what the program puts into a message for the model.
var reminder = regexp.MustCompile(`(?s)<system-reminder>.*?</system-reminder>`)

func withoutReminders(text string) (words string, put int) {
	put = len(reminder.FindAllStringIndex(text, -1))
	return reminder.ReplaceAllString(text, ""), put
}

// isPrompt tells a person's words from a command of the program, its output, and the note that a turn was interrupted.
func isPrompt(text string) bool {
	text = strings.TrimSpace(text)
	for _, start := range []string{"<command-name>", "<command-message>", "<command-args>", "<local-command-", "<bash-",
		"<user-memory-input>", "<task-notification>", "[Request interrupted by user", "Caveat: The messages below"} {
		if strings.HasPrefix(text, start) {
			return false
		}
	}
	return text != ""
}

// replacedEntries are the messages after a prompt that the person took back: of the prompts that follow one message
// only the last counts. Other forks stay, since several tools that run at once make such, too.
func replacedEntries(entries []claudeCodeEntry) map[string]bool {
	last := map[string]string{} // parent -> its last prompt
	prompt := func(e *claudeCodeEntry) bool {
		if e.Type != "user" || e.Side || e.Meta || e.Parent == "" {
			return false
		}
		var scratch talk
		return isPrompt(scratch.wordsOf(blocksOf(e.Message.Content)))
	}
	for i := range entries {
		if e := &entries[i]; prompt(e) {
			last[e.Parent] = e.UUID
		}
	}
	replaced := map[string]bool{}
	for i := range entries { // parents come before their children
		e := &entries[i]
		if e.UUID == "" {
			continue
		}
		if replaced[e.Parent] || prompt(e) && last[e.Parent] != e.UUID {
			replaced[e.UUID] = true
		}
	}
	return replaced
}
