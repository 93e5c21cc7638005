package main

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// What a scope's state holds:
//
//	event/<id>, commit/<id>   the ledger: an object as JSON, a line end, and a checksum over it; written once
//	branch/<name>             a branch as JSON
//	HEAD                      the name of the current branch
//	source/<event id>         "<digest of the recorded event> <commit id>"; source#<hash> for an id too long for a key
//	view/<branch>/...         what the branch's commits come to, see view.go; derived, and rebuilt from the ledger
const (
	eventPrefix  = "event/"
	commitPrefix = "commit/"
	branchPrefix = "branch/"
	headKey      = "HEAD"
	mainBranch   = "main"
	checksum     = 16
)

// reasonCorrupt is the finer word of the error for an object that is not what was stored.
const reasonCorrupt = "corrupt_ledger"

// ledger is a scope's, for one call.
type ledger struct {
	*sdk.Call
	s *settings
	// next is where an answer that is a page goes on.
	next string
}

func open(c *sdk.Call) (*ledger, error) {
	s, err := settingsOf(c)
	return &ledger{Call: c, s: s}, err
}

// sealed is an object with its checksum, which covers the fields that the id does not.
func sealed(object []byte) []byte {
	sum := sdk.DigestBytes(object)[:checksum]
	return append(append(object, '\n'), sum...)
}

// unsealed is the object without its checksum.
func unsealed(kind, id string, stored []byte) ([]byte, error) {
	at := len(stored) - checksum - 1
	if at < 0 || stored[at] != '\n' || sdk.DigestBytes(stored[:at])[:checksum] != string(stored[at+1:]) {
		return nil, corrupt(kind, id)
	}
	return stored[:at], nil
}

func corrupt(kind, id string) error {
	return abi.NewError(abi.CodeUnavailable, "the ledger is corrupt: "+kind+" "+id+" is not what was stored under this id").
		WithReason(reasonCorrupt).WithHint("`memhost ledger fsck` lists what is damaged; import a backup into an empty scope")
}

func missing(kind, id string) error {
	return abi.NewError(abi.CodeUnavailable, "the ledger is incomplete: "+kind+" "+id+" is missing").
		WithReason(reasonCorrupt).WithHint("`memhost ledger fsck` lists what is damaged; import a backup into an empty scope")
}

// event reads an event and checks it; nil where there is none.
func (l *ledger) event(id string) (*event, error) {
	stored, version, err := l.Get(eventPrefix + id)
	if err != nil || version == 0 {
		return nil, err
	}
	return readEvent(id, stored)
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

// keep stores an event that is normalised, unless it is there.
func (l *ledger) keep(e *event) error {
	before, err := l.event(e.ID)
	if err != nil {
		return err
	}
	if before == nil {
		return l.Put(eventPrefix+e.ID, sealed(e.encode()), 0)
	}
	if before.identity != e.identity {
		return abi.NewError(abi.CodeConflict, "event "+e.ID+" is there with another content: their ids are the same")
	}
	return nil
}

// commit reads a commit and checks it; nil where there is none.
func (l *ledger) commit(id string) (*commit, error) {
	stored, version, err := l.Get(commitPrefix + id)
	if err != nil || version == 0 {
		return nil, err
	}
	return readCommit(id, stored)
}

func readCommit(id string, stored []byte) (*commit, error) {
	data, err := unsealed("commit", id, stored)
	if err != nil {
		return nil, err
	}
	k, err := decodeCommit(data)
	if err != nil || k.ID != id || idOf(k.fields("")) != id {
		return nil, corrupt("commit", id)
	}
	return k, nil
}

// theCommit is commit for one that must be there.
func (l *ledger) theCommit(id string) (*commit, error) {
	k, err := l.commit(id)
	if err == nil && k == nil {
		err = missing("commit", id)
	}
	return k, err
}

// theEvent is event for one that must be there.
func (l *ledger) theEvent(id string) (*event, error) {
	e, err := l.event(id)
	if err == nil && e == nil {
		err = missing("event", id)
	}
	return e, err
}

// branch reads a branch. main is there from the start.
func (l *ledger) branch(name string) (*branch, error) {
	stored, version, err := l.Get(branchPrefix + name)
	if err != nil {
		return nil, err
	}
	if version == 0 {
		if name == mainBranch {
			return &branch{Name: mainBranch}, nil
		}
		return nil, abi.NewError(abi.CodeNotFound, "branch: there is no "+strconv.Quote(name))
	}
	b, err := decodeBranch(stored)
	if err != nil || b.Name != name {
		return nil, corrupt("branch", name)
	}
	b.version = version
	return b, nil
}

// putBranch writes a branch that nobody else has written since it was read: work that waited for a model is not to undo what a tool did meanwhile.
func (l *ledger) putBranch(b *branch) error {
	if b.CreatedAt == "" {
		b.CreatedAt = l.now()
	}
	return l.Put(branchPrefix+b.Name, b.encode(), b.version)
}

// branches lists all, by name, main always among them.
func (l *ledger) branches() ([]*branch, error) {
	var list []*branch
	main := false
	err := l.each(branchPrefix, func(item sdk.Item) error {
		b, err := decodeBranch(item.Value)
		if err != nil || branchPrefix+b.Name != item.Key {
			return corrupt("branch", strings.TrimPrefix(item.Key, branchPrefix))
		}
		main = main || b.Name == mainBranch
		list = append(list, b)
		return nil
	})
	if err == nil && !main {
		list = append(list, &branch{Name: mainBranch})
	}
	return list, err
}

// head is the name of the current branch, and a warning where HEAD named one that is not there.
func (l *ledger) head() (name, warning string, err error) {
	stored, version, err := l.Get(headKey)
	if err != nil || version == 0 {
		return mainBranch, "", err
	}
	name = string(bytes.TrimSpace(stored))
	if name == mainBranch {
		return name, "", nil
	}
	_, version, err = l.Get(branchPrefix + name)
	if err == nil && version == 0 {
		return mainBranch, "head_reset: HEAD named the branch " + strconv.Quote(name) + ", which is not there; main is used", nil
	}
	return name, "", err
}

// on is the branch of that name, or the current one for "".
func (l *ledger) on(name string) (*branch, error) {
	if name == "" {
		var err error
		if name, _, err = l.head(); err != nil {
			return nil, err
		}
	}
	return l.branch(name)
}

// each calls f with every key under a prefix and its value, in byte order. What f writes under the prefix may be seen or not.
func (l *ledger) each(prefix string, f func(sdk.Item) error) error {
	return l.Each(abi.StateListRequest{Prefix: prefix, Values: true}, f)
}

// now is the host's clock in whole seconds, UTC.
func (l *ledger) now() string { return inSeconds(l.Now) }

// inSeconds is a time in UTC and whole seconds, so that texts sort as times do; what is no time stays.
func inSeconds(s string) string {
	t, err := abi.ParseTime(s)
	if err != nil {
		return s
	}
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	return decimal(year, 4) + "-" + decimal(int(month), 2) + "-" + decimal(day, 2) + "T" + decimal(hour, 2) + ":" + decimal(minute, 2) + ":" + decimal(second, 2) + "Z"
}

// decimal is n with leading zeros. Package time's Format is large in a guest.
func decimal(n, digits int) string {
	s := sdk.Itoa(n)
	return strings.Repeat("0", max(0, digits-len(s))) + s
}

// fixed is n in hex, 12 digits.
func fixed(n int64) string {
	s := strconv.FormatInt(n, 16)
	return strings.Repeat("0", max(0, 12-len(s))) + s
}

// sourceKey is where an event of the slot is found. Keys have at most 512 bytes, and so have event ids.
func sourceKey(id string) string {
	if len(id) > 500 {
		return "source#" + sdk.Digest256(id)
	}
	return "source/" + id
}
