package main

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// step is what goes into one commit.
type step struct {
	events  []*event
	message string
	meta    meta
	// mergeParent is the head that a merge has taken in.
	mergeParent string
}

// commitTo stores events and commit, moves the branch and its view: in this order, and in the one transaction of the call.
// Without events, and without a merge to note, there is no commit: nil.
func (l *ledger) commitTo(b *branch, v *view, s *step) (*commit, []string, error) {
	if len(s.events) == 0 && s.mergeParent == "" {
		return nil, nil, nil
	}
	k := &commit{Branch: b.Name, Message: oneLine(s.message, 200), ParentID: b.Head, MergeParentID: s.mergeParent, Timestamp: max(l.now(), v.time), Metadata: s.meta.encode()}
	for _, e := range s.events {
		if err := l.keep(e); err != nil {
			return nil, nil, err
		}
		k.Events = append(k.Events, e.ID)
	}
	k.seal()
	if err := l.putCommit(k); err != nil {
		return nil, nil, err
	}
	var warnings []string
	for _, e := range s.events {
		// The first source, time and confidence stay: what is replayed later is what is stored.
		stored, err := l.theEvent(e.ID)
		if err != nil {
			return nil, nil, err
		}
		warning, err := apply(v, stored, k, &s.meta)
		if err != nil {
			return nil, nil, err
		}
		if warning != "" {
			warnings = append(warnings, warning)
		}
	}
	if err := v.show(k); err != nil {
		return nil, nil, err
	}
	b.Head = k.ID
	return k, warnings, l.putBranch(b)
}

func (l *ledger) putCommit(k *commit) error {
	before, err := l.commit(k.ID)
	if err != nil || before != nil {
		return err
	}
	return l.Put(commitPrefix+k.ID, sealed(k.encode()), 0)
}

// oneLine is a text in one line, of at most n characters.
func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:n-3])) + "..."
}

// chain lists a commit's first parents back to the root, oldest first, the commit itself last.
func (l *ledger) chain(head string) ([]string, error) {
	var ids []string
	for id := head; id != ""; {
		k, err := l.theCommit(id)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
		id = k.ParentID
	}
	slices.Reverse(ids)
	return ids, nil
}

// replay puts what the first-parent chain up to a commit comes to onto a view. It returns the last commit and the warnings of it.
func (l *ledger) replay(onto *view, head string) (last *commit, err error) {
	ids, err := l.chain(head)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if last, err = l.theCommit(id); err != nil {
			return nil, err
		}
		m := metaOf(last)
		for _, eventID := range last.Events {
			e, err := l.theEvent(eventID)
			if err != nil {
				return nil, err
			}
			if _, err := apply(onto, e, last, &m); err != nil {
				return nil, err
			}
		}
	}
	return last, nil
}

// rebuild makes a branch's view anew from the ledger.
func (l *ledger) rebuild(b *branch) (*view, error) {
	v := &view{l: l, prefix: "view/" + b.Name + "/"}
	if _, err := l.Delete(v.prefix); err != nil {
		return nil, err
	}
	last, err := l.replay(v, b.Head)
	if err != nil || last == nil {
		return v, err
	}
	return v, v.show(last)
}

// copyView gives a new branch the view of one that has the same head.
func (l *ledger) copyView(from, to string) error {
	was := "view/" + from + "/"
	return l.each(was, func(item sdk.Item) error {
		return l.Put("view/"+to+"/"+strings.TrimPrefix(item.Key, was), item.Value, sdk.AnyVersion)
	})
}

// ancestors are all commits that a head stands on, over both kinds of parents, the head among them.
func (l *ledger) ancestors(head string) (map[string]*commit, error) {
	known := map[string]*commit{}
	open := []string{head}
	for len(open) > 0 {
		id := open[len(open)-1]
		open = open[:len(open)-1]
		if id == "" || known[id] != nil {
			continue
		}
		k, err := l.theCommit(id)
		if err != nil {
			return nil, err
		}
		known[id] = k
		open = append(open, k.ParentID, k.MergeParentID)
	}
	return known, nil
}

// resolve finds the one commit, or event, whose id begins with a prefix.
//
// Errors: invalid_argument for a prefix that is shorter than 4 digits or none, not_found, conflict where it fits several.
func (l *ledger) resolve(kind, prefix string) (string, error) {
	if len(prefix) < 4 || len(prefix) > idLength || !isHex(prefix) {
		return "", wrong("params.id", "want 4 to "+sdk.Itoa(idLength)+" hex digits, found "+strconv.Quote(prefix))
	}
	items, _, err := l.List(abi.StateListRequest{Prefix: kind + prefix, Limit: 2})
	switch {
	case err != nil:
		return "", err
	case len(items) == 0:
		return "", abi.NewError(abi.CodeNotFound, "params.id: there is no "+strings.TrimSuffix(kind, "/")+" "+prefix)
	case len(items) > 1:
		return "", abi.NewError(abi.CodeConflict, "params.id: "+prefix+" is the beginning of several ids")
	}
	return strings.TrimPrefix(items[0].Key, kind), nil
}
