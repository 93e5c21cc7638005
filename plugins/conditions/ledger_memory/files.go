package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// The ledger as files, for `memhost export` and `memhost import`:
//
//	events/<id>.json, commits/<id>.json   one object each
//	branches.json                         {"version":1,"branches":[...]}
//	HEAD                                  the current branch and a line end
//	sources/<hash>.json                   which commit an event of the slot became: {"key","value"}
const (
	branchesFile = "branches.json"
	headFile     = "HEAD"
	// staged is where an import keeps branches.json and HEAD until everything that they name is there.
	staged = "import/"
)

// exports are the parts of an export, in order: a cursor is a state key behind which it goes on.
var exports = []struct{ prefix, dir string }{{commitPrefix, "commits/"}, {eventPrefix, "events/"}, {"source", "sources/"}}

// filesOut writes {path: text}.
type filesOut struct{ b []byte }

func (o *filesOut) add(path, text string) { o.b = appendField(o.b, "{,"[min(len(o.b), 1)], path, text) }

func (o *filesOut) end() []byte {
	if o.b == nil {
		return []byte("{}")
	}
	return append(o.b, '}')
}

// exportFiles gives a page of the ledger as files.
func (l *ledger) exportFiles(p *params) ([]byte, error) {
	after := p.text("after")
	if err := p.done(); err != nil {
		return nil, err
	}
	out := new(filesOut)
	for _, part := range exports {
		if after > part.prefix && !strings.HasPrefix(after, part.prefix) {
			continue
		}
		r := abi.StateListRequest{Prefix: part.prefix, Values: true, Limit: 500}
		if strings.HasPrefix(after, part.prefix) {
			r.After = after
		}
		for more := true; more; {
			items, rest, err := l.List(r)
			if err != nil {
				return nil, err
			}
			more = rest
			for _, i := range items {
				r.After = i.Key
				if err := l.exportOne(out, part.prefix, part.dir, i); err != nil {
					return nil, err
				}
			}
			if len(out.b) > pageBytes {
				l.next = r.After
				return out.end(), nil
			}
		}
	}
	return l.exportEnd(out)
}

func (l *ledger) exportOne(out *filesOut, prefix, dir string, i sdk.Item) error {
	id := strings.TrimPrefix(i.Key, prefix)
	switch prefix {
	case eventPrefix:
		e, err := readEvent(id, i.Value)
		if err != nil {
			return err
		}
		out.add(dir+id+".json", string(e.encode())+"\n")
	case commitPrefix:
		k, err := readCommit(id, i.Value)
		if err != nil {
			return err
		}
		out.add(dir+id+".json", string(k.encode())+"\n")
	case "source":
		if _, at, _ := strings.Cut(string(i.Value), " "); at != "" && !isID(at) {
			return nil // its event waits for the model, and is in no commit
		}
		line := appendField(nil, '{', "key", i.Key)
		out.add(dir+sdk.Digest256(i.Key)[:idLength]+".json", string(append(appendField(line, ',', "value", string(i.Value)), '}', '\n')))
	}
	return nil
}

// exportEnd adds what is small: branches and HEAD.
func (l *ledger) exportEnd(out *filesOut) ([]byte, error) {
	list, err := l.branches()
	if err != nil {
		return nil, err
	}
	text := []byte(`{"version":1,"branches":[`)
	for i, b := range list {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, b.encode()...)
	}
	out.add(branchesFile, string(text)+"]}\n")
	current, _, err := l.head()
	if err != nil {
		return nil, err
	}
	out.add(headFile, current+"\n")
	return out.end(), nil
}

// importFiles takes files back, in any order and in as many calls as it takes; the last one says done. An object that is there already is left;
// paths that are no part of the layout are named in trace.details.skipped.
//
// Errors: invalid_argument for an object whose id is not that of its content, or a head that is not there; conflict where the scope has commits of its own.
func (l *ledger) importFiles(p *params) (*abi.MutationReceipt, error) {
	list, done := p.raw("files", jsontext.Object), p.flag("done")
	if err := p.done(); err != nil {
		return nil, err
	}
	var skipped []string
	count := int64(0)
	if list != nil {
		if err := readObject(list, func(d *jsontext.Decoder, path string) error {
			text, err := d.Str()
			if err != nil {
				return wrong("params.files", err.Error())
			}
			taken, err := l.importOne(path, text)
			if taken {
				count++
			} else {
				skipped = append(skipped, path)
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	if done {
		if err := l.importEnd(); err != nil {
			return nil, err
		}
	}
	status := noChange
	if count > 0 || done {
		status = applied
	}
	return l.result(status, nil, abi.Members[abi.Raw]{{Name: "files", Value: sdk.Number(count)}, {Name: "skipped", Value: appendTexts(nil, skipped)}}), nil
}

func (l *ledger) importOne(path, text string) (bool, error) {
	dir, name, _ := strings.Cut(path, "/")
	name = name[strings.LastIndexByte(name, '/')+1:] // a repository has objects in folders by the first two digits
	id := strings.TrimSuffix(name, ".json")
	switch {
	case path == branchesFile || path == headFile:
		return true, l.Put(staged+path, []byte(text), sdk.AnyVersion)
	case dir == "events" && isID(id):
		e, err := decodeEvent([]byte(text))
		if err != nil || e.ID != id || e.id() != id {
			return false, wrong(path, "the id is not that of the content")
		}
		return true, l.keep(e)
	case dir == "commits" && isID(id):
		k, err := decodeCommit([]byte(text))
		if err != nil || k.ID != id || idOf(k.fields("")) != id {
			return false, wrong(path, "the id is not that of the content")
		}
		return true, l.putCommit(k)
	case dir == "sources":
		return true, l.importSource(path, text)
	}
	return false, nil
}

func (l *ledger) importSource(path, text string) error {
	var key, value string
	err := readObject([]byte(text), func(d *jsontext.Decoder, name string) (err error) {
		switch name {
		case "key":
			key, err = d.Str()
		case "value":
			value, err = d.Str()
		default:
			err = d.Skip()
		}
		return err
	})
	if err != nil || !strings.HasPrefix(key, "source/") && !strings.HasPrefix(key, "source#") || len(key) > 512 {
		return wrong(path, "this is no source")
	}
	return l.Put(key, []byte(value), sdk.AnyVersion)
}

// importEnd puts the branches in place once all that they name is there.
func (l *ledger) importEnd() error {
	text, version, err := l.Get(staged + branchesFile)
	if err != nil {
		return err
	}
	if version == 0 {
		return wrong("params.files", branchesFile+" has not come")
	}
	if err := l.importBranches(text); err != nil {
		return err
	}
	_, err = l.Delete(staged)
	return err
}

func (l *ledger) importBranches(text []byte) error {
	var incoming []*branch
	if err := readObject(text, func(d *jsontext.Decoder, key string) error {
		if key != "branches" {
			return d.Skip()
		}
		return d.Arr(func(d *jsontext.Decoder) error {
			raw, err := d.Raw()
			if err != nil {
				return err
			}
			b, err := decodeBranch(raw)
			incoming = append(incoming, b)
			return err
		})
	}); err != nil {
		return wrong(branchesFile, err.Error())
	}
	for _, b := range incoming {
		if err := checkBranchName(b.Name); err != nil {
			return wrong(branchesFile, abi.AsError(err).Message)
		}
		is, err := l.branch(b.Name)
		if err != nil && abi.CodeOf(err) != abi.CodeNotFound {
			return err
		}
		if err == nil && is.Head == b.Head && (is.Head != "" || is.Name != mainBranch || is.CreatedAt != "") {
			continue
		}
		if err == nil && is.Head != "" {
			return abi.NewError(abi.CodeConflict, branchesFile+": the scope's branch "+strconv.Quote(b.Name)+" has commits of its own").WithHint("import into an empty scope")
		}
		if is != nil {
			b.version = is.version
		}
		if _, err := l.rebuild(b); err != nil {
			return err
		}
		if b.CreatedAt == "" && b.Head == "" && b.Name == mainBranch {
			continue
		}
		if err := l.putBranch(b); err != nil {
			return err
		}
	}
	head, version, err := l.Get(staged + headFile)
	if err != nil || version == 0 {
		return err
	}
	_, err = l.switchTo(strings.TrimSpace(string(head)))
	return err
}
