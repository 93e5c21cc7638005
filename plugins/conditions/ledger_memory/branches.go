package main

import (
	"slices"
	"strconv"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

// createBranch makes a branch; HEAD does not move. from is a branch or a commit, "" for the current branch.
//
// Errors: invalid_argument for a bad name, conflict for one that exists.
func (l *ledger) createBranch(name, persona, from string, orphan bool) (*branch, error) {
	if err := checkBranchName(name); err != nil {
		return nil, err
	}
	if _, version, err := l.Get(branchPrefix + name); err != nil || version != 0 || name == mainBranch {
		if err == nil {
			err = abi.NewError(abi.CodeConflict, "name: the branch "+strconv.Quote(name)+" exists")
		}
		return nil, err
	}
	b := &branch{Name: name, Persona: persona}
	if orphan {
		return b, l.putBranch(b)
	}
	if checkBranchName(from) == nil || from == "" {
		start, err := l.on(from)
		switch {
		case err == nil:
			b.Head = start.Head
			if err := l.copyView(start.Name, name); err != nil {
				return nil, err
			}
			return b, l.putBranch(b)
		case abi.CodeOf(err) != abi.CodeNotFound || !isHex(from) || len(from) < 4:
			return nil, err
		}
	}
	var err error
	if b.Head, err = l.resolve(commitPrefix, from); err != nil {
		return nil, err
	}
	if _, err := l.rebuild(b); err != nil {
		return nil, err
	}
	return b, l.putBranch(b)
}

// switchTo moves HEAD; false where it is there already.
func (l *ledger) switchTo(name string) (bool, error) {
	if _, err := l.branch(name); err != nil {
		return false, err
	}
	stored, version, err := l.Get(headKey)
	if err != nil {
		return false, err
	}
	if string(stored) == name+"\n" || version == 0 && name == mainBranch {
		return false, nil
	}
	return true, l.Put(headKey, []byte(name+"\n"), sdk.AnyVersion)
}

// The kinds of a merge's conflicts, and what may be done about those that block.
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

// conflict is where two branches differ about one thing.
type conflict struct {
	kind, severity string
	// settled is the side that a blocking one was settled for, "" while it is open.
	settled            string
	base, ours, theirs *entry
	// events are the source's, which the answer to the conflict decides about.
	events []string
}

// merged is what a merge came to.
type merged struct {
	commit           *commit
	applied, skipped []string
	conflicts        []*conflict
	upToDate         bool
	warnings         []string
}

// merge brings what a branch has and another has not onto that other one, in one commit.
//
// Out: blocking conflicts are left open (report), settled for the target (ours) or for the source (theirs), or by the model
// for one of them (llm; left open where its answer is unclear). While one is open the commit does not name
// the source as its parent, so that a later merge meets it again.
func (l *ledger) merge(target, source, policy string) (*merged, error) {
	to, err := l.branch(target)
	if err != nil {
		return nil, err
	}
	from, err := l.branch(source)
	if err != nil {
		return nil, err
	}
	if target == source {
		return nil, wrong("params.source", "a branch is not merged into itself")
	}
	x := &merging{ledger: l, to: to, from: from, policy: policy}
	if x.ours, err = l.viewOf(to); err != nil {
		return nil, err
	}
	if x.theirs, err = l.viewOf(from); err != nil {
		return nil, err
	}
	if err := x.findCandidates(); err != nil {
		return nil, err
	}
	if len(x.candidates) == 0 {
		return &merged{upToDate: true}, nil
	}
	return x.run()
}

// merging is a merge under way.
type merging struct {
	*ledger
	to, from     *branch
	policy       string
	ours, theirs *view
	// base is a view of the base, made for the merge and removed behind it.
	base *view
	// candidates are the source's events that the target's chain lacks, oldest first.
	candidates []*event
	// usage counts the calls to the model that settled conflicts.
	usage nanobot.Usage
}

// findCandidates finds the base, replays it, and lists what the source has and the target has not.
func (x *merging) findCandidates() error {
	mine, err := x.ancestors(x.to.Head)
	if err != nil {
		return err
	}
	their, err := x.ancestors(x.from.Head)
	if err != nil {
		return err
	}
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
			e, err := x.theEvent(eventID)
			if err != nil {
				return err
			}
			if seen := here[eventID]; !seen {
				x.candidates = append(x.candidates, e)
			} else if revived, err := x.revived(e); err != nil {
				return err
			} else if revived {
				x.candidates = append(x.candidates, e)
			}
			here[eventID] = true
		}
	}
	if x.candidates, err = x.standing(); err != nil || len(x.candidates) == 0 {
		return err
	}
	// No branch is called so.
	x.base, err = x.rebuild(&branch{Name: "~base", Head: nearestCommon(mine, their, x.from.Head)})
	return err
}

// revived tells of an event that both chains have whether the source has brought back with it what the target has forgotten.
func (x *merging) revived(e *event) (bool, error) {
	if e.Type == typeForget {
		return false, nil
	}
	theirs, err := x.theirs.get(e.ID)
	if err != nil || theirs == nil || theirs.ForgottenAt != "" {
		return false, err
	}
	ours, err := x.ours.get(e.ID)
	return err == nil && ours != nil && ours.ForgottenAt != "", err
}

// standing leaves out the forgets that the source itself has taken back, by adding again.
func (x *merging) standing() (list []*event, err error) {
	for _, e := range x.candidates {
		if e.Type == typeForget {
			lineage, err := x.theirs.owner(e.ID)
			if err != nil {
				return nil, err
			}
			is, err := x.theirs.get(lineage)
			if err != nil {
				return nil, err
			}
			if is != nil && is.ForgottenAt == "" {
				continue
			}
		}
		list = append(list, e)
	}
	return list, nil
}

// oldestFirst orders commits so that each stands behind its parents.
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

// nearestCommon is the common ancestor that is fewest steps from the source's head.
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

func (x *merging) run() (*merged, error) {
	m := new(merged)
	blocked := map[string]bool{}
	open := false
	lineages, err := x.lineages()
	if err != nil {
		return nil, err
	}
	for _, lineage := range lineages {
		c, err := x.compare(lineage)
		if err != nil {
			return nil, err
		}
		if c == nil {
			continue
		}
		m.conflicts = append(m.conflicts, c)
		policy, err := x.settled(c)
		if err != nil {
			return nil, err
		}
		if policy == onReport {
			open = true
		} else {
			c.settled = policy
		}
		if policy != onTheirs {
			for _, id := range c.events {
				blocked[id] = true
			}
		}
	}
	twins, err := x.addedTwice()
	if err != nil {
		return nil, err
	}
	m.conflicts = append(m.conflicts, twins...)
	s := &step{message: "Merge " + x.from.Name + " into " + x.to.Name, meta: meta{MergedBranch: x.from.Name}}
	if !open {
		s.mergeParent = x.from.Head
	}
	for _, e := range x.candidates {
		if blocked[e.ID] {
			m.skipped = append(m.skipped, e.ID)
			continue
		}
		s.events = append(s.events, e)
		m.applied = append(m.applied, e.ID)
	}
	if _, err := x.Delete(x.base.prefix); err != nil {
		return nil, err
	}
	if err := x.usage.Add(x.Call); err != nil {
		return nil, err
	}
	m.commit, m.warnings, err = x.commitTo(x.to, x.ours, s)
	return m, err
}

// lineages are those of the base that candidates touch, in order.
func (x *merging) lineages() ([]string, error) {
	var list []string
	for _, e := range x.candidates {
		lineage, err := x.theirs.owner(e.ID)
		if err != nil {
			return nil, err
		}
		at, err := x.base.place(lineage)
		if err != nil {
			return nil, err
		}
		if at != "" && !slices.Contains(list, lineage) {
			list = append(list, lineage)
		}
	}
	return list, nil
}

// compare looks at what became of a lineage of the base on either side; nil is no conflict.
func (x *merging) compare(lineage string) (*conflict, error) {
	base, err := x.base.get(lineage)
	if err != nil {
		return nil, err
	}
	ours, err := x.ours.get(lineage)
	if err != nil {
		return nil, err
	}
	theirs, err := x.theirs.get(lineage)
	if err != nil || ours == nil || theirs == nil || base.observed() {
		return nil, err
	}
	c := &conflict{severity: "blocking", base: base, ours: ours, theirs: theirs}
	switch {
	case same(base, ours) || same(base, theirs) || same(ours, theirs):
		return nil, nil
	case ours.ForgottenAt == "" && theirs.ForgottenAt == "":
		c.kind = modifyModify
	case theirs.ForgottenAt != "":
		c.kind = modifyForget
	default:
		c.kind = forgetModify
	}
	for _, e := range x.candidates {
		owner, err := x.theirs.owner(e.ID)
		if err != nil {
			return nil, err
		}
		if owner == lineage {
			c.events = append(c.events, e.ID)
		}
	}
	return c, nil
}

// same tells whether two states of a lineage say the same.
func same(a, b *entry) bool {
	if a.ForgottenAt != "" || b.ForgottenAt != "" {
		return a.ForgottenAt != "" && b.ForgottenAt != ""
	}
	return a.Object == b.Object && a.Topic == b.Topic && a.Scope == b.Scope && a.Sensitivity == b.Sensitivity
}

// addedTwice finds facts about one thing that both sides have added, with different objects. Both will be live.
func (x *merging) addedTwice() ([]*conflict, error) {
	var found []*conflict
	for _, e := range x.candidates {
		if at, err := x.base.place(e.ID); err != nil {
			return nil, err
		} else if e.Type != typeAdd || at != "" {
			continue
		}
		theirs, err := x.theirs.get(e.ID)
		if err != nil {
			return nil, err
		}
		if theirs == nil || theirs.ForgottenAt != "" {
			continue
		}
		others, err := x.ours.facts(e.Subject, e.Predicate)
		if err != nil {
			return nil, err
		}
		for _, lineage := range others {
			ours, err := x.ours.get(lineage)
			if err != nil {
				return nil, err
			}
			at, err := x.base.place(lineage)
			if err != nil {
				return nil, err
			}
			if at == "" && ours.Object != theirs.Object {
				found = append(found, &conflict{kind: addAdd, severity: "advisory", ours: ours, theirs: theirs, events: []string{e.ID}})
			}
		}
	}
	return found, nil
}

// cherryPick puts one commit's events into effect on another branch.
//
// Out: events in effect there already are left out; a forget whose lineage is not there is left out too, and a modify is applied as a fact of its own:
// both are conflicts of the kind missing_parent. Without events there is no commit.
func (l *ledger) cherryPick(id, target string) (*merged, error) {
	from, err := l.theCommit(id)
	if err != nil {
		return nil, err
	}
	to, v, err := l.onView(target)
	if err != nil {
		return nil, err
	}
	m := new(merged)
	before := metaOf(from)
	s := &step{message: "cherry-pick " + id[:8] + ": " + from.Message,
		meta: meta{CherryPickedFrom: id, ConversationID: before.ConversationID, TurnID: before.TurnID, EventIDs: before.EventIDs}}
	for _, eventID := range from.Events {
		e, err := l.theEvent(eventID)
		if err != nil {
			return nil, err
		}
		there, orphan, err := inEffect(v, e)
		if err != nil {
			return nil, err
		}
		if orphan {
			m.conflicts = append(m.conflicts, &conflict{kind: "missing_parent", severity: "advisory", theirs: newEntry(e), events: []string{eventID}})
		}
		if there || orphan && e.Type == typeForget {
			m.skipped = append(m.skipped, eventID)
			continue
		}
		s.events = append(s.events, e)
		m.applied = append(m.applied, eventID)
	}
	m.commit, m.warnings, err = l.commitTo(to, v, s)
	return m, err
}

// inEffect tells whether an event would change nothing on a view, and whether the lineage that it is about is not there.
func inEffect(v *view, e *event) (there, orphan bool, err error) {
	if e.Type == typeForget {
		lineages, err := forgets(v, &e.identity)
		if err != nil || len(lineages) > 0 {
			return false, false, err
		}
		owner, err := v.owner(e.ID)
		if err == nil && owner == "" && e.ParentID != "" {
			owner, err = v.owner(e.ParentID)
		}
		return owner != "", owner == "", err
	}
	lineage, err := v.owner(e.ID)
	if err != nil {
		return false, false, err
	}
	if lineage != "" {
		is, err := v.get(lineage)
		return err == nil && is != nil && is.ForgottenAt == "" && (is.EventID == e.ID || e.Type == typeAdd), false, err
	}
	if e.Type == typeModify {
		lineage, err := target(v, &e.identity)
		return false, lineage == "", err
	}
	return false, false, nil
}
