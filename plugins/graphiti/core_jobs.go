package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// job is a job of the gateway's queue.
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

// waits reports whether the job is still to be done.
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

// enqueue adds a write to the group's queue. The id identifies the job however often it is sent; the gateway replaces a
// failed job. If the job finished earlier, the receipts are committed, with the episodes; if the episodes have been
// removed since, the job is forgotten and sent again.
func (s *core) enqueue(v *scopedCall, route, id string, turns []turn, body []byte, seq int64) ([]*abi.WriteReceipt, error) {
	for again := false; ; again = true {
		request := v.toGroup(route, "", "")
		request.TimeoutMS = queueMS
		reply, err := s.gateway(v, request, body)
		if err != nil {
			return nil, err
		}
		j, err := readJob(route, reply)
		switch {
		case err != nil:
			return nil, err
		case j.id != id:
			return nil, unusable(route, "of another job", reply)
		case j.state != jobDone || again:
			return v.inQueue(turns, id, nil, seq), nil
		}
		stored, err := s.episodesByName(v, turnNames(turns)...)
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

// inQueue returns the receipts of turns that are in the gateway's queue, or that the job stored earlier.
func (v *scopedCall) inQueue(turns []turn, job string, stored map[string]storedTurn, seq int64) []*abi.WriteReceipt {
	receipts := make([]*abi.WriteReceipt, len(turns))
	for i := range turns {
		m := v.mark(&turns[i], seq+int64(i)+1)
		m.job = job
		r := v.queuedReceipt(m, "add_episode, queued")
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

// ready judges turns by their jobs and by the graph. It reads the jobs first, so a job that ends between the two reads
// is found by the second. Queued or running: pending. Failed: failed, with the gateway's message; for a bulk even if
// its bare episodes exist. Neither a job nor an episode: lost.
func (s *core) ready(v *scopedCall, queued []marker, answer *abi.BackendReadiness) error {
	answer.Method = "the gateway's jobs, and episodes by name"
	if len(queued) == 0 {
		return nil
	}
	jobs, more, err := s.jobs(v)
	if err != nil {
		return err
	}
	found, err := s.episodesByName(v, namesOf(queued)...)
	if err != nil {
		return err
	}
	sum, ids, firstFailure := verdict{BackendReadiness: answer}, &answer.EventIDs, ""
	for i := range queued {
		m := &queued[i]
		j := jobs[m.job]
		sum.countCopies(found[m.name])
		there := found[m.name].copies > 0
		whole := !strings.HasPrefix(m.job, jobBulk) // a single episode is stored completely, or not at all
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

// jobs returns the unfinished jobs of a group; more reports that the gateway has more waiting jobs than it lists.
func (s *core) jobs(v *scopedCall) (jobs map[string]*job, more bool, err error) {
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

// findEvent looks for an event by its job, whose id is the same however often it is sent, and by its episode. An event
// without a job can no longer arrive if a later event of the scope has arrived, since the gateway processes a group's
// writes in order, or once a write that was sent then cannot be in progress any more. For a bulk, an episode alone
// proves nothing: one without entities counts as bare, and has to be finished.
func (s *core) findEvent(v *scopedCall, want, last marker) (*abi.FindEventAnswer, error) {
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
	found, err := s.episodesByName(v, ask...)
	if err != nil {
		return nil, err
	}
	n := found[want.name]
	switch {
	case n.copies > 0 && s.native() && n.facts == 0:
		nodes, _, err := s.lookup(v, "core_contents", "nodes", "episode_uuids", n.uuids...)
		if err != nil || len(nodes) == 0 {
			return &abi.FindEventAnswer{Found: "partial", NativeIDs: n.uuids, Missing: []string{"entities and facts"}},
				err
		}
		return &abi.FindEventAnswer{Found: "present", NativeIDs: n.uuids}, nil
	case n.copies > 0:
		return &abi.FindEventAnswer{Found: "present", NativeIDs: n.uuids}, nil
	case s.queued(), want.overtaken(last, found): // queued: if it still arrives, it is the same job
		return &abi.FindEventAnswer{Found: "absent"}, nil
	}
	i, err := s.info(v)
	if err != nil {
		return nil, err
	}
	return absentAfter(max(v.stallMS, i.writeMS) - (millis(v.Now) - want.sentMS)), nil
}

// waits reports whether a job is still to be done.
func (s *core) waits(v *scopedCall, id string) (bool, error) {
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

// groupKinds maps the gateway's names of the counts to memhost's.
var groupKinds = [...][2]string{{"episodes", "episode"}, {"nodes", "entity"}, {"edges", "fact"},
	{"communities", "community"}, {"sagas", "saga"}}
