package main

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// recordEvent adds an event to the ledger. Without a model its messages become observations, word for word, in one
// commit. With a model the event is stored first, and facts are extracted from it later.
//
// Errors: conflict if the scope holds the event id with other content; those of the state.
func recordEvent(c *sdk.Call, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	if _, err := abi.ParseTime(e.Timestamp); err != nil {
		return nil, wrong("timestamp", abi.AsError(err).Message)
	}
	return withLedger(c, func(l *ledger) *abi.WriteReceipt { return l.record(e) })
}

func (l *ledger) record(e *abi.MemoryEvent) *abi.WriteReceipt {
	key, digest := sourceKey(e.EventID), sdk.Digest256(string(l.Body()))
	known, version := l.Get(key)
	if version != 0 {
		return l.repeatReceipt(e, string(known), digest, version)
	}
	defer l.atEventTime(e)()
	if l.s.llm != nil {
		return l.queue(e, key, digest, 0)
	}
	events := observations(e)
	if len(events) == 0 {
		r := l.receipt(e, abi.StatusNotRetained, nil)
		r.Warnings = []string{"nothing_said: the turn has no text; nothing was stored"}
		l.Put(key, []byte(digest+" "), 0)
		return r
	}
	k, warnings := l.commitOn(&step{events: events, message: firstLine(e), meta: metaFor(e)})
	l.Put(key, []byte(digest+" "+k.ID), 0)
	r := l.receipt(e, abi.StatusCommitted, k)
	r.Warnings = warnings
	return r
}

func metaFor(e *abi.MemoryEvent) meta {
	return meta{ConversationID: e.SessionID, TurnID: e.TurnID, EventIDs: []string{e.EventID}}
}

// repeatReceipt returns the receipt of an event that the scope already holds. Usually the host's ledger does so first;
// this covers events that the ledger has dropped. If extraction has given up on the event, it is tried again.
func (l *ledger) repeatReceipt(e *abi.MemoryEvent, known, digest string, version int64) *abi.WriteReceipt {
	before, id, _ := strings.Cut(known, " ")
	if before != digest {
		l.Fail(abi.NewError(abi.CodeConflict, "event_id: the scope holds this id with other content"))
		return nil
	}
	var r *abi.WriteReceipt
	switch {
	case id == "":
		r = l.receipt(e, abi.StatusNotRetained, nil)
	case id == inInbox:
		r = l.pending(e)
	case strings.HasPrefix(id, isDead) && l.s.llm != nil:
		l.Delete(id)
		return l.queue(e, sourceKey(e.EventID), digest, version)
	case strings.HasPrefix(id, isDead):
		r = l.receipt(e, abi.StatusNotRetained, nil)
	default:
		r = l.receipt(e, abi.StatusCommitted, l.theCommit(id))
		r.StoredCount = sdk.Ptr(int64(0))
	}
	r.Duplicate = true
	r.Warnings = []string{"duplicate_event: the scope holds this event already; nothing was stored"}
	return r
}

// receipt lists the ledger's events of a commit; nil if there is none.
func (l *ledger) receipt(e *abi.MemoryEvent, status abi.WriteStatus, k *commit) *abi.WriteReceipt {
	trace := l.s.trace("commit")
	r := &abi.WriteReceipt{EventID: e.EventID, Status: status, NativeIDsKind: abi.NativeIDsNone,
		StoredCount: new(int64),
		Trace:       trace}
	if k != nil {
		*r.StoredCount = int64(len(k.Events))
		r.NativeIDs, r.NativeIDsKind = k.Events, abi.NativeIDsFinal
		trace.NativeIDs = k.Events
		sdk.Put(&trace.Details, "commit_id", sdk.Text(k.ID))
	}
	return r
}

// observations stores a turn verbatim: one observation for each message with text, or for each piece of a long one, and
// for each tool call.
func observations(e *abi.MemoryEvent) []*event {
	var list []*event
	topic := topicOf(e)
	add := func(subject, predicate, text string) {
		for _, part := range pieces(text) {
			o := &event{identity: identity{Type: typeObserve, Subject: subject, Predicate: predicate, Object: part,
				Topic: topic}, Confidence: sure,
				Source: sourceOf(e), Timestamp: state.InSeconds(e.Timestamp)}
			// Subject, predicate, topic and pieces are within their limits, so normalise rejects only a part that is
			// blank.
			if o.normalise() == nil {
				list = append(list, o)
			}
		}
	}
	for i := range e.Messages {
		m := &e.Messages[i]
		subject := oneLine(string(m.Role)+" "+m.Name, maxName)
		if m.Content != nil {
			predicate := "said"
			if m.Role == abi.RoleTool {
				predicate = "returned"
			}
			add(subject, predicate, *m.Content)
		}
		for j := range m.ToolCalls {
			add(subject, "called", m.ToolCalls[j].Name+" "+m.ToolCalls[j].Arguments)
		}
	}
	return list
}

// topicOf returns the event's labels as a path: context/scenario.
func topicOf(e *abi.MemoryEvent) string {
	topic := e.Context
	if e.Scenario != "" {
		topic += "/" + e.Scenario
	}
	return oneLine(topic, maxName)
}

func sourceOf(e *abi.MemoryEvent) string { return "conversation:" + e.SessionID + "/" + e.TurnID }

// pieces splits a text that is longer than an object may be, at a blank if there is one in the last tenth.
func pieces(text string) []string {
	var list []string
	text = strings.TrimSpace(text)
	for utf8.RuneCountInString(text) > maxObject {
		end := 0
		for range maxObject {
			_, n := utf8.DecodeRuneInString(text[end:])
			end += n
		}
		if at := strings.LastIndexFunc(text[:end], unicode.IsSpace); at > end*9/10 {
			end = at
		}
		list = append(list, strings.TrimSpace(text[:end]))
		text = strings.TrimSpace(text[end:])
	}
	if text != "" {
		list = append(list, text)
	}
	return list
}

// firstLine returns a commit message: the beginning of the turn's text.
func firstLine(e *abi.MemoryEvent) string {
	for i := range e.Messages {
		if text := e.Messages[i].Content; text != nil && strings.TrimSpace(*text) != "" {
			// The message is one line of at most 200 characters, so the rest of a long text is skipped.
			head := strings.ToValidUTF8((*text)[:min(len(*text), 2000)], "")
			return string(e.Messages[i].Role) + ": " + head
		}
	}
	return "Remember turn " + strconv.Quote(e.TurnID)
}
