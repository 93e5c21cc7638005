package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// mcp is Graphiti's MCP server, used through its tools; the protocol is in mcp_session.go. It has a queue for each
// group.
type mcp struct {
	queue
	session session
}

func newMCP() *mcp {
	s := &mcp{queue: queue{perGroup: true, signal: "episodes listed by get_episodes",
		unremovable: "summaries of entities that other events mention too"}}
	s.server = s
	return s
}

// setup requests the server's status. A group exists only through its data.
func (s *mcp) setup(v *scopedCall, _ *abi.SetupReceipt) error { return s.status(v) }

// status calls get_status, which queries the database, and rejects a database other than Neo4j.
//
// Errors: unavailable if the server cannot use its database; unsupported for FalkorDB.
func (s *mcp) status(v *scopedCall) error {
	const route = "mcp_get_status"
	body, err := s.tool(v, route, "get_status")
	if err != nil {
		return err
	}
	status, message := "", ""
	err = answer(route, body, fields{{"status", &status}, {"message", &message}})
	switch {
	case err != nil:
		return err
	case status != "ok":
		return native(abi.NewError(abi.CodeUnavailable, route+": "+message).
			WithHint("the server runs, its database does not"), route, body)
	case strings.Contains(lower(message), "falkordb"):
		return native(abi.NewError(abi.CodeUnsupported,
			"the MCP server stores in FalkorDB, where concurrent groups write into each other's graph").
			WithReason("falkordb").WithHint("start it with --database-provider neo4j"), route, body)
	}
	return nil
}

func (s *mcp) probe(v *scopedCall, h *abi.BackendHealth) (code string, err error) {
	h.NativeIngestModes = []string{"message", "text", "json", "fact_triple(text-extraction)", "triplet"}
	h.NativeQueryModes = []string{"edge_hybrid_rrf"}
	_, err = v.http(abi.HTTPRequest{Route: "mcp_health"}, nil)
	if err != nil {
		return "server_down", err
	}
	err = v.boltAlive()
	if err != nil {
		return "neo4j_down", err
	}
	missing, err := s.missing(v)
	if err != nil {
		return "mcp_down", err
	}
	if len(missing) > 0 {
		h.Status = abi.HealthDegraded
		h.Warnings = append(h.Warnings, "tools_missing: the MCP server lacks "+strings.Join(missing, ", ")+
			"; it is older than mcp-server 1.0.2, or not Graphiti's")
	}
	return "database_down", s.status(v)
}

// missing lists the required tools that the server lacks: their names changed between releases.
func (s *mcp) missing(v *scopedCall) (missing []string, err error) {
	const route = "mcp_tools"
	result, err := s.call(v, route, "tools/list", abi.Raw("{}"))
	if err != nil {
		return nil, err
	}
	var tools []item
	err = answer(route, result, fields{{"tools", &tools}})
	for _, name := range [...]string{"add_memory", "search_memory_facts", "get_episodes", "clear_graph", "get_status"} {
		there := false
		for i := range tools {
			there = there || tools[i].name == name
		}
		if !there {
			missing = append(missing, name)
		}
	}
	return missing, err
}

// add queues turns, one after another: add_memory. The answer has no id and does not say whether processing will
// succeed. As on REST, uuid is never sent.
func (s *mcp) add(v *scopedCall, turns []turn, seq int64) []abi.ReceiptOrError {
	return oneByOne(turns, func(i int) (*abi.WriteReceipt, error) {
		t := &turns[i]
		reply, err := s.tool(v, routeMCPAdd, "add_memory", field{"name", sdk.Text(t.name)},
			field{"group_id", sdk.Text(v.group)}, field{"source", sdk.Text(v.source)},
			field{"reference_time", sdk.Text(t.at)}, field{"source_description", sdk.Text(t.about)},
			field{"custom_extraction_instructions", optional(v.instructions)},
			field{"episode_body", sdk.Text(t.body(v.source))})
		if err != nil {
			return nil, err
		}
		// "Episode 'e1' queued for processing in group 'g'": check that the group is the right one.
		if !strings.Contains(string(reply), v.group) {
			return nil, foreignItemError(routeMCPAdd, string(reply))
		}
		return v.queuedReceipt(v.mark(t, seq+int64(i)+1), "add_memory"), nil
	})
}

// search finds facts and, if search_nodes is configured, entities.
func (s *mcp) search(v *scopedCall, r *abi.RetrieveRequest, query string, t *abi.Trace) (*results, error) {
	t.NativeOperation = "search_memory_facts"
	filters := filtersNamed(r, "edge_types", "valid_at_after", "valid_at_before", "invalid_at_after", "invalid_at_before",
		"center_node_uuid")
	for _, f := range filters {
		sdk.Put(&t.FiltersApplied, f.name, string(abi.FilterHard))
		t.FilterMode = abi.FilterHard
	}
	f, err := s.find(v, query, filters, t)
	if err != nil || !v.nodes {
		return f, err
	}
	// the server's recipe returns at most 10, whatever is requested
	return f, s.addTo(f, v, routeMCPNodes, "search_nodes", field{"query", sdk.Text(query)},
		field{"max_nodes", sdk.Number(10)})
}

// facts searches one group: search_memory_facts.
func (s *mcp) facts(v *scopedCall, f *results, query string, filters []field) error {
	arguments := append([]field{{"query", sdk.Text(query)}, {"max_facts", sdk.Number(v.maxFacts)}}, filters...)
	return s.addTo(f, v, routeMCPSearch, "search_memory_facts", arguments...)
}

// addTo calls a tool that searches the group, and adds the results.
func (s *mcp) addTo(f *results, v *scopedCall, route, name string, arguments ...field) error {
	body, err := s.inGroup(v, route, name, arguments...)
	if err == nil {
		err = f.add(route, body)
	}
	if err == nil {
		err = v.ours(route, f.lists[len(f.lists)-1].items)
	}
	return err
}

// inGroup calls a tool for one group. Without a group the server would use its default group, with an empty list all
// groups.
func (s *mcp) inGroup(v *scopedCall, route, name string, arguments ...field) ([]byte, error) {
	return s.tool(v, route, name, append([]field{{"group_ids", textList(v.group)}}, arguments...)...)
}

// episodes lists the group's episodes, ordered by uuid, so any page smaller than the whole list is a random sample:
// get_episodes.
func (s *mcp) episodes(v *scopedCall, most int64) ([]item, error) {
	const route = "mcp_episodes"
	body, err := s.inGroup(v, route, "get_episodes", field{"max_episodes", sdk.Number(most)})
	if err != nil {
		return nil, err
	}
	return v.items(route, "episodes", body)
}

// clear removes a group's facts, entities, episodes and communities in one transaction: clear_graph. Sagas stay.
func (s *mcp) clear(v *scopedCall) error {
	_, err := s.inGroup(v, "mcp_clear_graph", "clear_graph")
	return err
}

func (s *mcp) remove(v *scopedCall, kind, uuid string) (operation, warning string, err error) {
	tool := "delete_entity_edge"
	if kind == "episode" {
		tool = "delete_episode"
	}
	_, err = s.tool(v, "mcp_delete_"+kind, tool, field{"uuid", sdk.Text(uuid)})
	return tool, "", err
}

// provenance returns a fact by its id with its episodes, or the facts of an episode, by its id or its event. The tools
// ignore groups, so objects of another group are reported as not found.
func (s *mcp) provenance(p *origins, r *abi.ProvenanceRequest) error {
	p.operation = "get_entity_edge, get_episode_entities"
	switch {
	case r.NativeID == "" && r.EventID == "":
		return p.needBolt("provenance of this kind")
	case r.NativeID == "":
		return s.ofEvent(p, r.EventID)
	}
	const route = "mcp_fact"
	body, err := s.tool(p.scopedCall, route, "get_entity_edge", field{"uuid", sdk.Text(r.NativeID)})
	if abi.CodeOf(err) == abi.CodeNotFound {
		err = s.ofEpisode(p, r.NativeID)
	} else if err == nil {
		err = p.addOne(route, body, asFact)
	}
	if err == nil && len(p.items) == 0 {
		err = p.absent("neither a fact nor an episode")
	}
	return err
}

// ofEvent looks for an event's episode among all of the scope's: its name is the only link, and no tool looks one up.
func (s *mcp) ofEvent(p *origins, id string) error {
	episodes, err := s.allEpisodes(p.scopedCall)
	if err != nil {
		return err
	}
	there := false
	for i := range episodes {
		if episodes[i].name != id {
			continue
		}
		there = true
		err := s.ofEpisode(p, episodes[i].uuid)
		if err != nil {
			return err
		}
	}
	if !there {
		return noEvent()
	}
	return nil
}

// ofEpisode adds the facts of an episode.
func (s *mcp) ofEpisode(p *origins, uuid string) error {
	const route = "mcp_episode_entities"
	body, err := s.tool(p.scopedCall, route, "get_episode_entities", field{"episode_uuids", textList(uuid)})
	if err != nil {
		return err
	}
	return p.addEach(route, "edges", body, asFact)
}

func (s *mcp) queries() []menuItem {
	return []menuItem{
		{"search_nodes", "mcp_search_nodes", []menuParam{{"query", kindText, ""}}},
		{"get_episodes", "mcp_episodes", []menuParam{{"max_episodes", kindInteger, "50"}}},
	}
}

func (s *mcp) query(v *scopedCall, q *menuItem, params []field) ([]byte, error) {
	body, err := s.inGroup(v, q.route, q.name, params...)
	if err != nil {
		return nil, err
	}
	kind := "nodes"
	if q.name == "get_episodes" {
		kind = "episodes"
	}
	_, err = v.items(q.route, kind, body)
	return body, err
}

// mutate also adds a fact by hand: add_triplet {source, relation, fact, target}.
func (s *mcp) mutate(v *scopedCall, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	if r.Name != "add_triplet" {
		return s.queue.mutate(v, r)
	}
	triplet, err := tripletParams(r)
	if err != nil {
		return nil, err
	}
	const route = "mcp_add_triplet"
	body, err := s.tool(v, route, r.Name, field{"source_node_name", triplet[0]}, field{"edge_name", triplet[1]},
		field{"fact", triplet[2]}, field{"target_node_name", triplet[3]}, field{"group_id", sdk.Text(v.group)})
	if err != nil {
		return nil, err
	}
	var facts []item
	err = answer(route, body, fields{{"edges", &facts}})
	t := v.trace(r.Name)
	t.Warnings = []string{tripletUndated}
	return &abi.MutationReceipt{Status: "applied", NativeIDs: uuidsOf(facts), Trace: t}, err
}
