package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// branch is a line of commits, for example for one persona.
type branch struct {
	Name, Head, Persona, CreatedAt string
	// Metadata is any JSON object that the creator wants to store with the branch; empty means {}.
	Metadata abi.Raw
	// version is the version of its key, 0 if it is not stored.
	version int64
}

func (b *branch) members() []object.Member {
	if len(b.Metadata) == 0 {
		b.Metadata = abi.Raw("{}")
	}
	return []object.Member{object.Always("name", &b.Name), object.OrNull("head", &b.Head),
		object.OrNull("persona", &b.Persona), object.Always("created_at", &b.CreatedAt),
		object.Always("metadata", &b.Metadata)}
}

func (b *branch) encode() []byte { return object.Encode(b.members()...) }

func decodeBranch(data []byte) (*branch, error) {
	b := new(branch)
	err := object.DecodeStrictly(data, b.members()...)
	if err == nil && wirejson.Raw(b.Metadata).Type() != wirejson.Object {
		err = wrong("metadata", "want an object")
	}
	return b, err
}

// checkBranchName refuses an invalid name. A name is [a-z0-9][a-z0-9._-]{0,63}.
func checkBranchName(name string) error {
	good := name != "" && len(name) <= 64 && !strings.ContainsAny(name[:1], "._-") &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == ""
	if !good {
		return wrong("name", "want 1 to 64 of a-z, 0-9, dot, underline and hyphen, "+
			"beginning with a letter or digit, found "+strconv.Quote(name))
	}
	return nil
}

// createBranch makes a branch; HEAD does not move. from is a branch or a commit, "" for the current branch.
//
// Errors: invalid_argument for a bad name, conflict for one that exists.
func (l *ledger) createBranch(name, persona, from string, orphan bool, metadata abi.Raw) *branch {
	b := &branch{Name: name, Persona: persona, Metadata: metadata}
	if err := checkBranchName(name); err != nil {
		l.Fail(err)
		return b
	}
	if l.find(name) != nil {
		l.Fail(abi.NewError(abi.CodeConflict, "name: the branch "+strconv.Quote(name)+" exists"))
		return b
	}
	if !orphan {
		l.initBranch(b, from)
	}
	l.putBranch(b)
	return b
}

// initBranch sets a new branch's first head and its view.
func (l *ledger) initBranch(b *branch, from string) {
	if from == "" {
		from, _ = l.head()
	}
	if checkBranchName(from) == nil {
		start := l.find(from)
		if start == nil && (!isHex(from) || len(from) < 4) {
			start = l.branch(from) // not_found
		}
		if start != nil {
			b.Head = start.Head
			l.copyView(start.Name, b.Name)
			return
		}
	}
	b.Head = l.resolve(commitPrefix, from)
	l.rebuild(b)
}

// switchTo moves HEAD; false if it is there already.
func (l *ledger) switchTo(name string) bool {
	l.branch(name)
	stored, version := l.Get(headKey)
	if string(stored) == name+"\n" || version == 0 && name == mainBranch {
		return false
	}
	l.Put(headKey, []byte(name+"\n"), sdk.AnyVersion)
	return true
}

// chain returns a commit's first parents, from the root to the commit itself.
func (l *ledger) chain(head string) []string {
	var ids []string
	for id := head; id != ""; id = l.theCommit(id).ParentID {
		ids = append(ids, id)
	}
	slices.Reverse(ids)
	return ids
}

// ancestors returns all commits on which a head is based, by both kinds of parents, including the head.
func (l *ledger) ancestors(head string) map[string]*commit {
	known := map[string]*commit{}
	for open := []string{head}; len(open) > 0; {
		id := open[len(open)-1]
		open = open[:len(open)-1]
		if id == "" || known[id] != nil {
			continue
		}
		k := l.theCommit(id)
		known[id] = k
		open = append(open, k.ParentID, k.MergeParentID)
	}
	return known
}

// lookup finds the only commit, or event, whose id begins with a prefix.
//
// Errors: invalid_argument for a prefix that is invalid or shorter than 4 digits, not_found, conflict if several match.
func (l *ledger) lookup(kind, prefix string) (string, error) {
	if len(prefix) < 4 || len(prefix) > idLength || !isHex(prefix) {
		return "", wrong("params.id", "want 4 to "+sdk.Itoa(idLength)+" hex digits, found "+strconv.Quote(prefix))
	}
	items, _ := l.List(abi.StateListRequest{Prefix: kind + prefix, Limit: 2})
	switch len(items) {
	case 0:
		return "", abi.NewError(abi.CodeNotFound, "params.id: there is no "+strings.TrimSuffix(kind, "/")+" "+prefix)
	case 1:
		return strings.TrimPrefix(items[0].Key, kind), nil
	}
	return "", abi.NewError(abi.CodeConflict, "params.id: "+prefix+" is the beginning of several ids")
}

// resolve is lookup with not_found as an error.
func (l *ledger) resolve(kind, prefix string) string {
	id, err := l.lookup(kind, prefix)
	l.Fail(err)
	return id
}

// step is the content of one commit.
type step struct {
	events  []*event
	message string
	meta    meta
	// mergeParent is the head that a merge has merged.
	mergeParent string
}

// add adds an event, unless the step has it.
func (s *step) add(e *event) {
	if !slices.ContainsFunc(s.events, func(x *event) bool { return x.ID == e.ID }) {
		s.events = append(s.events, e)
	}
}

// commitTo stores events and commit and updates the branch and its view, in this order and in the call's transaction.
// Without events, and without a merge to record, it makes no commit and returns nil.
func (l *ledger) commitTo(b *branch, v *view, s *step) (*commit, []string) {
	if len(s.events) == 0 && s.mergeParent == "" {
		return nil, nil
	}
	k := &commit{Branch: b.Name, Message: oneLine(s.message, 200), ParentID: b.Head, MergeParentID: s.mergeParent,
		Timestamp: max(l.now(), v.time), Metadata: s.meta.encode()}
	for _, e := range s.events {
		l.storeEvent(e)
		k.Events = append(k.Events, e.ID)
	}
	k.seal()
	l.advanceTimeline(k.Timestamp)
	l.putCommit(k)
	var warnings []string
	for _, e := range s.events {
		// Keep the first source, time and confidence, so that a replay gives what is stored.
		if warning := v.apply(l.theEvent(e.ID), k, &s.meta); warning != "" {
			warnings = append(warnings, warning)
		}
	}
	v.show(k)
	b.Head = k.ID
	l.putBranch(b)
	return k, warnings
}

// commitOn is commitTo for the current branch.
func (l *ledger) commitOn(s *step) (*commit, []string) {
	b, v := l.onView("")
	return l.commitTo(b, v, s)
}
