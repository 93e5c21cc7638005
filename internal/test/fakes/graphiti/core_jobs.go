package graphiti

import (
	"slices"
	"strconv"
	"time"
)

// coreJob is a job of the gateway's queue.
type coreJob struct {
	id, group, kind, state string
	names                  []string
	request                string
	due                    time.Time
	result, failure        object
	run                    func() (object, object)
}

func (j *coreJob) object() object {
	o := object{"id": j.id, "group_id": j.group, "kind": j.kind, "state": j.state, "position": nil, "names": j.names,
		"created_at": nil, "started_at": nil, "finished_at": nil,
		"result": nil, "error": nil}
	if j.result != nil {
		o["result"] = j.result
	}
	if j.failure != nil {
		o["error"] = j.failure
	}
	return o
}

func (s *Server) coreCounts(group string) map[string]int {
	n := map[string]int{"queued": 0, "running": 0, "done": 0, "failed": 0, "cancelled": 0, "interrupted": 0}
	for _, j := range s.core[group] {
		n[j.state]++
	}
	return n
}

// workJobs works off the jobs that are due, each group's in order.
func (s *Server) workJobs(now time.Time) {
	for _, jobs := range s.core {
		for _, j := range jobs {
			if j.state != "queued" {
				continue
			}
			if j.due.After(now) || s.down {
				break
			}
			j.state = "done"
			if j.result, j.failure = j.run(); j.failure != nil {
				j.state = "failed"
			}
		}
	}
}

// Interrupt is the gateway killed while the first job of a group ran: with stored its episode is there nevertheless.
func (s *Server) Interrupt(group string, stored bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.core[group] {
		if j.state == "queued" {
			if stored {
				j.run()
			}
			j.state, j.failure = "interrupted", object{"code": "internal", "message": "the process was killed",
				"details": object{"stored": "unknown"}}
			return
		}
	}
}

func (c *call) jobs() {
	most, err := strconv.Atoi(c.r.URL.Query().Get("limit"))
	if err != nil {
		most = 100
	}
	list := []any{}
	state := c.r.URL.Query().Get("state")
	for _, j := range c.s.core[c.group] {
		if (state == "" || j.state == state) && len(list) < most {
			o := j.object()
			delete(o, "result")
			list = append(list, o)
		}
	}
	c.say(object{"jobs": list, "counts": c.s.coreCounts(c.group)})
}

func (c *call) found() (int, *coreJob) {
	for i, j := range c.s.core[c.group] {
		if j.id == c.r.PathValue("job") {
			return i, j
		}
	}
	c.absent("job", c.r.PathValue("job"))
	return 0, nil
}

func (c *call) job() {
	if _, j := c.found(); j != nil {
		c.say(object{"job": j.object()})
	}
}

func (c *call) forget() {
	if i, j := c.found(); j != nil {
		c.s.core[c.group] = slices.Delete(c.s.core[c.group], i, i+1)
		c.say(object{"job": j.object()})
	}
}
