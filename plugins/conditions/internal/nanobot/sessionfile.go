package nanobot

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// Session files have Nanobot's format (nanobot/session/manager.py, JsonlSessionStore): a line of metadata, then one
// line per message. Lines are kept unchanged, including fields that this package does not use, and so are bad lines.

const (
	sessionDir  = "sessions/"
	archivedDir = "sessions/archived/"
)

// maxName is the maximum length of the session's part of a file name.
const maxName = 200

// headerKey is the key of an imported session's metadata line.
func headerKey(s *Session) string { return "header/" + s.key }

// SessionFiles adds the sessions: the current ones, and their archived and cleared parts.
func (f *Files) SessionFiles() {
	for item := range f.Items(abi.StateListRequest{Prefix: "head/"}) {
		s := sessionAt(f.State, item.Key[len("head/"):])
		name := base64.RawURLEncoding.EncodeToString([]byte(s.ID))
		if len(name) > maxName {
			name = "h-" + sdk.Digest256(s.ID)
		}
		if s.Base > 0 {
			f.Log(archivedDir+name+".1.jsonl", s.log(), func() []byte { return s.header(nil, s.Base) }, 0, s.Base, Line)
		}
		f.Log(sessionDir+name+".jsonl", s.log(), func() []byte {
			was, _ := f.Get(headerKey(s))
			return s.header(was, s.nanobotCount(f.State))
		}, s.Base, s.Messages, Line)
	}
}

// nanobotCount converts the pointer to Nanobot's count, which leaves out lines that are not messages.
func (s *Session) nanobotCount(st *state.State) (n int64) {
	for x := range st.Entries(s.log(), s.Base+1, s.Pointer) {
		if isMessage(x.Data) {
			n++
		}
	}
	return n
}

// isMessage reports whether Nanobot reads a line as a message.
func isMessage(line []byte) bool {
	var kind abi.Raw
	return object.Decode(line, object.Optional("_type", &kind)) == nil && kind == nil
}

// header returns the metadata line. was is the imported one: fields of it that have not changed since are kept.
func (s *Session) header(was []byte, pointer int64) []byte {
	if len(was) == 0 {
		was = object.Encode(object.Constant("_type", `"metadata"`), object.Optional("key", &s.ID),
			object.Optional("created_at", &s.Created),
			object.Optional("updated_at", &s.Updated))
	}
	pointed, summarised := false, false
	header := object.Patch(was, func(name string, value abi.Raw) abi.Raw {
		switch {
		case name == "last_consolidated" || name == "last_archived":
			pointed = true
			return sdk.Number(pointer)
		case name == "updated_at" && s.Updated != "":
			return sdk.Text(s.Updated)
		case name == "metadata" && wirejson.Raw(value).Type() == wirejson.Object:
			summarised = true
			return s.metadata(value)
		}
		return value
	}, func() []object.Member {
		metadata, number := s.metadata(abi.Raw("{}")), sdk.Number(pointer)
		if summarised {
			metadata = nil
		}
		if pointed {
			number = nil
		}
		return []object.Member{object.Optional("metadata", &metadata), object.Optional("last_consolidated", &number)}
	})
	return append(header, '\n')
}

const lastSummary = "_last_summary"

// metadata returns the member metadata with the current last summary.
func (s *Session) metadata(was abi.Raw) abi.Raw {
	summary := abi.Raw(object.Encode(s.summary()...))
	if s.Summary == "" {
		summary = nil
	}
	return object.Patch(was, func(name string, value abi.Raw) abi.Raw {
		if name != lastSummary {
			return value
		}
		now, before := summary, Session{}
		summary = nil // written at its own place
		_ = object.Decode(value, before.summary()...)
		if before.Summary == s.Summary {
			return value
		}
		if now == nil {
			return abi.Raw("{}")
		}
		return now
	}, func() []object.Member { return []object.Member{object.Optional(lastSummary, &summary)} })
}

func (s *Session) summary() []object.Member {
	return []object.Member{object.Optional("text", &s.Summary), object.Optional("last_active", &s.Summarised)}
}

// sessionFiles are the files of one session: the current one, and the archived ones by number.
type sessionFiles struct {
	stem, now string
	archived  []archivedFile
}

type archivedFile struct {
	path   string
	number int64
}

// sessions imports the session files. The session with the latest time becomes the current one.
func (in *Incoming) sessions() {
	var all []*Session
	for _, x := range in.sessionFiles() {
		if s := in.session(x); s != nil {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return
	}
	rank := map[string]int64{}
	for _, s := range all {
		rank[s.Updated] = 0
	}
	for i, updated := range abi.SortedKeys(rank) {
		rank[updated] = int64(i)
	}
	all = ordered(all, func(s *Session) int64 { return rank[s.Updated] })
	var scope scopeState
	for i, s := range all {
		s.Order = int64(i + 1)
		if in.BySession() && i < len(all)-1 {
			s.EndedAt = s.Messages
		}
		in.Store("head/"+s.key, 0, s.Head.members()...)
		s.Save(in.State)
		scope.last, scope.arrivals = s.ID, s.Order
	}
	in.Store("scope", 0, scope.members()...)
}

// sessionFiles groups the files of sessions/ and sessions/archived/ by session.
func (in *Incoming) sessionFiles() []*sessionFiles {
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
	for _, path := range in.Paths {
		stem, is := strings.CutSuffix(path, ".jsonl")
		if !is || !strings.HasPrefix(stem, sessionDir) {
			continue
		}
		if name, archived := strings.CutPrefix(stem, archivedDir); archived && !strings.Contains(name, "/") {
			number := int64(0)
			if dot := strings.LastIndexByte(name, '.'); dot > 0 {
				if n, err := strconv.ParseInt(name[dot+1:], 10, 64); err == nil {
					name, number = name[:dot], n
				}
			}
			x := at(name)
			x.archived = append(x.archived, archivedFile{path, number})
		} else if name := stem[len(sessionDir):]; !strings.Contains(name, "/") {
			at(name).now = path
		}
	}
	for _, x := range list {
		x.archived = ordered(x.archived, func(f archivedFile) int64 { return f.number })
	}
	return list
}

// session imports the files of one session; nil if a session of this name exists already.
func (in *Incoming) session(x *sessionFiles) *Session {
	var s *Session
	for _, file := range append(x.archived, archivedFile{path: x.now}) {
		if file.path == "" {
			continue
		}
		header := in.header(file.path)
		if s == nil {
			s = &Session{}
			_ = object.Decode([]byte(header), object.Optional("key", &s.ID))
			s.ID = or(s.ID, nameOf(x.stem))
			s.key = keyOf(s.ID)
			if s.ID == "" || in.Has("head/"+s.key) {
				return nil // the file is kept unchanged, with all others that are not taken
			}
		}
		if file.path == x.now {
			s.Base = s.Messages
		}
		in.messages(s, file.path, header, file.path == x.now)
	}
	if x.now == "" {
		s.Base, s.Pointer = s.Messages, s.Messages
	}
	return s
}

// nameOf returns the id of a session whose file does not contain it. Nanobot names files by the id in base64; earlier
// versions replaced the ":" after the channel by "_".
func nameOf(stem string) string {
	if id, err := base64.RawURLEncoding.DecodeString(stem); err == nil &&
		base64.RawURLEncoding.EncodeToString(id) == stem && printable(string(id)) {
		return string(id)
	}
	return strings.Replace(stem, "_", ":", 1)
}

func printable(id string) bool { return strings.ToValidUTF8(id, "") == id && sdk.OneLine(id) == id }

// header returns the metadata line of a session file, "" if it has none.
func (in *Incoming) header(path string) string {
	for line := range in.lines(path) {
		if isHeader(line) {
			return line
		}
	}
	return ""
}

func isHeader(line string) bool {
	kind := ""
	return strings.Contains(line, `"_type"`) && object.Decode([]byte(line), object.Optional("_type", &kind)) == nil &&
		kind == "metadata"
}

// messages appends a file's lines to the session's messages. now: the file is the current one.
func (in *Incoming) messages(s *Session, path, header string, now bool) {
	pointer, archivedTo := int64(-1), int64(-1)
	var created, updated string
	var metadata, summary abi.Raw
	_ = object.Decode([]byte(header), object.Optional("created_at", &created), object.Optional("updated_at", &updated),
		object.Optional("last_consolidated", &pointer),
		object.Optional("last_archived", &archivedTo), object.Optional("metadata", &metadata))
	if now && header != "" {
		in.Put(headerKey(s), []byte(header), 0)
		_ = object.Decode(metadata, object.Optional(lastSummary, &summary))
		_ = object.Decode(summary, s.summary()...)
	}
	s.Created = or(s.Created, created)
	s.Updated = or(updated, s.Updated)
	s.Arrived = in.NowMS()
	if archivedTo >= 0 {
		pointer = archivedTo
	}
	counted, before, headed := int64(0), s.Messages, false
	var at index
	event := ""
	for line := range in.TakeLines(path) {
		if !headed && isHeader(line) {
			headed = true
			continue
		}
		if now && counted == pointer {
			s.Pointer = s.Messages
		}
		in.Append(s.log(), []byte(line))
		s.Messages++
		if isMessage([]byte(line)) {
			counted++
		}
		m, err := DecodeMessage([]byte(line))
		if err != nil {
			continue // an unreadable line is kept, but is not a message
		}
		s.Updated = or(s.Updated, m.Timestamp)
		if in.Policy == model.PolicyTokens {
			n := m.tokens(in.Call)
			s.Head.Tokens += n
			if counted <= pointer || !now {
				s.Mark.Tokens += n
			}
		}
		if m.EventID == "" {
			continue
		}
		if m.EventID != event {
			at = index{session: s.key, first: s.Messages}
			event = m.EventID
		}
		at.last = s.Messages
		in.Store(eventKey(m.EventID), sdk.AnyVersion, at.members()...)
	}
	switch {
	case now && counted == pointer:
		s.Pointer = s.Messages
	case now && (pointer < 0 || pointer > counted):
		s.Pointer = before // Nanobot's default for an invalid pointer
	}
}
