package agenthook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/memhost/memhost/abi"
)

// The events that memhost handles.
const (
	eventSessionStart = "SessionStart"
	eventPrompt       = "UserPromptSubmit"
	eventStop         = "Stop"
	eventSessionEnd   = "SessionEnd"
	eventPreCompact   = "PreCompact"
)

// payload is what a hook reads from standard input. Unknown fields are ignored, so that newer agents work.
type payload struct {
	Event     string `json:"hook_event_name"`
	SessionID string `json:"session_id"`
	CWD       string `json:"cwd"`
	// TurnID is the id of the turn. Codex sends it, Claude Code does not.
	TurnID string `json:"turn_id"`
	// PromptID is the id of the last prompt. Claude Code sends it and writes it to its log; older versions do not.
	PromptID string `json:"prompt_id"`
	// Transcript is the session's log, which may lag behind.
	Transcript string `json:"transcript_path"`
	// AgentID is present only for a sub-agent. Nil: the field is missing.
	AgentID any `json:"agent_id"`
	// Source says why a session starts: startup, resume, clear or compact.
	Source string `json:"source"`
	// Prompt is what was submitted. Nil: the field is missing.
	Prompt *string `json:"prompt"`
	// Answer is the text of the model's last message. Nil: the field is missing, or there was no text.
	Answer *string `json:"last_assistant_message"`
	// Crons are the prompts that /loop and scheduled tasks will submit later (Claude Code 2.1.145 and later).
	Crons []struct {
		Prompt string `json:"prompt"`
	} `json:"session_crons"`

	wrongField error // names the first field with a value of another type, which counts as missing
	// wrongAnswer is set if that field is Answer.
	wrongAnswer bool
}

// readPayload parses one object and names the first field that is required by its event and missing.
//
// Errors: invalid_argument for text that is not an object, or that lacks hook_event_name, session_id or prompt. The
// payload then has what could be read; it is nil for text that is not an object.
func readPayload(text []byte) (*payload, error) {
	p := new(payload)
	text = bytes.TrimPrefix(text, []byte("\xEF\xBB\xBF")) // shells on Windows write a byte order mark
	err := json.Unmarshal(text, p)
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) && wrongType.Field != "" { // the other fields have been decoded
		p.wrongField, err = fmt.Errorf("%s is a JSON %s", wrongType.Field, wrongType.Value), nil
		p.wrongAnswer = wrongType.Field == "last_assistant_message"
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
	case p.Event == eventPrompt && (p.Prompt == nil || *p.Prompt == "" && p.wrongField != nil): // a value of another type was decoded as ""
		missing = "prompt"
	}
	if missing != "" {
		message := "the hook's input lacks " + missing
		if p.wrongField != nil {
			message += " (" + p.wrongField.Error() + ")"
		}
		return p, abi.NewError(abi.CodeInvalidArgument, message).
			WithHint("this version of the agent may have other hooks; docs/agents.md names the versions that were " +
				"checked")
	}
	return p, nil
}

// answer is what a hook prints. The zero answer prints nothing.
type answer struct {
	// Context goes to the model, Message to the person.
	Context, Message string
}

// line is the answer to an event as JSON, with a line feed; nil if there is nothing to say.
//
//	{"systemMessage":"...","hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"..."}}
func (a answer) line(event string) []byte {
	type hookOutput struct {
		Event   string `json:"hookEventName"`
		Context string `json:"additionalContext"`
	}
	var out struct {
		Message  string      `json:"systemMessage,omitempty"`
		Specific *hookOutput `json:"hookSpecificOutput,omitempty"`
	}
	out.Message = a.Message
	if a.Context != "" {
		out.Specific = &hookOutput{event, a.Context}
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
