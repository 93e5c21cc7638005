package memos

import (
	"slices"
	"time"
)

// task is background work: the extraction of an async add, or a log entry of a sync one, which is completed at once.
type task struct {
	item, business, user, cube string
	due                        time.Time
	status                     string
	batch                      batch
	raw                        []*node
	// lost tasks were taken and never come: Redis was down, or the queue was full.
	lost bool
}

// queue takes an async extraction. Beyond the cap the oldest of the cube is dropped; its status stays waiting forever.
func (s *Server) queue(b batch, business string, raw []*node) {
	t := &task{item: s.newID(), business: business, user: b.user, cube: b.cube,
		due: s.options.Now().Add(s.options.TaskDelay), status: "waiting", batch: b, raw: raw,
		lost: s.faults.RedisDown || s.faults.DatabaseDown}
	if s.faults.RedisDown {
		return
	}
	s.tasks = append(s.tasks, t)
	waiting := slices.DeleteFunc(slices.Clone(s.tasks), func(o *task) bool {
		return o.cube != b.cube || o.status != "waiting" || o.lost
	})
	if len(waiting) > s.options.QueueCap {
		waiting[0].lost = true
	}
}

// logTask is what a sync add leaves in the user's list.
func (s *Server) logTask(b batch) {
	if !s.faults.RedisDown {
		s.tasks = append(s.tasks, &task{item: s.newID(), user: b.user, cube: b.cube, status: "completed",
			due: s.options.Now()})
	}
}

// work does what is due: the LLM's memories come in, then the raw windows go.
func (s *Server) work() {
	now := s.options.Now()
	for _, t := range s.tasks {
		if t.status != "waiting" || t.lost || now.Before(t.due) || s.faults.DatabaseDown {
			continue
		}
		t.status = "completed"
		b := t.batch
		// The worker has only the raw nodes: neither the hint nor info reach it.
		b.info, b.tags = object{}, nil
		made := s.extract(b)
		for _, n := range made {
			n.nested = 1
		}
		s.store(b, made)
		for _, raw := range t.raw {
			s.nodes = slices.DeleteFunc(s.nodes, func(n *node) bool { return n == raw })
		}
	}
}

func (s *Server) status(user, business string) (string, any, *problem) {
	const message = "Memory get status successfully"
	switch {
	case s.faults.RedisDown:
		return "", nil, &problem{status: 500, message: "Failed to get scheduler status"}
	case s.options.NoRedis && business == "":
		return message, []any{}, nil
	}
	list := []any{}
	for _, t := range s.tasks {
		if t.user != user || s.options.NoRedis {
			continue
		}
		if business == "" {
			list = append(list, object{"task_id": t.item, "status": t.status})
			continue
		}
		if t.business == business {
			status := t.status
			if status == "waiting" && !t.lost {
				status = "in_progress"
			}
			return message, []any{object{"task_id": business, "status": status}}, nil
		}
	}
	if business != "" {
		return "", nil, &problem{status: 404, message: "Task " + business + " not found for user " + user}
	}
	return message, list, nil
}

// allStatus are the whole server's counters; what waits is counted twice.
func (s *Server) allStatus() (string, any, *problem) {
	waiting, done := 0, 0
	for _, t := range s.tasks {
		if t.status == "waiting" {
			waiting++
		} else {
			done++
		}
	}
	sum := func(waiting int) object {
		return object{"waiting": waiting, "in_progress": 0, "pending": waiting, "completed": done, "failed": 0,
			"cancelled": 0, "total": waiting + done}
	}
	return "Scheduler status summary retrieved successfully",
		object{"scheduler_summary": sum(waiting), "all_tasks_summary": sum(2 * waiting)}, nil
}

// wait answers at once: the fake never blocks. Without Redis it always says idle.
func (s *Server) wait(user string) any {
	running := 0
	for _, t := range s.tasks {
		if t.user == user && t.status == "waiting" && !s.options.NoRedis {
			running++
		}
	}
	message := "idle"
	if running > 0 {
		message = "timeout"
	}
	return object{"message": message, "data": object{"running_tasks": running, "waited_seconds": 0,
		"timed_out": running > 0, "user_name": user}}
}
