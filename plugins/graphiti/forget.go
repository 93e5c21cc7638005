package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// forget removes the episodes of forgotten events and the facts that only they assert. A fact that another event
// asserts too is kept if the surface can keep it; a fact that they closed stays closed. With Bolt, entities that
// nothing else mentions are removed too, and summaries lose the removed facts' sentences, on every server. Without
// Bolt, each surface removes what it can and lists the rest.
func forget(c *sdk.Call, r *abi.ForgetRequest) (*abi.ForgetReceipt, error) {
	v, err := openCall(c)
	if err != nil {
		return nil, err
	}
	f := &forgetRun{scopedCall: v, ForgetRequest: r, receipt: &abi.ForgetReceipt{
		Status: abi.ForgetDone, Removed: map[string][]string{"episode": {}, "fact": {}}, DerivedMayRemain: []string{},
		Trace: v.trace("")}}
	err = v.surface.forget(f)
	if err == nil {
		err = f.passLast()
	}
	for _, kind := range abi.SortedKeys(f.receipt.Removed) {
		f.receipt.Trace.NativeIDs = append(f.receipt.Trace.NativeIDs, f.receipt.Removed[kind]...)
	}
	return f.receipt, err
}

// forgetRun is one forget request in a scope.
type forgetRun struct {
	*scopedCall
	*abi.ForgetRequest
	receipt *abi.ForgetReceipt
	// episodes and names identify the request's episodes. seen are the UUIDs of all of the group's episodes, if all
	// were checked.
	episodes, names []string
	seen            map[string]bool
	// shared are facts that others assert too, but that one of the episodes asserted first.
	shared []string
}

// addEpisode adds an episode if the request covers it. Its texts may belong to an answer whose memory is reused.
func (f *forgetRun) addEpisode(x *item) {
	uuid := strings.Clone(x.uuid)
	if f.seen != nil {
		f.seen[uuid] = true
	}
	session := ""
	if about, ok := stringOf(abi.Raw(x.about)); ok && f.SessionID != "" {
		_ = fields{{"mh_session", &session}}.read(wirejson.DecodeBytes([]byte(about)))
	}
	if contains(f.EventIDs, x.name) || contains(f.NativeIDs, uuid) ||
		sdk.Forgets(f.ForgetRequest, session, x.validAt.text) {
		f.episodes, f.names = append(f.episodes, uuid), append(f.names, strings.Clone(x.name))
	}
}

// share says which episodes assert a fact.
type share int

const (
	shareUnrelated   share = iota // no forgotten episode asserts the fact
	shareExclusive                // only forgotten episodes assert it, or the request names it
	shareFirstOfMany              // others assert it too, but a forgotten one was the first
	shareOneOfMany                // others assert it too, and one of them was the first
)

// shareOf determines which episodes assert a fact. Sources that are known to be deleted do not count.
func (f *forgetRun) shareOf(x *item) share {
	if contains(f.NativeIDs, x.uuid) {
		return shareExclusive
	}
	ours, others := 0, 0
	for _, uuid := range x.episodes {
		switch {
		case contains(f.episodes, uuid):
			ours++
		case f.seen == nil || f.seen[uuid]:
			others++
		}
	}
	switch {
	case ours == 0:
		return shareUnrelated
	case others == 0:
		return shareExclusive
	case contains(f.episodes, x.episodes[0]):
		return shareFirstOfMany
	}
	return shareOneOfMany
}

// addRemoved adds deleted objects to the receipt.
func (f *forgetRun) addRemoved(kind string, uuids ...string) {
	f.receipt.Removed[kind] = append(f.receipt.Removed[kind], uuids...)
}

// remains adds remaining objects to the receipt, if there are any.
func (f *forgetRun) remains(n int, what string) {
	if n > 0 {
		f.receipt.DerivedMayRemain = append(f.receipt.DerivedMayRemain, sdk.Itoa(n)+" "+what)
	}
}

// passLast clears the scope's last turn when that turn is removed, so that nothing waits for it to arrive.
func (f *forgetRun) passLast() error {
	last, has, err := f.readLast()
	if err != nil || !has || !contains(f.names, last.name) {
		return err
	}
	last.name, last.eventMS, last.job = "", 0, ""
	return f.keepLast(last)
}

// Forgetting on REST and MCP.

func (q *queue) forget(f *forgetRun) error {
	if f.hasBolt {
		return f.byBolt()
	}
	if f.From != "" && q.perGroup {
		f.receipt.Status = abi.ForgetUnsupported
		f.receipt.DerivedMayRemain = append(f.receipt.DerivedMayRemain,
			"episodes: the MCP server does not give their times. Forget by event or session, or configure bolt")
		return nil
	}
	all, err := q.allEpisodes(f.scopedCall)
	if err != nil {
		return err
	}
	f.seen = map[string]bool{}
	for i := range all {
		f.addEpisode(&all[i])
	}
	facts, err := q.exclusiveFacts(f, all)
	if err != nil {
		return err
	}
	err = q.removeEach(f, "fact", facts)
	if err == nil {
		err = q.removeEach(f, "episode", f.episodes)
	}
	if err == nil {
		err = q.checkShared(f)
	}
	if len(f.episodes) > 0 {
		f.receipt.DerivedMayRemain = append(f.receipt.DerivedMayRemain, q.unremovable)
	}
	return err
}

// removeEach removes facts or episodes; it does not count those already deleted.
func (q *queue) removeEach(f *forgetRun, kind string, uuids []string) error {
	for _, uuid := range uuids {
		operation, _, err := q.remove(f.scopedCall, kind, uuid)
		if err != nil && abi.CodeOf(err) != abi.CodeNotFound {
			return err
		}
		f.receipt.Trace.NativeOperation = operation
		f.addRemoved(kind, uuid)
	}
	return nil
}

// exclusiveFacts returns the facts that no other episode lists. The REST service does not return a fact's sources, but
// an episode lists the facts that it asserted and those that it closed.
func (s *restService) exclusiveFacts(f *forgetRun, all []item) (facts []string, err error) {
	others := map[string]bool{}
	for i := range all {
		for _, uuid := range all[i].facts {
			if contains(f.NativeIDs, uuid) && !contains(facts, uuid) {
				facts = append(facts, uuid)
			}
			others[uuid] = others[uuid] || !contains(f.episodes, all[i].uuid)
		}
	}
	shared := 0
	for i := range all {
		if !contains(f.episodes, all[i].uuid) {
			continue
		}
		for _, uuid := range all[i].facts {
			switch {
			case contains(facts, uuid):
			case others[uuid]:
				shared++
			default:
				facts = append(facts, uuid)
			}
		}
	}
	f.remains(shared, "facts that other events assert or have closed: the REST service does not tell which. Forget one "+
		"by its id, or configure bolt")
	return facts, nil
}

// exclusiveFacts checks each fact of each episode.
func (s *mcp) exclusiveFacts(f *forgetRun, _ []item) (facts []string, err error) {
	const route = "mcp_fact"
	candidates := append([]string(nil), f.NativeIDs...)
	for _, uuid := range f.episodes {
		body, err := s.tool(f.scopedCall, "mcp_episode_entities", "get_episode_entities",
			field{"episode_uuids", textList(uuid)})
		if err != nil {
			return nil, err
		}
		touched, err := itemsIn("mcp_episode_entities", "edges", body)
		if err != nil {
			return nil, err
		}
		candidates = append(candidates, uuidsOf(touched)...)
	}
	shared := 0
	for i, uuid := range candidates {
		if contains(candidates[:i], uuid) || !isUUID(uuid) {
			continue
		}
		body, err := s.tool(f.scopedCall, route, "get_entity_edge", field{"uuid", sdk.Text(uuid)})
		if abi.CodeOf(err) == abi.CodeNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		x, err := readItem(route, body)
		if err != nil {
			return nil, err
		}
		if x.group != f.group {
			continue
		}
		switch f.shareOf(&x) {
		case shareExclusive:
			facts = append(facts, uuid)
		case shareFirstOfMany:
			f.shared = append(f.shared, uuid)
		case shareOneOfMany:
			shared++
		}
	}
	f.remains(shared, "facts that other events said before")
	return facts, nil
}

// checkShared checks which of the shared facts remain. Before graphiti-core 0.31 delete_episode removes those that its
// episode asserted first; later versions keep them.
func (s *mcp) checkShared(f *forgetRun) error {
	lost, left := 0, 0
	for _, uuid := range f.shared {
		_, err := s.tool(f.scopedCall, "mcp_fact", "get_entity_edge", field{"uuid", sdk.Text(uuid)})
		switch {
		case err == nil:
			left++
		case abi.CodeOf(err) == abi.CodeNotFound:
			lost++
			f.addRemoved("fact", uuid)
		default:
			return err
		}
	}
	f.remains(lost, "facts that other events said too are gone: before graphiti-core 0.31 delete_episode takes what its "+
		"episode was the first to say. With bolt they stay")
	f.remains(left, "facts that other events said too")
	return nil
}

// checkShared has nothing to do: the service removes only what alone lists.
func (*restService) checkShared(*forgetRun) error { return nil }

// Forgetting by Neo4j.

// rowsAtOnce is how many rows one statement of a forget removes.
const rowsAtOnce = 1000

// byBolt removes with Neo4j only. Episodes come last, so that an interrupted forget finds them again.
func (f *forgetRun) byBolt() error {
	f.receipt.Trace.NativeOperation = "bolt"
	err := f.boltEpisodes()
	if err != nil || len(f.episodes)+len(f.NativeIDs) == 0 {
		return err
	}
	shared := 0
	_, err = f.boltRemove("fact", "bolt_forget_facts")
	if err == nil {
		shared, err = f.boltRemove("", "bolt_forget_sources")
	}
	if err == nil {
		_, err = f.boltRemove("entity", "bolt_forget_entities")
	}
	if err == nil {
		err = f.boltLeft(shared)
	}
	if err == nil {
		_, err = f.boltRemove("episode", "bolt_forget_episodes")
	}
	return err
}

// boltRemove runs a statement until it returns no more rows, and counts the UUIDs that it returns. If kind is set, they
// are added to the receipt as removed.
func (f *forgetRun) boltRemove(kind, route string) (n int, err error) {
	params := []field{{"uuids", textList(f.NativeIDs...)}, {"episodes", textList(f.episodes...)},
		{"limit", sdk.Number(rowsAtOnce)}}
	for more := true; more && err == nil; {
		before := n
		err = f.bolt(route, params, func(_ int, d *wirejson.Decoder) error {
			uuid, err := d.Str()
			n++
			if kind != "" {
				f.addRemoved(kind, strings.Clone(uuid))
			}
			return err
		})
		more = n == before+rowsAtOnce
	}
	return n, err
}

// boltEpisodes checks the group's episodes, or those that the request names, page by page.
func (f *forgetRun) boltEpisodes() error {
	all := "false"
	if len(f.EventIDs)+len(f.NativeIDs) == 0 {
		all = "true"
	}
	for after, more := "", true; more; {
		var x item
		n, at := 0, ""
		row := columns(&x.uuid, &x.name, &x.about, &at)
		err := f.bolt("bolt_forget_look", []field{{"after", sdk.Text(after)}, {"limit", sdk.Number(listPage)},
			{"all", abi.Raw(all)}, {"events", textList(f.EventIDs...)}, {"uuids", textList(f.NativeIDs...)}},
			func(i int, d *wirejson.Decoder) error {
				err := row(i, d)
				if i == 3 {
					x.validAt = momentOf(at)
					f.addEpisode(&x)
					n, after = n+1, strings.Clone(x.uuid)
					x, at = item{}, ""
				}
				return err
			})
		if err != nil {
			return err
		}
		more = n == listPage
	}
	return nil
}

// boltLeft lists what a model derived from the events together with others. It runs before the episodes are deleted,
// because they lead to it.
func (f *forgetRun) boltLeft(shared int) error {
	var entities, others int64
	err := f.bolt("bolt_forget_left", []field{{"episodes", textList(f.episodes...)}}, columns(&entities, &others))
	f.remains(shared, "facts that other events said too")
	f.remains(int(entities), "entities' summaries, which a model may have written from these events and others")
	f.remains(int(others), "summaries of communities and sagas")
	return err
}
