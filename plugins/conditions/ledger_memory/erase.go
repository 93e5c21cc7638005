package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// erase is the operation forget. It rewrites the history as if the recorded events had never existed. Their commits are
// removed, together with the ledger's events that no other commit supports; later commits get new parents and so new
// ids; every view is rebuilt. (The mutation memory_forget is different: it is a commit, and the history keeps what it
// forgets.)
func erase(c *sdk.Call, r *abi.ForgetRequest) (*abi.ForgetReceipt, error) {
	return withLedger(c, func(l *ledger) *abi.ForgetReceipt {
		x := &forgetRun{ledger: l, request: r, recorded: map[string]bool{}, commits: map[string]*commit{},
			dropped: map[string]bool{}, removedEvents: map[string]bool{}, kept: map[string]*commit{}, replacements: map[string]string{}}
		x.receipt = &abi.ForgetReceipt{Status: abi.ForgetDone, DerivedMayRemain: []string{}, Trace: l.s.trace("rewrite"),
			Removed: map[string][]string{"event": {}, "commit": {}}}
		x.read()
		x.chooseLetters()
		x.chooseCommits()
		x.chooseEvents()
		if len(x.letters)+len(x.dropped)+len(x.removedEvents) > 0 {
			x.rewrite()
		}
		for _, id := range abi.SortedKeys(x.recorded) {
			l.Remove(sourceKey(id))
		}
		return x.receipt
	})
}

// forgetRun is one request to forget.
type forgetRun struct {
	*ledger
	request *abi.ForgetRequest
	receipt *abi.ForgetReceipt
	// recorded are the forgotten recorded events, letters the keys of those that wait for the model.
	recorded map[string]bool
	letters  []string
	// commits are all commits, order their ids, parents first.
	commits map[string]*commit
	order   []string
	// dropped commits are removed as a whole; gone are the removed events of the ledger; kept maps each other event to
	// the first commit that supports it.
	dropped, removedEvents map[string]bool
	kept                   map[string]*commit
	// replacements maps each commit to its replacement: itself, its new form, or its parent's replacement if it is
	// dropped.
	replacements map[string]string
}

// provenanceOf returns what a commit's metadata says about the origin of its events. copied: from other commits.
func provenanceOf(k *commit) (m meta, copied bool) {
	m = metaOf(k)
	_ = object.Decode(k.Metadata, object.Optional("merged_branch", &m.MergedBranch),
		object.Optional("cherry_picked_from", &m.CherryPickedFrom))
	return m, m.MergedBranch+m.CherryPickedFrom+k.MergeParentID != ""
}

// read reads all commits, including those that no branch reaches.
func (x *forgetRun) read() {
	heads := []string{}
	for _, b := range x.branches() {
		heads = append(heads, b.Head)
	}
	for item := range x.Values(commitPrefix) {
		id := strings.TrimPrefix(item.Key, commitPrefix)
		k, err := readCommit(id, item.Value)
		x.Fail(err)
		x.commits[id] = k
		heads = append(heads, id)
	}
	seen := map[string]bool{}
	for _, head := range heads {
		if !x.OK() || seen[head] {
			continue
		}
		for _, id := range oldestFirst(x.commits, head) {
			if !seen[id] {
				x.order = append(x.order, id)
			}
			seen[id] = true
		}
	}
}

// chooseLetters selects forgotten events that wait for the model.
func (x *forgetRun) chooseLetters() {
	for _, id := range x.request.EventIDs {
		x.recorded[id] = true
	}
	for _, prefix := range []string{inboxPrefix, deadPrefix} {
		for item := range x.Values(prefix) {
			m, err := decodeLetter(strings.TrimPrefix(item.Key, prefix), item.Value)
			if err != nil {
				x.Fail(damagedError(item.Key))
				return
			}
			e := &m.event
			if x.recorded[e.EventID] || sdk.Forgets(x.request, e.SessionID, e.Timestamp) {
				x.recorded[e.EventID] = true
				x.letters = append(x.letters, item.Key)
				x.receipt.Removed["waiting"] = append(x.receipt.Removed["waiting"], e.EventID)
			}
		}
	}
}

// chooseCommits selects the commits that are removed as a whole: those of the session, those of the time range, then
// all whose recorded events are forgotten.
func (x *forgetRun) chooseCommits() {
	from, to, repeats := state.InSeconds(x.request.From), state.InSeconds(x.request.To), 0
	seen := map[string]bool{}
	for _, id := range x.order {
		k := x.commits[id]
		m, copied := provenanceOf(k)
		switch {
		case copied:
		case x.request.SessionID != "":
			x.dropped[id] = m.ConversationID == x.request.SessionID
		case from != "":
			at := x.firstTime(k, seen)
			x.dropped[id] = at != "" && from <= at && at <= to
			if at == "" {
				repeats++
			}
		}
		if x.dropped[id] {
			for _, recorded := range m.EventIDs {
				x.recorded[recorded] = true
			}
		}
	}
	for _, id := range x.order {
		m := metaOf(x.commits[id])
		left := slices.ContainsFunc(m.EventIDs, func(id string) bool { return !x.recorded[id] })
		x.dropped[id] = x.dropped[id] || len(m.EventIDs) > 0 && !left
		if !x.dropped[id] {
			delete(x.dropped, id)
		}
	}
	if repeats > 0 {
		x.remains("turns that only repeat what was said before, of which the time is not kept: " +
			sdk.Itoa(int64(repeats)))
	}
}

// firstTime returns when the events of a commit were said that no earlier commit has; "" if there are none. seen are
// the events of the earlier commits.
func (x *forgetRun) firstTime(k *commit, seen map[string]bool) (at string) {
	for _, id := range k.Events {
		if !seen[id] {
			at = x.theEvent(id).Timestamp
		}
		seen[id] = true
	}
	return at
}

// chooseEvents selects the ledger's events to remove: those that only dropped commits support, those that the request
// names, and forgets of these.
func (x *forgetRun) chooseEvents() {
	for _, id := range x.order {
		k := x.commits[id]
		if _, copied := provenanceOf(k); copied || x.dropped[id] {
			continue
		}
		for _, event := range k.Events {
			if x.kept[event] == nil {
				x.kept[event] = k
			}
		}
	}
	shared := 0
	for id := range x.dropped {
		for _, event := range x.commits[id].Events {
			if x.kept[event] == nil {
				x.removedEvents[event] = true
			} else {
				shared++
			}
		}
	}
	for _, id := range x.request.NativeIDs {
		if !isID(id) {
			continue
		}
		if e := x.event(id); e != nil {
			x.settleFact(e.Subject, e.Predicate, e.Object)
			x.removedEvents[id] = true
			delete(x.kept, id)
		}
	}
	if shared > 0 {
		x.remains("facts that other turns said too: " + sdk.Itoa(int64(shared)))
	}
	if len(x.removedEvents) == 0 {
		return
	}
	for id := range x.kept {
		if e := x.theEvent(id); e.Type == typeForget && x.removedEvents[e.ParentID] {
			x.removedEvents[id] = true
		}
	}
}

func (x *forgetRun) remains(what string) {
	x.receipt.DerivedMayRemain = append(x.receipt.DerivedMayRemain, what)
}

// rewrite writes the ledger without what was selected.
func (x *forgetRun) rewrite() {
	for _, key := range x.letters {
		x.Delete(key)
	}
	for id := range x.dropped {
		x.disown(x.commits[id])
	}
	for _, id := range abi.SortedKeys(x.removedEvents) {
		x.Delete(eventPrefix + id)
		x.receipt.Removed["event"] = append(x.receipt.Removed["event"], id)
	}
	for _, id := range x.order {
		x.replacements[id] = x.rewritten(x.commits[id])
		if x.dropped[id] {
			x.receipt.Removed["commit"] = append(x.receipt.Removed["commit"], id)
		}
		if x.replacements[id] != id {
			x.Delete(commitPrefix + id)
		}
	}
	x.moveSources()
	for _, listed := range x.branches() {
		b := x.branch(listed.Name) // with its version
		b.Head = x.replacements[b.Head]
		x.rebuild(b)
		x.putBranch(b) // even if unchanged: work in progress started from removed data
	}
	if p := model.ReadProgress(x.State, extractionKey); p.Message != "" {
		p.Failure = model.Failure{} // it may quote the model
		p.Save(x.State, extractionKey)
	}
}

// disown removes from kept events what came from a dropped commit in which they were first seen: speaker, quote, and
// time.
func (x *forgetRun) disown(from *commit) {
	m := metaOf(from)
	for _, id := range from.Events {
		k := x.kept[id]
		e := x.theEvent(id)
		if k == nil || x.removedEvents[id] || e.Source != "conversation:"+m.ConversationID+"/"+m.TurnID {
			continue
		}
		e.Source, e.Evidence, e.Timestamp = "agent", "", k.Timestamp
		if other := metaOf(k); other.TurnID != "" {
			e.Source = "conversation:" + other.ConversationID + "/" + other.TurnID
		}
		x.Put(eventPrefix+id, sealed(e.encode()), sdk.AnyVersion)
	}
}

// rewritten stores a commit's new form, and returns its id.
func (x *forgetRun) rewritten(k *commit) string {
	now := *k
	now.ParentID, now.MergeParentID = x.replacements[k.ParentID], x.replacements[k.MergeParentID]
	if x.dropped[k.ID] {
		return now.ParentID
	}
	now.Events = nil
	for _, id := range k.Events {
		if !x.removedEvents[id] {
			now.Events = append(now.Events, id)
		}
	}
	if len(now.Events) == 0 && len(k.Events) > 0 && now.MergeParentID == "" {
		x.dropped[k.ID] = true
		return now.ParentID
	}
	if len(now.Events) < len(k.Events) {
		now.Message = "Remember " + sdk.Itoa(int64(len(now.Events))) + " item(s)" // it may have quoted one
	}
	now.Metadata = canonical(object.Patch(k.Metadata, x.metadata, func() []object.Member { return nil }))
	now.seal()
	if now.ID != k.ID {
		x.putCommit(&now)
	}
	return now.ID
}

// metadata returns the new form of a member of a commit's metadata.
func (x *forgetRun) metadata(name string, value abi.Raw) abi.Raw {
	switch name {
	case "event_ids":
		var m meta
		_ = object.Decode([]byte(`{"event_ids":`+string(value)+`}`), m.members()...)
		return object.Texts(slices.DeleteFunc(m.EventIDs, func(id string) bool { return x.recorded[id] }))
	case "cherry_picked_from":
		if now := x.replacements[strings.Trim(string(value), `"`)]; now != "" {
			return sdk.Text(now)
		}
	}
	return value
}

// moveSources points the sources of recorded events to the replacements of their commits. If an event's commit is
// dropped although the event is not forgotten, its source becomes empty, without a digest.
func (x *forgetRun) moveSources() {
	for item := range x.Values("source") {
		digest, id, _ := strings.Cut(string(item.Value), " ")
		value := digest + " " + x.replacements[id]
		if x.dropped[id] {
			value = " "
		}
		if x.commits[id] != nil && (x.dropped[id] || x.replacements[id] != id) {
			x.Put(item.Key, []byte(value), sdk.AnyVersion)
		}
	}
}
