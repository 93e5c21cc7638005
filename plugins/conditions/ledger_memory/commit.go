package main

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// commit is one step of a branch: the events that took effect together, and the commit before it.
type commit struct {
	ID, Branch string
	Events     []string
	Message    string
	// ParentID is "" for the first commit; MergeParentID is the head that a merge merged.
	ParentID, MergeParentID string
	// Timestamp is RFC 3339 in UTC and never earlier than the parent's.
	Timestamp string
	// Metadata is canonical JSON: an object.
	Metadata abi.Raw
}

// members lists the commit's fields in canonical order. An empty id is left out, since the id is the hash of the rest.
func (k *commit) members() []object.Member {
	return []object.Member{object.Always("branch", &k.Branch), object.Always("events", &k.Events),
		object.Optional("id", &k.ID), object.Constant("kind", `"commit"`),
		object.OrNull("merge_parent_id", &k.MergeParentID), object.Always("message", &k.Message),
		object.Always("metadata",
			&k.Metadata),
		object.OrNull("parent_id", &k.ParentID), object.Always("timestamp", &k.Timestamp), formVersion}
}

// id returns the id of the commit's content.
func (k *commit) id() string {
	content := *k
	content.ID = ""
	return idOf(object.Encode(content.members()...))
}

// seal sets the commit's id.
func (k *commit) seal() { k.ID = k.id() }

// encode returns the commit as it is stored and exported.
func (k *commit) encode() []byte { return canonical(object.Encode(k.members()...)) }

func decodeCommit(data []byte) (*commit, error) {
	k := &commit{Metadata: abi.Raw("{}")}
	return k, object.DecodeStrictly(data, k.members()...)
}

// meta is the part of a commit's metadata that the ledger writes.
type meta struct {
	ConversationID, TurnID, CherryPickedFrom, MergedBranch string
	// SwitchedFrom is the branch that HEAD was on before the model detected another persona.
	SwitchedFrom string
	EventIDs     []string
}

func (m *meta) members() []object.Member {
	return []object.Member{object.Optional("cherry_picked_from", &m.CherryPickedFrom),
		object.Optional("conversation_id", &m.ConversationID),
		object.Optional("event_ids", &m.EventIDs), object.Optional("merged_branch",
			&m.MergedBranch), object.Optional("switched_from", &m.SwitchedFrom),
		object.Optional("turn_id", &m.TurnID)}
}

func (m *meta) encode() abi.Raw { return canonical(object.Encode(m.members()...)) }

// metaOf reads a commit's metadata. Conversation, turn and events are copied to other commits.
func metaOf(k *commit) (m meta) {
	// It was checked when the commit was read; fields of other types are ignored.
	_ = object.Decode(k.Metadata, object.Optional("conversation_id", &m.ConversationID),
		object.Optional("turn_id", &m.TurnID),
		object.Optional("event_ids", &m.EventIDs))
	return m
}

// oneLine returns a text on one line, cut to n characters.
func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:n-3])) + "..."
}

// idLength is the length of an id: so many hex digits of the SHA-256.
const idLength = 16

// formVersion is the version of the hashed objects' format.
var formVersion = object.Constant("v", "1")

// idOf returns the id of an object: the first digits of the SHA-256 of its canonical text.
func idOf(encoded []byte) string { return sdk.DigestBytes(canonical(encoded))[:idLength] }

// canonical converts JSON to the form of RFC 8785. The encoder differs from it in two characters only: it writes \u0008
// for \b, and \u000c for \f.
func canonical(encoded []byte) []byte {
	out := make([]byte, 0, len(encoded))
	for {
		at := bytes.IndexByte(encoded, '\\')
		if at < 0 {
			return append(out, encoded...)
		}
		end := at + 2
		escape := encoded[at:end]
		switch rest := encoded[at:]; {
		case bytes.HasPrefix(rest, []byte(`\u0008`)):
			escape, end = []byte(`\b`), at+6
		case bytes.HasPrefix(rest, []byte(`\u000c`)):
			escape, end = []byte(`\f`), at+6
		}
		out = append(append(out, encoded[:at]...), escape...)
		encoded = encoded[end:]
	}
}

// isID reports whether s has the form of an id.
func isID(s string) bool { return len(s) == idLength && isHex(s) }

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
