package main

import (
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
)

// marker keeps a job of the platform with the event that it is of, for readiness and find_event.
func marker(jobID, eventID string) string { return jobPrefix + jobID + " " + eventID }

const jobPrefix = "job "

func splitMarker(marker string) (jobID, eventID string, ok bool) {
	rest, ok := strings.CutPrefix(marker, jobPrefix)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, " ")
}

// jobState is what the platform says of a job.
type jobState struct {
	status, problem, kind string
	created, completed    string
	ids                   []string
	run, event            string // of the request that it carries out
}

// succeeded, failed: any other status is one of work under way; the platform has more of them than it documents.
func (s *jobState) succeeded() bool { return s.status == "SUCCEEDED" }
func (s *jobState) failed() bool    { return s.status == "FAILED" }

// job asks for a job. Nil means that the platform does not know it.
func (b *backend) job(id string) (*jobState, error) {
	head, body, err := b.exchange(request{route: "platform_event", params: abi.Members[string]{{Name: "event_id", Value: id}}})
	switch {
	case err != nil:
		return nil, err
	case head.Status == 404:
		return nil, nil
	case head.Status != 200:
		return nil, failure("platform_event", head, body)
	}
	s := new(jobState)
	if err := readObject("platform_event", body, s.readField); err != nil {
		return nil, err
	}
	s = s.kept()
	b.Reuse(body)
	return s, nil
}

// kept is a copy that does not refer to the answer that the job was read from.
func (s *jobState) kept() *jobState {
	k := &jobState{status: strings.Clone(s.status), problem: strings.Clone(s.problem), kind: strings.Clone(s.kind), created: strings.Clone(s.created),
		completed: strings.Clone(s.completed), run: strings.Clone(s.run), event: strings.Clone(s.event)}
	for _, id := range s.ids {
		k.ids = append(k.ids, strings.Clone(id))
	}
	return k
}

func (s *jobState) readField(d *jsontext.Decoder, key string) (err error) {
	switch key {
	case "status":
		s.status, err = readText(d)
	case "event_type":
		s.kind, err = readText(d)
	case "error":
		s.problem, err = readText(d)
	case "created_at":
		s.created, err = readTime(d)
	case "completed_at":
		s.completed, err = readTime(d)
	case "results":
		var results []added
		results, err = readAddedList(d)
		s.ids = idsOfAdded(results)
	case "payload":
		err = eachIn(d, func(d *jsontext.Decoder, key string) (err error) {
			switch key {
			case "run_id":
				s.run, err = readText(d)
			case "metadata":
				err = eachIn(d, func(d *jsontext.Decoder, key string) (err error) {
					if key != keyEvent {
						return d.Skip()
					}
					s.event, err = readText(d)
					return err
				})
			default:
				err = d.Skip()
			}
			return err
		})
	default:
		err = d.Skip()
	}
	return err
}

// settledIn is how long the platform may still enrich what a job stored, in ms: it goes on for some seconds after SUCCEEDED.
func (b *backend) settledIn(s *jobState) int64 {
	done, err := abi.ParseTime(s.completed)
	now, wrong := abi.ParseTime(b.Now)
	if err != nil || wrong != nil {
		return 0
	}
	return min(b.settings.settleMS, max(0, b.settings.settleMS-now.Sub(done).Milliseconds()))
}

// jobPages is how many pages of the platform's jobs are searched for one whose id got lost.
const jobPages = 5

// findJob says what became of an event that has no rows: by its marker, else among the jobs of the whole account, of which only this scope's count.
func (b *backend) findJob(r *abi.FindEventRequest, answer *abi.FindEventAnswer) (*abi.FindEventAnswer, error) {
	const again = int64(1500)
	for _, m := range r.Markers {
		id, _, ok := splitMarker(m)
		if !ok {
			continue
		}
		s, err := b.job(id)
		switch {
		case err != nil:
			return nil, err
		case s == nil || s.failed():
			answer.Found = "absent"
		case s.succeeded():
			answer.NativeIDs = s.ids // none: the platform found nothing worth keeping, and would again
		default:
			answer.Found, answer.RetryAfterMS = "unknown", ptr(again)
		}
		return answer, nil
	}
	s, all, err := b.searchJobs(r.EventID)
	wait := b.landsWithin(r.SentAt)
	switch {
	case err != nil:
		return nil, err
	case s != nil && s.succeeded():
		answer.NativeIDs = s.ids
	case s != nil && !s.failed():
		answer.Found, answer.RetryAfterMS = "unknown", ptr(again)
	case !all:
		answer.Found = "unknown"
	case wait > 0:
		answer.Found, answer.RetryAfterMS = "unknown", &wait
	default:
		answer.Found = "absent"
	}
	return answer, nil
}

func ptr(n int64) *int64 { return &n }

// searchJobs looks through the account's jobs for the event's add; all tells whether every job was seen. Where there are several, one that has not failed counts.
func (b *backend) searchJobs(eventID string) (best *jobState, all bool, err error) {
	all, err = b.eachJob(func(s *jobState) (stop bool) {
		if s.event == eventID && (best == nil || best.failed()) {
			best = s.kept()
		}
		return best != nil && !best.failed()
	})
	return best, all, err
}

// eachJob visits the scope's jobs among those of the whole account, until visit says stop; what it keeps of a job must be a copy. all tells whether every job was seen.
func (b *backend) eachJob(visit func(s *jobState) (stop bool)) (all bool, err error) {
	for page := int64(1); page <= jobPages; page++ {
		body, err := b.send(request{route: "platform_events", query: pageQuery(page, pageMax)})
		if err != nil {
			return false, err
		}
		more, stop := false, false
		err = readObject("platform_events", body, func(d *jsontext.Decoder, key string) error {
			switch key {
			case "next":
				next, err := readText(d)
				more = next != ""
				return err
			case "results":
				return d.Arr(func(d *jsontext.Decoder) error {
					s := new(jobState)
					err := eachIn(d, s.readField)
					if s.run == b.ids.run && !stop {
						stop = visit(s)
					}
					return err
				})
			}
			return d.Skip()
		})
		if err != nil || !more || stop {
			return err == nil && !more, err
		}
		b.Reuse(body)
	}
	return false, nil
}
