package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// marker stores a job of the platform with its event, for readiness and find_event.
func marker(jobID, eventID string) string { return jobPrefix + jobID + " " + eventID }

const jobPrefix = "job "

func splitMarker(marker string) (jobID, eventID string, ok bool) {
	rest, ok := strings.CutPrefix(marker, jobPrefix)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, " ")
}

// jobState is the platform's report of a job.
type jobState struct {
	status, problem    string
	created, completed string
	ids                []string
	unread             bool   // what it stored cannot be read
	run, event         string // of the request that it executes
}

// succeeded and failed are final; any other status means work in progress, since the platform has more statuses than it
// documents.
func (s *jobState) succeeded() bool { return s.status == "SUCCEEDED" }
func (s *jobState) failed() bool    { return s.status == "FAILED" }

// job requests a job. Nil means that the platform does not know it.
func (b *backend) job(id string) (*jobState, error) {
	head, body, err := b.exchange(request{route: "platform_event", params: map[string]string{"event_id": id}})
	switch {
	case err != nil:
		return nil, err
	case head.Status == 404:
		return nil, nil
	case head.Status != 200:
		return nil, failure("platform_event", head, body)
	}
	if err := read("platform_event", body); err != nil {
		return nil, err
	}
	return readJob(body), nil
}

func readJob(job abi.Raw) *jobState {
	var s jobState
	var results []abi.Raw
	wire.Pick(job, "status", &s.status, "error", &s.problem, "created_at", &s.created, "completed_at", &s.completed,
		"results", &results, "payload", wire.Fields{"run_id", &s.run, "metadata", wire.Fields{keyEvent, &s.event}})
	s.created, _ = readTime(s.created)
	s.completed, _ = readTime(s.completed)
	stored, good := readAddedList(results)
	for _, m := range stored {
		s.ids = append(s.ids, m.id)
	}
	s.unread = results == nil || !good
	return &s
}

// settledIn returns how long the platform may continue to enrich what a job stored, in ms: it does so for some seconds
// after SUCCEEDED.
func (b *backend) settledIn(s *jobState) int64 {
	done, err := abi.ParseTime(s.completed)
	now, wrong := abi.ParseTime(b.Now)
	if err != nil || wrong != nil {
		return 0
	}
	return min(b.settleMS, max(0, b.settleMS-now.Sub(done).Milliseconds()))
}

// jobPages is how many pages of the platform's jobs are searched for one whose id was lost.
const jobPages = 5

// findJob determines the outcome of an event without rows: by its marker, else by searching the jobs of the whole
// account for this scope's.
func (b *backend) findJob(r *abi.FindEventRequest, answer *abi.FindEventAnswer) (*abi.FindEventAnswer, error) {
	for _, m := range r.Markers {
		if id, _, ok := splitMarker(m); ok {
			s, err := b.job(id)
			answerJob(s, answer)
			return answer, err
		}
	}
	s, all, err := b.searchJobs(r.EventID)
	if err != nil {
		return nil, err
	}
	answerJob(s, answer)
	if wait := b.mayLandForMS(r.SentAt); answer.Found == "absent" && !all {
		answer.Found = "unknown"
	} else if answer.Found == "absent" && wait > 0 {
		answer.Found, answer.RetryAfterMS = "unknown", &wait
	}
	return answer, nil
}

// answerJob answers by a job; nil is one that the platform does not know.
func answerJob(s *jobState, answer *abi.FindEventAnswer) {
	switch {
	case s == nil || s.failed():
		answer.Found = "absent"
	case s.succeeded() && s.unread:
		answer.Found = "unknown"
	case s.succeeded():
		answer.NativeIDs = s.ids // no rows: the platform found nothing worth keeping, and would find nothing again
	default:
		answer.Found, answer.RetryAfterMS = "unknown", sdk.Ptr(int64(1500))
	}
}

// searchJobs searches the account's jobs for the event's add; all reports whether every job was checked. If there are
// several, one that has not failed counts.
func (b *backend) searchJobs(eventID string) (best *jobState, all bool, err error) {
	all, err = b.eachJob(func(s *jobState) (stop bool) {
		if s.event == eventID && (best == nil || best.failed()) {
			best = s
		}
		return best != nil && !best.failed()
	})
	return best, all, err
}

// eachJob calls visit for the scope's jobs among those of the whole account, until visit returns true. all reports
// whether every job was checked.
func (b *backend) eachJob(visit func(s *jobState) (stop bool)) (all bool, err error) {
	for page := int64(1); page <= jobPages; page++ {
		var next string
		var jobs []abi.Raw
		query := pageQuery(page, pageMax)
		body, err := b.ask(request{route: "platform_events", query: query}, "next", &next, "results", &jobs)
		if err == nil && jobs == nil {
			err = unusable("platform_events", body, "it has no list of results")
		}
		if err != nil {
			return false, err
		}
		for _, job := range jobs {
			if s := readJob(job); s.run == b.ids.run && visit(s) {
				return next == "", nil
			}
		}
		if next == "" {
			return true, nil
		}
	}
	return false, nil
}
