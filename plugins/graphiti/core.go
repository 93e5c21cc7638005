package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// core is graphiti-core itself behind memhost-gateway-graphiti, whose wire is in gateways/graphiti/API.md. The group is
// in the path of every request that touches the graph, so the gateway can check that an object belongs to it. This file
// writes. The queue is in core_jobs.go, what a group holds in core_group.go; search, look-ups, native queries and
// mutations are in core_read.go.
type core struct{ *library }

func newCore(l *library) *core { return &core{l} }

// gateway sends one request and returns the body of a 2xx answer.
func (s *core) gateway(v *scopedCall, r abi.HTTPRequest, body []byte) ([]byte, error) {
	reply, err := v.http(r, body)
	if err != nil {
		return nil, withGatewayMessage(abi.AsError(err), reply)
	}
	return reply, nil
}

// toGroup is a request about the group, or about one of its objects if that has a name.
func (v *scopedCall) toGroup(route, name, value string) abi.HTTPRequest {
	return abi.HTTPRequest{Route: route, Params: v.path(name, value)}
}

// withOperationTimeout sets a request's timeout to the operation's remaining time minus a second, in which the guest
// can still report the events' outcomes if the gateway does not answer in time.
func (v *scopedCall) withOperationTimeout(r abi.HTTPRequest) abi.HTTPRequest {
	r.TimeoutMS = max(1, v.Remaining()-1000)
	return r
}

// failure is the error of the gateway, or of a job: {"code", "message", "details": {"stored", ...}}.
type failure struct {
	code, message string
	// stored says how much of a failed write is in the graph: nothing, episodes_without_facts, part, unknown.
	stored string
}

func (f *failure) fields() fields {
	return fields{{"code", &f.code}, {"message", &f.message}, {"details", fields{{"stored", &f.stored}}}}
}

// failures maps the gateway's codes that are more specific than the status to their meaning here, if it differs, and to
// a hint.
var failures = [...]struct {
	code string
	is   abi.Code
	hint string
}{
	{"not_found", abi.CodeNotFound, ""},
	{"unauthorized", "", "api_key names the secret that holds the gateway's token"},
	{"no_such_route", "", "does url name a memhost-gateway-graphiti of this release?"},
	{"method_not_allowed", "", "does url name a memhost-gateway-graphiti of this release?"},
	{"queue_disabled", abi.CodeUnsupported, "give the gateway a journal, or use receipts: sync"},
	{"reranker_not_configured", abi.CodeUnsupported, "configure the gateway's reranker, or a recipe that needs none"},
	{"unsupported", abi.CodeUnsupported, ""},
	{"center_node_required", "", "give filters.center_node_uuid with every request, or another recipe"},
	{"unknown_type", "", "entity_types and edge_types are names of the gateway's configuration"},
	{"bulk_too_large", abi.CodeTooLarge, "record fewer events at once, raise the gateway's limit, or use bulk: single"},
	{"llm_failed", abi.CodeUnavailable, "the gateway's language model, embedder or reranker failed"},
	{"database_error", abi.CodeBackend, ""},
	{"internal", abi.CodeBackend, ""},
	{"deadline_exceeded", abi.CodeTimeout, ""},
}

// withGatewayMessage adds the gateway's own message, {"error": {...}}, to an error that was made from a status. Other
// errors are unchanged.
func withGatewayMessage(e *abi.Error, body []byte) *abi.Error {
	var f failure
	err := answer(e.Route, body, fields{{"error", f.fields()}})
	if err != nil || f.code == "" {
		return e
	}
	full := abi.NewError(e.Code, e.Route+": "+f.message)
	full.Retryable = e.Retryable
	for _, known := range failures {
		if known.code == f.code {
			full.Hint = known.hint
			if known.is != "" && known.is != e.Code {
				full = abi.NewError(known.is, full.Message).WithHint(known.hint)
			}
		}
	}
	full.Reason, full.Route, full.Native, full.RetryAfterMS = f.code, e.Route, e.Native, e.RetryAfterMS
	full.NothingStored = f.stored == "nothing" || f.code == "shutting_down" || f.code == "queue_full"
	if f.stored == "episodes_without_facts" {
		full.Hint = "the batch's episodes are stored without their facts; record it again, and it is resumed"
	}
	return full
}

// info describes what a gateway can do, and what requests can name: GET /v1/info.
type info struct {
	version, library             string
	recipes                      []string
	entityTypes, edgeTypes       []string
	queue, reranker, communities bool
	// writeMS is how long a write may take before the gateway gives up.
	writeMS int64
}

func (s *core) info(v *scopedCall) (*info, error) {
	const route = "core_info"
	body, err := s.gateway(v, abi.HTTPRequest{Route: route}, nil)
	if err != nil {
		return nil, err
	}
	i := new(info)
	err = answer(route, body, fields{{"gateway", &i.version}, {"graphiti_core", &i.library}, {"recipes", &i.recipes},
		{"entity_types", keysInto(&i.entityTypes)}, {"edge_types", keysInto(&i.edgeTypes)}, {"queue", &i.queue},
		{"reranker", &i.reranker},
		{"communities", &i.communities}, {"limits", fields{{"write_seconds", func(d *wirejson.Decoder) error {
			seconds, err := d.Float64()
			i.writeMS = int64(seconds * 1000)
			return err
		}}}}})
	if err == nil && i.library == "" {
		err = unusable(route, "none of a memhost-gateway-graphiti", body)
	}
	return i, err
}

// keysInto reads the names of an object's fields.
func keysInto(names *[]string) func(d *wirejson.Decoder) error {
	return func(d *wirejson.Decoder) error {
		return d.Obj(func(d *wirejson.Decoder, key string) error {
			*names = append(*names, strings.Clone(key))
			return d.Skip()
		})
	}
}

// lacks lists what the configuration requires and the gateway does not have.
func (s *core) lacks(i *info) (missing []string) {
	need := func(there bool, what string) {
		if !there {
			missing = append(missing, what)
		}
	}
	need(s.config != nil || contains(i.recipes, s.recipe), "recipe "+s.recipe)
	for _, types := range [...]struct {
		kind  string
		names abi.Raw
		there []string
	}{{"entity type ", s.entityTypes, i.entityTypes}, {"edge type ", s.edgeTypes, i.edgeTypes}} {
		names, _ := texts(wirejson.DecodeBytes(types.names))
		for _, name := range names {
			need(contains(types.there, name), types.kind+name)
		}
	}
	need(i.reranker || !s.usesReranker(), "a reranker, which "+s.searchName()+" needs")
	need(i.queue || !s.queued(), "a journal, which receipts: queued needs")
	need(i.communities || !s.communities, "communities")
	return missing
}

// setup checks that the gateway has what the configuration names, and whether the group has any data.
func (s *core) setup(v *scopedCall, receipt *abi.SetupReceipt) error {
	i, err := s.info(v)
	if err != nil {
		return err
	}
	missing := s.lacks(i)
	if len(missing) > 0 {
		return abi.NewError(abi.CodeUnsupported, "the gateway lacks "+strings.Join(missing, ", ")).
			WithReason("gateway_lacks").
			WithHint("configure the gateway, or memhost's block, so that they agree; GET /v1/info tells what it has")
	}
	g, err := s.groupNow(v)
	if err == nil {
		receipt.Existed = sdk.Ptr(g.total() > 0)
	}
	return err
}

// probe checks the process, its database, and what requests can name.
func (s *core) probe(v *scopedCall, h *abi.BackendHealth) (code string, err error) {
	h.NativeMemoryTypes, h.NativeQueryModes = []string{"episode", "entity", "fact", "community"},
		[]string{s.searchName()}
	h.NativeIngestModes = []string{"add_episode:" + v.source}
	if s.native() {
		h.NativeIngestModes = append(h.NativeIngestModes, "add_episode_bulk:"+v.source)
	}
	if s.triplets {
		h.NativeIngestModes = append(h.NativeIngestModes, "add_triplet")
	}
	if s.entityTypes != nil {
		h.NativeIngestModes = append(h.NativeIngestModes, "custom_entity_types")
	}
	if s.edgeTypes != nil {
		h.NativeIngestModes = append(h.NativeIngestModes, "custom_edge_types")
	}
	if !s.queued() {
		h.ConsistencyModel = "immediate"
	}
	for _, look := range [...]struct{ route, code string }{
		{"core_health", "server_down"}, {"core_ready", "database_down"},
	} {
		body, err := s.gateway(v, abi.HTTPRequest{Route: look.route}, nil)
		if err == nil {
			err = answer(look.route, body, nil)
		}
		if err != nil {
			return look.code, err
		}
	}
	i, err := s.info(v)
	if err != nil {
		return "server_down", err
	}
	h.BackendVersion = "graphiti-core " + i.library + ", gateway " + i.version
	missing := s.lacks(i)
	if len(missing) > 0 {
		h.Status = abi.HealthDegraded
		h.Warnings = append(h.Warnings,
			"gateway_lacks: the configuration names what the gateway does not have: "+strings.Join(missing, ", "))
	}
	return "neo4j_down", v.boltAlive()
}

// add sends turns to the gateway in order, one after another, or all at once with bulk: native.
func (s *core) add(v *scopedCall, turns []turn, seq int64) []abi.ReceiptOrError {
	bare, err := s.unfinishedEpisodes(v, turns)
	if err != nil {
		return failAll(turns, err)
	}
	if !s.native() || len(turns) == 1 {
		return oneByOne(turns, func(i int) (*abi.WriteReceipt, error) {
			receipts, err := s.send(v, turns[i:i+1], bare, seq+int64(i))
			if err != nil {
				return nil, err
			}
			return receipts[0], nil
		})
	}
	receipts, err := s.send(v, turns, bare, seq)
	if err != nil {
		return failAll(turns, err)
	}
	return oneByOne(turns, func(i int) (*abi.WriteReceipt, error) {
		receipts[i].Warnings = append(receipts[i].Warnings,
			"bulk_native: add_episode_bulk leaves contradictions inside a batch open, "+
				"doubles a fact that is said twice in it, and links no facts to its episodes")
		return receipts[i], nil
	})
}

// unfinishedEpisodes finds the UUIDs of episodes that already exist under the turns' names. A bulk that fails halfway
// leaves all of its episodes without their facts; sending it again without these ids would duplicate them. Only bulk:
// native can leave any.
func (s *core) unfinishedEpisodes(v *scopedCall, turns []turn) (map[string]string, error) {
	bare := map[string]string{}
	if !s.native() {
		return bare, nil
	}
	found, err := s.episodesByName(v, turnNames(turns)...)
	for name, n := range found {
		bare[name] = n.uuids[0]
	}
	return bare, err
}

func turnNames(turns []turn) []string {
	names := make([]string, len(turns))
	for i := range turns {
		names[i] = turns[i].name
	}
	return names
}

// send sends turns to the gateway in one request: POST /v1/groups/{group}/episodes for one, .../episodes/bulk for
// several. seq is the number of the last turn before them.
func (s *core) send(v *scopedCall, turns []turn, bare map[string]string, seq int64) ([]*abi.WriteReceipt, error) {
	route, call, kind := "core_add_episode", "add_episode", jobSingle
	body := s.episode(v, &turns[0], "episode_body", bare)
	if s.previous == "none" {
		body = append(body, field{"previous_episode_uuids", textList()})
	}
	if len(turns) > 1 {
		route, call, kind = "core_add_bulk", "add_episode_bulk", jobBulk
		episodes := make([]abi.Raw, len(turns))
		for i := range turns {
			episodes[i] = object(s.episode(v, &turns[i], "content", bare)...)
		}
		body = []field{{"episodes", array(episodes...)}}
	}
	body = append(body, field{"entity_types", s.entityTypes}, field{"excluded_entity_types", s.excludedTypes},
		field{"edge_types", s.edgeTypes}, field{"edge_type_map", s.edgeTypeMap},
		field{"custom_extraction_instructions", optional(v.instructions)})
	if s.saga != "" {
		body = append(body, field{"saga", sdk.Text(turns[0].session)})
	}
	if s.queued() {
		job := jobID(kind, bare, turnNames(turns)...)
		return s.enqueue(v, route, job, turns, object(append(body, field{"mode", sdk.Text("queued")},
			field{"job_id", sdk.Text(job)})...), seq)
	}
	reply, err := s.gateway(v, v.withOperationTimeout(v.toGroup(route, "", "")), object(body...))
	if err != nil {
		return nil, err
	}
	w, err := v.readWritten(route, reply)
	if err != nil {
		return nil, err
	}
	if len(w.episodes) != len(turns) {
		return nil, unusable(route, "one with "+sdk.Itoa(len(w.episodes))+" episodes for "+sdk.Itoa(len(turns)), reply)
	}
	receipts := make([]*abi.WriteReceipt, len(turns))
	for i := range turns {
		receipts[i] = v.committedReceipt(call, turns[i].name, w, i)
	}
	return receipts, nil
}

// episode builds an episode for a request; body is the field name of its text there.
func (s *core) episode(v *scopedCall, t *turn, body string, bare map[string]string) []field {
	return []field{{"name", sdk.Text(t.name)}, {body, sdk.Text(t.body(v.source))}, {"source", sdk.Text(v.source)},
		{"source_description", sdk.Text(t.about)}, {"reference_time", sdk.Text(t.at)}, {"uuid", optional(bare[t.name])}}
}

// writeResult is what a write stored.
type writeResult struct {
	episodes, nodes, facts           []item
	created, reasserted, invalidated []string
}

// readWritten reads the answer of add_episode, add_episode_bulk and add_triplet.
func (v *scopedCall) readWritten(route string, body []byte) (*writeResult, error) {
	var w writeResult
	var one item
	err := answer(route, body, fields{
		{"episode", &one}, {"episodes", &w.episodes}, {"nodes", &w.nodes}, {"edges", &w.facts},
		{"created_edge_uuids", &w.created}, {"reasserted_edge_uuids", &w.reasserted},
		{"invalidated_edge_uuids", &w.invalidated},
	})
	if one.uuid != "" {
		w.episodes = append(w.episodes, one)
	}
	for _, list := range [...][]item{w.episodes, w.nodes, w.facts} {
		if err == nil {
			err = v.ours(route, list)
		}
	}
	return &w, err
}

// committedReceipt returns the receipt of one of the episodes: the episode, its facts and, if it is the only one, its
// entities; facts that it closed are in the trace. For a batch, the answer does not say which episode closed a fact.
func (v *scopedCall) committedReceipt(call, event string, w *writeResult, i int) *abi.WriteReceipt {
	episode, single := w.episodes[i].uuid, len(w.episodes) == 1
	nodes, invalidated := []string(nil), "facts_invalidated_by_batch"
	if single {
		nodes, invalidated = uuidsOf(w.nodes), "facts_invalidated"
	}
	of := func(uuids []string) (mine []string) { // in a batch: the facts that list the episode among their sources
		for _, uuid := range uuids {
			for _, x := range w.facts {
				if x.uuid == uuid && (single || contains(x.episodes, episode)) {
					mine = append(mine, uuid)
				}
			}
		}
		return mine
	}
	created, reasserted := of(w.created), of(w.reasserted)
	t := v.writeTrace(call)
	t.Consistency, t.NativeIDs = "committed", append(append([]string{episode}, nodes...), created...)
	sdk.Put(&t.Details, "episode", sdk.Text(episode))
	sdk.Put(&t.Details, "facts_created", textList(created...))
	sdk.Put(&t.Details, "facts_reasserted", textList(reasserted...))
	if single {
		sdk.Put(&t.Details, "entities", textList(nodes...))
	}
	sdk.Put(&t.Details, invalidated, textList(w.invalidated...))
	r := &abi.WriteReceipt{EventID: event, Status: abi.StatusCommitted, NativeIDs: t.NativeIDs,
		NativeIDsKind: abi.NativeIDsFinal, StoredCount: sdk.Ptr(int64(len(created))), Trace: t}
	if single && len(nodes)+len(created)+len(reasserted) == 0 {
		r.Warnings = append(r.Warnings,
			"nothing_extracted: the episode is stored, and the language model found neither entities nor facts in it")
	}
	return r
}
