package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// The ledger as files, for `memhost export` and `memhost import`:
//
//	events/<id>.json, commits/<id>.json   one object each
//	branches.json                         {"version":1,"branches":[...]}
//	HEAD                                  the current branch and a line end
//	sources/<hash>.json                   which commit an event of the slot became: {"key","value"}
//	MEMORY.md                             a summary for people, of the current branch
const (
	branchesFile = "branches.json"
	headFile     = "HEAD"
)

// exports are the parts of an export, in order; a cursor is the state key after which it continues.
var exports = []struct{ prefix, dir string }{{commitPrefix, "commits/"}, {eventPrefix, "events/"},
	{"source", "sources/"}}

// exportFiles returns a page of the ledger as files: {path: text}.
func (l *ledger) exportFiles(p *params, answer *wirejson.Encoder) {
	after := p.text("after")
	p.rejectUnknown()
	answer.ObjStart()
	for _, part := range exports {
		r := abi.StateListRequest{Prefix: part.prefix, Values: true, Limit: 500}
		if strings.HasPrefix(after, part.prefix) {
			r.After = after
		} else if after > part.prefix || l.next != "" {
			continue
		}
		for item := range l.Items(r) {
			if file := l.fileOf(part.prefix, item); file != nil {
				name := strings.TrimPrefix(item.Key, part.prefix)
				if part.prefix == "source" {
					name = sdk.Digest256(item.Key)[:idLength]
				}
				writeFile(answer, part.dir+name+".json", string(file)+"\n")
			}
			if len(answer.Bytes()) > pageBytes {
				l.next = item.Key
				break
			}
		}
	}
	if l.next == "" {
		writeFile(answer, branchesFile, `{"version":1,"branches":`+string(l.branchList())+"}\n")
		current, _ := l.head()
		writeFile(answer, headFile, current+"\n")
		writeFile(answer, memoryFile, l.memoryText())
	}
	answer.ObjEnd()
}

func writeFile(answer *wirejson.Encoder, path, text string) {
	answer.FieldStart(path)
	answer.Str(text)
}

// fileOf returns the file for an object of the ledger, or nil for a source whose event waits for the model and so is in
// no commit.
func (l *ledger) fileOf(prefix string, item sdk.Item) []byte {
	id := strings.TrimPrefix(item.Key, prefix)
	switch prefix {
	case eventPrefix:
		e, err := readEvent(id, item.Value)
		if err == nil {
			return e.encode()
		}
		l.Fail(err)
	case commitPrefix:
		k, err := readCommit(id, item.Value)
		if err == nil {
			return k.encode()
		}
		l.Fail(err)
	default:
		value := string(item.Value)
		if _, at, _ := strings.Cut(value, " "); at == "" || isID(at) {
			return object.Encode(object.Always("key", &item.Key), object.Always("value", &value))
		}
	}
	return nil
}
