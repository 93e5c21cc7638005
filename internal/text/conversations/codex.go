package conversations

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/transcript"
)

// codexLog reads the log of a session, which is one conversation. A line is {"timestamp", "type", "payload"}; logs from
// the first half of 2025 have only the payload, and a first line {"id", "timestamp"}.
type codexLog struct {
	in   *lines
	zone *time.Location
	said map[string][]string // digests of what was said, by session, over all files: a fork repeats another session
	done bool
}

type codexLine struct {
	Timestamp json.RawMessage `json:"timestamp"`
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Payload   *codexPayload   `json:"payload"`
	// SessionID is only present in a log of Claude Code.
	SessionID string `json:"sessionId"`
}

type codexPayload struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	TurnID  string          `json:"turn_id"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	// Source is "cli", "vscode" or "exec"; for a sub-agent it is an object.
	Source json.RawMessage `json:"source"`
	// Turns is how many turns a person took back, in a thread_rolled_back.
	Turns int `json:"num_turns"`
}

// codexItems are response items without words of a conversation.
var codexItems = map[string]transcript.Kind{"function_call": transcript.ToolCall, "custom_tool_call": transcript.ToolCall,
	"local_shell_call": transcript.ToolCall, "web_search_call": transcript.ToolCall, "tool_search_call": transcript.ToolCall,
	"image_generation_call": transcript.ToolCall, "mcp_tool_call": transcript.ToolCall,
	"function_call_output": transcript.ToolOutput, "custom_tool_call_output": transcript.ToolOutput,
	"tool_search_output": transcript.ToolOutput, "mcp_tool_call_output": transcript.ToolOutput, "local_shell_call_output": transcript.ToolOutput,
	"reasoning":    transcript.Thought,
	"ghost_commit": transcript.Instruction, "ghost_snapshot": transcript.Instruction, "compaction": transcript.Instruction,
	"compaction_summary": transcript.Instruction, "context_compaction": transcript.Instruction, "compaction_trigger": transcript.Instruction}

// codexLines are the types of lines other than items. An event_msg repeats what an item says.
var codexLines = []string{"session_meta", "turn_context", "event_msg", "compacted", "world_state", "state",
	"inter_agent_communication"}

func (l *codexLog) next() (*conversation, error) {
	if l.done {
		return nil, io.EOF
	}
	l.done = true
	t, side, at, origin := newConversation(l.zone), false, time.Time{}, ""
	turn, turns := "", map[string]bool{}
	for {
		var line codexLine
		err := l.in.next(&line)
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
		if line.SessionID != "" {
			return nil, broken("is a log of Claude Code: read it with --from claude-code")
		}
		now, problem := readTime(line.Timestamp, l.zone)
		if problem != nil {
			t.badLines = append(t.badLines, newBadLine(l.in.number, "timestamp: "+problem.Message, problem.Hint))
			continue
		}
		at = orElse(now, at)
		p := line.Payload
		if p == nil { // the older log format
			p = &codexPayload{Type: line.Type, Role: line.Role, Content: line.Content}
			if line.Type == "" && t.session == "" {
				t.session = line.ID
				t.counts.ProgramEntries++
				continue
			}
			line.Type = "response_item"
		}
		if p.TurnID != "" && line.Type != "response_item" {
			turn = p.TurnID
		}
		switch {
		case line.Type == "session_meta" && t.session == "": // a fork repeats the session_meta of its origin
			t.session = p.ID
			side = len(p.Source) > 0 && p.Source[0] == '{'
		case line.Type == "session_meta" && origin == "":
			origin = p.ID
		case line.Type == "response_item":
			t.addCodex(p, at, codexID(t.session, turn, l.in.number, turns))
			continue
		case line.Type == "event_msg" && p.Type == "thread_rolled_back":
			t.takeBack(p.Turns)
		case !slices.Contains(codexLines, line.Type):
			t.counts.Unknown[orWithout(line.Type)]++
			continue
		}
		t.counts.ProgramEntries++
	}
	t.counts.CutOff += l.in.cutOff
	if l.in.number > 0 && t.session == "" && len(t.said) == 0 && len(t.badLines) == 0 {
		return nil, broken("has no session: not a log of codex, or one of another version")
	}
	if side {
		t.counts.SideConversations, t.counts.Attachments, t.counts.Credentials = len(t.said), 0, 0
		t.said, t.earlier = nil, nil
	}
	var all []string
	for _, m := range t.said {
		all = append(all, digest(string(m.role), m.text))
	}
	for of := l.said[origin]; t.repeated < min(len(of), len(all)) && of[t.repeated] == all[t.repeated]; {
		t.repeated++
	}
	if t.session != "" { // without an id, no fork can repeat it
		l.said[t.session] = all
	}
	return t, nil
}

func orWithout(of string) string {
	if of == "" {
		return "without a type"
	}
	return of
}

// codexID returns the id of a message that may start a turn: the turn's id, or its place in the log. used has the turns
// that have already started.
func codexID(session, turn string, line int, used map[string]bool) func() string {
	return func() string {
		if turn != "" && !used[turn] {
			used[turn] = true
			return entryID(session, turn)
		}
		return session + "\x00line " + strconv.Itoa(line)
	}
}

// addCodex adds the words of an item. id returns its id.
func (t *conversation) addCodex(p *codexPayload, at time.Time, id func() string) {
	kind, known := codexItems[p.Type]
	if !known && p.Type != "message" {
		kind = transcript.Block(json.RawMessage(`{"type":` + strconv.Quote(p.Type) + `}`)).Kind
	}
	switch {
	case p.Type == "message":
		t.addCodexMessage(p, at, id)
	case kind == transcript.ToolCall:
		t.counts.ToolCalls++
		t.working = true
	case kind == transcript.ToolOutput:
		t.counts.ToolOutputs++
		t.working = true
	case kind == transcript.Thought:
		t.counts.Thoughts++
	case kind == transcript.Instruction:
		t.counts.Instructions++
	default:
		t.counts.Unknown[orWithout(p.Type)]++
	}
}

func (t *conversation) addCodexMessage(p *codexPayload, at time.Time, id func() string) {
	words, role := t.wordsOf(transcript.Blocks(p.Content)), abi.Role(p.Role)
	earlier := earlierWords(p.Content)
	switch role {
	case abi.RoleAssistant:
		t.noteEarlier(role, earlier, t.say(role, words, at, ""))
	case abi.RoleUser:
		prompt := transcript.ReadPrompt(words)
		t.counts.Instructions += prompt.Instructions
		t.counts.Others += prompt.Others
		var m *message
		if prompt.Words != "" {
			joins := !t.answered()
			if m = t.say(role, prompt.Words, at, ""); m != nil {
				m.joins = joins
				if m.id = id(); strings.Contains(m.id, "\x00line ") && joins {
					m.id = ""
				}
			}
		}
		if !earlierPutByCodex(earlier) {
			t.noteEarlier(role, earlier, m)
		}
	default:
		t.counts.Instructions++
	}
}

// takeBack removes the last turns.
func (t *conversation) takeBack(turns int) {
	left := turns
	for i := len(t.said) - 1; i >= 0 && left > 0; i-- {
		if t.said[i].role == abi.RoleUser {
			left--
		}
		t.said = t.said[:i]
		t.counts.Replaced++
	}
	for i := len(t.earlier) - 1; i >= 0 && turns > 0; i-- {
		if t.earlier[i].role == abi.RoleUser {
			turns--
		}
		t.earlier = t.earlier[:i]
	}
	t.working = false
}
