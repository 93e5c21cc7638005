package main

import (
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

const (
	// rowDelay is how long after a write its queue rows may be missing: Honcho inserts them after the response.
	rowDelay = 3 * time.Second
	// lateDelay is how long rows of an outstanding write may be missing before they are given up: the write may have
	// arrived late, its rows later, and the host's clock may be ahead.
	lateDelay = 2 * time.Minute
	// stalledAfter is how long rows may wait with none in progress before they are reported as stalled.
	stalledAfter = 60 * time.Second
	// cleanup is the interval, with some margin, at which Honcho drops finished rows from its counts.
	cleanup = 11 * time.Hour
)

const methodQueue = "queue status: rows appear after the response, failed ones count as completed"

// readiness checks the deriver's queue once.
//
// The status is ready if no row of the scope is pending or in progress, and the rows of the last writes have had time
// to appear: either Honcho counts as many as were posted, or 3 s have passed. A drained queue means that the deriver is
// done, not that it succeeded: a row whose LLM call failed counts as completed. Success is therefore judged by session,
// which both conclusions and markers name. Events of a session in which nothing was derived since they were sent are
// listed as empty, and while a session has no conclusion at all the status is degraded.
//
// Source: Honcho GET /v3/workspaces/{ws}/queue/status (src/crud/deriver.py).
func readiness(b *backend, r *abi.ReadinessMarkers) (*abi.BackendReadiness, error) {
	p, err := readPosted(b.Call)
	if err != nil {
		return nil, err
	}
	l := &readinessCheck{backend: b, posted: p, markers: parseMarkers(r.Markers),
		answer: &abi.BackendReadiness{Method: methodQueue}}
	if l.now, err = abi.ParseTime(b.Now); err != nil {
		return nil, err
	}
	return l.answer, l.run()
}

// readinessCheck is one run of readiness.
type readinessCheck struct {
	*backend
	posted  queueMark
	markers []marker
	now     time.Time
	answer  *abi.BackendReadiness
}

func (l *readinessCheck) run() error {
	q, err := l.queueOf()
	if err != nil {
		return err
	}
	if q.outstanding() > 0 {
		l.pending(q)
		return nil
	}
	if l.posted.lastAt == "" && len(l.markers) == 0 {
		l.answer.Status = abi.ReadinessReady // nothing was ever posted
		return nil
	}
	if since, known := l.since(l.lastAt()); !known || since < lateDelay {
		rows, err := l.queueOfPeers("")
		if err != nil {
			return err
		}
		if rows.outstanding() > 0 { // they appeared between the two queries
			l.pending(rows)
			return nil
		}
		counted := rows.total
		expected := l.rows()
		if since < rowDelay {
			expected = max(expected, l.posted.rows)
		}
		if counted < expected {
			l.answer.Status = abi.ReadinessPending
			l.events(&l.answer.EventIDs.Pending)
			l.answer.OldestPendingAt = l.oldest()
			l.warn("rows_expected", "the last write is recent, and Honcho counts "+sdk.Itoa(counted)+" of "+
				sdk.Itoa(expected)+" queue rows: they appear after the response")
			return nil
		}
	}
	return l.judgeDrained()
}

// lastAt returns when the scope was last written to.
func (l *readinessCheck) lastAt() string {
	sent := l.sentSpan()
	sent.add(l.posted.lastAt)
	return sent.newest
}

func (l *readinessCheck) since(at string) (time.Duration, bool) {
	t, err := abi.ParseTime(at)
	return l.now.Sub(t), err == nil
}

// oldest returns when the oldest outstanding event was sent, "" if there are no markers.
func (l *readinessCheck) oldest() string { return l.sentSpan().oldest }

// sentSpan returns when the outstanding events were sent.
func (l *readinessCheck) sentSpan() (s span) {
	for _, m := range l.markers {
		s.add(m.sentAt)
	}
	return s
}

func (l *readinessCheck) events(into *[]string) {
	for _, m := range l.markers {
		*into = append(*into, m.event)
	}
}

func (l *readinessCheck) warn(code, text string) {
	l.answer.Warnings = append(l.answer.Warnings, code+": "+text)
}

// pending fills the answer for a queue with rows. It says why they may be waiting, as far as that is visible.
func (l *readinessCheck) pending(q queue) {
	a := l.answer
	a.Status, a.OldestPendingAt = abi.ReadinessPending, l.oldest()
	l.events(&a.EventIDs.Pending)
	if q.inProgress > 0 {
		return
	}
	at := a.OldestPendingAt
	if at == "" {
		at = l.posted.lastAt
	}
	waited, known := l.since(at)
	if !known || waited < rowDelay {
		return
	}
	facts := l.server
	if tokens := l.tokens(); facts.batchTokens > 0 && (facts.flush == nil || !*facts.flush) &&
		tokens < facts.batchTokens {
		text := "a deriver without DERIVER_FLUSH_ENABLED=true takes up a session only at " +
			sdk.Itoa(facts.batchTokens) +
			" tokens of one author, or after 1800 s"
		if len(l.markers) > 0 {
			text = sdk.Itoa(tokens) + " tokens are waiting; " + text
		}
		l.warn("batch_threshold", text+": set it on the deriver process, there is no flush by request")
	}
	if waited >= stalledAfter {
		a.StalledSince = at
		l.warn("deriver_stalled", "rows have waited for "+sdk.Itoa(int64(waited/time.Second))+
			" s with none in progress: the server's batch threshold holds them (DERIVER_FLUSH_ENABLED), or no "+
			"deriver is running, which Honcho's health does not show")
	}
}

func (l *readinessCheck) tokens() (sum int64) {
	for _, m := range l.markers {
		sum += m.tokens
	}
	return sum
}

// judgeDrained fills the answer for a queue without waiting rows, according to what was derived.
func (l *readinessCheck) judgeDrained() error {
	a := l.answer
	a.Status = abi.ReadinessReady
	if l.server.sharedCache != nil && !*l.server.sharedCache {
		l.warn("stale_cache", "without a shared cache the API may show summaries and cards up to "+
			"CACHE_DEFAULT_TTL_SECONDS (300 s) late")
	}
	if l.posted.rows == 0 && l.rows() == 0 {
		return nil // no peer is observed
	}
	oldest := l.oldest()
	if since, known := l.since(oldest); known && since < cleanup && l.rows() > 0 {
		rows, err := l.queueOfPeers("")
		if err != nil {
			return err
		}
		counted := rows.total
		if counted < l.rows() {
			a.Status = abi.ReadinessDegraded
			return l.rowsMissing(counted)
		}
	}
	err := l.judgeEvents()
	if err != nil {
		return err
	}
	return l.judgeSessions()
}

// rowsMissing lists the sessions whose rows are missing, and their events. A session's count includes the rows of all
// its observed authors.
func (l *readinessCheck) rowsMissing(counted int64) error {
	expected, names := map[string]int64{}, []string{}
	for _, m := range l.markers {
		expected[m.session] += m.rows
	}
	for _, session := range abi.SortedKeys(expected) {
		if expected[session] == 0 {
			continue
		}
		if l.Remaining() < lookUpMS { // the rest cannot be checked, and so may be among them
			names = append(names, session+" (not asked)")
			l.eventsOf(session)
			continue
		}
		q, err := l.queueStatus(l.workspace, "", session)
		if err != nil {
			return err
		}
		if q.total < expected[session] {
			names = append(names, session)
			l.eventsOf(session)
		}
	}
	if len(names) == 0 { // rows of earlier events hide which
		l.events(&l.answer.EventIDs.Unknown)
	}
	const named = 5
	l.warn("rows_missing", "Honcho counts "+sdk.Itoa(counted)+" queue rows where "+sdk.Itoa(l.rows())+
		" were expected: messages are stored, but some will never be derived, in "+sdk.Itoa(int64(len(names)))+
		" sessions ("+strings.Join(names[:min(len(names), named)], ", ")+")")
	return nil
}

// eventsOf lists the outstanding events of a session as unknown.
func (l *readinessCheck) eventsOf(session string) {
	for _, m := range l.markers {
		if m.session == session {
			l.answer.EventIDs.Unknown = append(l.answer.EventIDs.Unknown, m.event)
		}
	}
}

// judgeEvents lists the events from which nothing was derived: their session has no conclusion since the first of them
// was sent.
func (l *readinessCheck) judgeEvents() error {
	sessions := map[string]*span{}
	for _, m := range l.markers {
		if m.rows > 0 {
			if sessions[m.session] == nil {
				sessions[m.session] = new(span)
			}
			sessions[m.session].add(m.sentAt)
		}
	}
	for _, session := range abi.SortedKeys(sessions) {
		derived, err := l.derivedIn(session, sessions[session].oldest)
		if err != nil {
			return err
		}
		for _, m := range l.markers {
			if derived == 0 && m.session == session && m.rows > 0 {
				l.answer.EventIDs.Empty = append(l.answer.EventIDs.Empty, m.event)
			}
		}
	}
	if n := len(l.answer.EventIDs.Empty); n > 0 {
		l.warn("derivation_empty", "the queue is drained and in the session of "+sdk.Itoa(n)+" events nothing was "+
			"derived since they were sent: they may have held nothing new, or the server's LLM failed, which Honcho "+
			"counts as completed")
	}
	return nil
}

// judgeSessions looks for sessions without any conclusion. Each session is queried until it has one.
func (l *readinessCheck) judgeSessions() error {
	sessions := map[string]string{}
	for _, m := range l.markers {
		if m.rows > 0 {
			sessions[m.session] = m.session
		}
	}
	err := l.Each(abi.StateListRequest{Prefix: sessionPrefix, Values: true}, func(item sdk.Item) error {
		sessions[strings.TrimPrefix(item.Key, sessionPrefix)] = string(item.Value)
		return nil
	})
	if err != nil {
		return err
	}
	var empty []string
	unseen := 0
	for _, session := range abi.SortedKeys(sessions) {
		switch key := l.workspace + "/" + session; {
		case sessions[session] == "" || l.derived[key]:
		case l.Remaining() < lookUpMS:
			unseen++
		default:
			derived, err := l.derivedIn(session, "")
			if err != nil {
				return err
			}
			if l.derived[key] = derived > 0; derived == 0 {
				empty = append(empty, clip(sessions[session], 80))
			}
		}
	}
	if len(empty) > 0 {
		l.answer.Status = abi.ReadinessDegraded
		const named = 5
		l.warn("derivation_empty", sdk.Itoa(len(empty))+" sessions have not one conclusion ("+
			strings.Join(empty[:min(len(empty), named)], ", ")+"): possibly the server's LLM or embedding provider "+
			"failed, which Honcho counts as completed. The mutation derive_again has a turn derived again")
	}
	if unseen > 0 {
		l.warn("sessions_unjudged", "there was no time to ask of "+sdk.Itoa(unseen)+" sessions whether anything was "+
			"derived; ask again")
	}
	return nil
}

func (l *readinessCheck) rows() (sum int64) {
	for _, m := range l.markers {
		sum += m.rows
	}
	return sum
}

// queueOf returns the queue status of the scope: of its workspace, or of its observed peers in a fixed one.
func (b *backend) queueOf() (queue, error) {
	if !b.shared() {
		return b.queueStatus(b.workspace, "", "")
	}
	return b.queueOfPeers("")
}

// queueOfPeers returns the queue status of the scope's observed authors, or of one session: their representation rows,
// without summaries.
func (b *backend) queueOfPeers(session string) (sum queue, err error) {
	for _, peer := range b.allPeers() {
		if !b.observed(peer) {
			continue
		}
		q, err := b.queueStatus(b.workspace, peer, session)
		if err != nil {
			return sum, err
		}
		sum = queue{sum.total + q.total, sum.completed + q.completed, sum.inProgress + q.inProgress, sum.pending +
			q.pending}
	}
	return sum, nil
}

// queueStatus requests counts, of one author if sender is set, of one session if that is set. The filter observer_id is
// useless here: it matches dreams only.
func (b *backend) queueStatus(workspace, sender, session string) (queue, error) {
	r := request{route: "queue_status", workspace: workspace}
	if sender != "" {
		r.query = []abi.QueryParam{{Key: "sender_id", Value: sender}}
	}
	if session != "" {
		r.query = append(r.query, abi.QueryParam{Key: "session_id", Value: session})
	}
	answer, err := b.send(r)
	if err != nil {
		return queue{}, err
	}
	q, err := readQueue(answer.body)
	if err != nil {
		return queue{}, unreadable(r, answer.body, "queue status", err)
	}
	return q, nil
}

// derivedIn counts the user's conclusions of a session, all or those made since a time.
func (b *backend) derivedIn(session, since string) (int64, error) {
	return b.count(request{route: "conclusions_list",
		body: filters(b.byPeople("session_id", session, "created_at", wire.If(since != "", wire.Object{"gte", since})))})
}
