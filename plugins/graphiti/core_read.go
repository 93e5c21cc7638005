package main

import (
	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// core tells where memory came from by the gateway's look-ups.
func (p *origins) core(r *abi.ProvenanceRequest) error {
	switch {
	case r.NativeID != "":
		return p.coreByID(r.NativeID)
	case r.EventID != "":
		found, err := p.settings.coreNamed(p.call, p.gid, []string{r.EventID})
		if err != nil {
			return err
		}
		if found[r.EventID].copies == 0 {
			return p.noEvent()
		}
		for _, uuid := range found[r.EventID].uuids {
			if err := p.coreEpisode(uuid); err != nil {
				return err
			}
		}
		return nil
	}
	return abi.NewError(abi.CodeUnsupported, "provenance of a range of time needs a look into the graph, which the core surface does not give").WithReason("no_bolt").
		WithHint("configure bolt, bolt_user and bolt_password")
}

// one asks for an object by its id; nil when the group has none of that kind.
func (p *origins) one(route, kind, uuid string) (*item, []byte, error) {
	body, err := p.settings.gateway(p.call, abi.HTTPRequest{Route: route, Params: inPath(p.gid, "uuid", uuid)}, nil)
	if abi.CodeOf(err) == abi.CodeNotFound {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	x := new(item)
	var native []byte
	err = fields(route, body, func(d *jsontext.Decoder, key string) (err error) {
		if key != kind {
			return d.Skip()
		}
		if native, err = d.RawAppend(nil); err != nil {
			return err
		}
		return jsontext.DecodeBytes(native).Obj(x.decode)
	})
	switch {
	case err == nil && native == nil:
		err = unusable(route, "one without "+kind, body)
	case err == nil && x.group != p.gid:
		err = foreign(route, x.group)
	}
	return x, native, err
}

func (p *origins) coreByID(uuid string) error {
	fact, native, err := p.one("core_edge", "edge", uuid)
	if err != nil {
		return err
	}
	if fact != nil {
		fact.factEvidence(p.item(native))
		if fact.superseded() {
			p.warnings = append(p.warnings, "closer_unknown: the gateway does not tell which episode closed the fact; with bolt it is found")
		}
		return p.coreSources(fact.episodes)
	}
	episode, _, err := p.one("core_episode", "episode", uuid)
	if err != nil {
		return err
	}
	if episode != nil {
		return p.coreEpisode(uuid)
	}
	entity, native, err := p.one("core_node", "node", uuid)
	if err != nil {
		return err
	}
	if entity == nil {
		return abi.NewError(abi.CodeNotFound, "native_id: the scope has neither a fact nor an episode nor an entity with this id")
	}
	entity.evidence(p.item(native), "entity")
	return nil
}

// coreSources adds the episodes that asserted a fact. Those that are gone are missing from the answer.
func (p *origins) coreSources(uuids []string) error {
	if len(uuids) == 0 {
		return nil
	}
	_, body, err := p.settings.coreEpisodes(p.call, p.gid, "uuids", uuids[:min(len(uuids), lookupAtOnce)])
	if err != nil {
		return err
	}
	return p.each("core_find_episodes", "episodes", body, func(x *item, e *abi.Evidence, d *jsontext.Decoder) error {
		x.evidence(e, "episode")
		e.Group, e.SourceEventIDs, e.TimeBasis = "asserted by", []string{x.name}, abi.TimeEvent
		return d.Obj(func(d *jsontext.Decoder, key string) (err error) {
			if key != "content" {
				return d.Skip()
			}
			e.Text, err = text(d)
			return err
		})
	})
}

// coreEpisode adds the facts that an episode asserted or closed.
func (p *origins) coreEpisode(uuid string) error {
	episode, _, err := p.one("core_episode", "episode", uuid)
	if err != nil || episode == nil {
		return err
	}
	if len(episode.facts) == 0 {
		if p.settings.library.bulk {
			p.warnings = append(p.warnings, "episode_unlinked: an episode of a bulk names no facts")
		}
		return nil
	}
	_, body, err := p.settings.coreLookup(p.call, "core_find_edges", "edges", p.gid, "uuids", episode.facts[:min(len(episode.facts), lookupAtOnce)])
	if err != nil {
		return err
	}
	return p.each("core_find_edges", "edges", body, func(x *item, e *abi.Evidence, _ *jsontext.Decoder) error {
		x.factEvidence(e)
		e.Group = "closed"
		if contains(x.episodes, uuid) {
			e.Group = "asserted"
		}
		return nil
	})
}

// coreMenu are the native queries that the gateway answers; a body for POST, a query string for GET.
var coreMenu = [...]menuItem{
	{"search", routeCoreSearch, []menuParam{{"query", kindText, ""}, {"recipe", kindText, leftOut}, {"config", kindAny, leftOut}, {"limit", kindWhole, leftOut}, {"reranker_min_score", kindAny, leftOut},
		{"center_node_uuid", kindText, leftOut}, {"bfs_origin_node_uuids", kindTexts, leftOut}, {"search_filter", kindAny, leftOut}}},
	{"group", "core_group", nil},
	{"info", "core_info", nil},
	{"jobs", "core_jobs", []menuParam{{"state", kindText, leftOut}, {"limit", kindWhole, "100"}}},
	{"get_episodes", "core_list_episodes", []menuParam{{"limit", kindWhole, "50"}, {"cursor", kindText, leftOut}}},
	{"get_nodes", "core_list_nodes", []menuParam{{"limit", kindWhole, "100"}, {"cursor", kindText, leftOut}}},
	{"get_edges", "core_list_edges", []menuParam{{"limit", kindWhole, "100"}, {"cursor", kindText, leftOut}}},
	{"get_sagas", "core_list_sagas", []menuParam{{"limit", kindWhole, "100"}, {"cursor", kindText, leftOut}}},
	{"token_usage", "core_usage", nil},
	{"retrieve_episodes", "core_last_episodes", []menuParam{{"reference_time", kindText, ""}, {"last_n", kindWhole, "10"}, {"source", kindText, leftOut}, {"saga", kindText, leftOut}}},
	{"episode_contents", "core_contents", []menuParam{{"episode_uuids", kindTexts, ""}}},
}

// posts tells which of them have a body.
func posts(route string) bool {
	return route == routeCoreSearch || route == "core_last_episodes" || route == "core_contents"
}

func (s *settings) coreQuery(c *sdk.Call, gid string, q *menuItem, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	p := new(jsontext.Encoder)
	p.ObjStart()
	if err := q.write(p, r.Params); err != nil {
		return nil, err
	}
	p.ObjEnd()
	request := abi.HTTPRequest{Route: q.route}
	whole := q.route == "core_info" || q.route == "core_usage" // of the gateway, not of a group
	if !whole {
		request.Params = inPath(gid, "", "")
	}
	var body []byte
	if posts(q.route) {
		body = p.Bytes()
	} else if err := jsontext.DecodeBytes(p.Bytes()).Obj(func(d *jsontext.Decoder, key string) (err error) {
		var value string
		if d.Next() == jsontext.String {
			value, err = d.Str()
		} else {
			var n int64
			n, err = d.Int64()
			value = sdk.Itoa(n)
		}
		request.Query = append(request.Query, abi.QueryParam{Key: string([]byte(key)), Value: value})
		return err
	}); err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "params: "+err.Error())
	}
	answer, err := s.gateway(c, request, body)
	if err != nil {
		return nil, err
	}
	for _, kind := range [...]string{"episodes", "nodes", "edges", "communities", "sagas"} {
		if err := oursIn(q.route, kind, gid, answer); err != nil && !whole {
			return nil, err
		}
	}
	return s.result(q, answer), nil
}

// oursIn fails closed when a list of an answer, where it has one, holds an item of another group.
func oursIn(route, kind, gid string, body []byte) error {
	var list []item
	err := fields(route, body, func(d *jsontext.Decoder, key string) (err error) {
		if key != kind || d.Next() != jsontext.Array {
			return d.Skip()
		}
		list, err = items(d)
		return err
	})
	if err == nil {
		err = ours(route, gid, list)
	}
	return err
}

// coreMutation changes the graph by hand: delete_fact, delete_episode and delete_entity {uuid}; add_triplet {source, relation, fact, target, valid_at?, invalid_at?} and
// build_communities {timeout_seconds?} where the configuration allows them; summarize_saga {uuid} where it makes sagas. The gateway checks whose an id is.
func (s *settings) coreMutation(c *sdk.Call, gid string, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	switch r.Name {
	case "delete_fact":
		return s.coreOnUUID(c, gid, r, "core_delete_edge", "removed")
	case "delete_episode":
		return s.coreOnUUID(c, gid, r, "core_delete_episode", "removed")
	case "delete_entity":
		return s.coreOnUUID(c, gid, r, "core_delete_node", "removed")
	case "add_triplet":
		if !s.library.triplets {
			return nil, abi.NewError(abi.CodeUnsupported, "add_triplet stores facts that no event said: the configuration does not allow it").WithReason("not_configured").WithHint("triplets: true")
		}
		return s.coreTriplet(c, gid, r)
	case "summarize_saga":
		if !s.library.saga {
			return nil, abi.NewError(abi.CodeUnsupported, "summarize_saga: the configuration makes no sagas").WithReason("not_configured").WithHint("saga: session")
		}
		return s.coreOnUUID(c, gid, r, "core_summarize_saga", "saga")
	case "build_communities":
		if !s.library.communities {
			return nil, abi.NewError(abi.CodeUnsupported, "build_communities changes what searches find, and costs an LLM call for each entity: the configuration does not allow it").
				WithReason("not_configured").WithHint("communities: true")
		}
		return s.coreCommunities(c, gid, r)
	}
	return nil, abi.NewError(abi.CodeInvalidArgument, "name: no native mutation "+jsontext.Quote(cutText(r.Name, 80))).
		WithHint("delete_fact, delete_episode, delete_entity; add_triplet, build_communities and summarize_saga where they are configured")
}

// coreOnUUID deletes or summarises what params.uuid names; detail is the part of the answer that goes into the trace.
func (s *settings) coreOnUUID(c *sdk.Call, gid string, r *abi.NativeMutation, route, detail string) (*abi.MutationReceipt, error) {
	uuid, err := jsontext.DecodeBytes(r.Params["uuid"]).Str()
	if err != nil || !isUUID(uuid) {
		return nil, abi.NewError(abi.CodeInvalidArgument, "params.uuid: want a UUID in lower case")
	}
	var request []byte
	if route == "core_summarize_saga" {
		request = []byte("{}")
	}
	body, err := s.gateway(c, abi.HTTPRequest{Route: route, Params: inPath(gid, "uuid", uuid), TimeoutMS: within(c)}, request)
	if err != nil {
		return nil, err
	}
	return s.mutated(r, []string{uuid}, route, detail, body)
}

// mutated is the receipt of a mutation, with a part of the answer in its trace.
func (s *settings) mutated(r *abi.NativeMutation, ids []string, route, detail string, body []byte) (*abi.MutationReceipt, error) {
	t := &abi.Trace{BackendName: s.config.Provider, NativeOperation: r.Name, NativeIDs: ids}
	err := fields(route, body, func(d *jsontext.Decoder, key string) error {
		if key != detail {
			return d.Skip()
		}
		value, err := verbatim(d)
		t.Details.Set(detail, value)
		return err
	})
	return &abi.MutationReceipt{Status: "applied", NativeIDs: ids, Trace: t}, err
}

func (s *settings) coreTriplet(c *sdk.Call, gid string, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	var said [4]string
	for i, name := range [...]string{"source", "relation", "fact", "target"} {
		value, err := jsontext.DecodeBytes(r.Params[name]).Str()
		if err != nil || value == "" {
			return nil, abi.NewError(abi.CodeInvalidArgument, "params."+name+": want a text")
		}
		said[i] = value
	}
	var e jsontext.Encoder
	node := func(name, at string) {
		e.FieldStart(at)
		e.ObjStart()
		e.FieldStart("name")
		e.Str(cutText(name, 2*labelMax))
		e.ObjEnd()
	}
	e.ObjStart()
	node(said[0], "source_node")
	e.FieldStart("edge")
	e.ObjStart()
	e.FieldStart("name")
	e.Str(cutText(said[1], 2*labelMax))
	e.FieldStart("fact")
	e.Str(said[2])
	dated := false
	for _, name := range [...]string{"valid_at", "invalid_at"} {
		if value := r.Params[name]; len(value) > 0 {
			e.FieldStart(name)
			e.Raw(jsontext.Raw(value))
			dated = dated || name == "valid_at"
		}
	}
	e.ObjEnd()
	node(said[3], "target_node")
	e.ObjEnd()
	const route = "core_add_triplet"
	body, err := s.gateway(c, abi.HTTPRequest{Route: route, Params: inPath(gid, "", ""), TimeoutMS: within(c)}, e.Bytes())
	if err != nil {
		return nil, err
	}
	w, err := readWritten(route, gid, body)
	if err != nil {
		return nil, err
	}
	if len(w.facts) == 0 {
		return nil, unusable(route, "one without the fact", body)
	}
	receipt, err := s.mutated(r, []string{w.facts[0].uuid}, route, "invalidated_edge_uuids", body)
	if err == nil && !dated {
		receipt.Trace.Warnings = append(receipt.Trace.Warnings, "triplet_undated: the fact has no source episode, and its date is the LLM's guess")
	}
	return receipt, err
}

func (s *settings) coreCommunities(c *sdk.Call, gid string, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	request := []byte("{}")
	if value := r.Params["timeout_seconds"]; len(value) > 0 {
		request = append(append([]byte(`{"timeout_seconds":`), value...), '}')
	}
	const route = "core_communities"
	body, err := s.gateway(c, abi.HTTPRequest{Route: route, Params: inPath(gid, "", ""), TimeoutMS: within(c)}, request)
	if err != nil {
		return nil, err
	}
	found, err := itemsIn(route, "communities", body)
	if err == nil {
		err = ours(route, gid, found)
	}
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(found))
	for i := range found {
		ids[i] = found[i].uuid
	}
	return s.mutated(r, ids, route, "group_id", body)
}
