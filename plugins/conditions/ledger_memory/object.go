package main

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// The event types.
const (
	typeAdd     = "add"
	typeModify  = "modify"
	typeForget  = "forget"
	typeObserve = "observe"
)

// The scopes of a fact, and how delicate it is.
const (
	permanent    = "permanent"
	session      = "session"
	temporary    = "temporary"
	normal       = "normal"
	private      = "private"
	confidential = "confidential"
)

// Limits of an event's fields, in characters.
const (
	maxName   = 200
	maxObject = 4000
)

// identity is what an event's id is of: the same content has the same id, whoever said it and when.
type identity struct {
	Type, Subject, Predicate, Object string
	Scope, Topic, Sensitivity        string
	// ParentID is the event that a modify or a forget is about; "" where it has none.
	ParentID string
}

// canonical is the text that is hashed.
func (i *identity) canonical() []byte {
	b := make([]byte, 0, 220+len(i.Subject)+len(i.Predicate)+len(i.Object)+len(i.Topic))
	b = appendField(b, '{', "event_type", i.Type)
	b = appendField(b, ',', "kind", "event")
	b = appendField(b, ',', "object", i.Object)
	b = appendOptional(b, ',', "parent_id", i.ParentID)
	b = appendField(b, ',', "predicate", i.Predicate)
	b = appendField(b, ',', "scope", i.Scope)
	b = appendField(b, ',', "sensitivity", i.Sensitivity)
	b = appendField(b, ',', "subject", i.Subject)
	b = appendField(b, ',', "topic", i.Topic)
	return append(b, `,"v":1}`...)
}

func (i *identity) id() string { return idOf(i.canonical()) }

// event is one fact, immutable. Beside the identity it holds what was true when it was first seen.
type event struct {
	identity
	ID string
	// Confidence is in thousandths: reading floating point numbers is large in a guest.
	Confidence int64
	// Source is who said it: "conversation:<session>/<turn>", "agent" or "import".
	Source, Evidence string
	// Timestamp is RFC 3339 in UTC: the first time seen.
	Timestamp string
}

// normalise trims, fills in defaults and moves a scope that is none to the topic.
//
// Errors: invalid_argument for a field that is missing, too long, or none of its values.
func (e *event) normalise() error {
	for _, s := range []*string{&e.Type, &e.Subject, &e.Predicate, &e.Object, &e.Scope, &e.Topic, &e.Sensitivity, &e.ParentID, &e.Evidence} {
		*s = strings.TrimSpace(*s)
	}
	switch e.Scope {
	case "":
		e.Scope = permanent
	case permanent, session, temporary:
	default:
		e.Topic, e.Scope = e.Scope, permanent
	}
	if e.Sensitivity == "" {
		e.Sensitivity = normal
	}
	switch {
	case e.Type != typeAdd && e.Type != typeModify && e.Type != typeForget && e.Type != typeObserve:
		return wrong("event_type", "want add, modify, forget or observe, found "+strconv.Quote(e.Type))
	case e.Sensitivity != normal && e.Sensitivity != private && e.Sensitivity != confidential:
		return wrong("sensitivity", "want normal, private or confidential, found "+strconv.Quote(e.Sensitivity))
	case e.Object == "" && e.Type != typeForget:
		return wrong("object", "want a text, found none")
	case e.ParentID != "" && !isID(e.ParentID):
		return wrong("parent_id", "want an event id of "+sdk.Itoa(idLength)+" hex digits")
	}
	for _, f := range []struct {
		name, value string
		least, most int
	}{{"subject", e.Subject, 1, maxName}, {"predicate", e.Predicate, 1, maxName}, {"object", e.Object, 0, maxObject}, {"topic", e.Topic, 0, maxName},
		{"evidence", e.Evidence, 0, maxObject}} {
		if n := utf8.RuneCountInString(f.value); n < f.least || n > f.most {
			return wrong(f.name, "want "+sdk.Itoa(f.least)+" to "+sdk.Itoa(f.most)+" characters, found "+sdk.Itoa(n))
		}
	}
	e.Confidence = min(max(e.Confidence, 0), 1000)
	e.ID = e.id()
	return nil
}

func wrong(field, what string) error { return abi.NewError(abi.CodeInvalidArgument, field+": "+what) }

// encode is the event as it is stored and exported.
func (e *event) encode() []byte {
	b := appendField(nil, '{', "id", e.ID)
	b = appendField(b, ',', "event_type", e.Type)
	b = appendField(b, ',', "subject", e.Subject)
	b = appendField(b, ',', "predicate", e.Predicate)
	b = appendField(b, ',', "object", e.Object)
	b = appendField(b, ',', "scope", e.Scope)
	b = appendField(b, ',', "topic", e.Topic)
	b = appendField(b, ',', "sensitivity", e.Sensitivity)
	b = appendOptional(b, ',', "parent_id", e.ParentID)
	b = appendShare(b, ",\"confidence\":", e.Confidence)
	b = appendField(b, ',', "source", e.Source)
	b = appendOptional(b, ',', "evidence", e.Evidence)
	b = appendField(b, ',', "timestamp", e.Timestamp)
	return append(b, '}')
}

// appendShare writes thousandths as a number of at most three decimals.
func appendShare(b []byte, name string, n int64) []byte {
	b = jsontext.AppendInt(append(b, name...), n/1000)
	if n %= 1000; n != 0 {
		b = append(b, '.', byte('0'+n/100), byte('0'+n/10%10), byte('0'+n%10))
		for b[len(b)-1] == '0' {
			b = b[:len(b)-1]
		}
	}
	return b
}

// readShare reads a number from 0 to 1 in thousandths; what is smaller or larger counts as that.
func readShare(d *jsontext.Decoder) (int64, error) {
	raw, err := d.Raw()
	text := string(raw)
	if err != nil || raw.Type() != jsontext.Number || strings.ContainsAny(text, "eE") {
		return 0, wrong("confidence", "want a number from 0 to 1, without an exponent")
	}
	whole, part, _ := strings.Cut(text, ".")
	if text[0] == '-' {
		return 0, nil
	}
	if whole != "0" {
		return 1000, nil
	}
	n := int64(0)
	for i := range 3 {
		n *= 10
		if i < len(part) {
			n += int64(part[i] - '0')
		}
	}
	return n, nil
}

// decodeEvent reads an event. Whether its id is that of its content is for check to say.
func decodeEvent(data []byte) (*event, error) {
	e := new(event)
	err := readObject(data, func(d *jsontext.Decoder, key string) (err error) {
		to := e.field(key)
		switch {
		case to != nil:
			*to, err = d.Str()
		case key == "confidence":
			e.Confidence, err = readShare(d)
		default:
			err = d.Skip()
		}
		return err
	})
	return e, err
}

// field is where a field of the identity is kept that is a text, nil for another field.
func (i *identity) field(key string) *string {
	switch key {
	case "event_type":
		return &i.Type
	case "subject":
		return &i.Subject
	case "predicate":
		return &i.Predicate
	case "object":
		return &i.Object
	case "scope":
		return &i.Scope
	case "topic":
		return &i.Topic
	case "sensitivity":
		return &i.Sensitivity
	case "parent_id":
		return &i.ParentID
	}
	return nil
}

// field is the identity's, and the other texts of an event.
func (e *event) field(key string) *string {
	switch key {
	case "id":
		return &e.ID
	case "source":
		return &e.Source
	case "evidence":
		return &e.Evidence
	case "timestamp":
		return &e.Timestamp
	}
	return e.identity.field(key)
}

// readObject calls each with the fields of a JSON object that are not null.
func readObject(data []byte, each func(d *jsontext.Decoder, key string) error) error {
	d := jsontext.DecodeBytes(data)
	if d.Next() != jsontext.Object {
		return abi.NewError(abi.CodeInvalidArgument, "want a JSON object")
	}
	return d.Obj(func(d *jsontext.Decoder, key string) error {
		if d.Next() == jsontext.Null {
			return d.Null()
		}
		return each(d, key)
	})
}

// commit is one step of a branch: the events that came into effect together, and the commit before it.
type commit struct {
	ID, Branch string
	Events     []string
	Message    string
	// ParentID is "" for the first commit; MergeParentID is the head that a merge took in.
	ParentID, MergeParentID string
	// Timestamp is RFC 3339 in UTC and never earlier than the parent's.
	Timestamp string
	// Metadata is canonical JSON: an object.
	Metadata []byte
}

// fields writes the commit in canonical order, with its id where it has one to show.
func (k *commit) fields(id string) []byte {
	b := appendField(make([]byte, 0, 400), '{', "branch", k.Branch)
	b = append(b, `,"events":[`...)
	for i, e := range k.Events {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, e)
	}
	b = append(b, ']')
	if id != "" {
		b = appendField(b, ',', "id", id)
	}
	b = appendField(b, ',', "kind", "commit")
	b = appendOptional(b, ',', "merge_parent_id", k.MergeParentID)
	b = appendField(b, ',', "message", k.Message)
	b = append(append(b, `,"metadata":`...), k.Metadata...)
	b = appendOptional(b, ',', "parent_id", k.ParentID)
	b = appendField(b, ',', "timestamp", k.Timestamp)
	return append(b, `,"v":1}`...)
}

// seal gives the commit its id.
func (k *commit) seal() { k.ID = idOf(k.fields("")) }

// encode is the commit as it is stored and exported.
func (k *commit) encode() []byte { return k.fields(k.ID) }

func decodeCommit(data []byte) (*commit, error) {
	k := &commit{Metadata: []byte("{}")}
	err := readObject(data, func(d *jsontext.Decoder, key string) (err error) {
		var to *string
		switch key {
		case "id":
			to = &k.ID
		case "branch":
			to = &k.Branch
		case "message":
			to = &k.Message
		case "parent_id":
			to = &k.ParentID
		case "merge_parent_id":
			to = &k.MergeParentID
		case "timestamp":
			to = &k.Timestamp
		case "events":
			k.Events, err = readTexts(d)
			return err
		case "metadata":
			raw, err := d.Raw()
			if err != nil {
				return err
			}
			// As it is: what is not canonical has another id, and is refused by it.
			k.Metadata = append([]byte(nil), raw...)
			return nil
		default:
			return d.Skip()
		}
		*to, err = d.Str()
		return err
	})
	return k, err
}

// readTexts reads a list of strings.
func readTexts(d *jsontext.Decoder) (list []string, err error) {
	err = d.Arr(func(d *jsontext.Decoder) error {
		s, err := d.Str()
		list = append(list, s)
		return err
	})
	return list, err
}

// meta is a commit's metadata: strings, lists of strings and integers.
type meta struct {
	ConversationID, TurnID, CherryPickedFrom, MergedBranch string
	// SwitchedFrom is the branch that HEAD was on before the model found another persona.
	SwitchedFrom string
	EventIDs     []string
}

func (m *meta) encode() []byte {
	b := []byte{'{'}
	field := func(name string) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(appendString(b, name), ':')
	}
	text := func(name, value string) {
		if value != "" {
			field(name)
			b = appendString(b, value)
		}
	}
	text("cherry_picked_from", m.CherryPickedFrom)
	text("conversation_id", m.ConversationID)
	if len(m.EventIDs) > 0 {
		field("event_ids")
		for i, id := range m.EventIDs {
			b = appendString(append(b, "[,"[min(i, 1)]), id)
		}
		b = append(b, ']')
	}
	text("merged_branch", m.MergedBranch)
	text("switched_from", m.SwitchedFrom)
	text("turn_id", m.TurnID)
	return append(b, '}')
}

// metaOf reads what the ledger itself puts into a commit's metadata.
func metaOf(k *commit) meta {
	var m meta
	// Metadata was read by decodeCommit: it is an object; a field of another type than ours is left.
	_ = readObject(k.Metadata, func(d *jsontext.Decoder, key string) (err error) {
		switch {
		case key == "conversation_id" && d.Next() == jsontext.String:
			m.ConversationID, err = d.Str()
			return err
		case key == "turn_id" && d.Next() == jsontext.String:
			m.TurnID, err = d.Str()
			return err
		case key == "event_ids" && d.Next() == jsontext.Array:
			return d.Arr(func(d *jsontext.Decoder) error {
				if d.Next() != jsontext.String {
					return d.Skip()
				}
				id, err := d.Str()
				m.EventIDs = append(m.EventIDs, id)
				return err
			})
		}
		return d.Skip()
	})
	return m
}

// branch is a line of commits, for a persona say.
type branch struct {
	Name, Head, Persona, CreatedAt string
	// version is the state's, 0 for one that is not stored.
	version int64
}

func (b *branch) encode() []byte {
	out := appendField(nil, '{', "name", b.Name)
	out = appendOptional(out, ',', "head", b.Head)
	out = appendOptional(out, ',', "persona", b.Persona)
	out = appendField(out, ',', "created_at", b.CreatedAt)
	return append(out, '}')
}

func decodeBranch(data []byte) (*branch, error) {
	b := new(branch)
	return b, readObject(data, func(d *jsontext.Decoder, key string) (err error) {
		switch key {
		case "name":
			b.Name, err = d.Str()
		case "head":
			b.Head, err = d.Str()
		case "persona":
			b.Persona, err = d.Str()
		case "created_at":
			b.CreatedAt, err = d.Str()
		default:
			err = d.Skip()
		}
		return err
	})
}

// checkBranchName refuses what is no name of a branch: [a-z0-9][a-z0-9._-]{0,63}.
func checkBranchName(name string) error {
	good := name != "" && len(name) <= 64
	for i := 0; good && i < len(name); i++ {
		c := name[i]
		good = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || i > 0 && (c == '.' || c == '_' || c == '-')
	}
	if !good {
		return wrong("name", "want 1 to 64 of a-z, 0-9, dot, underline and hyphen, beginning with a letter or digit, found "+strconv.Quote(name))
	}
	return nil
}
