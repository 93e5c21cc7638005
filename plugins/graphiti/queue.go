package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// queue is the common part of the REST service and the MCP server. Both put turns into a queue that cannot be
// inspected, so its state is inferred: a turn has arrived when its episode exists, and an episode is written with all
// its facts in one transaction. Hole rule: queues are processed in order, so a turn is lost if a later one of the scope
// has arrived. Stall rule: if no episode was started for stall_s, the ingest worker is presumed dead. Only Neo4j shows
// whether it is busy with other scopes; on REST without Neo4j the answer is then unknown.
type queue struct {
	server
	// perGroup: each group has its own queue, and the list of its episodes is complete, as on the MCP server. The REST
	// service has one queue for all groups, and leaves out episodes whose time is in its future.
	perGroup bool
	// signal names what readiness checks without Neo4j.
	signal string
	// unremovable describes what the server cannot remove of a forgotten event.
	unremovable string
}

// server has the native calls that differ between the two.
type server interface {
	// episodes lists a group's episodes.
	episodes(v *scopedCall, most int64) ([]item, error)
	// facts searches, and adds the answer to f.
	facts(v *scopedCall, f *results, query string, filters []field) error
	// clear removes the group.
	clear(v *scopedCall) error
	// remove removes one fact or episode. The result is the operation's name for the trace, and a warning or "".
	remove(v *scopedCall, kind, uuid string) (operation, warning string, err error)
	// exclusiveFacts returns the facts that only the forgotten episodes assert; all are the group's episodes.
	exclusiveFacts(f *forgetRun, all []item) (facts []string, err error)
	// checkShared completes the receipt after facts and episodes have been removed.
	checkShared(f *forgetRun) error
}

// minFacts is the smallest max_facts with which ingestion works (graphiti_core edge_operations.py:
// resolve_extracted_edges).
const minFacts = 10

func (q *queue) rules(s *settings) []rule {
	return []rule{
		{s.coreOnly != "", s.coreOnly, "exists on the surface core only: Graphiti's own servers do not offer it",
			"use surface: core with memhost-gateway-graphiti, or leave it out"},
		{s.maxFacts < minFacts, "max_facts", "must be at least 10",
			"Graphiti's servers keep the last value for ingestion too, and a smaller one harms it for good; " +
				"max_items of the budget cuts what is shown"},
	}
}

// find searches for facts and, if Neo4j is configured, for the events behind them.
func (q *queue) find(v *scopedCall, query string, filters []field, t *abi.Trace) (*results, error) {
	t.Effective = map[string]abi.Raw{"search": sdk.Text("edge_hybrid_rrf"),
		"max_facts": sdk.Number(v.maxFacts)}
	f := &results{limit: v.maxFacts, limitOrigin: "fixed"}
	err := q.facts(v, f, query, filters)
	if err != nil || !v.hasBolt || !v.annotate || len(f.facts()) == 0 {
		return f, err
	}
	err = f.annotate(v)
	if err != nil {
		t.ResultState = abi.ResultDegraded
		t.Warnings = append(t.Warnings,
			"sources_unknown: Neo4j could not be asked for the episodes behind the facts: "+abi.AsError(err).Message)
	}
	return f, nil
}

// annotate asks Neo4j for the events behind the facts.
func (f *results) annotate(v *scopedCall) error {
	_, rows, err := v.Bolt(routeSources, v.params(field{"facts", textList(uuidsOf(f.facts())...)}))
	if err != nil {
		return err
	}
	return f.add(routeSources, rowsArray(rows))
}

// rowsArray returns the rows of a statement as one JSON array.
func rowsArray(rows []byte) abi.Raw {
	return abi.Raw("[" + strings.ReplaceAll(strings.TrimSuffix(string(rows), "\n"), "\n", ",") + "]")
}

func (q *queue) holds(v *scopedCall, last marker) (bool, error) {
	if q.hiddenFromList(v, &last) || millis(v.Now)-last.sentMS <= v.stallMS {
		return true, nil
	}
	if v.hasBolt {
		n, err := v.boltNumber("bolt_remaining")
		return n > 0, err
	}
	some, err := q.episodes(v, 1)
	return len(some) > 0, err
}

func (q *queue) ready(v *scopedCall, queued []marker, answer *abi.BackendReadiness) error {
	answer.Method = q.method(v)
	if len(queued) == 0 {
		return nil
	}
	seen, err := q.findEpisodes(v, queued)
	if err == nil {
		q.judge(v, queued, seen, answer)
	}
	return err
}

// method names the signal.
func (q *queue) method(v *scopedCall) string {
	if v.hasBolt {
		return "episodes by name in Neo4j"
	}
	return q.signal
}

// graphState is what the graph shows of a scope.
type graphState struct {
	found map[string]storedTurn
	// newestMS is when the newest known episode was started: of all scopes with Bolt, else of this one.
	newestMS int64
}

// findEpisodes finds the episodes of turns. By Bolt, if it is configured, the result is complete.
func (q *queue) findEpisodes(v *scopedCall, queued []marker) (seen graphState, err error) {
	if v.hasBolt {
		seen.found, err = v.boltNamed(namesOf(queued))
		for i := range queued {
			// Whether the worker is alive matters only while something is outstanding.
			if err == nil && seen.found[queued[i].name].copies == 0 {
				seen.newestMS, err = v.boltIngest()
				break
			}
		}
		return seen, err
	}
	episodes, err := q.allEpisodes(v, queued...)
	seen.found = make(map[string]storedTurn, len(episodes))
	for i := range episodes {
		e := &episodes[i]
		n := seen.found[e.name]
		seen.found[e.name] = storedTurn{copies: n.copies + 1, uuids: append(n.uuids, e.uuid)}
		seen.newestMS = max(seen.newestMS, e.createdAt.micros/1000)
	}
	return seen, err
}

// slack is how many episodes are requested beyond the acknowledged ones. A turn whose answer was lost may have arrived
// too, and a list that is cut by event time or by UUID may leave out the newest ones.
const slack = 200

// allEpisodes requests as many episodes as the scope can have.
func (q *queue) allEpisodes(v *scopedCall, queued ...marker) ([]item, error) {
	last, _, err := v.readLast()
	if err != nil {
		return nil, err
	}
	most := last.seq
	for i := range queued {
		most = max(most, queued[i].seq)
	}
	return q.episodes(v, most+slack)
}

// hiddenFromList reports whether a turn's time is in the future, beyond the list of its episodes.
func (q *queue) hiddenFromList(v *scopedCall, m *marker) bool {
	return !v.hasBolt && !q.perGroup && m.eventMS > millis(v.Now)
}

// judge groups the turns by state and summarises them.
func (q *queue) judge(v *scopedCall, queued []marker, seen graphState, answer *abi.BackendReadiness) {
	lastSeen := int64(0)
	for i := range queued {
		if seen.found[queued[i].name].copies > 0 {
			lastSeen = max(lastSeen, queued[i].seq)
		}
	}
	j := verdict{BackendReadiness: answer}
	ids := &answer.EventIDs
	for i := range queued {
		m := &queued[i]
		j.countCopies(seen.found[m.name])
		switch {
		case seen.found[m.name].copies > 0:
		case q.hiddenFromList(v, m):
			ids.Unknown = append(ids.Unknown, m.name)
		case m.seq < lastSeen:
			ids.Lost = append(ids.Lost, m.name)
		default:
			j.pending(m)
		}
	}
	if len(ids.Unknown) > 0 {
		answer.Warnings = append(answer.Warnings,
			"future_event: Graphiti's REST service does not list episodes whose time lies in its future; "+
				"with bolt they are seen")
	}
	j.warn("event_lost", len(ids.Lost),
		"were queued and will not come: later ones of the scope are there. Record them again")
	j.close()
	if len(ids.Pending) > 0 {
		q.stall(v, max(j.oldestMS, seen.newestMS), answer)
	}
}

// stall applies the stall rule to turns pending since a time in Unix ms. Failed stays failed.
func (q *queue) stall(v *scopedCall, since int64, answer *abi.BackendReadiness) {
	idle := millis(v.Now) - since
	if idle <= v.stallMS {
		return
	}
	status := abi.ReadinessDegraded
	answer.StalledSince = stampMS(since)
	if v.hasBolt || q.perGroup {
		answer.Warnings = append(answer.Warnings,
			"ingest_stalled: nothing was ingested for "+sdk.Itoa(idle/1000)+" s: the ingest worker is presumed dead, "+
				"or its LLM provider failing. See the server's log; a REST service must be restarted, "+
				"which loses its queue")
	} else {
		status = abi.ReadinessUnknown
		ids := &answer.EventIDs
		ids.Unknown, ids.Pending = append(ids.Unknown, ids.Pending...), nil
		answer.Warnings = append(answer.Warnings,
			"ingest_unseen: nothing of this scope was ingested for "+sdk.Itoa(idle/1000)+
				" s; without bolt nobody can tell a dead worker from one that is busy with other scopes")
	}
	if answer.Status != abi.ReadinessFailed {
		answer.Status = status
	}
}

// findEvent: a turn can no longer arrive if a later one of the scope has, or if nothing was ingested for stall_s. On
// REST without Bolt the latter is judged by the scope's own episodes, because the queue shared by all scopes is not
// visible. A turn that another scope's backlog delays that long would be stored twice, which adds an episode, but no
// second fact.
func (q *queue) findEvent(v *scopedCall, want, last marker) (*abi.FindEventAnswer, error) {
	ask := []marker{want}
	if last.name != "" && last.name != want.name {
		ask = append(ask, last)
	}
	seen, err := q.findEpisodes(v, ask)
	if err != nil {
		return nil, err
	}
	n := seen.found[want.name]
	switch {
	case n.copies > 0:
		return &abi.FindEventAnswer{Found: "present", NativeIDs: n.uuids}, nil
	case q.hiddenFromList(v, &want):
		return &abi.FindEventAnswer{Found: "unknown"}, nil
	case want.overtaken(last, seen.found):
		return &abi.FindEventAnswer{Found: "absent"}, nil
	}
	return absentAfter(v.stallMS - (millis(v.Now) - max(want.sentMS, seen.newestMS))), nil
}

// reset waits until the queue is drained, deletes and checks. A turn that is still queued would reappear after the
// delete, so the answer is in_progress until then; a queue that does not drain leaves the reset incomplete.
func (q *queue) reset(v *scopedCall, receipt *abi.ResetReceipt) error {
	state, err := q.drained(v)
	if err != nil || state == draining {
		receipt.Warnings = append(receipt.Warnings,
			"draining: turns of the scope are queued still; deleting now would let them come back")
		return err
	}
	var clean bool
	if v.hasBolt {
		clean, err = v.boltClear(receipt)
	} else {
		clean, err = q.clearAll(v, receipt)
	}
	if err != nil || !clean {
		return err
	}
	receipt.Status = abi.ResetDone
	if state != drained {
		receipt.Status = abi.ResetIncomplete
		receipt.Remains = append(receipt.Remains, "turns that the server may hold in its queue still: "+state+
			". They would go into group "+v.group+", which the next generation does not use")
	}
	return nil
}

// What drained returns: nothing is queued, something is queued, or why that cannot be determined.
const (
	drained  = ""
	draining = "draining"
)

// drained reports whether the last turn that the server accepted has arrived, or never will; then the same is true of
// all turns before it.
func (q *queue) drained(v *scopedCall) (string, error) {
	last, has, err := v.readLast()
	if err != nil || !has {
		return drained, err
	}
	seen, err := q.findEpisodes(v, []marker{last})
	if err != nil {
		return "", err
	}
	removed, err := v.readRemoved()
	there := seen.found[last.name].copies > 0 || removed["episode"] > 0 // an earlier call of this reset had found it
	switch {
	case err != nil:
		return "", err
	case there:
		return drained, nil
	case q.hiddenFromList(v, &last):
		return "the last one lies in the server's future, where the REST service does not list it", nil
	case millis(v.Now)-max(last.sentMS, seen.newestMS) <= v.stallMS:
		return draining, nil
	}
	return "the last one did not arrive within stall_s", nil
}

// clearAll deletes through the server, and checks as far as the server allows.
func (q *queue) clearAll(v *scopedCall, receipt *abi.ResetReceipt) (clean bool, err error) {
	for _, kind := range [...]string{"episode", "entity", "fact"} {
		receipt.Removed[kind] = nil // neither server counts
	}
	err = q.clear(v)
	if err != nil {
		return false, err
	}
	left, err := q.episodes(v, 1)
	if err != nil || len(left) > 0 {
		return false, err
	}
	f := new(results)
	err = q.facts(v, f, "user", nil)
	return len(f.facts()) == 0, err
}

// inventory counts the episodes that the server lists. With Bolt it is complete, with a digest of every id and what can
// change about it (whether a fact is closed, an entity's summary).
func (q *queue) inventory(v *scopedCall, answer *abi.Inventory) error {
	answer.Complete, answer.Trace.NativeOperation = v.hasBolt, q.method(v)
	last, has, err := v.readLast()
	if err != nil {
		return err
	}
	var there map[string]storedTurn
	if v.hasBolt {
		there, err = v.boltKinds(last.name, answer)
	} else {
		there, err = q.countListed(v, answer)
	}
	answer.Quiescent = !has || there[last.name].copies > 0
	return err
}

// countListed counts the episodes that the server lists.
func (q *queue) countListed(v *scopedCall, answer *abi.Inventory) (map[string]storedTurn, error) {
	episodes, err := q.allEpisodes(v)
	there := map[string]storedTurn{}
	for i := range episodes {
		there[episodes[i].name] = storedTurn{copies: 1}
	}
	uuids := uuidsOf(episodes)
	abi.SortTexts(uuids)
	var digest sdk.Digest
	for _, uuid := range uuids {
		digest.Add(uuid + "\n")
	}
	answer.Kinds = []abi.InventoryKind{{Kind: "episode", Count: int64(len(uuids)), Digest: digest.Hex()}}
	return there, err
}

// mutate deletes a fact or an episode. The servers delete by UUID in any group, so Neo4j is asked first to which group
// it belongs.
func (q *queue) mutate(v *scopedCall, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	kind, ok := strings.CutPrefix(r.Name, "delete_")
	switch {
	case r.Name == "add_triplet":
		return nil, abi.NewError(abi.CodeUnsupported, "add_triplet exists on Graphiti's MCP server only").
			WithHint("use surface: mcp, or core with triplets: true")
	case !ok || kind != "fact" && kind != "episode":
		return nil, noMutation(r.Name, "delete_fact, delete_episode, and with surface mcp or core add_triplet")
	}
	err := v.needBolt("native mutation " + r.Name)
	if err != nil {
		return nil, err
	}
	uuid, err := uuidParam(r)
	if err != nil {
		return nil, err
	}
	mine, err := v.boltOwned("bolt_owner_"+kind, uuid)
	if err != nil {
		return nil, err
	}
	if !mine {
		return nil, abi.NewError(abi.CodeNotFound, "params.uuid: the scope has nothing of that kind with this id")
	}
	operation, warning, err := q.remove(v, kind, uuid)
	if err != nil {
		return nil, err
	}
	t := v.trace(operation)
	if warning != "" {
		t.Warnings = []string{warning}
	}
	return &abi.MutationReceipt{Status: "applied", NativeIDs: []string{uuid}, Trace: t}, nil
}
