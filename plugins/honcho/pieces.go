package main

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// The keys of a message's metadata. None is named like an operator of Honcho's filters (in, ne, gt, ...): those cannot be filtered by.
const (
	keyEvent  = "mh_event" // the event_id, as label makes it: this is what find_event filters by
	keyPiece  = "mh_i"     // which of the event's pieces this is, from 0
	keyPieces = "mh_n"     // how many there are
	keyRole   = "mh_role"  // Honcho has no role: it is who speaks, and this
	keyPart   = "mh_part"  // "2/3": which part of a message that was split
	keyMeta   = "mh_meta"  // the event's metadata, on the first piece; as JSON text where Honcho would change or refuse it
	keyTime   = "mh_time"  // the event's timestamp as given, where created_at cannot say it
	keyClean  = "mh_sanitized"
	keyCalls  = "mh_tool_calls" // JSON text
	keyCallID = "mh_tool_call_id"
	keyName   = "mh_name"
)

// piece is one message for Honcho: a message of the turn, or a part of a long one.
type piece struct {
	event    string
	number   int // among the event's pieces
	observed bool
	body     []byte
}

// pieces makes an event's messages for Honcho, always the same for the same event.
func (s *settings) pieces(n *native, e *abi.MemoryEvent) (pieces []piece, warnings []string, err error) {
	at, err := abi.ParseTime(e.Timestamp)
	if err != nil {
		return nil, nil, abi.NewError(abi.CodeInvalidArgument, "timestamp: "+abi.AsError(err).Message)
	}
	type part struct {
		of          *abi.Message
		text        string
		index, last int // of the message's parts
		changed     bool
	}
	var parts []part
	sanitized, split := false, false
	for i := range e.Messages {
		m := &e.Messages[i]
		text, changed := "", false
		if m.Content != nil {
			text, changed = sanitize(*m.Content)
		}
		texts := splitText(text, s.maxMessageChars)
		sanitized, split = sanitized || changed, split || len(texts) > 1
		for j, text := range texts {
			parts = append(parts, part{m, text, j, len(texts) - 1, changed})
		}
	}
	event, labels, first := label(e.EventID), labelsOf(e), moment(at, 0)
	pieces = make([]piece, len(parts))
	for i := range parts {
		p := &parts[i]
		peer, createdAt := n.author(p.of.Role), first
		if i > 0 {
			createdAt = moment(at, i)
		}
		var x jsontext.Encoder
		x.SetBytes(make([]byte, 0, len(p.text)+bodyRoom))
		x.ObjStart()
		field(&x, "peer_id", peer)
		field(&x, "content", p.text)
		field(&x, "created_at", createdAt)
		within(&x, "metadata")
		field(&x, keyEvent, event)
		number(&x, keyPiece, int64(i))
		number(&x, keyPieces, int64(len(parts)))
		field(&x, keyRole, string(p.of.Role))
		for _, l := range labels {
			field(&x, l[0], l[1])
		}
		if p.last > 0 {
			field(&x, keyPart, sdk.Itoa(p.index+1)+"/"+sdk.Itoa(p.last+1))
		}
		if p.changed {
			flag(&x, keyClean, true)
		}
		if p.index == 0 {
			writeExtras(&x, p.of)
		}
		if i == 0 {
			writeOnce(&x, e, first)
		}
		x.ObjEnd()
		x.ObjEnd()
		pieces[i] = piece{event: e.EventID, number: i, observed: s.observed(n, peer), body: x.Bytes()}
	}
	if sanitized {
		warnings = append(warnings, "content_sanitized: text held NUL characters, or tokens that Honcho's tokenizer refuses; these were dropped, or broken by a zero-width space")
	}
	if split {
		warnings = append(warnings, "content_split: a message was longer than max_message_chars and is kept as several")
	}
	return pieces, warnings, nil
}

// bodyRoom is what of a piece's body is not its text, mostly.
const bodyRoom = 384

// labelsOf are the texts by which an event's messages can be filtered, where it has them.
func labelsOf(e *abi.MemoryEvent) [][2]string {
	labels := make([][2]string, 0, 6)
	add := func(name, text string) {
		if text != "" {
			labels = append(labels, [2]string{name, label(text)})
		}
	}
	add("mh_session", e.SessionID)
	add("mh_turn", e.TurnID)
	add("mh_agent", e.AgentID)
	add("mh_scenario", e.Scenario)
	add("mh_context", e.Context)
	add("mh_attribute", e.Attribute)
	return labels
}

// writeExtras writes what of a message has no field in Honcho.
func writeExtras(x *jsontext.Encoder, m *abi.Message) {
	if m.Name != "" {
		field(x, keyName, m.Name)
	}
	if m.ToolCallID != "" {
		field(x, keyCallID, m.ToolCallID)
	}
	if len(m.ToolCalls) > 0 {
		var calls jsontext.Encoder
		calls.ArrStart()
		for i := range m.ToolCalls {
			calls.ObjStart()
			field(&calls, "id", m.ToolCalls[i].ID)
			field(&calls, "name", m.ToolCalls[i].Name)
			field(&calls, "arguments", m.ToolCalls[i].Arguments)
			calls.ObjEnd()
		}
		calls.ArrEnd()
		field(x, keyCalls, string(calls.Bytes()))
	}
}

// writeOnce writes what is the whole event's. at is its timestamp as Honcho has it.
func writeOnce(x *jsontext.Encoder, e *abi.MemoryEvent, at string) {
	if e.Timestamp != at {
		field(x, keyTime, e.Timestamp)
	}
	if len(e.Metadata) == 0 {
		return
	}
	var meta jsontext.Encoder
	meta.ObjStart()
	for _, name := range abi.SortedKeys(e.Metadata) {
		meta.FieldStart(name)
		meta.Raw(e.Metadata[name])
	}
	meta.ObjEnd()
	if plain(meta.Bytes()) {
		x.FieldStart(keyMeta)
		x.Raw(meta.Bytes())
	} else {
		field(x, keyMeta, string(meta.Bytes()))
	}
}

// maxPlainDepth is how deep the event's metadata may nest to be kept as an object: Honcho refuses objects below the fifth level, of which the message's own
// metadata is one.
const maxPlainDepth = 4

// plain tells whether Honcho keeps a JSON value as it is: it refuses deep ones, strips NUL characters and rewrites numbers that are no integers.
func plain(value []byte) bool {
	if bytes.Contains(value, []byte(`\u0000`)) {
		return false
	}
	depth := 0
	for i := 0; i < len(value); i++ {
		switch c := value[i]; c {
		case '{', '[':
			if depth++; depth > maxPlainDepth {
				return false
			}
		case '}', ']':
			depth--
		case '.', 'e', 'E':
			if i > 0 && value[i-1] >= '0' && value[i-1] <= '9' {
				return false
			}
		case '"':
			for i++; i < len(value) && value[i] != '"'; i++ {
				if value[i] == '\\' {
					i++
				}
			}
		}
	}
	return true
}

// moment is a piece's created_at: Honcho keeps microseconds, and one more for each piece keeps their order visible. Its own order is that of insertion.
func moment(at time.Time, i int) string {
	micros := int64(at.Nanosecond()/1000) + int64(i)
	seconds := at.Unix() + micros/1e6
	micros %= 1e6
	days, rest := seconds/86400, seconds%86400
	if rest < 0 {
		days, rest = days-1, rest+86400
	}
	year, month, day := civil(days)
	text := make([]byte, 0, len("2026-03-01T09:30:00.000000Z"))
	text = digits(text, year, 4)
	for _, f := range [...]struct {
		before byte
		n      int64
	}{{'-', month}, {'-', day}, {'T', rest / 3600}, {':', rest / 60 % 60}, {':', rest % 60}} {
		text = digits(append(text, f.before), f.n, 2)
	}
	if micros > 0 {
		text = digits(append(text, '.'), micros, 6)
		for text[len(text)-1] == '0' {
			text = text[:len(text)-1]
		}
	}
	return string(append(text, 'Z'))
}

// civil is the date of a day since 1970-01-01, by the proleptic Gregorian calendar. It is here because time.Format brings 8 KB into a guest.
func civil(days int64) (year, month, day int64) {
	z := days + 719468 // since 0000-03-01
	era := z / 146097
	if z < 0 {
		era = (z - 146096) / 146097
	}
	of := z - era*146097
	y := (of - of/1460 + of/36524 - of/146096) / 365
	inYear := of - (365*y + y/4 - y/100)
	m := (5*inYear + 2) / 153
	day = inYear - (153*m+2)/5 + 1
	month = m + 3
	year = y + era*400
	if month > 12 {
		month, year = month-12, year+1
	}
	return year, month, day
}

// digits appends a number with zeros before it.
func digits(text []byte, n int64, width int) []byte {
	number := sdk.Itoa(n)
	for i := len(number); i < width; i++ {
		text = append(text, '0')
	}
	return append(text, number...)
}

// number writes an integer.
//
//go:noinline
func number(x *jsontext.Encoder, name string, value int64) {
	x.FieldStart(name)
	x.Int64(value)
}

// messagesBody is the body of a write.
func messagesBody(pieces []piece) []byte {
	size := len(`{"messages":[`) + len(`]}`)
	for i := range pieces {
		size += len(pieces[i].body) + 1
	}
	body := append(make([]byte, 0, size), `{"messages":[`...)
	for i := range pieces {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, pieces[i].body...)
	}
	return append(body, `]}`...)
}

// Ranges of pieces, as find_event names what is missing: "0", "100-149".

func rangesOf(missing []int) []string {
	var ranges []string
	for i := 0; i < len(missing); {
		j := i
		for j+1 < len(missing) && missing[j+1] == missing[j]+1 {
			j++
		}
		text := sdk.Itoa(missing[i])
		if j > i {
			text += "-" + sdk.Itoa(missing[j])
		}
		ranges = append(ranges, text)
		i = j + 1
	}
	return ranges
}

// inRanges tells which of n pieces are named; false where a text is no range of them.
func inRanges(ranges []string, n int) (named []bool, ok bool) {
	named = make([]bool, n)
	for _, text := range ranges {
		first, last, two := strings.Cut(text, "-")
		if !two {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || from < 0 || to < from || to >= n {
			return nil, false
		}
		for i := from; i <= to; i++ {
			named[i] = true
		}
	}
	return named, true
}
