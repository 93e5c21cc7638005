package main

import (
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// methodCore names the signal of readiness on core.
const methodCore = "the gateway's jobs, and episodes by name"

// coreReady judges turns by the jobs that carry them, and by what stands in the graph. Jobs first: one that ends between the two looks is found by the second.
//
// Queued or running: pending. Failed: failed, with the gateway's words; of a bulk also when its bare episodes are there. Neither a job nor an episode: lost.
func (s *settings) coreReady(c *sdk.Call, gid string, queued []marker, answer *abi.BackendReadiness) error {
	jobs, more, err := s.coreJobs(c, gid)
	if err != nil {
		return err
	}
	names := make([]string, len(queued))
	for i := range queued {
		names[i] = queued[i].name
	}
	found, err := s.coreNamed(c, gid, names)
	if err != nil {
		return err
	}
	ids := &answer.EventIDs
	oldest, copies, firstFailure := int64(0), 0, ""
	for i := range queued {
		m := &queued[i]
		j := jobs[m.job]
		there := found[m.name].copies > 0
		if found[m.name].copies > 1 {
			copies++
		}
		whole := there && (len(m.job) < len(jobBulk) || m.job[:len(jobBulk)] != jobBulk) // a single episode is written as a whole, or not at all
		switch {
		case whole, there && j == nil:
		case j == nil && more, j != nil && (j.state == jobWaits || j.state == jobRuns):
			ids.Pending = append(ids.Pending, m.name)
			if oldest == 0 || m.sentMS < oldest {
				oldest = m.sentMS
			}
		case j != nil && (j.state == jobFailed || j.state == jobInterrupted):
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
	if copies > 0 {
		answer.Warnings = append(answer.Warnings, "stored_twice: "+sdk.Itoa(copies)+" events have more than one episode")
	}
	if len(ids.Unknown) > 0 {
		answer.Status = abi.ReadinessUnknown
		answer.Warnings = append(answer.Warnings, "marker_unread: "+sdk.Itoa(len(ids.Unknown))+" events were queued on another surface, whose queue the gateway does not know")
	}
	if len(ids.Pending) > 0 {
		answer.Status, answer.OldestPendingAt = abi.ReadinessPending, stampMS(oldest)
	}
	if len(ids.Failed) > 0 {
		answer.Status = abi.ReadinessFailed
		answer.Warnings = append(answer.Warnings, "job_failed: "+sdk.Itoa(len(ids.Failed))+" events failed; the first: "+firstFailure+". Record them again")
	}
	if len(ids.Lost) > 0 {
		answer.Status = abi.ReadinessFailed
		answer.Warnings = append(answer.Warnings, "event_lost: "+sdk.Itoa(len(ids.Lost))+" events are neither in the gateway's queue nor in the graph. Record them again")
	}
	return nil
}

// coreJobs lists the jobs of a group that are not done; more tells that the gateway has more that wait than it lists.
func (s *settings) coreJobs(c *sdk.Call, gid string) (jobs map[string]*job, more bool, err error) {
	const route = "core_jobs"
	jobs = map[string]*job{}
	var counts [4]int64
	for i, state := range [...]string{jobWaits, jobRuns, jobFailed, jobInterrupted} {
		if i > 0 && counts[i] == 0 {
			continue
		}
		body, err := s.gateway(c, abi.HTTPRequest{Route: route, Params: inPath(gid, "", ""),
			Query: []abi.QueryParam{{Key: "state", Value: state}, {Key: "limit", Value: sdk.Itoa(lookupAtOnce)}}}, nil)
		if err != nil {
			return nil, false, err
		}
		seen, listed := false, int64(0)
		err = fields(route, body, func(d *jsontext.Decoder, key string) error {
			switch key {
			case "jobs":
				seen = true
				return d.Arr(func(d *jsontext.Decoder) error {
					j := new(job)
					err := d.Obj(j.decode)
					jobs[j.id] = j
					listed++
					return err
				})
			case "counts":
				return d.Obj(func(d *jsontext.Decoder, key string) (err error) {
					for k, name := range [...]string{jobWaits, jobRuns, jobFailed, jobInterrupted} {
						if name == key {
							counts[k], err = d.Int64()
							return err
						}
					}
					return d.Skip()
				})
			}
			return d.Skip()
		})
		if err == nil && !seen {
			err = unusable(route, "one without jobs", body)
		}
		if err != nil {
			return nil, false, err
		}
		more = more || i < 2 && counts[i] > listed
	}
	return jobs, more, nil
}

// coreFindEvent looks whether an event has arrived: by its job, which has the same id however often it is sent, and by its episode.
//
// Without a job absence counts when a later event of the scope is there, since the gateway works a group's writes off in their order, or when a write that was sent then
// cannot be under way any more. Of a bulk an episode alone proves nothing: one without entities is taken for bare, and finished.
func (s *settings) coreFindEvent(c *sdk.Call, gid string, want, last marker) (*abi.FindEventAnswer, error) {
	if want.job == "" {
		want.job = jobOf(jobSingle, []turn{{name: want.name}}, nil)
	}
	var state string
	if s.library.queued {
		const route = "core_job"
		body, err := s.gateway(c, abi.HTTPRequest{Route: route, Params: inPath(gid, "job", want.job)}, nil)
		switch {
		case err == nil:
			j, err := readJob(route, body)
			if err != nil {
				return nil, err
			}
			state = j.state
		case abi.CodeOf(err) != abi.CodeNotFound:
			return nil, err
		}
		if state == jobWaits || state == jobRuns {
			want.seq = max(want.seq, last.seq, 1)
			return &abi.FindEventAnswer{Found: "present", Markers: []string{want.String()}}, nil
		}
	}
	ask := []string{want.name}
	if last.name != "" && last.name != want.name {
		ask = append(ask, last.name)
	}
	found, err := s.coreNamed(c, gid, ask)
	if err != nil {
		return nil, err
	}
	if n := found[want.name]; n.copies > 0 {
		if s.library.bulk && n.facts == 0 {
			empty, err := s.bareEpisodes(c, gid, n.uuids)
			if err != nil || empty {
				return &abi.FindEventAnswer{Found: "partial", NativeIDs: n.uuids, Missing: []string{"entities and facts"}}, err
			}
		}
		return &abi.FindEventAnswer{Found: "present", NativeIDs: n.uuids}, nil
	}
	if s.library.queued { // what is neither a job nor an episode has not arrived; should it still, it is the same job
		return &abi.FindEventAnswer{Found: "absent"}, nil
	}
	if last.name != want.name && found[last.name].copies > 0 && (last.sentMS > want.sentMS || want.seq > 0 && last.seq > want.seq) {
		return &abi.FindEventAnswer{Found: "absent"}, nil
	}
	i, err := s.coreInfo(c)
	if err != nil {
		return nil, err
	}
	left := max(s.stallMS, i.writeMS) - (millis(c.Now) - want.sentMS)
	if left < 0 {
		return &abi.FindEventAnswer{Found: "absent"}, nil
	}
	return &abi.FindEventAnswer{Found: "unknown", RetryAfterMS: sdk.Ptr(min(left+1, 2000))}, nil
}

// bareEpisodes tells whether episodes have no entities.
func (s *settings) bareEpisodes(c *sdk.Call, gid string, uuids []string) (bool, error) {
	nodes, _, err := s.coreLookup(c, "core_contents", "nodes", gid, "episode_uuids", uuids)
	return len(nodes) == 0, err
}

// digestPage counts and hashes the items of a page, one after the other, and returns the next page's cursor. A group has any number of pages, and
// memory is freed behind the last one.
func digestPage(route, key, gid string, body []byte, digest *sdk.Digest, count *int64) (next string, err error) {
	seen, foreigners := false, error(nil)
	err = fields(route, body, func(d *jsontext.Decoder, name string) (err error) {
		switch name {
		case key:
			seen = true
			elements, err := d.ArrIter()
			if err != nil {
				return err
			}
			for elements.Next() {
				var x item
				if err := x.read(d); err != nil {
					return err
				}
				if foreigners == nil && x.group != gid {
					foreigners = foreign(route, x.group)
				}
				*count++
				x.digest(digest)
			}
			return elements.Err()
		case "next_cursor":
			next, err = text(d)
			return err
		}
		return d.Skip()
	})
	if err == nil && !seen {
		err = unusable(route, "one without "+key, body)
	}
	if err == nil {
		err = foreigners
	}
	return next, err
}

// digest adds an item's id and what changes of it.
func (x *item) digest(d *sdk.Digest) {
	for _, part := range [...]string{x.uuid, "\n", x.name, "\n", x.text, "\n", x.invalidAt.text, " ", x.expiredAt.text, "\n"} {
		d.Add(part)
	}
	for _, uuids := range [...][]string{x.episodes, x.facts} {
		for _, uuid := range uuids {
			d.Add(uuid)
			d.Add("\n")
		}
	}
}

// coreInventory counts and hashes all that a group has, page by page: every id with what changes of it, a fact that is closed, an entity's summary. Communities and sagas are
// counted; the gateway does not list them.
func (s *settings) coreInventory(c *sdk.Call, gid string, answer *abi.Inventory) error {
	for _, kind := range [...]struct {
		route, key, name string
		page             int
	}{{"core_list_episodes", "episodes", "episode", 100}, {"core_list_nodes", "nodes", "entity", 500}, {"core_list_edges", "edges", "fact", 500}} {
		k := abi.InventoryKind{Kind: kind.name}
		var digest sdk.Digest
		for cursor, more := "", true; more; {
			request := abi.HTTPRequest{Route: kind.route, Params: inPath(gid, "", ""), Query: []abi.QueryParam{{Key: "limit", Value: sdk.Itoa(kind.page)}}}
			if cursor != "" {
				request.Query = append(request.Query, abi.QueryParam{Key: "cursor", Value: cursor})
			}
			body, err := s.gateway(c, request, nil)
			if err != nil {
				return err
			}
			before := cursor
			if cursor, err = digestPage(kind.route, kind.key, gid, body, &digest, &k.Count); err != nil {
				return err
			}
			if more = cursor != ""; more && cursor == before {
				return unusable(kind.route, "a page that comes again and again", body)
			}
			cursor = strings.Clone(cursor)
			c.Reuse(body)
		}
		k.Digest = digest.Hex()
		answer.Kinds = append(answer.Kinds, k)
	}
	g, err := s.coreGroup(c, gid)
	if err != nil {
		return err
	}
	answer.Complete, answer.Quiescent = true, g.busy == 0
	answer.Trace.NativeOperation = "lists of the group"
	for i := 3; i < len(groupKinds); i++ {
		answer.Kinds = append(answer.Kinds, abi.InventoryKind{Kind: groupKinds[i][1], Count: g.counts[i]})
	}
	return nil
}
