package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

var mutationNames = []string{"memory_add", "memory_update", "memory_forget", "memory_branch", "create_branch", "checkout", "merge", "cherry_pick",
	"memory_consolidate", "rebuild", "import_files"}

// The statuses of a mutation's answer.
const (
	applied  = "applied"
	noChange = "no_change"
)

// nativeMutation answers the writing tools and what the command line changes. What a tool tells beyond status and ids stands in trace.details.
//
//	memory_add         subject, predicate, object; scope?, topic?, confidence? (0.8), sensitivity?, evidence?, session_id?, branch?
//	memory_update      object, and id or subject with predicate; confidence?, evidence?, session_id?, branch?
//	memory_forget      id, or subject with predicate and object?; session_id?, branch?
//	memory_branch      action: create or switch; name, persona?; also create_branch {name, persona?, from?, orphan?} and checkout {name}
//	merge              source, target? (the current branch), on_conflict?: report, ours, theirs or llm
//	cherry_pick        id, target?
//	memory_consolidate apply?: forgets what its report calls duplicates or expired, in one commit; events that wait are extracted first; branch?
//	rebuild            branch?: makes its view anew from the ledger
//	import_files       files: {path: text}, done?: what the query files gave, see files.go
//
// Errors: unsupported for another name, invalid_argument, not_found, and conflict where an id or a name fits several.
func nativeMutation(c *sdk.Call, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	l, err := open(c)
	if err != nil {
		return nil, err
	}
	p, name := &params{given: r.Params}, r.Name
	if name == "memory_branch" {
		switch p.oneOf("action", "", "create", "switch") {
		case "create":
			name = "create_branch"
		case "switch":
			name = "checkout"
		default:
			return nil, wrong("params.action", "want create or switch; list is a query")
		}
	}
	var answer *abi.MutationReceipt
	switch name {
	case "memory_add":
		answer, err = l.add(p)
	case "memory_update":
		answer, err = l.update(p, r.Reason)
	case "memory_forget":
		answer, err = l.forget(p, r.Reason)
	case "create_branch":
		answer, err = l.mutateBranch(p)
	case "checkout":
		answer, err = l.checkout(p)
	case "merge":
		answer, err = l.mutateMerge(p)
	case "cherry_pick":
		answer, err = l.mutateCherryPick(p)
	case "memory_consolidate":
		answer, err = l.consolidate(p)
	case "rebuild":
		answer, err = l.mutateRebuild(p)
	case "import_files":
		answer, err = l.importFiles(p)
	default:
		return nil, unknownName("native mutation", r.Name, mutationNames)
	}
	if err != nil {
		return nil, err
	}
	answer.Trace.NativeOperation = r.Name
	return answer, nil
}

// result is a mutation's answer; details are pairs of a name and a JSON value.
func (l *ledger) result(status string, ids []string, details abi.Members[abi.Raw]) *abi.MutationReceipt {
	t := l.s.trace("")
	t.Details, t.NativeIDs = details, ids
	return &abi.MutationReceipt{Status: status, NativeIDs: ids, Trace: t}
}

// factOf reads the fields of a fact that a tool gives.
func (l *ledger) factOf(p *params, kind string) *event {
	return &event{identity: identity{Type: kind, Subject: p.text("subject"), Predicate: p.text("predicate"), Object: p.text("object"), Scope: p.text("scope"),
		Topic: p.text("topic"), Sensitivity: p.text("sensitivity")}, Confidence: p.share("confidence"), Source: "agent", Evidence: p.text("evidence"), Timestamp: l.now()}
}

func (l *ledger) add(p *params) (*abi.MutationReceipt, error) {
	for _, name := range []string{"subject", "predicate", "object"} {
		p.must(name)
	}
	e := l.factOf(p, typeAdd)
	sessionID := p.text("session_id")
	b, v, err := l.branchOf(p)
	if err != nil {
		return nil, err
	}
	if err := e.normalise(); err != nil {
		return nil, err
	}
	is, err := v.get(e.ID)
	if err != nil {
		return nil, err
	}
	if is != nil && is.ForgottenAt == "" && is.EventID == e.ID {
		return l.result(noChange, []string{e.ID}, abi.Members[abi.Raw]{{Name: "status", Value: sdk.Text("duplicate")}, {Name: "id", Value: sdk.Text(e.ID)}, {Name: "commit_id", Value: sdk.Text(is.CommitID)}}), nil
	}
	rivals, err := l.rivals(v, e)
	if err != nil {
		return nil, err
	}
	k, _, err := l.commitTo(b, v, &step{events: []*event{e}, message: e.message("Add"), meta: meta{ConversationID: sessionID}})
	if err != nil {
		return nil, err
	}
	r := l.result(applied, []string{e.ID}, abi.Members[abi.Raw]{{Name: "status", Value: sdk.Text("added")}, {Name: "id", Value: sdk.Text(e.ID)}, {Name: "commit_id", Value: sdk.Text(k.ID)},
		{Name: "possible_conflicts", Value: appendTexts(nil, rivals)}})
	if len(rivals) > 0 {
		r.Trace.Warnings = append(r.Trace.Warnings, possibleConflict)
	}
	return r, nil
}

// rivals are the active facts with an event's subject and predicate and another object.
func (l *ledger) rivals(v *view, e *event) ([]string, error) {
	lineages, err := v.facts(e.Subject, e.Predicate)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, lineage := range lineages {
		is, err := v.get(lineage)
		if err != nil {
			return nil, err
		}
		if is.Object != e.Object {
			ids = append(ids, is.EventID)
		}
	}
	return ids, nil
}

// meant finds the active entry that a tool names by id, or by subject and predicate.
//
// Errors: not_found, conflict where several fit.
func (l *ledger) meant(v *view, id, subject, predicate string) (*entry, error) {
	if id != "" {
		id, err := l.resolve(eventPrefix, id)
		if err != nil {
			return nil, err
		}
		e, err := l.entryOf(v, id)
		if err == nil && (e == nil || e.ForgottenAt != "" || !l.mayShow(e)) {
			err = abi.NewError(abi.CodeNotFound, "params.id: the branch has no active entry "+id)
		}
		return e, err
	}
	if subject == "" || predicate == "" {
		return nil, wrong("params.id", "want an id, or subject and predicate")
	}
	lineages, err := v.facts(subject, predicate)
	switch {
	case err != nil:
		return nil, err
	case len(lineages) == 0:
		return nil, abi.NewError(abi.CodeNotFound, "params.subject: the branch has no fact with this subject and predicate")
	case len(lineages) > 1:
		e := abi.NewError(abi.CodeConflict, "params.subject: "+sdk.Itoa(len(lineages))+" facts have this subject and predicate")
		e.Hint = "give the id of one:"
		for _, lineage := range lineages {
			is, err := v.get(lineage)
			if err != nil {
				return nil, err
			}
			e.Hint += " " + is.EventID
		}
		return nil, e
	}
	return v.get(lineages[0])
}

func (l *ledger) update(p *params, reason string) (*abi.MutationReceipt, error) {
	object := p.must("object")
	id, subject, predicate, evidence, sessionID := p.text("id"), p.text("subject"), p.text("predicate"), p.text("evidence"), p.text("session_id")
	confidence := p.share("confidence")
	b, v, err := l.branchOf(p)
	if err != nil {
		return nil, err
	}
	is, err := l.meant(v, id, subject, predicate)
	if err != nil {
		return nil, err
	}
	if is.observed() {
		return nil, wrong("params.id", is.EventID+" is an observation, which is not changed; forget it, or add a fact")
	}
	e := &event{identity: is.identity, Confidence: confidence, Source: "agent", Evidence: evidence, Timestamp: l.now()}
	e.Type, e.Object, e.ParentID = typeModify, object, is.EventID
	if err := e.normalise(); err != nil {
		return nil, err
	}
	if e.Object == is.Object {
		return l.result(noChange, []string{is.EventID}, abi.Members[abi.Raw]{{Name: "status", Value: sdk.Text("unchanged")}, {Name: "id", Value: sdk.Text(is.EventID)}}), nil
	}
	message := e.message("Update")
	if reason != "" {
		message = reason
	}
	previous := is.EventID
	k, _, err := l.commitTo(b, v, &step{events: []*event{e}, message: message, meta: meta{ConversationID: sessionID}})
	if err != nil {
		return nil, err
	}
	return l.result(applied, []string{e.ID}, abi.Members[abi.Raw]{{Name: "status", Value: sdk.Text("updated")}, {Name: "id", Value: sdk.Text(e.ID)}, {Name: "previous_id", Value: sdk.Text(previous)},
		{Name: "commit_id", Value: sdk.Text(k.ID)}}), nil
}

func (l *ledger) forget(p *params, reason string) (*abi.MutationReceipt, error) {
	id, subject, predicate, object, sessionID := p.text("id"), p.text("subject"), p.text("predicate"), p.text("object"), p.text("session_id")
	b, v, err := l.branchOf(p)
	if err != nil {
		return nil, err
	}
	var doomed []*entry
	if id != "" {
		e, err := l.meant(v, id, "", "")
		switch {
		case abi.CodeOf(err) == abi.CodeNotFound:
		case err != nil:
			return nil, err
		default:
			doomed = append(doomed, e)
		}
	} else {
		if subject == "" || predicate == "" {
			return nil, wrong("params.id", "want an id, or subject and predicate")
		}
		lineages, err := forgets(v, &identity{Subject: subject, Predicate: predicate, Object: object})
		if err != nil {
			return nil, err
		}
		for _, lineage := range lineages {
			e, err := v.get(lineage)
			if err != nil {
				return nil, err
			}
			doomed = append(doomed, e)
		}
	}
	if len(doomed) == 0 {
		return l.result(noChange, nil, abi.Members[abi.Raw]{{Name: "status", Value: sdk.Text("not_found")}}), nil
	}
	message := "Forget " + sdk.Itoa(len(doomed)) + " item(s)"
	if reason != "" {
		message = reason
	}
	k, ids, err := l.forgetAll(b, v, doomed, message, sessionID)
	if err != nil {
		return nil, err
	}
	return l.result(applied, ids, abi.Members[abi.Raw]{{Name: "status", Value: sdk.Text("forgotten")}, {Name: "ids", Value: appendTexts(nil, ids)}, {Name: "commit_id", Value: sdk.Text(k.ID)}}), nil
}

// forgetAll makes one commit that forgets entries, each by its present event.
func (l *ledger) forgetAll(b *branch, v *view, doomed []*entry, message, sessionID string) (*commit, []string, error) {
	s := &step{message: message, meta: meta{ConversationID: sessionID}}
	var ids []string
	for _, d := range doomed {
		e := &event{identity: d.identity, Source: "agent", Timestamp: l.now()}
		e.Type, e.Object, e.ParentID = typeForget, "", d.EventID
		if err := e.normalise(); err != nil {
			return nil, nil, err
		}
		s.events = append(s.events, e)
		ids = append(ids, d.EventID)
	}
	k, _, err := l.commitTo(b, v, s)
	return k, ids, err
}

func (l *ledger) mutateBranch(p *params) (*abi.MutationReceipt, error) {
	name, persona, from, orphan := p.must("name"), p.text("persona"), p.text("from"), p.flag("orphan")
	if err := p.done(); err != nil {
		return nil, err
	}
	if orphan && from != "" {
		return nil, wrong("params.from", "an orphan begins with nothing")
	}
	b, err := l.createBranch(name, persona, from, orphan)
	if err != nil {
		return nil, err
	}
	return l.result(applied, nil, abi.Members[abi.Raw]{{Name: "branch", Value: b.encode()}}), nil
}

func (l *ledger) checkout(p *params) (*abi.MutationReceipt, error) {
	name := p.must("name")
	p.text("persona")
	if err := p.done(); err != nil {
		return nil, err
	}
	moved, err := l.switchTo(name)
	if err != nil {
		return nil, err
	}
	status := noChange
	if moved {
		status = applied
	}
	return l.result(status, nil, abi.Members[abi.Raw]{{Name: "current", Value: sdk.Text(name)}}), nil
}

func (l *ledger) mutateMerge(p *params) (*abi.MutationReceipt, error) {
	source, target, policy := p.must("source"), p.text("target"), p.oneOf("on_conflict", onReport, onOurs, onTheirs, onLLM)
	if err := p.done(); err != nil {
		return nil, err
	}
	if policy == onLLM && l.s.llm == nil {
		return nil, wrong("params.on_conflict", "llm needs the block llm in the configuration")
	}
	if target == "" {
		var err error
		if target, _, err = l.head(); err != nil {
			return nil, err
		}
	}
	m, err := l.merge(target, source, policy)
	if err != nil {
		return nil, err
	}
	r := l.mergeResult(m)
	if m.upToDate {
		r.Trace.Details.Set("up_to_date", abi.Raw("true"))
	}
	return r, nil
}

func (l *ledger) mutateCherryPick(p *params) (*abi.MutationReceipt, error) {
	id, target := p.must("id"), p.text("target")
	if err := p.done(); err != nil {
		return nil, err
	}
	full, err := l.resolve(commitPrefix, id)
	if err != nil {
		return nil, err
	}
	m, err := l.cherryPick(full, target)
	if err != nil {
		return nil, err
	}
	return l.mergeResult(m), nil
}

// mergeResult is {commit_id, applied, skipped, conflicts} in trace.details.
func (l *ledger) mergeResult(m *merged) *abi.MutationReceipt {
	details := abi.Members[abi.Raw]{{Name: "commit_id", Value: abi.Raw("null")}, {Name: "applied", Value: appendTexts(nil, m.applied)}, {Name: "skipped", Value: appendTexts(nil, m.skipped)}}
	status := noChange
	if m.commit != nil {
		status = applied
		details.Set("commit_id", sdk.Text(m.commit.ID))
	}
	list := []byte{'['}
	for i, c := range m.conflicts {
		if i > 0 {
			list = append(list, ',')
		}
		about := c.theirs
		list = appendField(list, '{', "type", c.kind)
		list = appendField(list, ',', "severity", c.severity)
		list = appendField(list, ',', "lineage_id", about.Lineage)
		list = appendField(list, ',', "subject", about.Subject)
		list = appendField(list, ',', "predicate", about.Predicate)
		for _, side := range []struct {
			name string
			e    *entry
		}{{"base", c.base}, {"ours", c.ours}, {"theirs", c.theirs}} {
			value := ""
			if side.e != nil && side.e.ForgottenAt == "" && l.mayShow(side.e) {
				value = side.e.Object
			}
			list = appendOptional(list, ',', side.name, value)
		}
		list = appendOptional(list, ',', "settled", c.settled)
		list = append(appendTexts(append(list, `,"event_ids":`...), c.events), '}')
	}
	details.Set("conflicts", append(list, ']'))
	r := l.result(status, m.applied, details)
	r.Trace.Warnings = m.warnings
	return r
}

func (l *ledger) mutateRebuild(p *params) (*abi.MutationReceipt, error) {
	name := p.text("branch")
	if err := p.done(); err != nil {
		return nil, err
	}
	b, err := l.on(name)
	if err != nil {
		return nil, err
	}
	v, err := l.rebuild(b)
	if err != nil {
		return nil, err
	}
	// Work under way began with the view as it was: it has to begin anew.
	if b.Head != "" {
		if err := l.putBranch(b); err != nil {
			return nil, err
		}
	}
	return l.result(applied, nil, abi.Members[abi.Raw]{{Name: "branch", Value: sdk.Text(b.Name)}, {Name: "active", Value: sdk.Number(v.active)}, {Name: "forgotten", Value: sdk.Number(v.gone)}}), nil
}

// message is a commit's, for one fact. A log is shown freely: what is delicate is not spelt out in it.
func (e *event) message(verb string) string {
	if e.Sensitivity != normal {
		return verb + " a " + e.Sensitivity + " fact"
	}
	return verb + " " + e.Subject + " " + e.Predicate + " " + e.Object
}
