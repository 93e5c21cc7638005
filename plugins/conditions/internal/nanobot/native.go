package nanobot

import (
	"encoding/base64"
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

// WriteSessionFiles writes the sessions as members of an object of files: those that stand, and what was archived and cleared of them.
func WriteSessionFiles(c *sdk.Call, e *jsontext.Encoder) error {
	sessions, err := Sessions(c)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		name := base64.RawURLEncoding.EncodeToString([]byte(s.ID)) + ".jsonl"
		if err := s.writeFile(c, e, "sessions/"+name, s.Base, s.Messages, s.Pointer-s.Base); err != nil {
			return err
		}
		if s.Base > 0 {
			if err := s.writeFile(c, e, "sessions/archived/"+name, 0, s.Base, s.Base); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Session) writeFile(c *sdk.Call, e *jsontext.Encoder, path string, from, to, pointer int64) error {
	var head jsontext.Encoder
	head.ObjStart()
	for _, f := range []field{{name: "_type", text: sdk.Ptr("metadata")}, word("key", &s.ID), word("created_at", &s.Created), word("updated_at", &s.Updated)} {
		head.FieldStart(f.name)
		head.Str(*f.text)
	}
	head.FieldStart("metadata")
	head.ObjStart()
	if s.Summary != "" {
		head.FieldStart("_last_summary")
		head.Raw(encodeFields([]field{word("text", &s.Summary), word("last_active", &s.Summarised)}))
	}
	head.ObjEnd()
	head.FieldStart("last_consolidated")
	head.Int64(pointer)
	head.ObjEnd()
	text := append(head.Bytes(), '\n')
	for from < to {
		entries, _, err := c.Read(abi.StateReadRequest{Log: "messages/" + s.key, From: from + 1, Limit: min(1000, to-from)})
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			break
		}
		for _, x := range entries {
			text = append(append(text, x.Data...), '\n')
		}
		from = entries[len(entries)-1].Seq
	}
	e.FieldStart(path)
	e.Str(string(text))
	return nil
}
