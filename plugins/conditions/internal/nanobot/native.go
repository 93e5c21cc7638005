package nanobot

import (
	"strconv"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// Param is a text among the parameters of a native call, "" where it is absent or no text.
func Param(params map[string]abi.Raw, name string) string {
	text, err := jsontext.DecodeBytes(params[name]).Str()
	if err != nil {
		return ""
	}
	return text
}

// ParamInt is a whole number among the parameters.
func ParamInt(params map[string]abi.Raw, name string, otherwise int64) int64 {
	n, err := strconv.ParseInt(string(params[name]), 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

// WriteStatus writes what the work on the scope has come to.
func WriteStatus(c *sdk.Call, e *jsontext.Encoder) error {
	sessions, err := Sessions(c)
	if err != nil {
		return err
	}
	u, _, err := ReadUsage(c)
	if err != nil {
		return err
	}
	e.ObjStart()
	e.FieldStart("usage")
	e.Raw(u.JSON())
	e.FieldStart("sessions")
	e.ArrStart()
	for _, s := range sessions {
		e.ObjStart()
		e.FieldStart("session_id")
		e.Str(s.ID)
		for _, n := range []struct {
			name  string
			value int64
		}{{"messages", s.Messages - s.Base}, {"last_consolidated", s.Pointer - s.Base}, {"archived", s.Base}, {"failures", s.Failures}, {"retry_at_ms", s.RetryAt}} {
			e.FieldStart(n.name)
			e.Int64(n.value)
		}
		if s.Code != "" {
			e.FieldStart("error")
			e.Str(s.Code + " " + s.Reason + ": " + s.Said)
		}
		e.ObjEnd()
	}
	e.ArrEnd()
	e.ObjEnd()
	return nil
}

// WriteReplay writes the messages of a session that an agent can be shown again.
func WriteReplay(c *sdk.Call, e *jsontext.Encoder, session string, most int64) error {
	s, err := FindSession(c, session)
	if err != nil {
		return err
	}
	messages, _, err := s.Read(c, s.Pointer, s.Messages)
	if err != nil {
		return err
	}
	e.ArrStart()
	for _, m := range Replay(messages, int(max(0, most))) {
		public := Message{Role: m.Role, Content: m.Content, ToolCalls: m.ToolCalls, ToolCallID: m.ToolCallID, Name: m.Name}
		e.Raw(public.Encode())
	}
	e.ArrEnd()
	return nil
}
