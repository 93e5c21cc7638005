package main

import (
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// answerMS is kept back of an operation's time, so that the guest can still say what became of the events when the gateway does not answer in time.
const answerMS = 1000

// within bounds one exchange by what is left of the operation.
func within(c *sdk.Call) int64 { return max(1, c.Remaining()-answerMS) }

// coreDeliver gives turns to the gateway in order and answers the receipt of each; failed is what stopped it, at the turn behind the last receipt.
func (s *settings) coreDeliver(c *sdk.Call, gid string, events []*abi.MemoryEvent, turns []turn, seq int64) (receipts []*abi.WriteReceipt, failed error) {
	known, err := s.bare(c, gid, turns)
	if err != nil {
		return nil, err
	}
	if s.library.bulk && len(turns) > 1 {
		return s.coreBatch(c, gid, events, turns, known, seq)
	}
	for i := range turns {
		seq++
		receipt, err := s.coreAdd(c, gid, events[i], &turns[i], known[turns[i].name], seq)
		if err != nil {
			return receipts, err
		}
		receipts = append(receipts, receipt)
	}
	return receipts, nil
}

// bare finds episodes that stand under the turns' names already: a bulk that fails half-way leaves all of its episodes without their facts, and sent again without
// these ids they would double. Only where bulk: native is configured can there be any.
func (s *settings) bare(c *sdk.Call, gid string, turns []turn) (map[string]string, error) {
	known := map[string]string{}
	if !s.library.bulk || len(turns) == 0 {
		return known, nil
	}
	names := make([]string, len(turns))
	for i := range turns {
		names[i] = turns[i].name
	}
	found, err := s.coreNamed(c, gid, names)
	for name, n := range found {
		known[name] = n.uuids[0]
	}
	return known, err
}

// common writes what single and bulk requests have alike.
func (s *settings) common(e *jsontext.Encoder, event *abi.MemoryEvent, job string) {
	for _, f := range s.library.types {
		e.FieldStart(f.name)
		e.Raw(jsontext.Raw(f.value))
	}
	if s.instructions != "" {
		e.FieldStart("custom_extraction_instructions")
		e.Str(s.instructions)
	}
	if s.library.saga {
		e.FieldStart("saga")
		e.Str(event.SessionID)
	}
	if s.library.queued {
		e.FieldStart("mode")
		e.Str("queued")
		e.FieldStart("job_id")
		e.Str(job)
	}
}

// episode writes what an episode is; body is the name that its text has in the request. uuid is of an episode that is there without its facts.
func (s *settings) episode(e *jsontext.Encoder, t *turn, body, uuid string) {
	e.FieldStart("name")
	e.Str(t.name)
	e.FieldStart(body)
	e.Str(t.body(s.source))
	e.FieldStart("source")
	e.Str(s.source)
	e.FieldStart("source_description")
	e.Str(t.about)
	e.FieldStart("reference_time")
	e.Str(t.at)
	if uuid != "" {
		e.FieldStart("uuid")
		e.Str(uuid)
	}
}

// jobOf is the id of the job that carries events: the same events, the same job, so that a request that is sent twice is worked off once.
func jobOf(kind string, turns []turn, known map[string]string) string {
	var d sdk.Digest
	for i := range turns {
		d.Add(sdk.Itoa(len(turns[i].name)) + ":" + turns[i].name + known[turns[i].name])
	}
	return kind + "-" + d.Hex()
}

// Kinds of jobs, as their ids begin.
const (
	jobSingle = "mh1e"
	jobBulk   = "mh1b"
)

// coreAdd adds one episode: POST /v1/groups/{group}/episodes.
func (s *settings) coreAdd(c *sdk.Call, gid string, event *abi.MemoryEvent, t *turn, uuid string, seq int64) (*abi.WriteReceipt, error) {
	job := jobOf(jobSingle, []turn{*t}, map[string]string{t.name: uuid})
	var e jsontext.Encoder
	e.ObjStart()
	s.episode(&e, t, "episode_body", uuid)
	if s.library.noPrevious {
		e.FieldStart("previous_episode_uuids")
		e.ArrStart()
		e.ArrEnd()
	}
	s.common(&e, event, job)
	e.ObjEnd()
	const route = "core_add_episode"
	if s.library.queued {
		stored, err := s.enqueue(c, route, gid, job, []string{t.name}, e.Bytes())
		if err != nil {
			return nil, err
		}
		return s.coreQueued(c, gid, event, t, job, seq, stored[t.name]), nil
	}
	body, err := s.gateway(c, abi.HTTPRequest{Route: route, Params: inPath(gid, "", ""), TimeoutMS: within(c)}, e.Bytes())
	if err != nil {
		return nil, err
	}
	w, err := readWritten(route, gid, body)
	if err != nil {
		return nil, err
	}
	if len(w.episodes) != 1 {
		return nil, unusable(route, "one without the episode", body)
	}
	return s.committed(gid, "add_episode", event, w, 0), nil
}

// coreBatch adds all turns at once: POST /v1/groups/{group}/episodes/bulk. What it does differently stands in the receipts' warnings.
func (s *settings) coreBatch(c *sdk.Call, gid string, events []*abi.MemoryEvent, turns []turn, known map[string]string, seq int64) ([]*abi.WriteReceipt, error) {
	job := jobOf(jobBulk, turns, known)
	names := make([]string, len(turns))
	var e jsontext.Encoder
	e.ObjStart()
	e.FieldStart("episodes")
	e.ArrStart()
	for i := range turns {
		names[i] = turns[i].name
		e.ObjStart()
		s.episode(&e, &turns[i], "content", known[turns[i].name])
		e.ObjEnd()
	}
	e.ArrEnd()
	s.common(&e, events[0], job)
	e.ObjEnd()
	const route = "core_add_bulk"
	receipts := make([]*abi.WriteReceipt, len(turns))
	if s.library.queued {
		stored, err := s.enqueue(c, route, gid, job, names, e.Bytes())
		if err != nil {
			return nil, err
		}
		for i := range turns {
			receipts[i] = s.coreQueued(c, gid, events[i], &turns[i], job, seq+int64(i)+1, stored[turns[i].name])
			receipts[i].Warnings = append(receipts[i].Warnings, warnBulk)
		}
		return receipts, nil
	}
	body, err := s.gateway(c, abi.HTTPRequest{Route: route, Params: inPath(gid, "", ""), TimeoutMS: within(c)}, e.Bytes())
	if err != nil {
		return nil, err
	}
	w, err := readWritten(route, gid, body)
	if err != nil {
		return nil, err
	}
	if len(w.episodes) != len(turns) {
		return nil, unusable(route, "one with "+sdk.Itoa(len(w.episodes))+" episodes for "+sdk.Itoa(len(turns)), body)
	}
	for i := range turns {
		receipts[i] = s.committed(gid, "add_episode_bulk", events[i], w, i)
		receipts[i].Warnings = append(receipts[i].Warnings, warnBulk)
	}
	return receipts, nil
}

const warnBulk = "bulk_native: add_episode_bulk leaves contradictions inside a batch open, doubles a fact that is said twice in it, and links no facts to its episodes"

// written is what a write stored.
type written struct {
	episodes, nodes, facts           []item
	created, reasserted, invalidated []string
}

// readWritten reads the answer of add_episode and add_episode_bulk, and of a job that did them.
func readWritten(route, gid string, body []byte) (*written, error) {
	w := new(written)
	err := fields(route, body, func(d *jsontext.Decoder, key string) (err error) {
		switch key {
		case "episode":
			var x item
			err = d.Obj(x.decode)
			w.episodes = append(w.episodes, x)
		case "episodes":
			w.episodes, err = items(d)
		case "nodes":
			w.nodes, err = items(d)
		case "edges":
			w.facts, err = items(d)
		case "created_edge_uuids":
			w.created, err = texts(d)
		case "reasserted_edge_uuids":
			w.reasserted, err = texts(d)
		case "invalidated_edge_uuids":
			w.invalidated, err = texts(d)
		default:
			err = d.Skip()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, list := range [...][]item{w.episodes, w.nodes, w.facts} {
		if err := ours(route, gid, list); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// committed is the receipt of one of the episodes: it, the facts that it asserted, and of a single one the entities; what it closed is in the trace.
func (s *settings) committed(gid, call string, event *abi.MemoryEvent, w *written, i int) *abi.WriteReceipt {
	episode := w.episodes[i].uuid
	ids := []string{episode}
	single := len(w.episodes) == 1
	var nodes []string
	if single {
		for j := range w.nodes {
			nodes = append(nodes, w.nodes[j].uuid)
		}
	}
	of := func(uuids []string) []string { // of a batch, the facts that name the episode among their sources
		var mine []string
		for _, uuid := range uuids {
			for j := range w.facts {
				if w.facts[j].uuid == uuid && (single || contains(w.facts[j].episodes, episode)) {
					mine = append(mine, uuid)
				}
			}
		}
		return mine
	}
	created, reasserted := of(w.created), of(w.reasserted)
	ids = append(append(ids, nodes...), created...)
	t := s.writeTrace(gid, call)
	t.Consistency, t.NativeIDs = "committed", ids
	t.Details.Set("episode", sdk.Text(episode))
	t.Details.Set("facts_created", textList(created))
	t.Details.Set("facts_reasserted", textList(reasserted))
	if single {
		t.Details.Set("entities", textList(nodes))
		t.Details.Set("facts_invalidated", textList(w.invalidated))
	} else { // the answer does not say which of a batch's episodes closed a fact
		t.Details.Set("facts_invalidated_by_batch", textList(w.invalidated))
	}
	r := &abi.WriteReceipt{EventID: event.EventID, Status: abi.StatusCommitted, NativeIDs: ids, NativeIDsKind: abi.NativeIDsFinal, StoredCount: sdk.Ptr(int64(len(created))), Trace: t}
	if single && len(nodes) == 0 && len(created)+len(reasserted) == 0 {
		r.Warnings = append(r.Warnings, "nothing_extracted: the episode is stored, and the language model found neither entities nor facts in it")
	}
	return r
}

func (s *settings) writeTrace(gid, call string) *abi.Trace {
	return &abi.Trace{BackendName: s.config.Provider, NativeOperation: call,
		Details: abi.Members[abi.Raw]{{Name: "group_id", Value: sdk.Text(gid)}, {Name: "surface", Value: sdk.Text(s.surface())}, {Name: "ingest_mode", Value: sdk.Text(s.source)}}}
}

// coreQueued is the receipt of an event that stands in the queue; stored is the episode where the job turned out to be done long ago.
func (s *settings) coreQueued(c *sdk.Call, gid string, event *abi.MemoryEvent, t *turn, job string, seq int64, stored []string) *abi.WriteReceipt {
	r := &abi.WriteReceipt{EventID: event.EventID, Status: abi.StatusQueued, NativeIDsKind: abi.NativeIDsNone, Trace: s.writeTrace(gid, "add_episode, queued")}
	r.Trace.Details.Set("job_id", sdk.Text(job))
	r.Trace.Consistency = "queued"
	if len(stored) > 0 {
		r.Status, r.NativeIDs, r.NativeIDsKind, r.Trace.Consistency = abi.StatusCommitted, stored, abi.NativeIDsFinal, "committed"
		return r
	}
	r.Markers = []string{marker{seq: seq, sentMS: millis(c.Now), eventMS: t.atMS, name: event.EventID, job: job}.String()}
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

func (j *job) decode(d *jsontext.Decoder, key string) (err error) {
	switch key {
	case "id":
		j.id, err = text(d)
	case "state":
		j.state, err = text(d)
	case "error":
		if d.Next() != jsontext.Object {
			return d.Skip()
		}
		err = d.Obj(j.failure.decode)
	default:
		err = d.Skip()
	}
	return err
}

// readJob reads {"job": {...}}.
func readJob(route string, body []byte) (*job, error) {
	j := new(job)
	err := fields(route, body, func(d *jsontext.Decoder, key string) error {
		if key != "job" {
			return d.Skip()
		}
		return d.Obj(j.decode)
	})
	if err == nil && (j.id == "" || j.state == "") {
		err = unusable(route, "one without a job", body)
	}
	return j, err
}

// enqueue puts a write into the group's queue. The id makes it the same job however often it is sent; the gateway replaces one that failed. Of one that is done the episodes are
// answered, by name; where they are gone meanwhile, the job is forgotten and sent anew.
func (s *settings) enqueue(c *sdk.Call, route, gid, id string, names []string, request []byte) (stored map[string][]string, err error) {
	for again := false; ; again = true {
		body, err := s.gateway(c, abi.HTTPRequest{Route: route, Params: inPath(gid, "", ""), TimeoutMS: queueMS}, request)
		if err != nil {
			return nil, err
		}
		j, err := readJob(route, body)
		switch {
		case err != nil:
			return nil, err
		case j.id != id:
			return nil, unusable(route, "of another job", body)
		case j.state != jobDone || again:
			return nil, nil
		}
		found, err := s.coreNamed(c, gid, names)
		if err != nil {
			return nil, err
		}
		if len(found) == len(names) {
			stored = map[string][]string{}
			for name, n := range found {
				stored[name] = n.uuids
			}
			return stored, nil
		}
		if _, err := s.gateway(c, abi.HTTPRequest{Route: "core_forget_job", Params: inPath(gid, "job", id)}, nil); err != nil && abi.CodeOf(err) != abi.CodeNotFound {
			return nil, err
		}
	}
}

// queueMS bounds a request that only puts something into a queue.
const queueMS = 10_000

// coreNamed looks episodes up by name: POST /v1/groups/{group}/episodes/lookup.
func (s *settings) coreNamed(c *sdk.Call, gid string, names []string) (map[string]named, error) {
	found := make(map[string]named, len(names))
	for len(names) > 0 {
		n := min(lookupAtOnce, len(names))
		list, body, err := s.coreEpisodes(c, gid, "names", names[:n])
		if err != nil {
			return nil, err
		}
		for i := range list {
			name := strings.Clone(list[i].name)
			at := found[name]
			at.copies++
			at.uuids = append(at.uuids, strings.Clone(list[i].uuid))
			at.facts += int64(len(list[i].facts))
			found[name] = at
		}
		c.Reuse(body) // it holds the episodes' texts
		names = names[n:]
	}
	return found, nil
}

// lookupAtOnce is what the gateway takes in one look-up.
const lookupAtOnce = 1000

// coreEpisodes looks episodes up, by "names" or by "uuids"; body is the answer as it came.
func (s *settings) coreEpisodes(c *sdk.Call, gid, by string, values []string) (list []item, body []byte, err error) {
	return s.coreLookup(c, "core_find_episodes", "episodes", gid, by, values)
}

func (s *settings) coreLookup(c *sdk.Call, route, kind, gid, by string, values []string) (list []item, body []byte, err error) {
	var e jsontext.Encoder
	e.ObjStart()
	e.FieldStart(by)
	e.ArrStart()
	for _, v := range values {
		e.Str(v)
	}
	e.ArrEnd()
	e.ObjEnd()
	if body, err = s.gateway(c, abi.HTTPRequest{Route: route, Params: inPath(gid, "", "")}, e.Bytes()); err != nil {
		return nil, nil, err
	}
	if list, err = itemsIn(route, kind, body); err == nil {
		err = ours(route, gid, list)
	}
	return list, body, err
}

func contains(list []string, text string) bool {
	for _, t := range list {
		if t == text {
			return true
		}
	}
	return false
}

// textList is a list of strings as JSON.
func textList(list []string) abi.Raw {
	var e jsontext.Encoder
	e.ArrStart()
	for _, t := range list {
		e.Str(t)
	}
	e.ArrEnd()
	return e.Bytes()
}
