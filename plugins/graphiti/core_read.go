package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// search runs the native search_ and, if annotate is configured, looks up the facts' episodes.
func (s *core) search(v *scopedCall, r *abi.RetrieveRequest, query string, t *abi.Trace) (*results, error) {
	filters, err := s.filters(r, t)
	if err != nil {
		return nil, err
	}
	f := &results{limit: s.limit(v, r.Budget), limitOrigin: "native"}
	t.NativeOperation = "search_"
	t.Effective = map[string]abi.Raw{"search": sdk.Text(s.searchName()),
		"limit": sdk.Number(f.limit)}
	request := append([]field{{"query", sdk.Text(query)}}, s.searchConfig(f.limit)...)
	body, err := s.gateway(v, v.toGroup(routeCoreSearch, "", ""), object(append(request, filters...)...))
	if err == nil {
		err = f.add(routeCoreSearch, body)
	}
	for i := range f.lists {
		l := &f.lists[i]
		if err == nil {
			err = v.ours(routeCoreSearch, l.items)
		}
		if l.unaligned {
			t.Warnings = append(t.Warnings,
				"scores_unaligned: the scores of "+l.key+" are not in the order of the items: this reranker "+
					"scores otherwise than it sorts; they are in raw alone")
		}
	}
	if err != nil || !v.annotate {
		return f, err
	}
	err = s.annotate(v, f)
	if err != nil && abi.CodeOf(err) != abi.CodeIsolationBreach {
		t.ResultState = abi.ResultDegraded
		t.Warnings = append(t.Warnings,
			"sources_unknown: the gateway could not be asked for the episodes behind the facts: "+
				abi.AsError(err).Message)
		err = nil
	}
	return f, err
}

// annotate looks up the episodes behind the facts at the gateway.
func (s *core) annotate(v *scopedCall, f *results) error {
	var uuids []string
	for _, x := range f.facts() {
		for _, uuid := range x.episodes {
			if !contains(uuids, uuid) {
				uuids = append(uuids, uuid)
			}
		}
	}
	for len(uuids) > 0 {
		n := min(lookupAtOnce, len(uuids))
		_, body, err := s.lookup(v, routeCoreSources, "episodes", "uuids", uuids[:n]...)
		if err == nil {
			err = f.add(routeCoreSources, body)
		}
		if err != nil {
			return err
		}
		uuids = uuids[n:]
	}
	return nil
}

// filters maps the request's filters to fields of the native search and says how each is applied. A request cannot
// change what the configuration has fixed. The four dates of MCP's search_memory_facts are accepted too. Every filter
// applies to facts, only node_labels to entities, none to episodes and communities (graphiti_core search_utils.py). A
// filter that does not apply to all of a search's kinds is not reported as hard.
func (s *core) filters(r *abi.RetrieveRequest, t *abi.Trace) ([]field, error) {
	k, partial := s.kinds(), false
	apply := func(name string, reaches bool) {
		how := "unverified"
		if reaches {
			how, t.FilterMode = string(abi.FilterHard), abi.FilterHard
		}
		partial = partial || !reaches
		sdk.Put(&t.FiltersApplied, name, how)
	}
	filters := filtersNamed(r, "edge_types", "node_labels", "edge_uuids", "valid_at", "invalid_at", "created_at", "expired_at")
	for _, f := range filters {
		apply(f.name, !k.episodes && !k.communities && (!k.entities || f.name == "node_labels"))
	}
	for _, name := range [...]string{"valid_at", "invalid_at"} {
		var conditions []abi.Raw
		for _, date := range filtersNamed(r, name+"_after", name+"_before") {
			operator := `"<="`
			if date.name == name+"_after" {
				operator = `">="`
			}
			if len(r.Filters[name]) > 0 {
				return nil, abi.NewError(abi.CodeInvalidArgument,
					"filters."+date.name+": filters."+name+" is given too; write all conditions into that")
			}
			conditions = append(conditions, object(field{"comparison_operator", abi.Raw(operator)},
				field{"date", date.value}))
			apply(date.name, !k.episodes && !k.communities && !k.entities)
		}
		if conditions != nil {
			filters = append(filters, field{name, array(array(conditions...))})
		}
	}
	for _, f := range filters {
		if has(s.library.filters, f.name) {
			return nil, abi.NewError(abi.CodeInvalidArgument,
				"filters."+f.name+": search_filters of the configuration has fixed "+f.name).
				WithHint("leave it out, or take it out of the configuration")
		}
	}
	native := filtersNamed(r, "center_node_uuid", "bfs_origin_node_uuids")
	for _, f := range native {
		apply(f.name, true)
	}
	if partial {
		t.Warnings = append(t.Warnings,
			"filter_partial: this search finds more than facts; entities heed node_labels alone, "+
				"episodes and communities no filter")
	}
	filters = append(filters, s.library.filters...)
	if len(filters) > 0 {
		native = append(native, field{"search_filter", object(filters...)})
	}
	return native, nil
}

// lookupAtOnce is the gateway's maximum for one look-up.
const lookupAtOnce = 1000

// lookup looks objects up by ids or names; body is the unparsed answer.
func (s *core) lookup(v *scopedCall, route, kind, by string, values ...string) (list []item, body []byte, err error) {
	body, err = s.gateway(v, v.toGroup(route, "", ""), object(field{by, textList(values...)}))
	if err != nil {
		return nil, nil, err
	}
	list, err = v.items(route, kind, body)
	return list, body, err
}

// episodesByName looks episodes up by name: POST /v1/groups/{group}/episodes/lookup.
func (s *core) episodesByName(v *scopedCall, names ...string) (map[string]storedTurn, error) {
	found := make(map[string]storedTurn, len(names))
	for len(names) > 0 {
		n := min(lookupAtOnce, len(names))
		list, body, err := s.lookup(v, routeCoreSources, "episodes", "names", names[:n]...)
		if err != nil {
			return nil, err
		}
		for i := range list {
			x := &list[i]
			at := found[x.name]
			found[string([]byte(x.name))] = storedTurn{at.copies + 1, append(at.uuids, string([]byte(x.uuid))), at.facts +
				int64(len(x.facts))}
		}
		v.Reuse(body) // it contains the episodes' texts
		names = names[n:]
	}
	return found, nil
}

// provenance uses the gateway's look-ups.
func (s *core) provenance(p *origins, r *abi.ProvenanceRequest) error {
	p.operation = "look-ups by id and name"
	switch {
	case r.NativeID != "":
		return s.byID(p, r.NativeID)
	case r.EventID == "":
		return p.needBolt("provenance of a range of time")
	}
	found, err := s.episodesByName(p.scopedCall, r.EventID)
	if err != nil {
		return err
	}
	return p.ofEpisodes(found[r.EventID], func(uuid string) error {
		episode, _, err := s.one(p.scopedCall, "core_episode", "episode", uuid)
		if err != nil || episode == nil {
			return err
		}
		return s.ofEpisode(p, episode)
	})
}

// byID looks for a fact, an episode, or an entity.
func (s *core) byID(p *origins, uuid string) error {
	fact, native, err := s.one(p.scopedCall, "core_edge", "edge", uuid)
	if err != nil {
		return err
	}
	if fact != nil {
		p.items = append(p.items, abi.ProvenanceItem{Native: native, Evidence: fact.evidence("fact")})
		if fact.superseded() {
			p.warnings = append(p.warnings,
				"closer_unknown: the gateway does not tell which episode closed the fact; with bolt it is found")
		}
		return s.addAll(p, routeCoreSources, "episodes", fact.episodes, func(x *item) abi.Evidence {
			e := x.evidence("episode")
			e.Group = "asserted by"
			return e
		})
	}
	episode, _, err := s.one(p.scopedCall, "core_episode", "episode", uuid)
	if err != nil {
		return err
	}
	if episode != nil {
		return s.ofEpisode(p, episode)
	}
	entity, native, err := s.one(p.scopedCall, "core_node", "node", uuid)
	if err != nil {
		return err
	}
	if entity == nil {
		return p.absent("neither a fact nor an episode nor an entity")
	}
	p.items = append(p.items, abi.ProvenanceItem{Native: native, Evidence: entity.evidence("entity")})
	return nil
}

// one requests an object by its id; nil if the group has none of that kind.
func (s *core) one(v *scopedCall, route, kind, uuid string) (*item, abi.Raw, error) {
	body, err := s.gateway(v, v.toGroup(route, "uuid", uuid), nil)
	if abi.CodeOf(err) == abi.CodeNotFound {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var native abi.Raw
	err = answer(route, body, fields{{kind, &native}}, kind)
	if err != nil {
		return nil, nil, err
	}
	x, err := readItem(route, native)
	if err != nil {
		return nil, nil, err
	}
	return &x, native, v.ours(route, []item{x})
}

// ofEpisode adds the facts that an episode asserted or closed.
func (s *core) ofEpisode(p *origins, episode *item) error {
	if len(episode.facts) == 0 && s.native() {
		p.warnings = append(p.warnings, "episode_unlinked: the episode names no facts; before graphiti-core 0.31 no episode of a bulk does")
	}
	return s.addAll(p, "core_find_edges", "edges", episode.facts, func(x *item) abi.Evidence {
		e := x.evidence("fact")
		e.Group = "closed"
		if contains(x.episodes, episode.uuid) {
			e.Group = "asserted"
		}
		return e
	})
}

// addAll looks objects up by id and adds them. Deleted ones are missing from the answer.
func (s *core) addAll(p *origins, route, kind string, uuids []string, evidence func(x *item) abi.Evidence) error {
	if len(uuids) == 0 {
		return nil
	}
	_, body, err := s.lookup(p.scopedCall, route, kind, "uuids", uuids[:min(len(uuids), lookupAtOnce)]...)
	if err != nil {
		return err
	}
	return p.addEach(route, kind, body, evidence)
}

// coreMenu are the native queries that the gateway answers.
var coreMenu = [...]menuItem{
	{"search", routeCoreSearch, []menuParam{{"query", kindText, ""}, {"recipe", kindText, leftOut},
		{"config", kindAny, leftOut},
		{"limit", kindInteger, leftOut}, {"reranker_min_score", kindAny, leftOut},
		{"center_node_uuid", kindText, leftOut},
		{"bfs_origin_node_uuids", kindTexts, leftOut}, {"search_filter", kindAny, leftOut}}},
	{"group", "core_group", nil},
	{"info", "core_info", nil},
	{"jobs", "core_jobs", []menuParam{{"state", kindText, leftOut}, {"limit", kindInteger, "100"}}},
	{"get_episodes", "core_list_episodes", []menuParam{{"limit", kindInteger, "50"}, {"cursor", kindText, leftOut}}},
	{"get_nodes", "core_list_nodes", []menuParam{{"limit", kindInteger, "100"}, {"cursor", kindText, leftOut}}},
	{"get_edges", "core_list_edges", []menuParam{{"limit", kindInteger, "100"}, {"cursor", kindText, leftOut}}},
	{"get_sagas", "core_list_sagas", []menuParam{{"limit", kindInteger, "100"}, {"cursor", kindText, leftOut}}},
	{"token_usage", "core_usage", nil},
	{"retrieve_episodes", "core_last_episodes", []menuParam{{"reference_time", kindText, ""},
		{"last_n", kindInteger, "10"},
		{"source", kindText, leftOut}, {"saga", kindText, leftOut}}},
	{"episode_contents", "core_contents", []menuParam{{"episode_uuids", kindTexts, ""}}},
}

func (s *core) queries() []menuItem { return coreMenu[:] }

// query sends the parameters as a body for POST, or else as a query string. Lists in the answer are checked to be the
// group's.
func (s *core) query(v *scopedCall, q *menuItem, params []field) ([]byte, error) {
	request, body, checked := v.toGroup(q.route, "", ""), []byte(nil),
		[]string{"episodes", "nodes", "edges", "communities", "sagas"}
	switch q.route {
	case "core_info", "core_usage": // about the gateway, not about a group
		request.Params, checked = nil, nil
	case routeCoreSearch, "core_last_episodes", "core_contents":
		body = object(params...)
	default:
		for _, p := range params {
			value, isText := stringOf(p.value)
			if !isText {
				value = string(p.value)
			}
			request.Query = append(request.Query, abi.QueryParam{Key: p.name, Value: value})
		}
	}
	reply, err := s.gateway(v, request, body)
	if err != nil {
		return nil, err
	}
	var f fields
	var found []item
	for _, kind := range checked {
		f = append(f, fields{{kind, func(d *wirejson.Decoder) error {
			if d.Next() != wirejson.Array {
				return d.Skip()
			}
			list, err := items(d)
			found = append(found, list...)
			return err
		}}}...)
	}
	err = answer(q.route, reply, f)
	if err == nil {
		err = v.ours(q.route, found)
	}
	return reply, err
}

// mutate deletes: delete_fact, delete_episode, delete_entity {uuid}; adds: add_triplet {source, relation, fact, target,
// valid_at?, invalid_at?}, build_communities {timeout_seconds?}, if the configuration allows them; and summarize_saga
// {uuid} if it makes sagas. The gateway checks that an id belongs to the group.
func (s *core) mutate(v *scopedCall, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	switch r.Name {
	case "delete_fact":
		return s.onUUID(v, r, "core_delete_edge", "removed", nil)
	case "delete_episode":
		return s.onUUID(v, r, "core_delete_episode", "removed", nil)
	case "delete_entity":
		return s.onUUID(v, r, "core_delete_node", "removed", nil)
	case "add_triplet":
		if !s.triplets {
			return nil, notAllowed("add_triplet stores facts that no event said: the configuration does not allow it",
				"triplets: true")
		}
		return s.addTriplet(v, r)
	case "summarize_saga":
		if s.saga == "" {
			return nil, notAllowed("summarize_saga: the configuration makes no sagas", "saga: session")
		}
		return s.onUUID(v, r, "core_summarize_saga", "saga", []byte("{}"))
	case "build_communities":
		if !s.communities {
			return nil, notAllowed("build_communities changes what searches find, and costs an LLM call for each "+
				"entity: the configuration does not allow it", "communities: true")
		}
		return s.buildCommunities(v, r)
	}
	return nil, noMutation(r.Name,
		"delete_fact, delete_episode, delete_entity; add_triplet, build_communities and summarize_saga "+
			"where they are configured")
}

func notAllowed(what, hint string) error {
	return abi.NewError(abi.CodeUnsupported, what).WithReason("not_configured").WithHint(hint)
}

// onUUID deletes or summarises the object params.uuid; detail is the part of the answer that goes into the trace.
func (s *core) onUUID(v *scopedCall, r *abi.NativeMutation, route, detail string, request []byte) (*abi.MutationReceipt,
	error) {
	uuid, err := uuidParam(r)
	if err != nil {
		return nil, err
	}
	body, err := s.gateway(v, v.withOperationTimeout(v.toGroup(route, "uuid", uuid)), request)
	if err != nil {
		return nil, err
	}
	return v.mutationReceipt(r, []string{uuid}, route, detail, body)
}

// mutationReceipt returns the receipt of a mutation, with a part of the answer in its trace.
func (v *scopedCall) mutationReceipt(r *abi.NativeMutation, ids []string, route, detail string, body []byte) (*abi.MutationReceipt,
	error) {
	t, part := v.trace(r.Name), abi.Raw(nil)
	err := answer(route, body, fields{{detail, &part}})
	t.NativeIDs = ids
	if part != nil {
		sdk.Put(&t.Details, detail, part)
	}
	return &abi.MutationReceipt{Status: "applied", NativeIDs: ids, Trace: t}, err
}

func (s *core) addTriplet(v *scopedCall, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	triplet, err := tripletParams(r)
	if err != nil {
		return nil, err
	}
	validAt := r.Params["valid_at"]
	edge := object(field{"name", triplet[1]}, field{"fact", triplet[2]}, field{"valid_at", validAt},
		field{"invalid_at", r.Params["invalid_at"]})
	const route = "core_add_triplet"
	body, err := s.gateway(v, v.withOperationTimeout(v.toGroup(route, "", "")),
		object(field{"source_node", object(field{"name", triplet[0]})},
			field{"edge", edge}, field{"target_node", object(field{"name", triplet[3]})}))
	if err != nil {
		return nil, err
	}
	w, err := v.readWritten(route, body)
	switch {
	case err != nil:
		return nil, err
	case len(w.facts) == 0:
		return nil, unusable(route, "one without the fact", body)
	}
	receipt, err := v.mutationReceipt(r, []string{w.facts[0].uuid}, route, "invalidated_edge_uuids", body)
	if len(validAt) == 0 {
		receipt.Trace.Warnings = append(receipt.Trace.Warnings, tripletUndated)
	}
	return receipt, err
}

func (s *core) buildCommunities(v *scopedCall, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	const route = "core_communities"
	body, err := s.gateway(v, v.withOperationTimeout(v.toGroup(route, "", "")),
		object(field{"timeout_seconds", r.Params["timeout_seconds"]}))
	if err != nil {
		return nil, err
	}
	found, err := v.items(route, "communities", body)
	if err != nil {
		return nil, err
	}
	return v.mutationReceipt(r, uuidsOf(found), route, "group_id", body)
}
