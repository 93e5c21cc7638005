package nanobot

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/jsontext"
	"github.com/memhost/memhost/sdk"
)

// Session files are Nanobot's (nanobot/session/manager.py, JsonlSessionStore): a line of metadata, then a message a line. Lines are kept as they came, with
// what this package has no use for, and bad ones at their place.

const (
	sessionDir  = "sessions/"
	archivedDir = "sessions/archived/"
)

// nameMost is how long a session's part of a file name may be.
const nameMost = 200

// headerKey is where the metadata line of an imported session stands.
func headerKey(s *Session) string { return "header/" + s.key }

// WriteSessionFiles adds the sessions: those that stand, and what was archived and cleared of them.
func WriteSessionFiles(c *sdk.Call, f *Files) error {
	return eachSession(c, func(s *Session) error { return s.writeFiles(c, f) })
}

func (s *Session) writeFiles(c *sdk.Call, f *Files) error {
	name := base64.RawURLEncoding.EncodeToString([]byte(s.ID))
	if len(name) > nameMost {
		name = "h-" + sdk.Digest256(s.ID)
	}
	log := "messages/" + s.key
	if s.Base > 0 {
		if err := f.Log(c, archivedDir+name+".1.jsonl", log, func() ([]byte, error) { return s.header(nil, s.Base), nil }, 0, s.Base, Line); err != nil {
			return err
		}
	}
	return f.Log(c, sessionDir+name+".jsonl", log, func() ([]byte, error) {
		was, _, err := c.Get(headerKey(s))
		if err != nil {
			return nil, err
		}
		pointer, err := s.counted(c)
		return s.header(was, pointer), err
	}, s.Base, s.Messages, Line)
}

// counted is the pointer as Nanobot counts: lines that are no messages are none.
func (s *Session) counted(c *sdk.Call) (int64, error) {
	n := s.Pointer - s.Base
	for from := s.Base; from < s.Pointer; {
		entries, _, err := c.Read(abi.StateReadRequest{Log: "messages/" + s.key, From: from + 1, Limit: min(1000, s.Pointer-from)})
		if err != nil || len(entries) == 0 {
			return n, err
		}
		for _, x := range entries {
			if !isMessage(x.Data) {
				n--
			}
		}
		from = entries[len(entries)-1].Seq
	}
	return n, nil
}

// isMessage tells whether Nanobot reads a line as a message.
func isMessage(line []byte) bool {
	is := true
	err := jsontext.DecodeBytes(line).Obj(func(d *jsontext.Decoder, key string) error {
		is = is && key != "_type"
		return d.Skip()
	})
	return is && err == nil
}

// header is the metadata line. was is the one that was imported: what it says beside what has changed since stays.
func (s *Session) header(was []byte, pointer int64) []byte {
	if len(was) == 0 {
		was = Encode(word("_type", sdk.Ptr("metadata")), word("key", &s.ID), word("created_at", &s.Created), word("updated_at", &s.Updated))
	}
	var e jsontext.Encoder
	e.ObjStart()
	summarised, pointed := false, false
	_ = jsontext.DecodeBytes(was).Obj(func(d *jsontext.Decoder, key string) error {
		raw, err := d.Raw()
		if err != nil {
			return err
		}
		e.FieldStart(key)
		switch {
		case key == "last_consolidated" || key == "last_archived":
			pointed = true
			e.Int64(pointer)
		case key == "updated_at" && s.Updated != "":
			e.Str(s.Updated)
		case key == "metadata" && raw.Type() == jsontext.Object:
			summarised = true
			s.metadata(&e, raw)
		default:
			e.Raw(raw)
		}
		return nil
	})
	if !summarised {
		e.FieldStart("metadata")
		s.metadata(&e, jsontext.Raw("{}"))
	}
	if !pointed {
		e.FieldStart("last_consolidated")
		e.Int64(pointer)
	}
	e.ObjEnd()
	return append(e.Bytes(), '\n')
}

// metadata is the member metadata with the last summary as it is now.
func (s *Session) metadata(e *jsontext.Encoder, was jsontext.Raw) {
	e.ObjStart()
	said := false
	_ = jsontext.DecodeBytes(was).Obj(func(d *jsontext.Decoder, key string) error {
		raw, err := d.Raw()
		if err != nil {
			return err
		}
		e.FieldStart(key)
		if key == lastSummary {
			said = true
			if text, _ := summaryOf(raw); text != s.Summary {
				raw = s.summary()
			}
		}
		e.Raw(raw)
		return nil
	})
	if !said && s.Summary != "" {
		e.FieldStart(lastSummary)
		e.Raw(s.summary())
	}
	e.ObjEnd()
}

const lastSummary = "_last_summary"

func (s *Session) summary() []byte {
	return Encode(word("text", &s.Summary), word("last_active", &s.Summarised))
}

func summaryOf(raw []byte) (text, at string) {
	_ = Decode(raw, word("text", &text), word("last_active", &at))
	return text, at
}

// sessionFiles are those of one session: what stands, and what was archived, by number.
type sessionFiles struct {
	stem, now string
	archived  []string
}

// sessions takes the session files. The one with the latest time is the one that goes on.
func (in *Incoming) sessions() error {
	var list []*sessionFiles
	at := func(stem string) *sessionFiles {
		for _, x := range list {
			if x.stem == stem {
				return x
			}
		}
		list = append(list, &sessionFiles{stem: stem})
		return list[len(list)-1]
	}
	numbers := map[string]int64{}
	for _, path := range in.Paths {
		stem, is := strings.CutSuffix(path, ".jsonl")
		if !is || !strings.HasPrefix(stem, sessionDir) {
			continue
		}
		if name, archived := strings.CutPrefix(stem, archivedDir); archived && !strings.Contains(name, "/") {
			n := int64(0)
			if dot := strings.LastIndexByte(name, '.'); dot > 0 {
				if number, err := strconv.ParseInt(name[dot+1:], 10, 64); err == nil {
					name, n = name[:dot], number
				}
			}
			numbers[path] = n
			x := at(name)
			x.archived = append(x.archived, path)
		} else if name := stem[len(sessionDir):]; !strings.Contains(name, "/") {
			at(name).now = path
		}
	}
	var all []*Session
	for _, x := range list {
		for i := range x.archived { // few: the smallest number in front
			for j := i; j > 0 && numbers[x.archived[j]] < numbers[x.archived[j-1]]; j-- {
				x.archived[j], x.archived[j-1] = x.archived[j-1], x.archived[j]
			}
		}
		s, err := in.session(x)
		if err != nil {
			return err
		}
		if s != nil {
			all = append(all, s)
		}
	}
	return in.order(all)
}

// order gives the sessions their places by their times, and notes which have ended.
func (in *Incoming) order(all []*Session) error {
	if len(all) == 0 {
		return nil
	}
	for i := range all {
		for j := i; j > 0 && all[j].Updated < all[j-1].Updated; j-- {
			all[j], all[j-1] = all[j-1], all[j]
		}
	}
	var scope scopeState
	for i, s := range all {
		s.Order = int64(i + 1)
		if in.policy == PolicySession && i < len(all)-1 {
			s.Archive = s.Messages
		}
		if err := in.call.Put("head/"+s.key, encodeFields(s.Head.fields()), 0); err != nil {
			return err
		}
		if err := s.Save(in.call); err != nil {
			return err
		}
		scope.last, scope.arrivals = s.ID, s.Order
	}
	return in.call.Put("scope", encodeFields(scope.fields()), 0)
}

// session takes the files of one session; nil where there is a session of its name already, or none of the files has a metadata line or message.
func (in *Incoming) session(x *sessionFiles) (*Session, error) {
	var s *Session
	for _, path := range append(append([]string(nil), x.archived...), x.now) {
		if path == "" {
			continue
		}
		header, err := in.header(path)
		if err != nil {
			return nil, err
		}
		if s == nil {
			id := ""
			_ = Decode(header, word("key", &id))
			s = &Session{Head: Head{ID: or(id, nameOf(x.stem))}}
			s.key = keyOf(s.ID)
			if _, version, err := in.call.Get("head/" + s.key); err != nil || version != 0 || s.ID == "" {
				return nil, err // the file is kept as it is, with all that nobody takes
			}
		}
		if path == x.now {
			s.Base = s.Messages
		}
		if err := in.messages(s, path, header, path == x.now); err != nil {
			return nil, err
		}
	}
	if x.now == "" {
		s.Base, s.Pointer = s.Messages, s.Messages
	}
	return s, nil
}

// nameOf is the id of a session whose file does not say it. Nanobot has named files by the id in base64, and earlier with "_" for the ":" behind the channel.
func nameOf(stem string) string {
	if id, err := base64.RawURLEncoding.DecodeString(stem); err == nil && base64.RawURLEncoding.EncodeToString(id) == stem && printable(string(id)) {
		return string(id)
	}
	return strings.Replace(stem, "_", ":", 1)
}

func printable(id string) bool { return strings.ToValidUTF8(id, "") == id && sdk.OneLine(id) == id }

// errFound ends the reading of a file.
var errFound = errors.New("found")

// header is the metadata line of a session file, nil where it has none.
func (in *Incoming) header(path string) (header []byte, err error) {
	err = in.lines(path, func(line string) error {
		if !isHeader(line) {
			return nil
		}
		header = []byte(line)
		return errFound
	})
	if err == errFound {
		err = nil
	}
	return header, err
}

func isHeader(line string) bool {
	kind := ""
	return strings.Contains(line, `"_type"`) && Decode([]byte(line), word("_type", &kind)) == nil && kind == "metadata"
}

// messages stores the lines of a file behind those that the session has.
func (in *Incoming) messages(s *Session, path string, header []byte, now bool) error {
	pointer, archivedTo := int64(-1), int64(-1)
	var created, updated string
	if len(header) > 0 {
		_ = DecodeFrom(jsontext.DecodeBytes(header), []field{word("created_at", &created), word("updated_at", &updated), number("last_consolidated", &pointer),
			number("last_archived", &archivedTo)}, func(d *jsontext.Decoder, key string) error {
			raw, err := d.Raw()
			if key != "metadata" || err != nil || raw.Type() != jsontext.Object {
				return err
			}
			return DecodeFrom(jsontext.DecodeBytes(raw), nil, func(d *jsontext.Decoder, key string) error {
				raw, err := d.Raw()
				if key == lastSummary && now {
					s.Summary, s.Summarised = summaryOf(raw)
				}
				return err
			})
		})
		if now {
			if err := in.call.Put(headerKey(s), header, 0); err != nil {
				return err
			}
		}
	}
	s.Created = or(s.Created, created)
	s.Updated = or(updated, s.Updated)
	s.Arrived = NowMS(in.call)
	if archivedTo >= 0 {
		pointer = archivedTo
	}
	counted, before := int64(0), s.Messages
	var at index
	event, headed := "", false
	err := in.TakeLines(path, func(line string) error {
		if !headed && isHeader(line) {
			headed = true
			return nil
		}
		if now && counted == pointer {
			s.Pointer = s.Messages
		}
		if _, err := in.call.Append("messages/"+s.key, []byte(line)); err != nil {
			return err
		}
		s.Messages++
		if isMessage([]byte(line)) {
			counted++
		}
		m, err := DecodeMessage([]byte(line))
		if err != nil {
			return nil //nolint:nilerr // a line that cannot be read is kept, and is no message
		}
		s.Updated = or(s.Updated, m.Timestamp)
		if in.policy == PolicyTokens {
			n := m.Tokens(in.call)
			s.Head.Tokens += n
			if counted <= pointer || !now {
				s.Mark.Tokens += n
			}
		}
		if m.EventID == "" {
			return nil
		}
		if m.EventID != event {
			at = index{session: s.key, first: s.Messages}
			event = m.EventID
		}
		at.last = s.Messages
		return in.call.Put(eventKey(m.EventID), encodeFields(at.fields()), sdk.AnyVersion)
	})
	if err != nil {
		return err
	}
	switch {
	case now && counted == pointer:
		s.Pointer = s.Messages
	case now && (pointer < 0 || pointer > counted):
		s.Pointer = before // as Nanobot takes a pointer that cannot be
	}
	return nil
}
