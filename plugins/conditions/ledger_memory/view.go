package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// view is a branch's present state, kept up to date with every commit, so that recording and retrieving do not replay the ledger:
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
	// commit is the one that the view shows, "" for none; time is its own.
	commit, time string
	// steps counts the entries' changes: the number of the newest.
	steps, active, gone int64
}

// viewOf opens a branch's view.
//
// Errors: unavailable where it does not show the branch's head.
func (l *ledger) viewOf(b *branch) (*view, error) {
	v := &view{l: l, prefix: "view/" + b.Name + "/"}
	stored, version, err := l.Get(v.prefix + "at")
	if err != nil {
		return nil, err
	}
	if version != 0 {
		words := strings.Split(string(stored), " ")
		if len(words) != 5 {
			return nil, stale(b.Name)
		}
		v.commit, v.time = words[0], words[1]
		for i, to := range []*int64{&v.steps, &v.active, &v.gone} {
			if *to, err = strconv.ParseInt(words[2+i], 10, 64); err != nil {
				return nil, stale(b.Name)
			}
		}
	}
	if v.commit != b.Head {
		return nil, stale(b.Name)
	}
	return v, nil
}

// onView is the branch of that name, or the current one for "", with its view. A branch whose view cannot be opened is returned all the same.
func (l *ledger) onView(name string) (*branch, *view, error) {
	b, err := l.on(name)
	if err != nil {
		return nil, nil, err
	}
	v, err := l.viewOf(b)
	return b, v, err
}

func stale(branch string) error {
	return abi.NewError(abi.CodeUnavailable, "the view of branch "+strconv.Quote(branch)+" does not show its head").
		WithReason("stale_view").WithHint("`memhost ledger rebuild` makes it anew from the ledger")
}

// show notes that the view shows a commit now.
func (v *view) show(k *commit) error {
	v.commit, v.time = k.ID, k.Timestamp
	return v.write()
}

func (v *view) write() error {
	n := func(n int64) string { return " " + sdk.Itoa(n) }
	return v.l.Put(v.prefix+"at", []byte(v.commit+" "+v.time+n(v.steps)+n(v.active)+n(v.gone)), sdk.AnyVersion)
}

// place is where an entry stands, "" where it is not there.
func (v *view) place(lineage string) (string, error) {
	at, version, err := v.l.Get(v.prefix + "entry/" + lineage)
	if err != nil || version == 0 {
		return "", err
	}
	return string(at), nil
}

func (v *view) get(lineage string) (*entry, error) {
	at, err := v.place(lineage)
	if err != nil || at == "" {
		return nil, err
	}
	stored, version, err := v.l.Get(v.prefix + at)
	if err != nil {
		return nil, err
	}
	e, err := unpack(stored)
	if version == 0 || err != nil || e.Lineage != lineage {
		return nil, damaged(v.prefix + at)
	}
	e.placed(at)
	return e, nil
}

// placed notes where an entry stands, and under which fact, so that it can be taken out again after it has changed.
func (e *entry) placed(at string) {
	e.at, e.fact = at, ""
	if e.ForgottenAt == "" && !e.observed() {
		e.fact = factKey(e.Subject, e.Predicate) + e.Lineage
	}
}

func damaged(key string) error {
	return abi.NewError(abi.CodeUnavailable, "the view is damaged at "+strconv.Quote(key)).
		WithReason("stale_view").WithHint("`memhost ledger rebuild` makes it anew from the ledger")
}

// put writes an entry that get returned, or that get has not found.
func (v *view) put(e *entry) error {
	if e.fact != "" {
		if _, err := v.l.Delete(v.prefix + e.fact); err != nil {
			return err
		}
	}
	if e.at != "" {
		v.count(e.at, -1)
		if _, err := v.l.Delete(v.prefix + e.at); err != nil {
			return err
		}
	}
	v.steps++
	at := "item/"
	if e.ForgottenAt != "" {
		at = "gone/"
	}
	e.placed(at + fixed(1<<47-v.steps))
	if e.fact != "" {
		if err := v.l.Put(v.prefix+e.fact, []byte{'1'}, sdk.AnyVersion); err != nil {
			return err
		}
	}
	v.count(e.at, 1)
	if err := v.l.Put(v.prefix+e.at, e.pack(), sdk.AnyVersion); err != nil {
		return err
	}
	return v.l.Put(v.prefix+"entry/"+e.Lineage, []byte(e.at), sdk.AnyVersion)
}

func (v *view) count(at string, n int64) {
	if strings.HasPrefix(at, "item/") {
		v.active += n
	} else {
		v.gone += n
	}
}

func factKey(subject, predicate string) string {
	return "fact/" + sdk.Digest256(fold(subject) + "\x00" + fold(predicate))[:32] + "/"
}

func (v *view) owner(eventID string) (string, error) {
	at, err := v.place(eventID)
	if err != nil || at != "" {
		return eventID, err
	}
	lineage, _, err := v.l.Get(v.prefix + "owner/" + eventID)
	return string(lineage), err
}

func (v *view) own(eventID, lineage string) error {
	return v.l.Put(v.prefix+"owner/"+eventID, []byte(lineage), sdk.AnyVersion)
}

func (v *view) facts(subject, predicate string) ([]string, error) {
	var found []string
	prefix := v.prefix + factKey(subject, predicate)
	err := v.l.each(prefix, func(item sdk.Item) error {
		found = append(found, strings.TrimPrefix(item.Key, prefix))
		return nil
	})
	return found, err
}
