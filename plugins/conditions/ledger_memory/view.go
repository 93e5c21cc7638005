package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/sdk"
)

// view is a branch's present state, kept up to date with every commit, so that recording and retrieving do not replay
// the ledger:
//
//	view/<branch>/at                the commit that it shows, and counters
//	view/<branch>/item/<number>     an active entry; the number is inverted, so that byte order is newest first
//	view/<branch>/gone/<number>     a forgotten one
//	view/<branch>/entry/<lineage>   "item/<number>" or "gone/<number>"
//	view/<branch>/owner/<event id>  the lineage of an event that is not its root
//	view/<branch>/fact/<hash of subject and predicate>/<lineage>   the active facts
type view struct {
	l      *ledger
	prefix string
	// commit is the commit that the view shows, "" for none; time is that commit's time.
	commit, time string
	// steps counts changes of entries and is the number of the newest one.
	steps, active, forgotten int64
}

// Parts of a view: its active entries and its forgotten ones.
const (
	itemPart      = "item/"
	forgottenPart = "gone/"
)

// openView opens a branch's view; false if it does not show the branch's head.
func (l *ledger) openView(b *branch) (v *view, current bool) {
	v = &view{l: l, prefix: "view/" + b.Name + "/"}
	stored, version := l.Get(v.prefix + "at")
	if version != 0 {
		words := strings.Split(string(stored), " ")
		if len(words) != 5 {
			return v, false
		}
		v.commit, v.time = words[0], words[1]
		for i, to := range []*int64{&v.steps, &v.active, &v.forgotten} {
			var err error
			if *to, err = strconv.ParseInt(words[2+i], 10, 64); err != nil {
				return v, false
			}
		}
	}
	return v, v.commit == b.Head
}

// viewOf is openView for a view that must show the branch's head.
//
// Errors: unavailable (stale_view).
func (l *ledger) viewOf(b *branch) *view {
	v, current := l.openView(b)
	if !current {
		l.Fail(stale(b.Name))
	}
	return v
}

// rebuild rebuilds a branch's view from the ledger.
func (l *ledger) rebuild(b *branch) *view {
	v := &view{l: l, prefix: "view/" + b.Name + "/"}
	l.Delete(v.prefix)
	var last *commit
	for _, id := range l.chain(b.Head) {
		last = l.theCommit(id)
		m := metaOf(last)
		for _, eventID := range last.Events {
			v.apply(l.theEvent(eventID), last, &m)
		}
	}
	if last != nil {
		v.show(last)
	}
	return v
}

// copyView copies the view of another branch with the same head to a new branch.
func (l *ledger) copyView(from, to string) {
	was := "view/" + from + "/"
	for item := range l.Values(was) {
		l.Put("view/"+to+"/"+strings.TrimPrefix(item.Key, was), item.Value, sdk.AnyVersion)
	}
}

// show records that the view now shows a commit.
func (v *view) show(k *commit) {
	v.commit, v.time = k.ID, k.Timestamp
	at := v.commit + " " + v.time + " " + sdk.Itoa(v.steps) + " " + sdk.Itoa(v.active) + " " + sdk.Itoa(v.forgotten)
	v.l.Put(v.prefix+"at", []byte(at), sdk.AnyVersion)
}

// place returns an entry's position, "" if it has none.
func (v *view) place(lineage string) string {
	at, _ := v.l.Get(v.prefix + "entry/" + lineage)
	return string(at)
}

// get returns an entry, nil if it does not exist.
func (v *view) get(lineage string) *entry {
	at := v.place(lineage)
	if at == "" {
		return nil
	}
	stored, _ := v.l.Get(v.prefix + at)
	e := v.l.unpack(v.prefix+at, stored)
	if e.Lineage != lineage {
		v.l.Fail(damagedError(v.prefix + at))
	}
	e.setPosition(at)
	return e
}

// must is get for an entry that the view's indexes name.
func (v *view) must(lineage string) *entry {
	e := v.get(lineage)
	if e == nil {
		v.l.Fail(damagedError(v.prefix + "entry/" + lineage))
		e = new(entry)
	}
	return e
}

// unpack reads an entry from its packed form in a view.
func (l *ledger) unpack(key string, stored []byte) *entry {
	e, err := unpack(stored)
	if err != nil {
		l.Fail(damagedError(key))
		e = new(entry)
	}
	return e
}

// entryOf returns the entry to which an event of the ledger belongs; nil if there is none.
func (v *view) entryOf(eventID string) *entry {
	if !isID(eventID) {
		return nil
	}
	if lineage := v.owner(eventID); lineage != "" {
		return v.get(lineage)
	}
	return nil
}

// setPosition records an entry's position and the fact under which it is indexed, so that it can be removed after it
// has changed.
func (e *entry) setPosition(at string) {
	e.at, e.fact = at, ""
	if e.active() && !e.observed() {
		e.fact = factKey(e.Subject, e.Predicate) + e.Lineage
	}
}

// put writes an entry that get returned, or a new one.
func (v *view) put(e *entry) {
	if e.fact != "" {
		v.l.Delete(v.prefix + e.fact)
	}
	if e.at != "" {
		v.count(e.at, -1)
		v.l.Delete(v.prefix + e.at)
	}
	v.steps++
	part := itemPart
	if !e.active() {
		part = forgottenPart
	}
	e.setPosition(part + hex12(1<<47-v.steps))
	if e.fact != "" {
		v.l.Put(v.prefix+e.fact, []byte{'1'}, sdk.AnyVersion)
	}
	v.count(e.at, 1)
	v.l.Put(v.prefix+e.at, e.pack(), sdk.AnyVersion)
	v.l.Put(v.prefix+"entry/"+e.Lineage, []byte(e.at), sdk.AnyVersion)
}

func (v *view) count(at string, n int64) {
	if strings.HasPrefix(at, itemPart) {
		v.active += n
	} else {
		v.forgotten += n
	}
}

// hex12 is n in hex, 12 digits.
func hex12(n int64) string {
	s := strconv.FormatInt(n, 16)
	return strings.Repeat("0", max(0, 12-len(s))) + s
}

// owner returns the lineage of an event, "" if there is none.
func (v *view) owner(eventID string) string {
	if v.place(eventID) != "" {
		return eventID
	}
	lineage, _ := v.l.Get(v.prefix + "owner/" + eventID)
	return string(lineage)
}

func (v *view) setOwner(eventID, lineage string) {
	v.l.Put(v.prefix+"owner/"+eventID, []byte(lineage), sdk.AnyVersion)
}

// facts returns the active facts with a subject and a predicate.
func (v *view) facts(subject, predicate string) []*entry {
	var found []*entry
	prefix := v.prefix + factKey(subject, predicate)
	for item := range v.l.Values(prefix) {
		found = append(found, v.must(strings.TrimPrefix(item.Key, prefix)))
	}
	return found
}

func factKey(subject, predicate string) string {
	return "fact/" + sdk.Digest256(fold(subject) + "\x00" + fold(predicate))[:32] + "/"
}

// fold normalises subjects and predicates for comparison.
func fold(s string) string { return lower(strings.TrimSpace(s)) }
