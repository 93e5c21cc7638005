package graphiti

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"time"
)

// write does a write at once, or queues it.
func (c *call) write(kind string, names []string, run func() (object, object)) {
	if c.body["mode"] != "queued" {
		result, failure := run()
		if failure != nil {
			status := map[string]int{"llm_failed": 502, "reference_not_found": 422}[failure["code"].(string)]
			answer(c.w, status, object{"error": failure})
			return
		}
		c.say(result)
		return
	}
	if c.s.options.Core.NoQueue {
		c.refuse(409, "queue_disabled", "the gateway has no journal", nil)
		return
	}
	id, _ := c.body["job_id"].(string)
	request, _ := json.Marshal(c.body)
	jobs := c.s.core[c.group]
	for i, j := range jobs {
		switch {
		case j.id != id:
		case j.state == "failed" || j.state == "cancelled" || j.state == "interrupted":
			c.s.core[c.group] = slices.Delete(jobs, i, i+1)
		case j.request != string(request):
			c.refuse(409, "job_exists", "the job was given to another request", object{"job_id": id})
			return
		default:
			answer(c.w, 202, object{"job": j.object()})
			return
		}
		if j.id == id {
			break
		}
	}
	jobs = c.s.core[c.group]
	begin := c.s.options.Now()
	for _, j := range jobs {
		if j.state == "queued" && j.due.After(begin) {
			begin = j.due
		}
	}
	j := &coreJob{id: id, group: c.group, kind: kind, state: "queued", names: names, request: string(request),
		due: begin.Add(c.s.options.Delay), run: run}
	c.s.core[c.group] = append(jobs, j)
	answer(c.w, 202, object{"job": j.object()})
}

// typed checks the types that a request names.
func (c *call) typed() bool {
	for field, known := range map[string][]string{"entity_types": c.s.options.Core.EntityTypes,
		"edge_types": c.s.options.Core.EdgeTypes} {
		list, _ := c.body[field].([]any)
		for _, v := range list {
			if name, _ := v.(string); !slices.Contains(known, name) {
				kind, _, _ := strings.Cut(field, "_")
				c.refuse(422, "unknown_type", "the configuration has no type "+name,
					object{"kind": kind, "name": name, "known": known})
				return false
			}
		}
	}
	return true
}

// coreEpisode is what a request says about one episode.
type coreEpisode struct {
	name, body, source, about, uuid string
	at                              time.Time
}

func (c *call) episodeOf(in object, body string) (e coreEpisode, ok bool) {
	e.name, _ = in["name"].(string)
	e.body, ok = in[body].(string)
	e.about, _ = in["source_description"].(string)
	e.uuid, _ = in["uuid"].(string)
	if e.source, _ = in["source"].(string); e.source == "" {
		e.source = "message"
	}
	said, _ := in["reference_time"].(string)
	var err error
	e.at, err = time.Parse(time.RFC3339Nano, said)
	switch {
	case e.source == "fact_triple":
		c.refuse(422, "unsupported", "fact_triple runs text extraction", object{"field": "source"})
		return e, false
	case !ok || err != nil || e.name == "" || !slices.Contains([]string{"message", "text", "json"}, e.source):
		c.refuse(422, "invalid_request", "the request is wrong",
			object{"errors": []any{object{"path": "name", "message": "wrong"}}})
		return e, false
	}
	return e, true
}

const ofAll = " excluded_entity_types edge_types entity_types edge_type_map custom_extraction_instructions saga mode " +
	"job_id"

func (c *call) add() {
	if !c.only("name* episode_body* reference_time* source source_description previous_episode_uuids "+
		"saga_previous_episode_uuid update_communities uuid"+ofAll) || !c.typed() {
		return
	}
	e, ok := c.episodeOf(c.body, "episode_body")
	if !ok {
		return
	}
	c.write("add_episode", []string{e.name}, func() (object, object) {
		if c.s.failing > 0 {
			c.s.failing--
			return nil, llmFailed(object{"stored": "nothing"})
		}
		known, failure := c.known(e.uuid)
		if failure != nil {
			return nil, failure
		}
		added, touched, created := c.store(e, known, true)
		return c.stored(object{"episode": c.s.episodeObject(added), "episodic_edges": []any{}}, []*episode{added},
			touched, created), nil
	})
}

func llmFailed(more object) object {
	details := object{"exception": "openai.InternalServerError", "status": 500}
	for k, v := range more {
		details[k] = v
	}
	return object{"code": "llm_failed", "message": "Error code: 500 - stub failure", "details": details}
}

// known is an episode of the group that a request names.
func (c *call) known(uuid string) (*episode, object) {
	if uuid == "" {
		return nil, nil
	}
	if e := c.s.graph.episode(uuid); e != nil && e.group == c.group {
		return e, nil
	}
	return nil, object{"code": "reference_not_found", "message": "no such episode",
		"details": object{"field": "uuid", "uuids": []any{uuid}}}
}

// store makes an episode with its facts; of a bulk, a contradiction is looked for outside the batch alone, and the
// episode names no facts, as before graphiti-core 0.31.
func (c *call) store(e coreEpisode, known *episode, linked bool) (*episode, []*fact, []*fact) {
	s := c.s
	if known == nil {
		known = &episode{uuid: s.uuid(), name: e.name, group: c.group, source: e.source, about: e.about,
			content: e.body, createdAt: s.options.Now(), validAt: e.at}
		s.graph.episodes = append(s.graph.episodes, known)
	}
	before := len(s.graph.facts)
	known.facts = nil
	s.limit = 10 // a gateway's searches leave nothing behind
	for _, x := range extract(known.content, known.source, known.validAt) {
		s.addFact(known, c.group, x)
	}
	var touched []*fact
	for _, uuid := range known.facts {
		touched = append(touched, s.graph.fact(uuid))
	}
	closed := func(f *fact) bool { return !slices.Contains(f.episodes, known.uuid) }
	// what it says first, then what it closed
	sort.SliceStable(touched, func(a, b int) bool { return !closed(touched[a]) && closed(touched[b]) })
	known.facts = nil
	for _, f := range touched {
		known.facts = append(known.facts, f.uuid)
	}
	if types, _ := c.body["entity_types"].([]any); len(types) > 0 {
		label, _ := types[0].(string)
		for _, f := range touched {
			if n := s.graph.entity(f.source); n != nil {
				n.label = label
			}
		}
	}
	if saga, _ := c.body["saga"].(string); saga != "" && !slices.ContainsFunc(s.graph.sagas, func(n *entity) bool {
		return n.group == c.group && n.name == saga
	}) {
		s.graph.sagas = append(s.graph.sagas, &entity{uuid: s.uuid(), group: c.group, name: saga})
	}
	if !linked {
		known.facts = nil
	}
	return known, touched, s.graph.facts[before:]
}

// stored completes the answer of a write: facts that were created, said again or closed.
func (c *call) stored(o object, episodes []*episode, touched, created []*fact) object {
	nodes, edges := []any{}, []any{}
	lists := map[string][]any{"created_edge_uuids": {}, "reasserted_edge_uuids": {}, "invalidated_edge_uuids": {}}
	seen := map[string]bool{}
	for _, f := range touched {
		if seen[f.uuid] {
			continue
		}
		seen[f.uuid] = true
		edges = append(edges, c.s.edgeObject(f))
		kind := "invalidated_edge_uuids"
		switch {
		case slices.Contains(created, f):
			kind = "created_edge_uuids"
		case slices.ContainsFunc(episodes, func(e *episode) bool { return slices.Contains(f.episodes, e.uuid) }):
			kind = "reasserted_edge_uuids"
		}
		lists[kind] = append(lists[kind], f.uuid)
		for _, uuid := range []string{f.source, f.target} {
			if n := c.s.graph.entity(uuid); n != nil && !seen[uuid] && kind != "invalidated_edge_uuids" {
				seen[uuid] = true
				nodes = append(nodes, c.s.nodeObject(n))
			}
		}
	}
	o["group_id"], o["nodes"], o["edges"] = c.group, nodes, edges
	for name, list := range lists {
		o[name] = list
	}
	return o
}

func (c *call) bulk() {
	if !c.only("episodes*"+ofAll) || !c.typed() {
		return
	}
	list, _ := c.body["episodes"].([]any)
	if most := c.s.options.Core.BulkMost; len(list) > most {
		c.refuse(422, "bulk_too_large", "too many episodes", object{"limit": most, "count": len(list)})
		return
	}
	var all []coreEpisode
	var names []string
	for _, v := range list {
		in, _ := v.(object)
		e, ok := c.episodeOf(in, "content")
		if !ok {
			return
		}
		all, names = append(all, e), append(names, e.name)
	}
	c.write("add_episode_bulk", names, func() (object, object) {
		var episodes []*episode
		bare := []any{}
		for i, e := range all {
			known, failure := c.known(e.uuid)
			if failure != nil {
				return nil, failure
			}
			if known == nil {
				known = &episode{uuid: c.s.uuid(), name: e.name, group: c.group, source: e.source, about: e.about,
					content: e.body, createdAt: c.s.options.Now(), validAt: e.at}
				c.s.graph.episodes = append(c.s.graph.episodes, known)
			}
			episodes = append(episodes, known)
			bare = append(bare, object{"index": i, "name": known.name, "uuid": known.uuid})
		}
		if c.s.failing > 0 {
			c.s.failing--
			return nil, llmFailed(object{"stored": "episodes_without_facts", "episodes": bare})
		}
		var touched, created []*fact
		before := len(c.s.graph.facts)
		objects := []any{}
		for i, e := range all {
			some, fresh := c.storeInBatch(e, episodes[i], before)
			touched, created = append(touched, some...), append(created, fresh...)
			objects = append(objects, c.s.episodeObject(episodes[i]))
		}
		return c.stored(object{"episodes": objects, "episodic_edges": []any{}}, episodes, touched, created), nil
	})
}

// storeInBatch is store for an episode of a bulk: facts of the batch, those from before on, neither merge nor close
// each other.
func (c *call) storeInBatch(e coreEpisode, known *episode, before int) (touched, created []*fact) {
	batch := slices.Clone(c.s.graph.facts[before:])
	c.s.graph.facts = c.s.graph.facts[:before:before]
	_, touched, created = c.store(e, known, false)
	created = slices.Clone(created)
	for _, old := range batch { // a fact that is said twice names both episodes, twice
		for _, f := range created {
			if f.text == old.text {
				f.episodes = append(slices.Clone(old.episodes), f.episodes...)
				old.episodes = f.episodes
			}
		}
	}
	c.s.graph.facts = append(append(c.s.graph.facts[:before:before], batch...), created...)
	return touched, created
}

func (c *call) triplet() {
	if !c.only("source_node* edge* target_node* mode job_id") {
		return
	}
	source, _ := c.body["source_node"].(object)
	edge, _ := c.body["edge"].(object)
	target, _ := c.body["target_node"].(object)
	text := func(o object, name string) string { t, _ := o[name].(string); return t }
	at, _ := time.Parse(time.RFC3339Nano, text(edge, "valid_at"))
	if at.IsZero() {
		at = c.s.options.Now()
	}
	c.write("add_triplet", nil, func() (object, object) {
		before := len(c.s.graph.facts)
		e := &episode{uuid: c.s.uuid(), validAt: at}
		f := c.s.addFact(e, c.group, extraction{subject: text(source, "name"), object: text(target, "name"),
			relation: text(edge, "name"), text: text(edge, "fact"), validAt: at, changes: true})
		f.episodes = []string{}
		touched := []*fact{f}
		for _, uuid := range e.facts {
			if uuid != f.uuid {
				touched = append(touched, c.s.graph.fact(uuid))
			}
		}
		return c.stored(object{}, nil, touched, c.s.graph.facts[before:]), nil
	})
}

func (c *call) removed(before map[string]int) object {
	after, deleted := c.counts(), object{}
	for kind := range before {
		deleted[kind] = before[kind] - after[kind]
	}
	return deleted
}

// dropEpisode is remove_episode: with the facts that it asserted first, and the nodes that nothing else mentions.
func (c *call) dropEpisode() {
	uuid := c.r.PathValue("uuid")
	e := c.s.graph.episode(uuid)
	if e == nil || e.group != c.group {
		c.absent("episode", uuid)
		return
	}
	before := c.counts()
	g := &c.s.graph
	if c.r.URL.Query().Get("shared") == "keep" {
		for _, f := range g.facts {
			if len(f.episodes) > 1 {
				f.episodes = slices.DeleteFunc(slices.Clone(f.episodes), func(e string) bool { return e == uuid })
			}
		}
	}
	g.facts = slices.DeleteFunc(g.facts, func(f *fact) bool {
		return slices.Contains(e.facts, f.uuid) && len(f.episodes) > 0 && f.episodes[0] == uuid
	})
	g.dropEpisode(uuid)
	g.entities = slices.DeleteFunc(g.entities, func(n *entity) bool {
		return n.group == c.group && !slices.ContainsFunc(g.facts, func(f *fact) bool {
			return f.source == n.uuid || f.target == n.uuid
		})
	})
	c.say(object{"group_id": c.group, "episode_uuid": uuid, "removed": c.removed(before)})
}

func (c *call) drop(kind string) {
	uuid := c.r.PathValue("uuid")
	if !slices.ContainsFunc(c.all(kind), func(o object) bool { return o["uuid"] == uuid }) {
		c.absent(kind, uuid)
		return
	}
	before := c.counts()
	g := &c.s.graph
	if f := g.fact(uuid); f != nil && c.r.URL.Query().Get("summaries") == "clean" {
		g.forgetIn(f)
	}
	g.facts = slices.DeleteFunc(g.facts, func(f *fact) bool {
		return f.uuid == uuid || f.source == uuid || f.target == uuid
	})
	g.entities = slices.DeleteFunc(g.entities, func(n *entity) bool { return n.uuid == uuid })
	c.say(object{"group_id": c.group, kind + "_uuid": uuid, "removed": c.removed(before)})
}

func (c *call) clear() {
	before := c.counts()
	cancelled := 0
	for _, j := range c.s.core[c.group] {
		if j.state == "queued" {
			j.state = "cancelled"
			cancelled++
		}
	}
	c.s.graph.clear(c.group)
	mine := func(n *entity) bool { return n.group == c.group }
	c.s.graph.sagas = slices.DeleteFunc(c.s.graph.sagas, mine)
	c.s.graph.communities = slices.DeleteFunc(c.s.graph.communities, mine)
	c.say(object{"group_id": c.group, "removed": c.removed(before), "cancelled_jobs": cancelled})
}

func (c *call) communities() {
	if !c.only("timeout_seconds") {
		return
	}
	c.s.graph.communities = slices.DeleteFunc(c.s.graph.communities, func(n *entity) bool { return n.group == c.group })
	n := &entity{uuid: c.s.uuid(), group: c.group, name: "all of it", createdAt: c.s.options.Now()}
	for _, e := range c.s.graph.entities {
		if e.group == c.group {
			n.summary += e.name + " "
		}
	}
	c.s.graph.communities = append(c.s.graph.communities, n)
	c.say(object{"group_id": c.group, "communities": []any{c.s.communityObject(n)}, "community_edges": []any{}})
}
