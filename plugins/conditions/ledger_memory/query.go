package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

var queryNames = []string{"memory_search", "memory_history", "memory_branch", "memory_consolidate", "log", "branches",
	"view", "fsck", "files", "graph", "stats", "export", "heartbeat"}

// nativeQuery serves the reading tools and the command line's output. All use the current branch unless branch is set.
//
//	memory_search       query?, subject?, scope?, topic? (at least one), session_id?, include_forgotten?,
//	                    limit? 1..100 (10), branch?; a word also matches longer words that contain it
//	memory_history, log limit? 1..1000 (10), subject?, branch?, after? (the last commit of the page before)
//	memory_branch       action: list; branches: the same
//	memory_consolidate  what could be tidied: branch?
//	view                all? (forgotten and expired entries too), scope?, after?, branch?
//	fsck                what is missing, damaged or reached by no branch
//	files               after?: a page of the ledger as files, {path: text}; trace.details.next is where the next page
//	                    begins
//	graph               format?: mermaid or timeline
//	stats               counts of the ledger and the current branch
//	export              format?: json or markdown, branch? (current; all), history?, include_private?
//	heartbeat           a task for an agent's HEARTBEAT.md
//
// Errors: unsupported for another name, invalid_argument, not_found and conflict for an id.
func nativeQuery(c *sdk.Call, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	return withLedger(c, func(l *ledger) *abi.NativeQueryResult {
		p, answer := &params{l: l, given: r.Params}, new(wirejson.Encoder)
		switch r.Name {
		case "memory_search":
			l.querySearch(p, answer)
		case "memory_history", "log":
			l.queryLog(p, answer)
		case "memory_branch", "branches":
			if r.Name == "memory_branch" {
				p.oneOf("action", "list")
			}
			l.queryBranches(p, answer)
		case "memory_consolidate":
			l.queryReport(p, answer)
		case "view":
			l.queryView(p, answer)
		case "fsck":
			l.queryFsck(p, answer)
		case "files":
			l.exportFiles(p, answer)
		case "graph":
			l.queryGraph(p, answer)
		case "stats":
			l.queryStats(p, answer)
		case "export":
			l.queryExport(p, answer)
		case "heartbeat":
			p.rejectUnknown()
			answer.Str(heartbeat)
		default:
			l.Fail(unknownName("native query", r.Name, queryNames))
		}
		t := l.s.trace(r.Name)
		if l.next != "" {
			sdk.Put(&t.Details, "next", sdk.Text(l.next))
		}
		return &abi.NativeQueryResult{Name: r.Name, Result: answer.Bytes(), Trace: t}
	})
}

func unknownName(what, name string, known []string) error {
	return abi.NewError(abi.CodeUnsupported,
		"name: ledger_memory has no "+what+" "+strconv.Quote(name)+", only "+strings.Join(known, ", "))
}

func (l *ledger) querySearch(p *params, answer *wirejson.Encoder) {
	s := &search{query: strings.TrimSpace(p.text("query")), subject: p.text("subject"), topic: p.text("topic"),
		sessionID:        p.text("session_id"),
		parts:            true,
		includeForgotten: p.flag("include_forgotten"), limit: p.number("limit", 1, 100, 10), scope: p.scope()}
	if s.query == "" && s.subject == "" && s.topic == "" && s.scope == "" {
		p.fail("query", "want at least one of query, subject, scope and topic")
	}
	_, v := p.branch()
	answer.ArrStart()
	for _, h := range l.search(v, s) {
		members := h.members()
		if s.query != "" {
			members = append(members, object.Always("score", &h.score))
		}
		object.Write(answer, members...)
	}
	answer.ArrEnd()
}

func (l *ledger) queryLog(p *params, answer *wirejson.Encoder) {
	limit, subject, after := p.number("limit", 1, 1000, 10), p.text("subject"), p.text("after")
	name := p.text("branch")
	p.rejectUnknown()
	id := l.branchNamed(name).Head
	if after != "" {
		if !isID(after) {
			p.fail("after", "want the id of a commit")
		}
		id = l.theCommit(after).ParentID
	}
	answer.ArrStart()
	for n := int64(0); id != "" && n < limit; {
		k := l.theCommit(id)
		id = k.ParentID
		changes, about := l.changes(k, subject)
		if subject == "" || about {
			n++
			object.Write(answer, append(k.members(), object.Always("changes", &changes))...)
		}
	}
	answer.ArrEnd()
}

// signs symbolise the types of events.
var signs = map[string]string{typeAdd: "+", typeModify: "~", typeForget: "-", typeObserve: "?"}

// changes describes a commit, one line per event; about reports whether one of them has the subject. Confidential
// content is left out.
func (l *ledger) changes(k *commit, subject string) (lines abi.Raw, about bool) {
	var list wirejson.Encoder
	list.ArrStart()
	for _, id := range k.Events {
		e := l.theEvent(id)
		about = about || fold(e.Subject) == fold(subject)
		text := strings.TrimSpace(signs[e.Type] + " " + e.Subject + " " + e.Predicate + " " + e.Object)
		if e.Sensitivity == confidential && !l.s.exposeConfidential {
			text = signs[e.Type] + " (confidential)"
		}
		object.Write(&list, object.Always("id", &id), object.Always("text", &text))
	}
	list.ArrEnd()
	return list.Bytes(), about
}

// queryBranches lists the branches; is_current is set for the one that HEAD names.
func (l *ledger) queryBranches(p *params, answer *wirejson.Encoder) {
	p.rejectUnknown()
	current, _ := l.head()
	var list wirejson.Encoder
	list.ArrStart()
	for _, b := range l.branches() {
		is := b.Name == current
		object.Write(&list, append(b.members(), object.Optional("is_current", &is))...)
	}
	list.ArrEnd()
	branches := abi.Raw(list.Bytes())
	object.Write(answer, object.Always("current", &current), object.Always("branches", &branches))
}

// branchList returns all branches as a list.
func (l *ledger) branchList() abi.Raw {
	var list wirejson.Encoder
	list.ArrStart()
	for _, b := range l.branches() {
		object.Write(&list, b.members()...)
	}
	list.ArrEnd()
	return list.Bytes()
}

// pageBytes is the approximate size of a page.
const pageBytes = 1 << 20

// queryView lists a branch's entries, most recently changed first: {branch, entries, next}. next is absent on the last
// page.
func (l *ledger) queryView(p *params, answer *wirejson.Encoder) {
	all, after, only := p.flag("all"), p.text("after"), p.scope()
	b, v := p.branch()
	list, next := new(wirejson.Encoder), ""
	list.ArrStart()
	parts := []string{itemPart}
	if all {
		parts = append(parts, forgottenPart)
	}
	for _, part := range parts {
		r := abi.StateListRequest{Prefix: v.prefix + part, Values: true, Limit: 200}
		if strings.HasPrefix(after, part) {
			r.After = v.prefix + after
		} else if next != "" || after != "" && part == itemPart {
			continue
		}
		for item := range l.Items(r) {
			e := l.unpack(item.Key, item.Value)
			if l.mayShow(e) && (all || !l.expired(e)) && (only == "" || e.Scope == only) {
				object.Write(list, e.members()...)
			}
			if len(list.Bytes()) > pageBytes {
				next = strings.TrimPrefix(item.Key, v.prefix)
				break
			}
		}
	}
	list.ArrEnd()
	entries := abi.Raw(list.Bytes())
	object.Write(answer, object.Always("branch", &b.Name), object.Always("entries", &entries),
		object.Optional("next", &next))
}
