package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// restService is Graphiti's REST service (graph_service): messages, facts, and one queue for all groups. It returns
// neither the group of a fact nor, up to 0.29.3, its episodes.
type restService struct{ queue }

func newREST() *restService {
	s := &restService{queue{signal: "episodes listed by GET /episodes",
		unremovable: "entities and their summaries: the REST service removes none"}}
	s.server = s
	return s
}

func (s *restService) rules(x *settings) []rule {
	return append(s.queue.rules(x),
		rule{x.source != "message", "source", "the REST service stores messages only",
			`use surface: mcp or core, or source: message`},
		rule{x.instructions != "", "surface", "extraction_instructions exist on MCP and core only",
			"use surface: mcp or core, or leave them out"},
		rule{x.nodes, "surface", "search_nodes exists on MCP only", "use surface: mcp, or leave it out"})
}

// setup reads the group. A group exists only through its data.
func (s *restService) setup(v *scopedCall, receipt *abi.SetupReceipt) error {
	some, err := s.episodes(v, 1)
	if len(some) > 0 { // finding nothing proves nothing: episodes in the server's future are not listed
		receipt.Existed = sdk.Ptr(true)
	}
	return err
}

func (s *restService) probe(v *scopedCall, h *abi.BackendHealth) (code string, err error) {
	h.NativeIngestModes, h.NativeQueryModes = []string{"message"}, []string{"edge_hybrid_rrf"}
	_, err = v.http(abi.HTTPRequest{Route: "rest_health"}, nil)
	if err != nil {
		return "server_down", err
	}
	err = v.boltAlive()
	if err != nil {
		return "neo4j_down", err
	}
	_, err = s.episodes(v, 1)
	return "database_down", err
}

// add queues all turns with one request, one message each: POST /messages (graph_service routers/ingest.py). The 202
// says only that they are queued. uuid is never sent: an unknown one ends Graphiti's worker, a known one processes that
// episode again.
func (s *restService) add(v *scopedCall, turns []turn, seq int64) []abi.ReceiptOrError {
	messages := make([]abi.Raw, len(turns))
	for i := range turns {
		t := &turns[i]
		messages[i] = object(field{"name", sdk.Text(t.name)}, field{"role_type", sdk.Text(t.roleType)},
			field{"role", sdk.Text(t.role)}, field{"timestamp", sdk.Text(t.at)},
			field{"source_description", sdk.Text(t.about)}, field{"content", sdk.Text(t.content)})
	}
	body := object(field{"group_id", sdk.Text(v.group)}, field{"messages", array(messages...)})
	err := s.sendCommand(v, abi.HTTPRequest{Route: "rest_messages", TimeoutMS: queueMS}, body)
	if err != nil {
		return failAll(turns, err)
	}
	return oneByOne(turns, func(i int) (*abi.WriteReceipt, error) {
		return v.queuedReceipt(v.mark(&turns[i], seq+int64(i)+1), "POST /messages"), nil
	})
}

// sendCommand sends a request whose success is {"message": ..., "success": true}. Any other answer is an error.
func (s *restService) sendCommand(v *scopedCall, r abi.HTTPRequest, body []byte) error {
	reply, err := v.http(r, body)
	if err != nil {
		return err
	}
	success := false
	err = answer(r.Route, reply, fields{{"success", &success}})
	if err == nil && !success {
		err = unusable(r.Route, "none that says success", reply)
	}
	return err
}

func (s *restService) search(v *scopedCall, _ *abi.RetrieveRequest, query string, t *abi.Trace) (*results, error) {
	t.NativeOperation = "POST /search"
	return s.find(v, query, nil, t)
}

// facts searches one group: POST /search. Without a group, or with an empty list, the service would search all groups.
func (s *restService) facts(v *scopedCall, f *results, query string, _ []field) error {
	body, err := v.http(abi.HTTPRequest{Route: routeRESTSearch}, object(field{"group_ids", textList(v.group)},
		field{"query", sdk.Text(query)}, field{"max_facts", sdk.Number(v.maxFacts)}))
	if err != nil {
		return err
	}
	return f.add(routeRESTSearch, body)
}

// episodes lists the newest episodes by event time, except those in the server's future: GET /episodes/{group_id}.
func (s *restService) episodes(v *scopedCall, most int64) (found []item, err error) {
	const route = "rest_episodes"
	body, err := v.http(abi.HTTPRequest{Route: route, Params: v.path("", ""),
		Query: []abi.QueryParam{{Key: "last_n", Value: sdk.Itoa(most)}}}, nil)
	if err != nil {
		return nil, err
	}
	err = list(route, body, func(d *wirejson.Decoder) error {
		found = append(found, item{})
		return d.Obj(found[len(found)-1].readField)
	})
	if err != nil {
		return nil, err
	}
	return found, v.ours(route, found)
}

// clear removes a group's facts, entities and episodes, one by one on the server; safe to repeat: DELETE
// /group/{group_id}.
func (s *restService) clear(v *scopedCall) error {
	return s.sendCommand(v, abi.HTTPRequest{Route: "rest_delete_group", Params: v.path("", "")}, nil)
}

func (s *restService) remove(v *scopedCall, kind, uuid string) (operation, warning string, err error) {
	if kind == "episode" {
		warning = "facts_remain: the REST service removes the episode alone; its facts stay, with a source that is gone"
	}
	params := map[string]string{"uuid": uuid}
	return "DELETE", warning, s.sendCommand(v, abi.HTTPRequest{Route: "rest_delete_" + kind, Params: params}, nil)
}

func (s *restService) provenance(p *origins, _ *abi.ProvenanceRequest) error {
	return p.needBolt("provenance of this kind")
}

func (s *restService) queries() []menuItem { return nil }

// query is never called: the service has no queries.
func (s *restService) query(*scopedCall, *menuItem, []field) ([]byte, error) { return nil, nil }
