package talks

import (
	"crypto/sha256"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
)

// codexLog reads a session's log: one talk. A line is {"timestamp", "type", "payload"}; logs of 2025's first half have
// the payload alone, with a first line {"id", "timestamp"}.
type codexLog struct {
	in   *lines
	said map[string][]string // digests of what was said, by session, over all files: a fork repeats another session
	done bool
}

type codexLine struct {
	Timestamp string          `json:"timestamp"`
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Payload   *codexPayload   `json:"payload"`
	// SessionID is there only in a log of Claude Code.
	SessionID string `json:"sessionId"`
}

type codexPayload struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	// Source is "cli", "vscode", "exec" or, for a sub-agent, an object.
	Source json.RawMessage `json:"source"`
	// Turns is how many turns a person took back, in a thread_rolled_back.
	Turns int `json:"num_turns"`
}

func (l *codexLog) next() (*talk, error) {
	if l.done {
		return nil, io.EOF
	}
	l.done = true
	t, side, at, origin := new(talk), false, time.Time{}, ""
	for {
		var line codexLine
		err := l.in.next(&line)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if line.SessionID != "" {
			return nil, broken("is a log of Claude Code: read it with --from claude-code")
		}
		at = orElse(rfc3339(line.Timestamp), at)
		p := line.Payload
		if p == nil { // a log of before
			p = &codexPayload{Type: line.Type, Role: line.Role, Content: line.Content}
			if line.Type == "" && t.session == "" {
				t.session = line.ID
			}
			line.Type = "response_item"
		}
		switch {
		case line.Type == "session_meta" && t.session == "": // a fork repeats the one that it came from
			t.session = p.ID
			side = len(p.Source) > 0 && p.Source[0] == '{'
		case line.Type == "session_meta" && origin == "":
			origin = p.ID
		case line.Type == "response_item":
			t.addCodex(p, at)
		case line.Type == "event_msg" && p.Type == "thread_rolled_back":
			t.takeBack(p.Turns)
		}
	}
	if l.in.number > 0 && t.session == "" && len(t.said) == 0 {
		return nil, broken("has no session: not a log of codex, or one of another version")
	}
	if side {
		t.counts = Counts{SideTalks: len(t.said)}
		t.said = nil
	}
	var all []string
	for _, s := range t.said {
		sum := sha256.Sum256([]byte(string(s.Role) + "\x00" + s.Text))
		all = append(all, string(sum[:16]))
	}
	for of := l.said[origin]; t.repeated < min(len(of), len(all)) && of[t.repeated] == all[t.repeated]; {
		t.repeated++
	}
	if t.session != "" { // else it cannot be what a fork repeats
		l.said[t.session] = all
	}
	return t, nil
}

func (t *talk) addCodex(p *codexPayload, at time.Time) {
	switch p.Type {
	case "message":
		words := t.wordsOf(blocksOf(p.Content))
		role := abi.Role(p.Role)
		if role == abi.RoleUser && isPutByCodex(words) || role != abi.RoleUser && role != abi.RoleAssistant {
			t.counts.Instructions++
			return
		}
		t.say(role, words, at)
	case "function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call":
		t.counts.ToolCalls++
		t.working = true
	case "function_call_output", "custom_tool_call_output", "tool_search_output":
		t.counts.ToolOutputs++
		t.working = true
	case "reasoning":
		t.counts.Thoughts++
	}
}

// isPutByCodex tells what the program tells the model as if the person had said it.
func isPutByCodex(text string) bool {
	text = strings.TrimSpace(text)
	for _, start := range []string{"<environment_context>", "<user_instructions>", "<INSTRUCTIONS>", "<turn_aborted>",
		"<skill>", "<permissions", "<collaboration_mode>", "<subagent_notification>", "<user_shell_command>",
		"# AGENTS.md instructions"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// takeBack removes the last turns.
func (t *talk) takeBack(turns int) {
	for i := len(t.said) - 1; i >= 0 && turns > 0; i-- {
		if t.said[i].Role == abi.RoleUser {
			turns--
		}
		t.said = t.said[:i]
		t.counts.Replaced++
	}
	t.working = false
}
