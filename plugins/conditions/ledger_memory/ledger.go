package main

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// What a scope's state holds:
//
//	event/<id>, commit/<id>   the ledger: an object as JSON, a line end, and a checksum over it; written once
//	branch/<name>             a branch as JSON
//	HEAD                      the name of the current branch
//	source/<event id>         "<digest of the recorded event> <commit id>"; source#<hash> for an id too long for a key
//	view/<branch>/...         the result of the branch's commits, see view.go; derived, and rebuilt from the ledger
const (
	eventPrefix  = "event/"
	commitPrefix = "commit/"
	branchPrefix = "branch/"
	headKey      = "HEAD"
	mainBranch   = "main"
	checksum     = 16
)

// ledger is a scope's ledger, for one operation.
type ledger struct {
	*state.State
	s *settings
	// next is the cursor of a paged answer.
	next string
	// of is the time of the event that is being extracted, or of the timeline during tidying; "" otherwise.
	of string
	// letter is the number of the letter that is being extracted; "" otherwise.
	letter string
}

// withLedger opens the ledger for an operation. If the state has failed it returns the state's first error, whatever do
// returns.
func withLedger[T any](c *sdk.Call, do func(l *ledger) T) (answer T, err error) {
	s, err := settingsOf(c)
	if err != nil {
		return answer, err
	}
	l := &ledger{State: state.Of(c), s: s}
	answer = do(l)
	return answer, l.Err()
}

// sealed returns an object with its checksum, which covers the fields that the id does not.
func sealed(object []byte) []byte {
	sum := sdk.DigestBytes(object)[:checksum]
	return append(append(object, '\n'), sum...)
}

// unsealed returns the object without its checksum.
func unsealed(kind, id string, stored []byte) ([]byte, error) {
	at := len(stored) - checksum - 1
	if at < 0 || stored[at] != '\n' || sdk.DigestBytes(stored[:at])[:checksum] != string(stored[at+1:]) {
		return nil, corrupt(kind, id)
	}
	return stored[:at], nil
}

// event reads an event and checks it; nil if there is none.
func (l *ledger) event(id string) *event {
	stored, version := l.Get(eventPrefix + id)
	if version == 0 {
		return nil
	}
	e, err := readEvent(id, stored)
	l.Fail(err)
	return e
}

// theEvent is event with a missing one as an error.
func (l *ledger) theEvent(id string) *event {
	e := l.event(id)
	if e == nil {
		l.Fail(missing("event", id))
		e = new(event)
	}
	return e
}

func readEvent(id string, stored []byte) (*event, error) {
	data, err := unsealed("event", id, stored)
	if err != nil {
		return nil, err
	}
	e, err := decodeEvent(data)
	if err != nil || e.ID != id || e.id() != id {
		return nil, corrupt("event", id)
	}
	return e, nil
}

// storeEvent stores a normalised event, unless it exists.
func (l *ledger) storeEvent(e *event) {
	before := l.event(e.ID)
	if before == nil {
		l.Put(eventPrefix+e.ID, sealed(e.encode()), 0)
	} else if before.identity != e.identity {
		l.Fail(abi.NewError(abi.CodeConflict, "event "+e.ID+" is there with another content: their ids are the same"))
	}
}

// commit reads a commit and checks it; nil if there is none.
func (l *ledger) commit(id string) *commit {
	stored, version := l.Get(commitPrefix + id)
	if version == 0 {
		return nil
	}
	k, err := readCommit(id, stored)
	l.Fail(err)
	return k
}

// theCommit is commit with a missing one as an error.
func (l *ledger) theCommit(id string) *commit {
	k := l.commit(id)
	if k == nil {
		l.Fail(missing("commit", id))
		k = new(commit)
	}
	return k
}

func readCommit(id string, stored []byte) (*commit, error) {
	data, err := unsealed("commit", id, stored)
	if err != nil {
		return nil, err
	}
	k, err := decodeCommit(data)
	if err != nil || k.ID != id || k.id() != id {
		return nil, corrupt("commit", id)
	}
	return k, nil
}

func (l *ledger) putCommit(k *commit) {
	if l.commit(k.ID) == nil {
		l.Put(commitPrefix+k.ID, sealed(k.encode()), 0)
	}
}

// find reads a branch, nil if there is none. main always exists.
func (l *ledger) find(name string) *branch {
	stored, version := l.Get(branchPrefix + name)
	if version == 0 {
		if name == mainBranch {
			return &branch{Name: mainBranch}
		}
		return nil
	}
	b, err := decodeBranch(stored)
	if err != nil || b.Name != name {
		l.Fail(corrupt("branch", name))
	}
	b.version = version
	return b
}

// branch is find with a missing one as an error.
func (l *ledger) branch(name string) *branch {
	b := l.find(name)
	if b == nil {
		l.Fail(abi.NewError(abi.CodeNotFound, "branch: there is no "+strconv.Quote(name)))
		b = &branch{Name: name}
	}
	return b
}

// putBranch writes a branch unless it has changed since it was read: work that waited for a model must not undo what a
// tool did in the meantime.
func (l *ledger) putBranch(b *branch) {
	if b.CreatedAt == "" {
		b.CreatedAt = l.now()
	}
	l.Put(branchPrefix+b.Name, b.encode(), b.version)
}

// branches lists all branches by name, including main.
func (l *ledger) branches() (list []*branch) {
	main := false
	for item := range l.Values(branchPrefix) {
		b, err := decodeBranch(item.Value)
		if err != nil || branchPrefix+b.Name != item.Key {
			l.Fail(corrupt("branch", strings.TrimPrefix(item.Key, branchPrefix)))
			break
		}
		main = main || b.Name == mainBranch
		list = append(list, b)
	}
	if !main {
		list = append(list, &branch{Name: mainBranch})
	}
	return list
}

// head returns the name of the current branch, and a warning if HEAD named a missing one.
func (l *ledger) head() (name, warning string) {
	stored, version := l.Get(headKey)
	name = string(bytes.TrimSpace(stored))
	switch {
	case version == 0 || name == mainBranch:
		return mainBranch, ""
	case !l.Has(branchPrefix + name):
		return mainBranch, "head_reset: HEAD named the branch " + strconv.Quote(name) +
			", which is not there; main is used"
	}
	return name, ""
}

// branchNamed returns the branch of that name, or the current one for "".
func (l *ledger) branchNamed(name string) *branch {
	if name == "" {
		name, _ = l.head()
	}
	return l.branch(name)
}

// onView is on, together with the branch's view.
func (l *ledger) onView(name string) (*branch, *view) {
	b := l.branchNamed(name)
	return b, l.viewOf(b)
}

// now returns the time of a change, in whole seconds and UTC: the time of the event that causes it, or else the host's
// clock.
func (l *ledger) now() string {
	if l.of != "" {
		return l.of
	}
	return state.InSeconds(l.Now)
}

// sourceKey returns the key of an event of the slot. Both keys and event ids may have up to 512 bytes, so a long id is
// hashed.
func sourceKey(id string) string {
	if len(id) > 500 {
		return "source#" + sdk.Digest256(id)
	}
	return "source/" + id
}

// Reasons of errors: an object is damaged; a view does not agree with the ledger.
const (
	reasonCorrupt = "corrupt_ledger"
	reasonStale   = "stale_view"
)

func wrong(field, what string) error { return abi.NewError(abi.CodeInvalidArgument, field+": "+what) }

func corrupt(kind, id string) error {
	return broken(reasonCorrupt, "the ledger is corrupt: "+kind+" "+id+" is not what was stored under this id",
		"`memhost ledger fsck` lists what is damaged; import a backup into an empty scope")
}

func missing(kind, id string) error {
	return broken(reasonCorrupt, "the ledger is incomplete: "+kind+" "+id+" is missing",
		"`memhost ledger fsck` lists what is damaged; import a backup into an empty scope")
}

func stale(branch string) error {
	return broken(reasonStale, "the view of branch "+strconv.Quote(branch)+" does not show its head",
		"`memhost ledger rebuild` makes it anew from the ledger")
}

func damagedError(key string) error {
	return broken(reasonStale, "the view is damaged at "+strconv.Quote(key),
		"`memhost ledger rebuild` makes it anew from the ledger")
}

func broken(reason, message, hint string) error {
	return abi.NewError(abi.CodeUnavailable, message).WithReason(reason).WithHint(hint)
}
