package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

var queryNames = []string{"memory_search", "memory_history", "memory_branch", "memory_consolidate", "log", "branches", "view", "fsck", "files"}

// nativeQuery answers the reading tools and what the command line shows. All are of the current branch unless branch is given.
//
//	memory_search       query?, subject?, scope?, topic? (at least one), session_id?, include_forgotten?, limit? 1..100 (10), branch?
//	memory_history, log limit? 1..1000 (10), subject?, branch?, after? (the last commit of the page before)
//	memory_branch       action: list; branches: the same
//	memory_consolidate  what could be tidied: branch?
//	view                all? (forgotten and expired entries too), scope?, after?, branch?
//	fsck                what is missing, damaged or reached by no branch
//	files               after?: a page of the ledger as files, {path: text}; trace.details.next is where the next page begins
//
// Errors: unsupported for another name, invalid_argument, not_found and conflict for an id.
func nativeQuery(c *sdk.Call, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	l, err := open(c)
	if err != nil {
		return nil, err
	}
	p := &params{given: r.Params}
	var result []byte
	switch r.Name {
	case "memory_search":
		result, err = l.querySearch(p)
	case "memory_history", "log":
		result, err = l.queryLog(p)
	case "memory_branch", "branches":
		if r.Name == "memory_branch" {
			p.oneOf("action", "list")
		}
		result, err = l.queryBranches(p)
	case "memory_consolidate":
		result, err = l.queryReport(p)
	case "view":
		result, err = l.queryView(p)
	case "fsck":
		result, err = l.queryFsck(p)
	case "files":
		result, err = l.exportFiles(p)
	default:
		return nil, unknownName("native query", r.Name, queryNames)
	}
	if err != nil {
		return nil, err
	}
	t := l.s.trace(r.Name)
	if l.next != "" {
		t.Details = abi.Members[abi.Raw]{{Name: "next", Value: sdk.Text(l.next)}}
	}
	return &abi.NativeQueryResult{Name: r.Name, Result: result, Trace: t}, nil
}

func unknownName(what, name string, known []string) error {
	return abi.NewError(abi.CodeUnsupported, "name: ledger_memory has no "+what+" "+strconv.Quote(name)+", only "+strings.Join(known, ", "))
}

// branchOf opens the branch of the parameter "branch" with its view. It is asked for behind the other parameters.
func (l *ledger) branchOf(p *params) (*branch, *view, error) {
	name := p.text("branch")
	if err := p.done(); err != nil {
		return nil, nil, err
	}
	return l.onView(name)
}

func (l *ledger) querySearch(p *params) ([]byte, error) {
	s := &search{query: strings.TrimSpace(p.text("query")), subject: p.text("subject"), topic: p.text("topic"), sessionID: p.text("session_id"),
		includeForgotten: p.flag("include_forgotten"), limit: p.number("limit", 1, 100, 10)}
	if p.has("scope") {
		s.scope = p.oneOf("scope", permanent, session, temporary)
	}
	if s.query == "" && s.subject == "" && s.topic == "" && s.scope == "" {
		p.fail("query", "want at least one of query, subject, scope and topic")
	}
	_, v, err := l.branchOf(p)
	if err != nil {
		return nil, err
	}
	hits, err := l.find(v, s)
	if err != nil {
		return nil, err
	}
	b := []byte{'['}
	for i, h := range hits {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, h.encode()...)
		if s.query != "" {
			b = append(appendShare(b[:len(b)-1], ",\"score\":", h.score), '}')
		}
	}
	return append(b, ']'), nil
}

func (l *ledger) queryLog(p *params) ([]byte, error) {
	limit, subject, after := p.number("limit", 1, 1000, 10), p.text("subject"), p.text("after")
	name := p.text("branch")
	if err := p.done(); err != nil {
		return nil, err
	}
	b, err := l.on(name)
	if err != nil {
		return nil, err
	}
	id := b.Head
	if after != "" {
		if !isID(after) {
			return nil, wrong("params.after", "want the id of a commit")
		}
		k, err := l.theCommit(after)
		if err != nil {
			return nil, err
		}
		id = k.ParentID
	}
	out := []byte{'['}
	for n := int64(0); id != "" && n < limit; {
		k, err := l.theCommit(id)
		if err != nil {
			return nil, err
		}
		id = k.ParentID
		changes, about, err := l.changes(k, subject)
		if err != nil {
			return nil, err
		}
		if subject != "" && !about {
			continue
		}
		if n++; n > 1 {
			out = append(out, ',')
		}
		out = append(out, k.encode()...)
		out = append(append(append(out[:len(out)-1], `,"changes":`...), changes...), '}')
	}
	return append(out, ']'), nil
}

// signs show what an event does.
var signs = map[string]string{typeAdd: "+", typeModify: "~", typeForget: "-", typeObserve: "?"}

// changes is what a commit does, a line for each event; about tells whether one has the subject. What is confidential is not spelt out.
func (l *ledger) changes(k *commit, subject string) (list []byte, about bool, err error) {
	list = []byte{'['}
	for i, id := range k.Events {
		e, err := l.theEvent(id)
		if err != nil {
			return nil, false, err
		}
		about = about || fold(e.Subject) == fold(subject)
		if i > 0 {
			list = append(list, ',')
		}
		text := strings.TrimSpace(signs[e.Type] + " " + e.Subject + " " + e.Predicate + " " + e.Object)
		if e.Sensitivity == confidential && !l.s.exposeConfidential {
			text = signs[e.Type] + " (confidential)"
		}
		list = appendField(list, '{', "id", id)
		list = append(appendField(list, ',', "text", text), '}')
	}
	return append(list, ']'), about, nil
}

func (l *ledger) queryBranches(p *params) ([]byte, error) {
	if err := p.done(); err != nil {
		return nil, err
	}
	list, err := l.branches()
	if err != nil {
		return nil, err
	}
	current, _, err := l.head()
	if err != nil {
		return nil, err
	}
	b := append(appendField(nil, '{', "current", current), `,"branches":[`...)
	for i, each := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, each.encode()...)
	}
	return append(b, ']', '}'), nil
}

// pageBytes is about how much a page of an answer holds.
const pageBytes = 1 << 20

// queryView lists a branch's entries, the last touched first: {branch, entries, next}. next is absent on the last page.
func (l *ledger) queryView(p *params) ([]byte, error) {
	all, after := p.flag("all"), p.text("after")
	only := ""
	if p.has("scope") {
		only = p.oneOf("scope", permanent, session, temporary)
	}
	b, v, err := l.branchOf(p)
	if err != nil {
		return nil, err
	}
	out := append(appendField(nil, '{', "branch", b.Name), `,"entries":[`...)
	first := true
	for _, part := range []string{"item/", "gone/"} {
		if part == "gone/" && !all || after != "" && !strings.HasPrefix(after, part) && part == "item/" {
			continue
		}
		r := abi.StateListRequest{Prefix: v.prefix + part, Values: true, Limit: 200}
		if strings.HasPrefix(after, part) {
			r.After = v.prefix + after
		}
		for more := true; more; {
			var items []sdk.Item
			if items, more, err = l.List(r); err != nil {
				return nil, err
			}
			for _, i := range items {
				r.After = i.Key
				e, err := unpack(i.Value)
				if err != nil {
					return nil, damaged(i.Key)
				}
				if !l.mayShow(e) || !all && l.expired(e) || only != "" && e.Scope != only {
					continue
				}
				if !first {
					out = append(out, ',')
				}
				first = false
				out = append(out, e.encode()...)
			}
			if len(out) > pageBytes {
				return append(appendField(append(out, ']'), ',', "next", strings.TrimPrefix(r.After, v.prefix)), '}'), nil
			}
		}
	}
	return append(out, ']', '}'), nil
}
