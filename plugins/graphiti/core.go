package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// core is graphiti-core itself behind memhost-gateway-graphiti, whose wire is in gateways/graphiti/API.md. The group is
// in the path of everything that touches the graph, and the gateway checks by it whose an object is. This file writes
// and judges; what reads, and the native queries and mutations, are in core_read.go.
type core struct{ *library }

func newCore(l *library) *core { return &core{l} }

// gateway sends one request and returns the body of a 2xx, unread.
func (s *core) gateway(v *visit, r abi.HTTPRequest, body []byte) ([]byte, error) {
	said, err := v.http(r, body)
	if err != nil {
		return nil, explained(abi.AsError(err), said)
	}
	return said, nil
}

// toGroup is a request about the group, and one object of it where that has a name.
func (v *visit) toGroup(route, name, value string) abi.HTTPRequest {
	return abi.HTTPRequest{Route: route, Params: v.path(name, value)}
}

// patient bounds a request by what is left of the operation, but for a second in which the guest can still report the
// outcome of the events when the gateway does not answer in time.
func (v *visit) patient(r abi.HTTPRequest) abi.HTTPRequest {
	r.TimeoutMS = max(1, v.Remaining()-1000)
	return r
}

// failure is the error of the gateway, or of a job: {"code", "message", "details": {"stored", ...}}.
type failure struct {
	code, message string
	// stored says of a failed write what of it is in the graph: nothing, episodes_without_facts, part, unknown.
	stored string
}

func (f *failure) fields() fields {
	return fields{{"code", &f.code}, {"message", &f.message}, {"details", fields{{"stored", &f.stored}}}}
}

// failures are the gateway's codes that say more than the status: what they mean here, where that differs, and what to
// do.
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

// explained puts the gateway's own words, {"error": {...}}, into an error that was made of a status. Another error
// stays as it is.
func explained(e *abi.Error, body []byte) *abi.Error {
	var f failure
	err := answer(e.Route, body, fields{{"error", f.fields()}})
	if err != nil || f.code == "" {
		return e
	}
	told := abi.NewError(e.Code, e.Route+": "+f.message)
	told.Retryable = e.Retryable
	for _, known := range failures {
		if known.code == f.code {
			told.Hint = known.hint
			if known.is != "" && known.is != e.Code {
				told = abi.NewError(known.is, told.Message).WithHint(known.hint)
			}
		}
	}
	told.Reason, told.Route, told.Native, told.RetryAfterMS = f.code, e.Route, e.Native, e.RetryAfterMS
	told.NothingStored = f.stored == "nothing" || f.code == "shutting_down" || f.code == "queue_full"
	if f.stored == "episodes_without_facts" {
		told.Hint = "the batch's episodes are stored without their facts; record it again, and it is resumed"
	}
	return told
}

// info is what a gateway can do, and what requests can name: GET /v1/info.
type info struct {
	version, library             string
	recipes                      []string
	entityTypes, edgeTypes       []string
	queue, reranker, communities bool
	// writeMS is how long a write can take before the gateway gives it up.
	writeMS int64
}

func (s *core) info(v *visit) (*info, error) {
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

// lacks lists what the configuration asks for and the gateway does not have.
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
	need(i.reranker || !s.reranked(), "a reranker, which "+s.searchName()+" needs")
	need(i.queue || !s.queued(), "a journal, which receipts: queued needs")
	need(i.communities || !s.communities, "communities")
	return missing
}

// setup checks that the gateway has what the configuration names, and looks whether the group has anything.
func (s *core) setup(v *visit, receipt *abi.SetupReceipt) error {
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

// probe asks the process, the database behind it, and what can be named.
func (s *core) probe(v *visit, h *abi.BackendHealth) (code string, err error) {
	h.NativeMemoryTypes, h.NativeQueryModes = []string{"episode", "entity", "fact", "community"},
		[]string{s.searchName()}
	h.NativeIngestModes = []string{"add_episode:" + v.source}
	if s.native() {
		h.NativeIngestModes = append(h.NativeIngestModes, "add_episode_bulk:"+v.source)
	}
	if s.triplets {
		h.NativeIngestModes = append(h.NativeIngestModes, "add_triplet")
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

// add gives turns to the gateway in order, one after another, or all at once with bulk: native.
func (s *core) add(v *visit, turns []turn, seq int64) []abi.ReceiptOrError {
	bare, err := s.bare(v, turns)
	if err != nil {
		return failed(turns, err)
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
		return failed(turns, err)
	}
	return oneByOne(turns, func(i int) (*abi.WriteReceipt, error) {
		receipts[i].Warnings = append(receipts[i].Warnings,
			"bulk_native: add_episode_bulk leaves contradictions inside a batch open, "+
				"doubles a fact that is said twice in it, and links no facts to its episodes")
		return receipts[i], nil
	})
}

// bare finds the UUIDs of episodes that are there already under the turns' names: a bulk that fails half-way leaves all
// of its episodes without their facts, and sent again without these ids they would double. Only bulk: native can leave
// any.
func (s *core) bare(v *visit, turns []turn) (map[string]string, error) {
	bare := map[string]string{}
	if !s.native() {
		return bare, nil
	}
	found, err := s.named(v, turnNames(turns)...)
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

// send gives turns to the gateway at once: POST /v1/groups/{group}/episodes for one, .../episodes/bulk for several. seq
// is the number of the last turn before them.
func (s *core) send(v *visit, turns []turn, bare map[string]string, seq int64) ([]*abi.WriteReceipt, error) {
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
	said, err := s.gateway(v, v.patient(v.toGroup(route, "", "")), object(body...))
	if err != nil {
		return nil, err
	}
	w, err := v.readWritten(route, said)
	if err != nil {
		return nil, err
	}
	if len(w.episodes) != len(turns) {
		return nil, unusable(route, "one with "+sdk.Itoa(len(w.episodes))+" episodes for "+sdk.Itoa(len(turns)), said)
	}
	receipts := make([]*abi.WriteReceipt, len(turns))
	for i := range turns {
		receipts[i] = v.committed(call, turns[i].name, w, i)
	}
	return receipts, nil
}

// episode is an episode in a request; body is the name that its text has there.
func (s *core) episode(v *visit, t *turn, body string, bare map[string]string) []field {
	return []field{{"name", sdk.Text(t.name)}, {body, sdk.Text(t.body(v.source))}, {"source", sdk.Text(v.source)},
		{"source_description", sdk.Text(t.about)}, {"reference_time", sdk.Text(t.at)}, {"uuid", optional(bare[t.name])}}
}

// written is what a write stored.
type written struct {
	episodes, nodes, facts           []item
	created, reasserted, invalidated []string
}

// readWritten reads the answer of add_episode, add_episode_bulk and add_triplet.
func (v *visit) readWritten(route string, body []byte) (*written, error) {
	var w written
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

// committed is the receipt of one of the episodes: it, the facts that it asserted, and of a single one the entities;
// what it closed is in the trace. The answer does not say which of a batch's episodes closed a fact.
func (v *visit) committed(call, event string, w *written, i int) *abi.WriteReceipt {
	episode, single := w.episodes[i].uuid, len(w.episodes) == 1
	nodes, invalidated := []string(nil), "facts_invalidated_by_batch"
	if single {
		nodes, invalidated = uuidsOf(w.nodes), "facts_invalidated"
	}
	of := func(uuids []string) (mine []string) { // of a batch, the facts that name the episode among their sources
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

// job is one of the gateway's queue.
type job struct {
	id, state string
	failure   failure
}

// States of a job.
const (
	jobWaits, jobRuns, jobDone, jobFailed, jobInterrupted = "queued", "running", "done", "failed", "interrupted"
)

func (j *job) fields() fields {
	return fields{{"id", &j.id}, {"state", &j.state}, {"error", j.failure.fields()}}
}

// waits tells whether the job is still to be done.
func (j *job) waits() bool { return j.state == jobWaits || j.state == jobRuns }

// readJob reads {"job": {...}}.
func readJob(route string, body []byte) (*job, error) {
	j := new(job)
	err := answer(route, body, fields{{"job", j.fields()}})
	if err == nil && (j.id == "" || j.state == "") {
		err = unusable(route, "one without a job", body)
	}
	return j, err
}

// enqueue puts a write into the group's queue. The id makes it the same job however often it is sent; the gateway
// replaces one that failed. Where the job was done earlier the receipts say committed, with the episodes; where these
// are gone meanwhile, the job is forgotten and sent anew.
func (s *core) enqueue(v *visit, route, id string, turns []turn, body []byte, seq int64) ([]*abi.WriteReceipt, error) {
	for again := false; ; again = true {
		request := v.toGroup(route, "", "")
		request.TimeoutMS = queueMS
		said, err := s.gateway(v, request, body)
		if err != nil {
			return nil, err
		}
		j, err := readJob(route, said)
		switch {
		case err != nil:
			return nil, err
		case j.id != id:
			return nil, unusable(route, "of another job", said)
		case j.state != jobDone || again:
			return v.inQueue(turns, id, nil, seq), nil
		}
		stored, err := s.named(v, turnNames(turns)...)
		if err != nil {
			return nil, err
		}
		if len(stored) == len(turns) {
			return v.inQueue(turns, id, stored, seq), nil
		}
		_, err = s.gateway(v, v.toGroup("core_forget_job", "job", id), nil)
		if err != nil && abi.CodeOf(err) != abi.CodeNotFound {
			return nil, err
		}
	}
}

// inQueue are the receipts of turns in the gateway's queue, or stored by the job long ago.
func (v *visit) inQueue(turns []turn, job string, stored map[string]named, seq int64) []*abi.WriteReceipt {
	receipts := make([]*abi.WriteReceipt, len(turns))
	for i := range turns {
		m := v.mark(&turns[i], seq+int64(i)+1)
		m.job = job
		r := v.queued(m, "add_episode, queued")
		sdk.Put(&r.Trace.Details, "job_id", sdk.Text(job))
		if stored != nil {
			r.Status, r.NativeIDs, r.NativeIDsKind, r.Markers = abi.StatusCommitted, stored[m.name].uuids,
				abi.NativeIDsFinal, nil
			r.Trace.Consistency = "committed"
		}
		receipts[i] = r
	}
	return receipts
}

// ready judges turns by the jobs that carry them, and by what is in the graph. Jobs first: one that ends between the
// two looks is found by the second.
//
// Queued or running: pending. Failed: failed, with the gateway's words; of a bulk also when its bare episodes are
// there. Neither a job nor an episode: lost.
func (s *core) ready(v *visit, queued []marker, answer *abi.BackendReadiness) error {
	answer.Method = "the gateway's jobs, and episodes by name"
	if len(queued) == 0 {
		return nil
	}
	jobs, more, err := s.jobs(v)
	if err != nil {
		return err
	}
	found, err := s.named(v, namesOf(queued)...)
	if err != nil {
		return err
	}
	sum, ids, firstFailure := verdict{BackendReadiness: answer}, &answer.EventIDs, ""
	for i := range queued {
		m := &queued[i]
		j := jobs[m.job]
		sum.counted(found[m.name])
		there := found[m.name].copies > 0
		whole := !strings.HasPrefix(m.job, jobBulk) // a single episode is written as a whole, or not at all
		switch {
		case there && (whole || j == nil):
		case j == nil && more, j != nil && j.waits():
			sum.pending(m)
		case j != nil && j.state != jobDone:
			ids.Failed = append(ids.Failed, m.name)
			if firstFailure == "" {
				firstFailure = j.failure.code + ": " + j.failure.message
			}
		case m.job == "":
			ids.Unknown = append(ids.Unknown, m.name)
		default:
			ids.Lost = append(ids.Lost, m.name)
		}
	}
	sum.warn("marker_unread", len(ids.Unknown), "were queued on another surface, whose queue the gateway does not know")
	sum.warn("job_failed", len(ids.Failed), "failed; the first: "+firstFailure+". Record them again")
	sum.warn("event_lost", len(ids.Lost), "are neither in the gateway's queue nor in the graph. Record them again")
	sum.close()
	return nil
}

// jobs lists the jobs of a group that are not done; more tells that the gateway has more that wait than it lists.
func (s *core) jobs(v *visit) (jobs map[string]*job, more bool, err error) {
	const route = "core_jobs"
	jobs = map[string]*job{}
	var counts [4]int64
	names := fields{{jobWaits, &counts[0]}, {jobRuns, &counts[1]}, {jobFailed, &counts[2]},
		{jobInterrupted, &counts[3]}}
	for i, state := range names {
		if i > 0 && counts[i] == 0 {
			continue
		}
		request := v.toGroup(route, "", "")
		request.Query = []abi.QueryParam{{Key: "state", Value: state.name},
			{Key: "limit", Value: sdk.Itoa(lookupAtOnce)}}
		body, err := s.gateway(v, request, nil)
		if err != nil {
			return nil, false, err
		}
		listed := int64(0)
		err = answer(route, body, fields{{"counts", names}, {"jobs", func(d *wirejson.Decoder) error {
			return d.Arr(func(d *wirejson.Decoder) error {
				j := new(job)
				err := j.fields().read(d)
				jobs[j.id] = j
				listed++
				return err
			})
		}}}, "jobs")
		if err != nil {
			return nil, false, err
		}
		more = more || i < 2 && counts[i] > listed
	}
	return jobs, more, nil
}

// findEvent looks for an event by its job, which has the same id however often it is sent, and by its episode.
//
// Without a job it cannot come any more when a later event of the scope is there, since the gateway works a group's
// writes off in their order, or when a write that was sent then cannot be under way any more. Of a bulk an episode
// alone proves nothing: one without entities counts as bare, and is finished.
func (s *core) findEvent(v *visit, want, last marker) (*abi.FindEventAnswer, error) {
	if s.queued() {
		if want.job == "" {
			want.job = jobID(jobSingle, nil, want.name)
		}
		waits, err := s.waits(v, want.job)
		if err != nil {
			return nil, err
		}
		if waits {
			want.seq = max(want.seq, last.seq, 1)
			return &abi.FindEventAnswer{Found: "present", Markers: []string{want.String()}}, nil
		}
	}
	ask := []string{want.name}
	if last.name != "" && last.name != want.name {
		ask = append(ask, last.name)
	}
	found, err := s.named(v, ask...)
	if err != nil {
		return nil, err
	}
	n := found[want.name]
	switch {
	case n.copies > 0 && s.native() && n.facts == 0:
		nodes, _, err := s.lookUp(v, "core_contents", "nodes", "episode_uuids", n.uuids...)
		if err != nil || len(nodes) == 0 {
			return &abi.FindEventAnswer{Found: "partial", NativeIDs: n.uuids, Missing: []string{"entities and facts"}},
				err
		}
		return &abi.FindEventAnswer{Found: "present", NativeIDs: n.uuids}, nil
	case n.copies > 0:
		return &abi.FindEventAnswer{Found: "present", NativeIDs: n.uuids}, nil
	case s.queued(), want.overtaken(last, found): // queued: should it still arrive, it is the same job
		return &abi.FindEventAnswer{Found: "absent"}, nil
	}
	i, err := s.info(v)
	if err != nil {
		return nil, err
	}
	return unless(max(v.stallMS, i.writeMS) - (millis(v.Now) - want.sentMS)), nil
}

// waits tells whether a job is still to be done.
func (s *core) waits(v *visit, id string) (bool, error) {
	const route = "core_job"
	body, err := s.gateway(v, v.toGroup(route, "job", id), nil)
	if abi.CodeOf(err) == abi.CodeNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	j, err := readJob(route, body)
	return err == nil && j.waits(), err
}

// groupKinds are the counts' names at the gateway, with what memhost calls them.
var groupKinds = [...][2]string{{"episodes", "episode"}, {"nodes", "entity"}, {"edges", "fact"},
	{"communities", "community"}, {"sagas", "saga"}}

// group is what a group has.
type group struct {
	counts [len(groupKinds)]int64
	// queued and running are jobs.
	queued, running int64
}

// fields are the counts by the gateway's names.
func (g *group) fields() (f fields) {
	for i := range groupKinds {
		f = append(f, fields{{groupKinds[i][0], &g.counts[i]}}...)
	}
	return f
}

func (g *group) total() (n int64) {
	for _, c := range g.counts {
		n += c
	}
	return n
}

// groupNow counts what the group has: GET /v1/groups/{group}.
func (s *core) groupNow(v *visit) (*group, error) {
	const route = "core_group"
	body, err := s.gateway(v, v.toGroup(route, "", ""), nil)
	if err != nil {
		return nil, err
	}
	g := new(group)
	return g, answer(route, body, fields{{"counts", g.fields()},
		{"jobs", fields{{"queued", &g.queued}, {"running", &g.running}}}}, "counts")
}

// reset deletes a group with all that it has. The gateway works in order: it takes the group's queued jobs away and
// waits for one that runs.
func (s *core) reset(v *visit, receipt *abi.ResetReceipt) error {
	const route = "core_delete_group"
	body, err := s.gateway(v, v.toGroup(route, "", ""), nil)
	if err != nil {
		return err
	}
	var g group
	err = answer(route, body, fields{{"removed", g.fields()}}, "removed")
	if err != nil {
		return err
	}
	for i := range groupKinds {
		receipt.Removed[groupKinds[i][1]] = sdk.Ptr(g.counts[i])
	}
	left, err := s.groupNow(v)
	if err != nil {
		return err
	}
	busy := left.queued + left.running
	if left.total()+busy == 0 {
		receipt.Status = abi.ResetDone
		return nil
	}
	receipt.Warnings = append(receipt.Warnings,
		"draining: the group has "+sdk.Itoa(left.total())+" nodes and facts and "+sdk.Itoa(busy)+" jobs still")
	return nil
}

func (s *core) holds(v *visit, _ marker) (bool, error) {
	g, err := s.groupNow(v)
	if err != nil {
		return false, err
	}
	return g.total()+g.queued+g.running > 0, nil
}

// inventory counts and hashes all that a group has, page by page: every id with what changes of it, a fact that is
// closed, an entity's summary. Communities and sagas are counted; the gateway does not list communities.
func (s *core) inventory(v *visit, answer *abi.Inventory) error {
	answer.Complete, answer.Trace.NativeOperation = true, "lists of the group"
	for i, kind := range [...]struct {
		route string
		page  int
	}{{"core_list_episodes", 100}, {"core_list_nodes", 500}, {"core_list_edges", 500}} {
		k, err := s.count(v, kind.route, groupKinds[i][0], groupKinds[i][1], kind.page)
		if err != nil {
			return err
		}
		answer.Kinds = append(answer.Kinds, k)
	}
	g, err := s.groupNow(v)
	if err != nil {
		return err
	}
	answer.Quiescent = g.queued+g.running == 0
	for i := len(answer.Kinds); i < len(groupKinds); i++ {
		answer.Kinds = append(answer.Kinds, abi.InventoryKind{Kind: groupKinds[i][1], Count: g.counts[i]})
	}
	return nil
}

// count goes through a list page by page, and through a page item by item: a group has any number of pages, and memory
// is freed only at the operation's end, or by Reuse.
func (s *core) count(v *visit, route, key, kind string, page int) (abi.InventoryKind, error) {
	k := abi.InventoryKind{Kind: kind}
	var digest sdk.Digest
	for cursor, more := "", true; more; {
		request := v.toGroup(route, "", "")
		request.Query = []abi.QueryParam{{Key: "limit", Value: sdk.Itoa(page)}}
		if cursor != "" {
			request.Query = append(request.Query, abi.QueryParam{Key: "cursor", Value: cursor})
		}
		body, err := s.gateway(v, request, nil)
		if err != nil {
			return k, err
		}
		next, breach := "", error(nil)
		err = answer(route, body, fields{{"next_cursor", &next}, {key, func(d *wirejson.Decoder) error {
			return d.Arr(func(d *wirejson.Decoder) error {
				var x item
				err := d.Obj(x.readField)
				if breach == nil && x.group != v.group {
					breach = foreign(route, x.group)
				}
				k.Count++
				x.digest(&digest)
				return err
			})
		}}}, key)
		switch {
		case err == nil && breach != nil:
			err = breach
		case err == nil && next != "" && next == cursor:
			err = unusable(route, "a page that comes again and again", body)
		}
		if err != nil {
			return k, err
		}
		cursor, more = strings.Clone(next), next != ""
		v.Reuse(body)
	}
	k.Digest = digest.Hex()
	return k, nil
}

// digest adds an item's id and what changes of it.
func (x *item) digest(d *sdk.Digest) {
	for _, part := range [...]string{x.uuid, "\n", x.name, "\n", x.text, "\n", x.invalidAt.text, " ", x.expiredAt.text,
		"\n"} {
		d.Add(part)
	}
	for _, uuids := range [...][]string{x.episodes, x.facts} {
		for _, uuid := range uuids {
			d.Add(uuid)
			d.Add("\n")
		}
	}
}
