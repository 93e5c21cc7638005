package main

import (
	"slices"

	"github.com/memhost/memhost/plugins/conditions/internal/model"
)

// The kinds of a merge's conflicts, and the policies for those that block.
const (
	modifyModify = "modify_modify"
	modifyForget = "modify_forget"
	forgetModify = "forget_modify"
	addAdd       = "add_add"

	onReport = "report"
	onOurs   = "ours"
	onTheirs = "theirs"
	onLLM    = "llm"
)

// blocking is the severity of a conflict that prevents an event from taking effect.
const blocking = "blocking"

// conflict is a difference between two branches.
type conflict struct {
	kind, severity string
	// settled is the side for which a blocking conflict was settled, "" while it is open.
	settled            string
	base, ours, theirs *entry
	// events are the source's events that depend on the conflict's outcome.
	events []string
}

// conflictSide is one of the three sides of a conflict.
type conflictSide struct {
	name string
	is   *entry
}

func (c *conflict) sides() []conflictSide {
	return []conflictSide{{"base", c.base}, {onOurs, c.ours}, {onTheirs, c.theirs}}
}

// mergeResult is the outcome of a merge or a cherry-pick.
type mergeResult struct {
	commit           *commit
	applied, skipped []string
	conflicts        []*conflict
	upToDate         bool
	warnings         []string
}

// merge adds to one branch what it lacks of another, in one commit.
//
// Out: blocking conflicts are left open (report), settled for the target (ours), for the source (theirs), or by the
// model (llm; left open if its answer is unclear). While a conflict is open the commit does not name the source as a
// parent, so that a later merge finds the conflict again.
func (l *ledger) merge(target, source, policy string) *mergeResult {
	x := &merging{ledger: l, policy: policy, to: l.branch(target), from: l.branch(source)}
	if target == source {
		l.Fail(wrong("params.source", "a branch is not merged into itself"))
	}
	x.ours, x.theirs = l.viewOf(x.to), l.viewOf(x.from)
	mine, their := l.ancestors(x.to.Head), l.ancestors(x.from.Head)
	x.findCandidates(mine, their)
	if len(x.candidates) == 0 {
		return &mergeResult{upToDate: true}
	}
	// No branch has this name.
	x.base = l.rebuild(&branch{Name: "~base", Head: nearestCommon(mine, their, x.from.Head)})
	return x.run()
}

// merging is a merge in progress.
type merging struct {
	*ledger
	to, from     *branch
	policy       string
	ours, theirs *view
	// base is a view of the base, made for the merge and removed after it.
	base *view
	// candidates are the source's events that the target's chain lacks, oldest first.
	candidates []*event
	// usage counts the calls to the model that settled conflicts.
	usage model.Usage
}

// findCandidates lists the source's events that the target lacks.
func (x *merging) findCandidates(mine, their map[string]*commit) {
	here := map[string]bool{}
	for _, k := range mine {
		for _, id := range k.Events {
			here[id] = true
		}
	}
	for _, id := range oldestFirst(their, x.from.Head) {
		if mine[id] != nil {
			continue
		}
		for _, eventID := range their[id].Events {
			e := x.theEvent(eventID)
			if (!here[eventID] || x.revived(e)) && !x.revokedForget(e) {
				x.candidates = append(x.candidates, e)
			}
			here[eventID] = true
		}
	}
}

// revived reports whether an event that both chains have is active on the source, which added it again, but forgotten
// on the target.
func (x *merging) revived(e *event) bool {
	if e.Type == typeForget {
		return false
	}
	ours, theirs := x.ours.get(e.ID), x.theirs.get(e.ID)
	return theirs != nil && theirs.active() && ours != nil && !ours.active()
}

// revokedForget reports whether the source has added again what its own forget removed.
func (x *merging) revokedForget(e *event) bool {
	if e.Type != typeForget {
		return false
	}
	is := x.theirs.get(x.theirs.owner(e.ID))
	return is != nil && is.active()
}

// oldestFirst orders commits so that each comes after its parents.
func oldestFirst(commits map[string]*commit, head string) []string {
	var order []string
	seen := map[string]bool{}
	type visit struct {
		id   string
		done bool
	}
	open := []visit{{id: head}}
	for len(open) > 0 {
		at := open[len(open)-1]
		open = open[:len(open)-1]
		switch k := commits[at.id]; {
		case at.done:
			order = append(order, at.id)
		case k != nil && !seen[at.id]:
			seen[at.id] = true
			open = append(open, visit{at.id, true}, visit{id: k.MergeParentID}, visit{id: k.ParentID})
		}
	}
	return order
}

// nearestCommon returns the common ancestor with the fewest steps from the source's head.
func nearestCommon(mine, their map[string]*commit, head string) string {
	seen := map[string]bool{}
	for open := []string{head}; len(open) > 0; open = open[1:] {
		id := open[0]
		if id == "" || seen[id] {
			continue
		}
		if mine[id] != nil {
			return id
		}
		seen[id] = true
		open = append(open, their[id].ParentID, their[id].MergeParentID)
	}
	return ""
}

func (x *merging) run() *mergeResult {
	m := new(mergeResult)
	blocked := map[string]bool{}
	s := &step{message: "Merge " + x.from.Name + " into " + x.to.Name, meta: meta{MergedBranch: x.from.Name},
		mergeParent: x.from.Head}
	for _, lineage := range x.lineages() {
		c := x.compare(lineage)
		if c == nil {
			continue
		}
		m.conflicts = append(m.conflicts, c)
		side := x.decide(c)
		if side == onReport {
			s.mergeParent = "" // it stays open
		} else {
			c.settled = side
		}
		switch x.policy { // the model's decision does not count as a person's
		case onOurs:
			x.settleEntry(c.theirs)
		case onTheirs:
			x.settleEntry(c.ours)
		}
		for _, id := range c.events {
			blocked[id] = blocked[id] || side != onTheirs
		}
	}
	m.conflicts = append(m.conflicts, x.addedTwice()...)
	for _, e := range x.candidates {
		if blocked[e.ID] {
			m.skipped = append(m.skipped, e.ID)
			continue
		}
		s.events = append(s.events, e)
		m.applied = append(m.applied, e.ID)
	}
	x.Delete(x.base.prefix)
	x.usage.Add(x.State)
	m.commit, m.warnings = x.commitTo(x.to, x.ours, s)
	return m
}

// lineages lists the base's lineages that candidates change, in order.
func (x *merging) lineages() []string {
	var list []string
	for _, e := range x.candidates {
		lineage := x.theirs.owner(e.ID)
		if x.base.place(lineage) != "" && !slices.Contains(list, lineage) {
			list = append(list, lineage)
		}
	}
	return list
}

// compare compares a lineage of the base on both sides; nil means no conflict.
func (x *merging) compare(lineage string) *conflict {
	c := &conflict{severity: blocking, base: x.base.must(lineage), ours: x.ours.get(lineage),
		theirs: x.theirs.get(lineage)}
	if c.ours == nil || c.theirs == nil || c.base.observed() || sameValue(c.base, c.ours) || sameValue(c.base, c.theirs) ||
		sameValue(c.ours, c.theirs) {
		return nil
	}
	switch {
	case c.ours.active() && c.theirs.active():
		c.kind = modifyModify
	case !c.theirs.active():
		c.kind = modifyForget
	default:
		c.kind = forgetModify
	}
	for _, e := range x.candidates {
		if x.theirs.owner(e.ID) == lineage {
			c.events = append(c.events, e.ID)
		}
	}
	return c
}

// sameValue reports whether two states of a lineage have the same value.
func sameValue(a, b *entry) bool {
	if !a.active() || !b.active() {
		return a.active() == b.active()
	}
	return a.Object == b.Object && a.Topic == b.Topic && a.Scope == b.Scope && a.Sensitivity == b.Sensitivity
}

// addedTwice finds facts with the same subject and predicate that both sides have added, with different objects. Both
// will be active.
func (x *merging) addedTwice() []*conflict {
	var found []*conflict
	for _, e := range x.candidates {
		if e.Type != typeAdd || x.base.place(e.ID) != "" {
			continue
		}
		theirs := x.theirs.get(e.ID)
		if theirs == nil || !theirs.active() {
			continue
		}
		for _, ours := range x.ours.facts(e.Subject, e.Predicate) {
			if x.base.place(ours.Lineage) == "" && ours.Object != theirs.Object {
				found = append(found, &conflict{kind: addAdd, severity: "advisory", ours: ours, theirs: theirs,
					events: []string{e.ID}})
			}
		}
	}
	return found
}

// cherryPick puts one commit's events into effect on another branch.
//
// Out: events that are already in effect there are left out. If the branch does not have the lineage of a forget, the
// forget is left out; a modify is then applied as a new fact. Both are conflicts of the kind missing_parent. Without
// events there is no commit.
func (l *ledger) cherryPick(id, target string) *mergeResult {
	from := l.theCommit(id)
	to, v := l.onView(target)
	m := new(mergeResult)
	s := &step{message: "cherry-pick " + id[:min(8, len(id))] + ": " + from.Message, meta: metaOf(from)}
	s.meta.CherryPickedFrom = id
	for _, eventID := range from.Events {
		e := l.theEvent(eventID)
		there, orphan := v.inEffect(e)
		if orphan {
			m.conflicts = append(m.conflicts, &conflict{kind: "missing_parent", severity: "advisory",
				theirs: newEntry(e),
				events: []string{eventID}})
		}
		if there || orphan && e.Type == typeForget {
			m.skipped = append(m.skipped, eventID)
			continue
		}
		s.events = append(s.events, e)
		m.applied = append(m.applied, eventID)
	}
	m.commit, m.warnings = l.commitTo(to, v, s)
	return m
}

// inEffect reports whether an event would change nothing on a view, and whether its lineage is missing there.
func (v *view) inEffect(e *event) (there, orphan bool) {
	if e.Type == typeForget {
		if len(v.forgets(&e.identity)) > 0 {
			return false, false
		}
		known := v.owner(e.ID) != "" || e.ParentID != "" && v.owner(e.ParentID) != ""
		return known, !known
	}
	if is := v.entryOf(e.ID); is != nil {
		return is.active() && (is.EventID == e.ID || e.Type == typeAdd), false
	}
	return false, e.Type == typeModify && v.target(&e.identity) == nil
}
