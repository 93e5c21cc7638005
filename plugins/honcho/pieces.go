package main

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// The keys of a message's metadata. None has the name of an operator of Honcho's filters (in, ne, gt, ...), because
// such keys cannot be filtered by.
const (
	keyEvent  = "mh_event" // the event_id, escaped by label: find_event filters by it
	keyPiece  = "mh_i"     // which of the event's pieces this is, from 0
	keyPieces = "mh_n"     // how many there are
	keyRole   = "mh_role"  // the message's role, since Honcho stores only the speaker
	keyPart   = "mh_part"  // "2/3": the part of a message that was split
	// the event's metadata, on the first piece; as JSON text if Honcho would change or reject it
	keyMeta   = "mh_meta"
	keyTime   = "mh_time" // the event's timestamp as given, if created_at cannot represent it
	keyClean  = "mh_sanitized"
	keyCalls  = "mh_tool_calls" // JSON text
	keyCallID = "mh_tool_call_id"
	keyName   = "mh_name"
)

// piece is one message for Honcho: a message of the turn, or a part of a long one.
type piece struct {
	event    string
	number   int64 // its number among the event's pieces
	observed bool
	body     wire.Object
}

// part is one message of a turn, or a part of a long one.
type part struct {
	of      *abi.Message
	text    string
	index   int // its number among the message's parts
	last    int // index of the message's last part
	changed bool
}

// partsOf splits an event's messages. sanitized and split report whether any was changed or split.
func (b *backend) partsOf(e *abi.MemoryEvent) (parts []part, sanitized, split bool) {
	for i := range e.Messages {
		m := &e.Messages[i]
		text, changed := "", false
		if m.Content != nil {
			text, changed = sanitize(b.contentOf(m))
		}
		texts := splitText(text, int(b.maxMessageChars))
		sanitized, split = sanitized || changed, split || len(texts) > 1
		for j, text := range texts {
			parts = append(parts, part{m, text, j, len(texts) - 1, changed})
		}
	}
	return parts, sanitized, split
}

// contentOf returns a message's text for Honcho: with the speaker's name in front if nothing else distinguishes the
// speakers.
func (b *backend) contentOf(m *abi.Message) string {
	if m.Role == abi.RoleUser && sdk.Named(m) && b.speakerMode == speakersNames && *m.Content != "" {
		return sdk.OneLine(m.Name) + ": " + *m.Content
	}
	return *m.Content
}

// pieces converts an event to messages for Honcho. The same event always gives the same messages.
func (b *backend) pieces(e *abi.MemoryEvent) (pieces []piece, warnings []string, err error) {
	at, err := abi.ParseTime(e.Timestamp)
	if err != nil {
		return nil, nil, abi.NewError(abi.CodeInvalidArgument, "timestamp: "+abi.AsError(err).Message)
	}
	parts, sanitized, split := b.partsOf(e)
	named := false
	for i, p := range parts {
		peer := b.author(p.of)
		metadata := wire.Object{keyEvent, label(e.EventID), keyPiece, i, keyPieces, len(parts), keyRole,
			string(p.of.Role), "mh_session", wire.Some(label(e.SessionID)), "mh_turn", wire.Some(label(e.TurnID)),
			"mh_agent", wire.Some(label(e.AgentID)), "mh_scenario", wire.Some(label(e.Scenario)),
			"mh_context", wire.Some(label(e.Context)), "mh_attribute", wire.Some(label(e.Attribute)),
			keyPart, wire.If(p.last > 0, sdk.Itoa(p.index+1)+"/"+sdk.Itoa(p.last+1)), keyClean, wire.If(p.changed,
				true)}
		named = named || p.of.Role == abi.RoleUser && sdk.Named(p.of)
		if p.index == 0 {
			metadata = append(metadata, keyName, wire.Some(p.of.Name), keyCallID, wire.Some(p.of.ToolCallID),
				keyCalls, wire.Some(callsOf(p.of)))
		}
		if i == 0 {
			metadata = append(metadata, keyTime, wire.If(e.Timestamp != moment(at, 0), e.Timestamp), keyMeta,
				metadataOf(e))
		}
		pieces = append(pieces, piece{event: e.EventID, number: int64(i), observed: b.observed(peer),
			body: wire.Object{"peer_id", peer, "content", p.text, "created_at", moment(at, i), "metadata", metadata}})
	}
	if named && b.speakerMode == speakersOff {
		warnings = append(warnings, warnSpeakerLost)
	}
	if sanitized {
		warnings = append(warnings, "content_sanitized: text held NUL characters, or tokens that Honcho's tokenizer "+
			"refuses; these were dropped, or broken by a zero-width space")
	}
	if split {
		warnings = append(warnings, "content_split: a message was longer than max_message_chars and is kept as several")
	}
	return pieces, warnings, nil
}

// callsOf returns the tool calls of a message as JSON text, "" if there are none.
func callsOf(m *abi.Message) string {
	var calls []string
	for _, c := range m.ToolCalls {
		calls = append(calls, string(wire.Object{"id", c.ID, "name", c.Name, "arguments", c.Arguments}.JSON()))
	}
	if len(calls) == 0 {
		return ""
	}
	return "[" + strings.Join(calls, ",") + "]"
}

// metadataOf returns the event's metadata, as text if Honcho would not keep the object unchanged; nil if there is none.
func metadataOf(e *abi.MemoryEvent) any {
	if len(e.Metadata) == 0 {
		return nil
	}
	object := abi.Raw(wire.FromMap(e.Metadata).JSON())
	if !roundTrips(object) {
		return string(object)
	}
	return object
}

// maxPlainDepth is how deep the event's metadata may nest to be kept as an object: Honcho rejects objects below the
// fifth level, and the message's own metadata is one level.
const maxPlainDepth = 4

// roundTrips reports whether Honcho keeps a JSON value unchanged. It rejects deep ones, strips NUL characters and
// rewrites numbers that are not integers.
func roundTrips(value abi.Raw) bool {
	return !bytes.Contains(value, []byte(`\u0000`)) && roundTripsWithin(value, maxPlainDepth)
}

func roundTripsWithin(value abi.Raw, levels int) bool {
	inner := wire.Items(value)
	for _, m := range wire.Members(value) {
		inner = append(inner, m.Value)
	}
	switch wire.Kind(value) {
	case wirejson.Number:
		return !bytes.ContainsAny(value, ".eE")
	case wirejson.Object, wirejson.Array:
		if levels == 0 {
			return false
		}
	}
	for _, v := range inner {
		if !roundTripsWithin(v, levels-1) {
			return false
		}
	}
	return true
}

// moment returns a piece's created_at. Honcho keeps microseconds; adding one for each piece keeps their order visible.
// Honcho itself orders by insertion.
func moment(at time.Time, i int) string {
	at = at.UTC().Truncate(time.Microsecond).Add(time.Duration(i) * time.Microsecond)
	return at.Format("2006-01-02T15:04:05.999999Z07:00")
}

// Ranges of pieces, as find_event lists missing ones: "0", "100-149".

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

// inRanges returns which of n pieces are listed; false if a text is not a range of them.
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
