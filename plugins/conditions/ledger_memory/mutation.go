package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

var mutationNames = []string{"memory_add", "memory_update", "memory_forget", "memory_branch", "create_branch",
	"checkout", "merge", "cherry_pick",
	"memory_consolidate", "rebuild", "import_files", "import"}

// The statuses of a mutation's answer.
const (
	applied  = "applied"
	noChange = "no_change"
)

// nativeMutation serves the writing tools and the command line's changes. What a tool returns besides status and ids is
// in trace.details.
//
//	memory_add         subject, predicate, object; scope?, topic?, confidence? (0.8), sensitivity?, evidence?,
//	                   source? (agent), session_id?, branch?
//	memory_update      object, and id or subject with predicate; confidence?, evidence?, session_id?, branch?
//	memory_forget      id, or subject with predicate and object?; session_id?, branch?
//	memory_branch      action: create, switch or list; name, persona?; also create_branch {name, persona?, from?,
//	                   orphan?, metadata?} and checkout {name}
//	merge              source, target? (the current branch), on_conflict?: report, ours, theirs or llm
//	cherry_pick        id, target?
//	memory_consolidate apply?: forgets what its report calls duplicates or expired, in one commit; events that wait
//	                   are extracted first; branch?
//	rebuild            branch?: rebuilds its view from the ledger
//	import_files       files: {path: text}, done?: what the query files returned, see export.go
//	import             export: what the query export returned with history
//
// Errors: unsupported for another name, invalid_argument, not_found, and conflict if an id or a name matches several.
func nativeMutation(c *sdk.Call, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	return withLedger(c, func(l *ledger) *abi.MutationReceipt {
		answer := l.mutate(&params{l: l, given: r.Params}, r.Name, r.Reason)
		if answer != nil {
			answer.Trace.NativeOperation = r.Name
		}
		return answer
	})
}

func (l *ledger) mutate(p *params, name, reason string) *abi.MutationReceipt {
	if name == "memory_branch" {
		switch p.oneOf("action", "", "create", "switch", "list") {
		case "create":
			name = "create_branch"
		case "switch":
			name = "checkout"
		case "list":
			return l.listBranches(p)
		default:
			p.fail("action", "want create, switch or list")
			return nil
		}
	}
	switch name {
	case "memory_add":
		return l.add(p)
	case "memory_update":
		return l.update(p, reason)
	case "memory_forget":
		return l.forget(p, reason)
	case "create_branch":
		return l.mutateBranch(p)
	case "checkout":
		return l.checkout(p)
	case "merge":
		return l.mutateMerge(p)
	case "cherry_pick":
		return l.mutateCherryPick(p)
	case "memory_consolidate":
		return l.consolidate(p)
	case "rebuild":
		return l.mutateRebuild(p)
	case "import_files":
		return l.importFiles(p)
	case "import":
		return l.importOneFile(p)
	}
	l.Fail(unknownName("native mutation", name, mutationNames))
	return nil
}

// note is one member of a trace's details.
type note struct {
	name  string
	value abi.Raw
}

// receiptOf returns a mutation's receipt.
func (l *ledger) receiptOf(status string, ids []string, notes ...note) *abi.MutationReceipt {
	t := l.s.trace("")
	t.NativeIDs = ids
	for _, n := range notes {
		sdk.Put(&t.Details, n.name, n.value)
	}
	return &abi.MutationReceipt{Status: status, NativeIDs: ids, Trace: t}
}

func (l *ledger) add(p *params) *abi.MutationReceipt {
	e := &event{identity: identity{Type: typeAdd, Subject: p.must("subject"), Predicate: p.must("predicate"),
		Object: p.must("object"), Scope: p.text("scope"),
		Topic: p.text("topic"), Sensitivity: p.text("sensitivity")}, Confidence: p.share("confidence"),
		Source: oneLine(p.text("source"), maxName), Evidence: p.text("evidence"), Timestamp: l.now()}
	if e.Source == "" {
		e.Source = "agent"
	}
	sessionID := p.text("session_id")
	b, v := p.branch()
	l.Fail(e.normalise())
	id := note{"id", sdk.Text(e.ID)}
	if is := v.get(e.ID); is != nil && is.active() && is.EventID == e.ID {
		return l.receiptOf(noChange, []string{e.ID}, note{"status", sdk.Text("duplicate")}, id,
			note{"commit_id", sdk.Text(is.CommitID)})
	}
	rivals := v.rivals(e)
	k, _ := l.commitTo(b, v, &step{events: []*event{e}, message: e.message("Add"),
		meta: meta{ConversationID: sessionID}})
	r := l.receiptOf(applied, []string{e.ID}, note{"status", sdk.Text("added")}, id, note{"commit_id", sdk.Text(k.ID)},
		note{"possible_conflicts", idsOf(rivals)})
	if len(rivals) > 0 {
		r.Trace.Warnings = append(r.Trace.Warnings, possibleConflict)
	}
	return r
}

// entryByID returns the branch's active entry with an event id that begins with a prefix.
//
// Errors: those of lookup; not_found.
func (l *ledger) entryByID(v *view, prefix string) (*entry, error) {
	id, err := l.lookup(eventPrefix, prefix)
	if err != nil {
		return nil, err
	}
	e := v.entryOf(id)
	if e == nil || !e.active() || !l.mayShow(e) {
		return nil, abi.NewError(abi.CodeNotFound, "params.id: the branch has no active entry "+id)
	}
	return e, nil
}

// targetEntry returns the active entry that a tool names by id, or by subject and predicate.
//
// Errors: not_found, conflict if several match.
func (l *ledger) targetEntry(v *view, id, subject, predicate string) *entry {
	if id != "" {
		e, err := l.entryByID(v, id)
		if err != nil {
			l.Fail(err)
			e = new(entry)
		}
		return e
	}
	l.needs(subject, predicate)
	facts := v.facts(subject, predicate)
	if len(facts) == 1 {
		return facts[0]
	}
	e := abi.NewError(abi.CodeNotFound, "params.subject: the branch has no fact with this subject and predicate")
	if len(facts) > 1 {
		e = abi.NewError(abi.CodeConflict, "params.subject: "+sdk.Itoa(len(facts))+" facts have this subject and "+
			"predicate")
		e.Hint = "give the id of one:"
		for _, is := range facts {
			e.Hint += " " + is.EventID
		}
	}
	l.Fail(e)
	return new(entry)
}

// needs rejects a tool call that names an entry neither by id nor by subject and predicate.
func (l *ledger) needs(subject, predicate string) {
	if subject == "" || predicate == "" {
		l.Fail(wrong("params.id", "want an id, or subject and predicate"))
	}
}

func (l *ledger) update(p *params, reason string) *abi.MutationReceipt {
	object := p.must("object")
	id, subject, predicate := p.text("id"), p.text("subject"), p.text("predicate")
	evidence, sessionID := p.text("evidence"), p.text("session_id")
	confidence := p.share("confidence")
	b, v := p.branch()
	is := l.targetEntry(v, id, subject, predicate)
	if is.observed() {
		p.fail("id", is.EventID+" is an observation, which is not changed; forget it, or add a fact")
	}
	e := &event{identity: is.identity, Confidence: confidence, Source: "agent", Evidence: evidence, Timestamp: l.now()}
	e.Type, e.Object, e.ParentID = typeModify, object, is.EventID
	l.Fail(e.normalise())
	if e.Object == is.Object {
		return l.receiptOf(noChange, []string{is.EventID}, note{"status", sdk.Text("unchanged")},
			note{"id", sdk.Text(is.EventID)})
	}
	if reason == "" {
		reason = e.message("Update")
	}
	l.settleEntry(is)
	k, _ := l.commitTo(b, v, &step{events: []*event{e}, message: reason, meta: meta{ConversationID: sessionID}})
	return l.receiptOf(applied, []string{e.ID}, note{"status", sdk.Text("updated")}, note{"id", sdk.Text(e.ID)},
		note{"previous_id", sdk.Text(e.ParentID)},
		note{"commit_id", sdk.Text(k.ID)})
}

func (l *ledger) forget(p *params, reason string) *abi.MutationReceipt {
	id, subject, predicate := p.text("id"), p.text("subject"), p.text("predicate")
	object, sessionID := p.text("object"), p.text("session_id")
	b, v := p.branch()
	var doomed []*entry
	if id == "" {
		l.needs(subject, predicate)
		l.settleFact(subject, predicate, object)
		doomed = v.forgets(&identity{Subject: subject, Predicate: predicate, Object: object})
	} else if e, err := l.entryByID(v, id); err == nil {
		doomed = append(doomed, e)
	} else if abi.CodeOf(err) != abi.CodeNotFound {
		l.Fail(err)
	}
	if len(doomed) == 0 {
		return l.receiptOf(noChange, nil, note{"status", sdk.Text("not_found")})
	}
	if reason == "" {
		reason = "Forget " + sdk.Itoa(len(doomed)) + " item(s)"
	}
	for _, is := range doomed {
		l.settleEntry(is)
	}
	k, ids := l.forgetAll(b, v, doomed, reason, sessionID)
	return l.receiptOf(applied, ids, note{"status", sdk.Text("forgotten")}, note{"ids", idsOf(doomed)},
		note{"commit_id", sdk.Text(k.ID)})
}

// forgetAll makes one commit that forgets entries, each by its current event.
func (l *ledger) forgetAll(b *branch, v *view, doomed []*entry, message, sessionID string) (*commit, []string) {
	s := &step{message: message, meta: meta{ConversationID: sessionID}}
	var ids []string
	for _, d := range doomed {
		e := &event{identity: d.identity, Source: "agent", Timestamp: l.now()}
		e.Type, e.Object, e.ParentID = typeForget, "", d.EventID
		l.Fail(e.normalise())
		s.events = append(s.events, e)
		ids = append(ids, d.EventID)
	}
	k, _ := l.commitTo(b, v, s)
	return k, ids
}

func (l *ledger) mutateBranch(p *params) *abi.MutationReceipt {
	name, persona, from, orphan := p.must("name"), p.text("persona"), p.text("from"), p.flag("orphan")
	metadata := abi.Raw(p.raw("metadata", wirejson.Object))
	p.rejectUnknown()
	if orphan && from != "" {
		p.fail("from", "an orphan begins with nothing")
	}
	return l.receiptOf(applied, nil, note{"branch", l.createBranch(name, persona, from, orphan, metadata).encode()})
}

// listBranches is the query branches as the answer of a mutation.
func (l *ledger) listBranches(p *params) *abi.MutationReceipt {
	p.rejectUnknown()
	current, _ := l.head()
	return l.receiptOf(noChange, nil, note{"current", sdk.Text(current)}, note{"branches", l.branchList()})
}

func (l *ledger) checkout(p *params) *abi.MutationReceipt {
	name := p.must("name")
	p.text("persona")
	p.rejectUnknown()
	status := noChange
	if l.switchTo(name) {
		status = applied
	}
	return l.receiptOf(status, nil, note{"current", sdk.Text(name)})
}

func (l *ledger) mutateMerge(p *params) *abi.MutationReceipt {
	source, target, policy := p.must("source"), p.text("target"),
		p.oneOf("on_conflict", onReport, onOurs, onTheirs, onLLM)
	p.rejectUnknown()
	if policy == onLLM && l.s.llm == nil {
		p.fail("on_conflict", "llm needs the block llm in the configuration")
	}
	if target == "" {
		target, _ = l.head()
	}
	m := l.merge(target, source, policy)
	r := l.mergeReceipt(m)
	if m.upToDate {
		sdk.Put(&r.Trace.Details, "up_to_date", abi.Raw("true"))
	}
	return r
}

func (l *ledger) mutateCherryPick(p *params) *abi.MutationReceipt {
	id, target := p.must("id"), p.text("target")
	p.rejectUnknown()
	return l.mergeReceipt(l.cherryPick(l.resolve(commitPrefix, id), target))
}

// mergeReceipt puts {commit_id, applied, skipped, conflicts, open?} into trace.details.
func (l *ledger) mergeReceipt(m *mergeResult) *abi.MutationReceipt {
	status, id := noChange, abi.Raw("null")
	if m.commit != nil {
		status, id = applied, sdk.Text(m.commit.ID)
	}
	var conflicts wirejson.Encoder
	open := false // a blocking conflict is not settled
	conflicts.ArrStart()
	for _, c := range m.conflicts {
		open = open || c.severity == blocking && c.settled == ""
		about := &c.theirs.identity
		members := []object.Member{object.Always("type", &c.kind), object.Always("severity", &c.severity),
			object.Always("lineage_id", &c.theirs.Lineage),
			object.Always("subject", &about.Subject), object.Always("predicate", &about.Predicate)}
		for _, side := range c.sides() {
			value := ""
			if side.is != nil && side.is.active() && l.mayShow(side.is) {
				value = side.is.Object
			}
			members = append(members, object.OrNull(side.name, &value))
		}
		object.Write(&conflicts, append(members, object.OrNull("settled", &c.settled),
			object.Always("event_ids", &c.events))...)
	}
	conflicts.ArrEnd()
	r := l.receiptOf(status, m.applied, note{"commit_id", id}, note{"applied", object.Texts(m.applied)},
		note{"skipped", object.Texts(m.skipped)},
		note{"conflicts", conflicts.Bytes()})
	if open {
		sdk.Put(&r.Trace.Details, "open", abi.Raw("true"))
	}
	r.Trace.Warnings = m.warnings
	return r
}

func (l *ledger) mutateRebuild(p *params) *abi.MutationReceipt {
	name := p.text("branch")
	p.rejectUnknown()
	b := l.branchNamed(name)
	v := l.rebuild(b)
	// Work in progress started from the old view, so it has to start over.
	if b.Head != "" {
		l.putBranch(b)
	}
	return l.receiptOf(applied, nil, note{"branch", sdk.Text(b.Name)}, note{"active", sdk.Number(v.active)},
		note{"forgotten", sdk.Number(v.forgotten)})
}
