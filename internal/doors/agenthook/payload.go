package agenthook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
)

// The events that memhost takes part in.
const (
	eventSessionStart = "SessionStart"
	eventPrompt       = "UserPromptSubmit"
	eventStop         = "Stop"
	eventSessionEnd   = "SessionEnd"
	eventPreCompact   = "PreCompact"
)

// payload is what a hook reads of its standard input. Unknown fields are passed over, so that newer agents work.
type payload struct {
	Event     string `json:"hook_event_name"`
	SessionID string `json:"session_id"`
	CWD       string `json:"cwd"`
	// TurnID is the id of the turn. Codex has it, Claude Code has not.
	TurnID string `json:"turn_id"`
	// AgentID is there only when a sub-agent is at work. Nil: the field is missing.
	AgentID any `json:"agent_id"`
	// Source says why a session starts: startup, resume, clear or compact.
	Source string `json:"source"`
	// Prompt is what was submitted. Nil: the field is missing.
	Prompt *string `json:"prompt"`
	// Answer is the text of the model's last message. Nil: the field is missing, or there was no text.
	Answer *string `json:"last_assistant_message"`
	// Crons are the prompts that /loop and scheduled tasks have yet to submit (Claude Code 2.1.145 and later).
	Crons []struct {
		Prompt string `json:"prompt"`
	} `json:"session_crons"`

	odd error // of the first field with a value of another type: it counts as missing
}

// readPayload reads one object and names the field that an event cannot do without.
//
// Errors: invalid_argument for text that is not an object, or that lacks hook_event_name, session_id or prompt; the
// payload is then as much as could be read, nil for the former.
func readPayload(text []byte) (*payload, error) {
	p := new(payload)
	err := json.Unmarshal(text, p)
	var odd *json.UnmarshalTypeError
	if errors.As(err, &odd) && odd.Field != "" { // the others have been read
		p.odd, err = fmt.Errorf("%s is a JSON %s", odd.Field, odd.Value), nil
	}
	if err != nil {
		return nil, abi.WrapError(abi.CodeInvalidArgument,
			"the hook's input is not the JSON object that is expected: "+err.Error(), err)
	}
	missing := ""
	switch {
	case p.Event == "":
		missing = "hook_event_name"
	case p.SessionID == "":
		missing = "session_id"
	case p.Event == eventPrompt && (p.Prompt == nil || *p.Prompt == "" && p.odd != nil): // an odd one is decoded as ""
		missing = "prompt"
	}
	if missing != "" {
		message := "the hook's input lacks " + missing
		if p.odd != nil {
			message += " (" + p.odd.Error() + ")"
		}
		return p, abi.NewError(abi.CodeInvalidArgument, message).
			WithHint("this version of the agent may have other hooks; docs/agents.md names the versions that were " +
				"checked")
	}
	return p, nil
}

// envelopes are the elements in which Claude Code submits what no person wrote: the result of a background task, and
// messages of other sessions and agents.
var envelopes = []string{"task-notification", "teammate-message", "cross-session-message"}

// loops are the commands that submit a prompt again and again: /proactive is another name of /loop.
var loops = []string{"/loop", "/proactive"}

// ofPerson reports whether a person wrote a prompt. A prompt that only mentions an envelope, or has text around it, is
// a person's.
func ofPerson(prompt string) bool {
	text := strings.TrimSpace(prompt)
	if text == "" || slices.Contains(loops, strings.Fields(text)[0]) {
		return false
	}
	for _, name := range envelopes {
		if strings.HasPrefix(text, "<"+name) && strings.HasSuffix(text, "</"+name+">") {
			return false
		}
	}
	return true
}

// answer is what a hook prints. The zero answer prints nothing.
type answer struct {
	// Context goes to the model, Message to the person.
	Context, Message string
}

// line is the answer to an event as JSON, with a line feed; nil where there is nothing to say.
//
//	{"systemMessage":"...","hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"..."}}
func (a answer) line(event string) []byte {
	type specific struct {
		Event   string `json:"hookEventName"`
		Context string `json:"additionalContext"`
	}
	var out struct {
		Message  string    `json:"systemMessage,omitempty"`
		Specific *specific `json:"hookSpecificOutput,omitempty"`
	}
	out.Message = a.Message
	if a.Context != "" {
		out.Specific = &specific{event, a.Context}
	}
	if a == (answer{}) {
		return nil
	}
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(out); err != nil {
		return nil
	}
	return line.Bytes()
}
