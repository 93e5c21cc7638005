package main

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// The event types.
const (
	typeAdd     = "add"
	typeModify  = "modify"
	typeForget  = "forget"
	typeObserve = "observe"
)

// The scopes of a fact, and its sensitivity.
const (
	permanent    = "permanent"
	session      = "session"
	temporary    = "temporary"
	normal       = "normal"
	private      = "private"
	confidential = "confidential"
)

// Maximum lengths of an event's fields, in characters.
const (
	maxName   = 200
	maxObject = 4000
)

// identity is the part of an event that its id is the hash of: the same content has the same id, regardless of speaker
// and time.
type identity struct {
	Type, Subject, Predicate, Object string
	Scope, Topic, Sensitivity        string
	// ParentID is the event that a modify or a forget refers to; "" if there is none.
	ParentID string
}

// members lists the fields in the order in which they are stored, without the parent.
func (i *identity) members() []object.Member {
	return []object.Member{object.Always("event_type", &i.Type), object.Always("subject", &i.Subject),
		object.Always("predicate", &i.Predicate),
		object.Always("object", &i.Object), object.Always("scope", &i.Scope), object.Always("topic",
			&i.Topic), object.Always("sensitivity", &i.Sensitivity)}
}

// id returns the first digits of the SHA-256 of the identity's canonical text.
func (i *identity) id() string {
	return idOf(object.Encode(object.Always("event_type", &i.Type), object.Constant("kind", `"event"`),
		object.Always("object", &i.Object),
		object.OrNull("parent_id", &i.ParentID), object.Always("predicate", &i.Predicate),
		object.Always("scope", &i.Scope),
		object.Always("sensitivity", &i.Sensitivity), object.Always("subject", &i.Subject), object.Always("topic",
			&i.Topic), formVersion))
}

// shortly formats a memory for the model; at is since when it is valid.
func (i *identity) shortly(at string) string {
	return string(object.Encode(object.Always("subject", &i.Subject), object.Always("predicate", &i.Predicate),
		object.Always("object", &i.Object),
		object.Always("since", &at)))
}

// event is one immutable fact: its identity, and the circumstances in which it was first seen.
type event struct {
	identity
	ID         string
	Confidence share
	// Source is who said it: "conversation:<session>/<turn>", "agent" or "import".
	Source, Evidence string
	// Timestamp is when it was first seen, RFC 3339 in UTC.
	Timestamp string
}

func (e *event) members() []object.Member {
	list := append([]object.Member{object.Always("id", &e.ID)}, e.identity.members()...)
	return append(list, object.OrNull("parent_id", &e.ParentID), object.Always("confidence", &e.Confidence),
		object.Always("source", &e.Source),
		object.OrNull("evidence", &e.Evidence), object.Always("timestamp", &e.Timestamp))
}

// encode is the event as it is stored and exported.
func (e *event) encode() []byte { return object.Encode(e.members()...) }

// decodeEvent reads an event. The caller must check its id against its content.
func decodeEvent(data []byte) (*event, error) {
	e := new(event)
	return e, object.DecodeStrictly(data, e.members()...)
}

// normalise trims the fields, sets defaults, treats an unknown scope as the topic, and sets the id.
//
// Errors: invalid_argument for a field that is missing, too long, or has an unknown value.
func (e *event) normalise() error {
	for _, s := range []*string{&e.Type, &e.Subject, &e.Predicate, &e.Object, &e.Scope, &e.Topic, &e.Sensitivity,
		&e.ParentID, &e.Evidence} {
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
	case !slices.Contains([]string{typeAdd, typeModify, typeForget, typeObserve}, e.Type):
		return wrong("event_type", "want add, modify, forget or observe, found "+strconv.Quote(e.Type))
	case !slices.Contains([]string{normal, private, confidential}, e.Sensitivity):
		return wrong("sensitivity", "want normal, private or confidential, found "+strconv.Quote(e.Sensitivity))
	case e.Object == "" && e.Type != typeForget:
		return wrong("object", "want a text, found none")
	case e.ParentID != "" && !isID(e.ParentID):
		return wrong("parent_id", "want an event id of "+sdk.Itoa(idLength)+" hex digits")
	}
	for _, f := range []struct {
		name, value string
		least, most int
	}{{"subject", e.Subject, 1, maxName}, {"predicate", e.Predicate, 1, maxName}, {"object", e.Object, 0,
		maxObject}, {"topic", e.Topic, 0, maxName},
		{"evidence", e.Evidence, 0, maxObject}} {
		if n := utf8.RuneCountInString(f.value); n < f.least || n > f.most {
			return wrong(f.name, "want "+sdk.Itoa(f.least)+" to "+sdk.Itoa(f.most)+" characters, found "+sdk.Itoa(n))
		}
	}
	e.Confidence = min(max(e.Confidence, 0), 1000)
	e.ID = e.id()
	return nil
}

// message returns the commit message for one fact. Logs are shown freely, so it leaves out sensitive content.
func (e *event) message(verb string) string {
	if e.Sensitivity != normal {
		return verb + " a " + e.Sensitivity + " fact"
	}
	return verb + " " + e.Subject + " " + e.Predicate + " " + e.Object
}

// share is a number from 0 to 1, in thousandths.
type share int64

// sure is the default confidence of an event.
const sure share = 800

// EncodeJSON writes at most three decimals: 800 is 0.8.
func (n *share) EncodeJSON(e *wirejson.Encoder) {
	text := sdk.Itoa(int64(*n / 1000))
	if part := *n % 1000; part != 0 {
		text += "." + strings.TrimRight(state.Decimal(int(part), 3), "0")
	}
	e.Raw([]byte(text))
}

// DecodeJSON reads a number and limits it to the range from 0 to 1.
func (n *share) DecodeJSON(d *wirejson.Decoder) error {
	raw, err := d.Raw()
	text := string(raw)
	if err != nil || raw.Type() != wirejson.Number || strings.ContainsAny(text, "eE") {
		return wrong("confidence", "want a number from 0 to 1, without an exponent")
	}
	whole, part, _ := strings.Cut(text, ".")
	switch {
	case text[0] == '-':
		*n = 0
	case whole != "0":
		*n = 1000
	default:
		thousandths, err := strconv.ParseInt((part + "000")[:3], 10, 64)
		*n = share(thousandths)
		return err
	}
	return nil
}

// IsZero reports whether the number is 0.
func (n *share) IsZero() bool { return *n == 0 }
