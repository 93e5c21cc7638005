package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// importPrefix is the key where an import keeps branches.json and HEAD until everything that they name exists.
const importPrefix = "import/"

// importFiles imports files, in any order and in any number of calls; the last call sets done. An object that exists
// already is not changed; paths that are not part of the layout are listed in trace.details.skipped.
//
// Errors: invalid_argument for an object whose id does not match its content, or a missing head; conflict if the scope
// already has commits.
func (l *ledger) importFiles(p *params) *abi.MutationReceipt {
	list, done := p.raw("files", wirejson.Object), p.flag("done")
	p.rejectUnknown()
	var skipped []string
	count := int64(0)
	if list != nil {
		err := object.Read(wirejson.DecodeBytes(list), func(d *wirejson.Decoder, path string) error {
			text, err := d.Str()
			if err != nil {
				return wrong("params.files", err.Error())
			}
			if l.importOne(path, text) {
				count++
			} else {
				skipped = append(skipped, path)
			}
			return l.Err()
		})
		l.Fail(err)
	}
	if done {
		l.importEnd()
	}
	status := noChange
	if count > 0 || done {
		status = applied
	}
	return l.receiptOf(status, nil, note{"files", sdk.Number(count)}, note{"skipped", object.Texts(skipped)})
}

// importOne imports a file; false if it is not part of the layout.
func (l *ledger) importOne(path, text string) bool {
	dir, name, _ := strings.Cut(path, "/")
	name = name[strings.LastIndexByte(name, '/')+1:] // a repository has objects in folders by the first two digits
	id := strings.TrimSuffix(name, ".json")
	switch {
	case path == memoryFile: // derived from the rest
	case path == branchesFile || path == headFile:
		l.Put(importPrefix+path, []byte(text), sdk.AnyVersion)
	case dir == "events" && isID(id):
		e, err := decodeEvent([]byte(text))
		if err != nil || e.ID != id || e.id() != id {
			l.Fail(wrong(path, "the id is not that of the content"))
		}
		l.storeEvent(e)
	case dir == "commits" && isID(id):
		k, err := decodeCommit([]byte(text))
		if err != nil || k.ID != id || k.id() != id {
			l.Fail(wrong(path, "the id is not that of the content"))
		}
		l.putCommit(k)
	case dir == "sources":
		l.importSource(path, text)
	default:
		return false
	}
	return true
}

func (l *ledger) importSource(path, text string) {
	var key, value string
	err := object.DecodeStrictly([]byte(text), object.Always("key", &key), object.Always("value", &value))
	if err != nil || !strings.HasPrefix(key, "source/") && !strings.HasPrefix(key, "source#") || len(key) > 512 {
		l.Fail(wrong(path, "this is no source"))
	}
	l.Put(key, []byte(value), sdk.AnyVersion)
}

// importEnd installs the branches once everything that they name exists.
func (l *ledger) importEnd() {
	text, version := l.Get(importPrefix + branchesFile)
	if version == 0 {
		l.Fail(wrong("params.files", branchesFile+" has not come"))
	}
	var list abi.Raw
	err := object.DecodeStrictly(text, object.Always("branches", &list))
	if err == nil && len(list) > 0 {
		err = wirejson.DecodeBytes(list).Arr(func(d *wirejson.Decoder) error {
			raw, err := d.Raw()
			if err != nil {
				return err
			}
			b, err := decodeBranch(raw)
			if err == nil {
				l.importBranch(b)
			}
			return err
		})
	}
	if err != nil {
		l.Fail(wrong(branchesFile, err.Error()))
	}
	if head, version := l.Get(importPrefix + headFile); version != 0 {
		l.switchTo(strings.TrimSpace(string(head)))
	}
	l.Delete(importPrefix)
}

// importBranch replaces an empty branch. A branch that the scope has in the same state is left unchanged.
func (l *ledger) importBranch(b *branch) {
	if err := checkBranchName(b.Name); err != nil {
		l.Fail(wrong(branchesFile, abi.AsError(err).Message))
	}
	is := l.find(b.Name)
	if is != nil {
		untouched := is.Head == "" && is.Name == mainBranch && is.CreatedAt == ""
		if is.Head == b.Head && !untouched {
			return
		}
		if is.Head != "" {
			l.Fail(abi.NewError(abi.CodeConflict,
				branchesFile+": the scope's branch "+strconv.Quote(b.Name)+" has commits of its own").
				WithHint("import into an empty scope"))
		}
		b.version = is.version
	}
	l.rebuild(b)
	if b.CreatedAt != "" || b.Head != "" || b.Name != mainBranch {
		l.putBranch(b)
	}
}
