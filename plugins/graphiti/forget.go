package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// forget removes the episodes of forgotten events and the facts that they alone assert. A fact that another event
// asserts too stays, where the surface can keep it; one that they closed stays closed.
//
// With Bolt entities go that nothing else mentions, and summaries lose the removed facts' sentences: exact, whatever
// the server offers. Without it each surface removes what it can, and names the rest.
func forget(c *sdk.Call, r *abi.ForgetRequest) (*abi.ForgetReceipt, error) {
	v, err := visiting(c)
	if err != nil {
		return nil, err
	}
	f := &forgetting{visit: v, ForgetRequest: r, receipt: &abi.ForgetReceipt{
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

// forgetting is one forget in a scope.
type forgetting struct {
	*visit
	*abi.ForgetRequest
	receipt *abi.ForgetReceipt
	// episodes and names are of the episodes that are meant. seen are the UUIDs of all of the group's, where they were
	// all looked at.
	episodes, names []string
	seen            map[string]bool
	// shared are facts that others assert too, and of which one of the episodes was the first to.
	shared []string
}

// look adds an episode, if the request means it. Its texts may be a part of an answer whose memory is used again.
func (f *forgetting) look(x *item) {
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

// share is whose a fact is.
type share int

const (
	shareNone  share = iota // none of the forgotten episodes asserts it
	shareOwn                // they alone, or the request names it
	shareFirst              // others too, and one of them was the first
	shareOther              // others too
)

// shareOf tells whose a fact is. Sources that are known to be gone do not count.
func (f *forgetting) shareOf(x *item) share {
	if contains(f.NativeIDs, x.uuid) {
		return shareOwn
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
		return shareNone
	case others == 0:
		return shareOwn
	case contains(f.episodes, x.episodes[0]):
		return shareFirst
	}
	return shareOther
}

// removed notes what is gone.
func (f *forgetting) removed(kind string, uuids ...string) {
	f.receipt.Removed[kind] = append(f.receipt.Removed[kind], uuids...)
}

// remains notes what is left, where there is any.
func (f *forgetting) remains(n int, what string) {
	if n > 0 {
		f.receipt.DerivedMayRemain = append(f.receipt.DerivedMayRemain, sdk.Itoa(n)+" "+what)
	}
}

// passLast forgets the scope's last turn when that is removed: nobody waits for it to arrive any more.
func (f *forgetting) passLast() error {
	last, has, err := f.readLast()
	if err != nil || !has || !contains(f.names, last.name) {
		return err
	}
	last.name, last.eventMS, last.job = "", 0, ""
	return f.keepLast(last)
}

// Rest and MCP.

func (q *queue) forget(f *forgetting) error {
	if f.hasBolt {
		return f.byBolt()
	}
	if f.From != "" && q.own {
		f.receipt.Status = abi.ForgetUnsupported
		f.receipt.DerivedMayRemain = append(f.receipt.DerivedMayRemain,
			"episodes: the MCP server does not give their times. Forget by event or session, or configure bolt")
		return nil
	}
	all, err := q.allEpisodes(f.visit)
	if err != nil {
		return err
	}
	f.seen = map[string]bool{}
	for i := range all {
		f.look(&all[i])
	}
	facts, err := q.alone(f, all)
	if err != nil {
		return err
	}
	err = q.removeEach(f, "fact", facts)
	if err == nil {
		err = q.removeEach(f, "episode", f.episodes)
	}
	if err == nil {
		err = q.lookAgain(f)
	}
	if len(f.episodes) > 0 {
		f.receipt.DerivedMayRemain = append(f.receipt.DerivedMayRemain, q.keeps)
	}
	return err
}

// removeEach removes facts or episodes; one that is gone already is none.
func (q *queue) removeEach(f *forgetting, kind string, uuids []string) error {
	for _, uuid := range uuids {
		operation, _, err := q.remove(f.visit, kind, uuid)
		if err != nil && abi.CodeOf(err) != abi.CodeNotFound {
			return err
		}
		f.receipt.Trace.NativeOperation = operation
		f.removed(kind, uuid)
	}
	return nil
}

// alone are the facts that no other episode names. The REST service gives no fact's sources: an episode names those that
// it asserted and those that it closed.
func (s *rest) alone(f *forgetting, all []item) (facts []string, err error) {
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

// alone looks at each fact of each episode.
func (s *mcp) alone(f *forgetting, _ []item) (facts []string, err error) {
	const route = "mcp_fact"
	candidates := append([]string(nil), f.NativeIDs...)
	for _, uuid := range f.episodes {
		body, err := s.tool(f.visit, "mcp_episode_entities", "get_episode_entities",
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
		body, err := s.tool(f.visit, route, "get_entity_edge", field{"uuid", sdk.Text(uuid)})
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
		case shareOwn:
			facts = append(facts, uuid)
		case shareFirst:
			f.shared = append(f.shared, uuid)
		case shareOther:
			shared++
		}
	}
	f.remains(shared, "facts that other events said before")
	return facts, nil
}

// lookAgain finds out which of the shared facts are left. Before graphiti-core 0.31 delete_episode takes those that its
// episode was the first to assert; since then it leaves them to the others.
func (s *mcp) lookAgain(f *forgetting) error {
	lost, left := 0, 0
	for _, uuid := range f.shared {
		_, err := s.tool(f.visit, "mcp_fact", "get_entity_edge", field{"uuid", sdk.Text(uuid)})
		switch {
		case err == nil:
			left++
		case abi.CodeOf(err) == abi.CodeNotFound:
			lost++
			f.removed("fact", uuid)
		default:
			return err
		}
	}
	f.remains(lost, "facts that other events said too are gone: before graphiti-core 0.31 delete_episode takes what its "+
		"episode was the first to say. With bolt they stay")
	f.remains(left, "facts that other events said too")
	return nil
}

// lookAgain has nothing to do: alone lists what it removes.
func (*rest) lookAgain(*forgetting) error { return nil }

// Neo4j.

// rowsAtOnce is how many rows one statement of a forget removes.
const rowsAtOnce = 1000

// byBolt removes by Neo4j alone, the episodes last: until then they can be found again.
func (f *forgetting) byBolt() error {
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

// boltRemove runs a statement until it finds nothing more, and counts the UUIDs that it answers. They are removed,
// where there is a kind.
func (f *forgetting) boltRemove(kind, route string) (n int, err error) {
	params := []field{{"uuids", textList(f.NativeIDs...)}, {"episodes", textList(f.episodes...)},
		{"limit", sdk.Number(rowsAtOnce)}}
	for more := true; more && err == nil; {
		before := n
		err = f.bolt(route, params, func(_ int, d *wirejson.Decoder) error {
			uuid, err := d.Str()
			n++
			if kind != "" {
				f.removed(kind, strings.Clone(uuid))
			}
			return err
		})
		more = n == before+rowsAtOnce
	}
	return n, err
}

// boltEpisodes looks at the group's episodes, or at those that the request names, page by page.
func (f *forgetting) boltEpisodes() error {
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
					f.look(&x)
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

// boltLeft names what a model made of the events and others: before the episodes go, which lead to it.
func (f *forgetting) boltLeft(shared int) error {
	var entities, others int64
	err := f.bolt("bolt_forget_left", []field{{"episodes", textList(f.episodes...)}}, columns(&entities, &others))
	f.remains(shared, "facts that other events said too")
	f.remains(int(entities), "entities' summaries, which a model may have written from these events and others")
	f.remains(int(others), "summaries of communities and sagas")
	return err
}
