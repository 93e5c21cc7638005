package main

import (
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// marker is what readiness later needs to know about an async write: its event, its session's native id and when it was
// sent. It is stored as a JSON list of texts.
type marker struct{ event, session, at string }

func (m marker) String() string {
	var e wirejson.Encoder
	e.ArrStart()
	for _, text := range []string{m.event, m.session, m.at} {
		e.Str(text)
	}
	e.ArrEnd()
	return string(e.Bytes())
}

// readMarker reads a marker; false if this module did not write it.
func readMarker(text string) (m marker, ok bool) {
	if wire.Check([]byte(text)) != nil {
		return m, false
	}
	parts := wire.Items(abi.Raw(text))
	if len(parts) != 3 {
		return m, false
	}
	return marker{wire.Text(parts[0]), wire.Text(parts[1]), wire.Text(parts[2])}, true
}

const (
	// statusCalls is the maximum number of events whose status is requested one by one; for more, the user's whole list
	// shows whether anything is in progress.
	statusCalls = 32
	// settleMS is the age of a write, in ms, at which finding nothing means that nothing was stored: a task is
	// completed a moment before its memories can be listed.
	settleMS = 3000
	// seekPageSize is the page size of the list in which events' memories are searched. neo4j-community includes every
	// vector in it.
	seekPageSize = 50
	// seekPages is the minimum number of pages that are read before a search for events gives up.
	seekPages = 40
)

// readinessCheck is one check of a scope's writes.
type readinessCheck struct {
	*backend
	out *abi.BackendReadiness
	// done are the events whose memories must exist: their task is finished or, without a tracker, their raw text is
	// gone.
	done []marker
	// raw counts the raw windows that no LLM has replaced yet.
	raw int64
	// tracker reports whether the server keeps task status, which it does only with Redis.
	tracker bool
}

// readiness reports on async writes, by the status of each event's task and by the store: a completed task may have
// stored nothing, and without Redis there is no status at all. Sync writes are complete when they are answered.
func readiness(b *backend, r *abi.ReadinessMarkers) (*abi.BackendReadiness, error) {
	if !b.async() && len(r.Markers) == 0 {
		return &abi.BackendReadiness{Status: abi.ReadinessReady, Method: "sync writes are stored when they are " +
			"answered"}, nil
	}
	l := &readinessCheck{backend: b, out: &abi.BackendReadiness{Method: "store probe"}}
	for _, step := range []func() error{l.countRaw, func() error { return l.tasks(r.Markers) }, l.findMemories} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	l.conclude(len(r.Markers))
	return l.out, nil
}

// countRaw counts the cube's raw windows that still wait for their extraction. In a cube that also has sync/fast writes
// they never disappear. postgres ignores the filter, so the number means nothing there.
func (l *readinessCheck) countRaw() error {
	if !l.filters() {
		return nil
	}
	raw := filter{conds: []cond{{key: "tags", op: "contains", value: sdk.Text("mode:fast")}}}
	groups, _, err := l.list(listing{cube: l.cube, filter: raw, page: 1, size: 1, textOnly: true})
	l.raw = total(groups)
	return err
}

// tasks requests the status of each event's task.
func (l *readinessCheck) tasks(texts []string) error {
	var markers, absent []marker
	for _, text := range texts {
		if m, ok := readMarker(text); ok {
			markers = append(markers, m)
		} else {
			l.warn("unknown_marker: a marker is none of memos's")
		}
	}
	if len(markers) > statusCalls {
		return l.judgeTogether(markers)
	}
	for _, m := range markers {
		status, err := l.task(m.event)
		if err != nil {
			return err
		}
		l.tracker = l.tracker || status != "" && status != "unknown"
		switch status {
		case "waiting", "in_progress":
			l.pending(m)
		case "completed":
			l.done = append(l.done, m)
		case "failed", "cancelled":
			l.out.EventIDs.Failed = append(l.out.EventIDs.Failed, m.event)
		case "":
			absent = append(absent, m)
		default:
			l.out.EventIDs.Unknown = append(l.out.EventIDs.Unknown, m.event)
		}
	}
	return l.withoutTask(absent)
}

// judgeTogether judges many events at once: the list of a user's tasks does not name memhost's, but shows whether any
// is in progress.
func (l *readinessCheck) judgeTogether(markers []marker) error {
	known, err := l.taskStatuses()
	if err != nil {
		return err
	}
	l.tracker = len(known) > 0
	if l.raw == 0 && !slices.ContainsFunc(known, isUnfinished) {
		l.done = markers
		return nil
	}
	for _, m := range markers {
		l.pending(m)
	}
	return nil
}

// isUnfinished reports whether a task with this status is unfinished.
func isUnfinished(status string) bool { return status == "waiting" || status == "in_progress" }

// taskStatuses returns the statuses of all tasks of the scope's cube; none without a tracker.
func (b *backend) taskStatuses() ([]string, error) {
	a, err := b.get("status", abi.QueryParam{Key: "user_id", Value: b.cube})
	if err != nil {
		return nil, err
	}
	return statuses(a)
}

// task returns the status of an event's task; "" if the server knows none, "unknown" if its tracker does not answer.
func (b *backend) task(event string) (string, error) {
	a, err := b.get("status", abi.QueryParam{Key: "user_id", Value: b.cube},
		abi.QueryParam{Key: "task_id", Value: taskOf(b.cube, event)})
	switch code := abi.CodeOf(err); {
	case code == abi.CodeNotFound:
		return "", nil
	case code == abi.CodeBackend && abi.AsError(err).Native != nil && *abi.AsError(err).Native.Status == 500:
		return "unknown", nil
	case err != nil:
		return "", err
	}
	all, err := statuses(a)
	if err != nil || len(all) == 0 {
		return "", err
	}
	return all[0], nil
}

// statuses reads data, [{task_id, status}].
func statuses(a *answer) (list []string, err error) {
	if wire.Kind(a.data) != wirejson.Array {
		return nil, unusable("status", a, "data is no list of tasks")
	}
	for _, task := range wire.Items(a.data) {
		if status := wire.Text(wire.At(task, "status")); status != "" {
			list = append(list, status)
		}
	}
	return list, nil
}

// withoutTask judges events without a known task: the server has no Redis, or its data was lost.
func (l *readinessCheck) withoutTask(absent []marker) error {
	if len(absent) > 0 && !l.tracker {
		known, err := l.taskStatuses()
		if err != nil {
			return err
		}
		l.tracker = len(known) > 0
	}
	for _, m := range absent {
		switch {
		case l.tracker && l.raw > 0:
			l.out.EventIDs.Unknown = append(l.out.EventIDs.Unknown, m.event)
			l.warn("task_lost: MemOS no longer knows a task, and raw text waits in the store: Redis lost its queue. " +
				"The raw text can be searched, its extraction will not come")
		case l.raw > 0:
			l.pending(m)
		default:
			l.done = append(l.done, m)
		}
	}
	return nil
}

func (l *readinessCheck) warn(warning string) { l.out.Warnings = append(l.out.Warnings, warning) }

func (l *readinessCheck) pending(m marker) {
	l.out.EventIDs.Pending = append(l.out.EventIDs.Pending, m.event)
	if at := l.out.OldestPendingAt; at == "" || l.age(m.at) > l.age(at) {
		l.out.OldestPendingAt = m.at
	}
}

// age returns how long ago a marker's write was sent; 0 if a time cannot be read.
func (l *readinessCheck) age(at string) time.Duration {
	sent, err := abi.ParseTime(at)
	now, wrong := abi.ParseTime(l.Now)
	if err != nil || wrong != nil {
		return 0
	}
	return now.Sub(sent)
}

// findMemories looks for the memories of the events whose task is finished, by their sources, in their sessions.
func (l *readinessCheck) findMemories() error {
	if len(l.done) == 0 {
		return nil
	}
	var events, sessions []string
	within := filter{any: true}
	for _, m := range l.done {
		events = append(events, m.event)
		if !slices.Contains(sessions, m.session) {
			sessions = append(sessions, m.session)
			within.conds = append(within.conds, is("session_id", m.session))
		}
	}
	open, all, err := l.seek(within, events, func(m *item) {
		if m.fallback() {
			l.warn("extraction_fallback: MemOS kept the raw text of an event: its LLM failed")
		}
	})
	if err != nil {
		return err
	}
	for _, m := range l.done {
		switch {
		case !slices.Contains(open, m.event):
		case l.age(m.at) < settleMS*time.Millisecond:
			l.pending(m)
		case !all:
			l.out.EventIDs.Unknown = append(l.out.EventIDs.Unknown, m.event)
		default:
			l.out.EventIDs.Empty = append(l.out.EventIDs.Empty, m.event)
		}
	}
	return nil
}

// seek lists memories, newest first, until each event has one, and returns the events without one, and whether all
// memories were seen. each is called for every memory of one of the events, and must copy what it keeps.
func (b *backend) seek(within filter, events []string, each func(*item)) (open []string, all bool, err error) {
	open = slices.Clone(events)
	for page := int64(1); page <= int64(seekPages+len(events)/4); page++ {
		groups, _, err := b.list(listing{cube: b.cube, filter: within, page: page, size: seekPageSize})
		if err != nil {
			return open, false, err
		}
		for _, m := range itemsOf(groups) {
			for _, event := range m.events() {
				if slices.Contains(events, event) {
					each(m)
					open = slices.DeleteFunc(open, func(id string) bool { return id == event })
				}
			}
		}
		more := slices.ContainsFunc(groups, func(g *group) bool { return g.total > page*seekPageSize })
		if len(open) == 0 || !more {
			return open, true, nil
		}
	}
	return open, false, nil
}

// conclude sets the status. Pending takes precedence, because the rest may still change.
func (l *readinessCheck) conclude(markers int) {
	ids := &l.out.EventIDs
	if markers > 0 && l.tracker {
		l.out.Method = "task status and store probe"
	}
	switch {
	case len(ids.Pending) > 0 || markers == 0 && l.raw > 0:
		l.out.Status = abi.ReadinessPending
		if at := l.out.OldestPendingAt; at != "" && l.age(at).Milliseconds() > l.stallAfterMS {
			l.out.StalledSince = at
			l.warn("stalled: a write waits longer than stall_after_ms; MemOS drops tasks in silence when a cube has " +
				"200 of them waiting")
		}
	case len(ids.Failed) > 0:
		l.out.Status = abi.ReadinessFailed
	case len(ids.Unknown) > 0:
		l.out.Status = abi.ReadinessUnknown
		l.warn("task_unknown: MemOS does not say what became of some writes; is its Redis running?")
	case len(ids.Empty) > 0:
		l.out.Status = abi.ReadinessDegraded
		l.warn("lost_extraction: of some events nothing is stored: MemOS's LLM found nothing in them, or answered " +
			"what MemOS cannot parse, and the raw text is gone")
	default:
		l.out.Status = abi.ReadinessReady
	}
	if markers > 0 && !l.tracker && len(ids.Unknown) == 0 {
		l.warn("no_tracker: the server keeps no task status (it has no Redis queue); readiness goes by the store alone")
	}
	slices.Sort(l.out.Warnings)
	l.out.Warnings = slices.Compact(l.out.Warnings)
}
