package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// What a person forgets or corrects is final for turns that were recorded before and still wait for the model. While
// turns wait, each such fact is stored, without its words, with the number of the latest waiting turn; the record is
// removed when no turn waits any more. Turns that are recorded later count again.
//
//	settled/<hash of subject and predicate>/<hash of the object>   that fact
//	settled/<hash of subject and predicate>/all                    every fact with them
//	settled/<lineage>                                              an entry, whatever its words
const (
	settledPrefix = "settled/"
	everyObject   = "all"
)

func settledKey(subject, predicate, object string) string {
	key := settledPrefix + strings.TrimPrefix(factKey(subject, predicate), "fact/")
	if object == "" {
		return key + everyObject
	}
	return key + sdk.Digest256(normalizeObject(object))[:32]
}

// settleFact records that a person has forgotten or replaced a fact; object "" means all facts with this subject and
// predicate.
func (l *ledger) settleFact(subject, predicate, object string) {
	l.noteSettled(settledKey(subject, predicate, object))
}

// settleEntry records that a person has forgotten or changed an entry.
func (l *ledger) settleEntry(e *entry) {
	l.settleFact(e.Subject, e.Predicate, e.Object)
	l.noteSettled(settledPrefix + e.Lineage)
}

func (l *ledger) noteSettled(key string) {
	if waiting, _ := l.List(abi.StateListRequest{Prefix: inboxPrefix, Limit: 1}); l.s.llm != nil && len(waiting) > 0 {
		l.Put(key, []byte(hex12(l.arrivals().count)), sdk.AnyVersion)
	}
}

// settledSince reports whether a person has settled something since the turn that is being extracted was recorded.
func (l *ledger) settledSince(key string) bool {
	number, version := l.Get(key)
	return version != 0 && l.letter != "" && string(number) >= l.letter
}

// personForgot reports whether a person has forgotten or replaced an item of the model since its turn was recorded.
func (l *ledger) personForgot(e *event) bool {
	return l.settledSince(settledKey(e.Subject, e.Predicate, e.Object)) || l.settledSince(settledKey(e.Subject, e.Predicate, ""))
}

// personChanged reports whether a person has changed an entry since the turn was recorded.
func (l *ledger) personChanged(lineage string) bool {
	return lineage != "" && l.settledSince(settledPrefix+lineage)
}

// dropSettled removes the notes when no turn waits.
func (l *ledger) dropSettled() {
	if waiting, _ := l.List(abi.StateListRequest{Prefix: inboxPrefix, Limit: 1}); len(waiting) > 0 {
		return
	}
	if notes, _ := l.List(abi.StateListRequest{Prefix: settledPrefix, Limit: 1}); len(notes) > 0 {
		l.Delete(settledPrefix)
	}
}
