package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// forget removes through the gateway: first the events' records in the journal, so that none can arrive later, then
// facts, then episodes.
func (s *core) forget(f *forgetRun) error {
	f.receipt.Trace.NativeOperation = "remove_episode"
	err := s.forgetJobs(f)
	if err != nil || f.receipt.Status == abi.ForgetInProgress {
		return err
	}
	err = s.findForgotten(f)
	if err != nil {
		return err
	}
	facts, shared, err := s.exclusiveFacts(f)
	if err != nil {
		return err
	}
	for _, kind := range [...]struct {
		name, route string
		uuids       []string
	}{{"fact", "core_delete_edge", facts}, {"entity", "core_delete_node", f.NativeIDs},
		{"episode", "core_delete_episode", f.episodes}} {
		for _, uuid := range kind.uuids {
			gone, err := s.removeOne(f.scopedCall, kind.route, uuid)
			if err != nil {
				return err
			}
			if gone {
				f.addRemoved(kind.name, uuid)
			}
		}
	}
	f.remains(shared, "facts that other events said too")
	if len(f.episodes) > 0 {
		f.receipt.DerivedMayRemain = append(f.receipt.DerivedMayRemain,
			"summaries that a model wrote of entities that other events mention too")
	}
	g, err := s.groupNow(f.scopedCall)
	if err == nil {
		f.remains(int(g.counts[3]+g.counts[4]), "communities and sagas, with their summaries")
	}
	return err
}

// removeOne removes an object of the group by its id. A fact that other episodes assert too is kept; when a fact is
// removed, its sentence is removed from the summaries of its two entities.
func (s *core) removeOne(v *scopedCall, route, uuid string) (gone bool, err error) {
	if !isUUID(uuid) {
		return false, nil
	}
	request := v.toGroup(route, "uuid", uuid)
	switch route {
	case "core_delete_episode":
		request.Query = []abi.QueryParam{{Key: "shared", Value: "keep"}}
	case "core_delete_edge":
		request.Query = []abi.QueryParam{{Key: "summaries", Value: "clean"}}
	}
	_, err = s.gateway(v, v.withOperationTimeout(request), nil)
	if abi.CodeOf(err) == abi.CodeNotFound {
		return false, nil
	}
	return err == nil, err
}

// findForgotten finds the request's episodes: by name or id if the request has them, else page by page.
func (s *core) findForgotten(f *forgetRun) error {
	switch {
	case len(f.EventIDs) > 0:
		return s.findEpisodes(f, "names", f.EventIDs)
	case len(f.NativeIDs) > 0:
		return s.findEpisodes(f, "uuids", f.NativeIDs)
	}
	return s.pages(f.scopedCall, "core_list_episodes", "episodes", 100, f.addEpisode)
}

// findEpisodes looks up the episodes with these names or ids.
func (s *core) findEpisodes(f *forgetRun, by string, values []string) error {
	for len(values) > 0 {
		n := min(lookupAtOnce, len(values))
		list, body, err := s.lookup(f.scopedCall, routeCoreSources, "episodes", by, values[:n]...)
		if err != nil {
			return err
		}
		for i := range list {
			f.addEpisode(&list[i])
		}
		f.Reuse(body)
		values = values[n:]
	}
	return nil
}

// exclusiveFacts returns the facts that only the forgotten episodes assert; shared counts those that others assert too.
// Before graphiti-core 0.31 the episodes of a bulk list no facts, so all of the group's facts are checked.
func (s *core) exclusiveFacts(f *forgetRun) (facts []string, shared int, err error) {
	if len(f.episodes)+len(f.NativeIDs) == 0 {
		return nil, 0, nil
	}
	err = s.pages(f.scopedCall, "core_list_edges", "edges", 500, func(x *item) {
		switch f.shareOf(x) {
		case shareExclusive:
			facts = append(facts, strings.Clone(x.uuid))
		case shareFirstOfMany, shareOneOfMany:
			shared++
		}
	})
	return facts, shared, err
}

// forgetJobs removes the events' records, with their texts, from the gateway's journal: the jobs of single events and,
// with bulk: native, of finished batches. It waits for a running job.
func (s *core) forgetJobs(f *forgetRun) error {
	if !s.queued() {
		return nil
	}
	var ids []string
	for _, name := range f.EventIDs {
		ids = append(ids, jobID(jobSingle, nil, name))
	}
	if s.native() {
		batches, err := s.batches(f)
		if err != nil {
			return err
		}
		ids = append(ids, batches...)
	}
	for _, id := range ids {
		_, err := s.gateway(f.scopedCall, f.toGroup("core_forget_job", "job", id), nil)
		switch abi.CodeOf(err) {
		case abi.CodeNotFound:
		case abi.CodeConflict:
			f.receipt.Status = abi.ForgetInProgress
		default:
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// batches returns the finished jobs that contained one of the events together with others.
func (s *core) batches(f *forgetRun) (ids []string, err error) {
	const route = "core_jobs"
	request := f.toGroup(route, "", "")
	request.Query = []abi.QueryParam{{Key: "limit", Value: sdk.Itoa(lookupAtOnce)}}
	body, err := s.gateway(f.scopedCall, request, nil)
	if err != nil {
		return nil, err
	}
	err = answer(route, body, fields{{"jobs", func(d *wirejson.Decoder) error {
		return d.Arr(func(d *wirejson.Decoder) error {
			var j job
			var names []string
			err := append(j.fields(), fields{{"names", &names}}...).read(d)
			for _, name := range names {
				if contains(f.EventIDs, name) && !j.waits() {
					ids = append(ids, j.id)
					break
				}
			}
			return err
		})
	}}}, "jobs")
	return ids, err
}
