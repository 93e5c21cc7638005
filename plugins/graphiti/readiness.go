package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// readiness looks which of the queued turns have become episodes. Neither server tells anything of its queue, so it is inferred: a turn is there when its
// episode is, and an episode is written with all its facts in one transaction.
//
// Hole rule: queues are worked off in order, so a turn is lost when a later one of the scope is there.
// Stall rule: when nothing was begun for stall_s the ingest worker is presumed dead. Only Neo4j shows whether it is busy with other scopes; on REST without it
// the answer is then unknown.
func readiness(c *sdk.Call, r *abi.ReadinessMarkers) (*abi.BackendReadiness, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	gid, err := s.groupOf(c)
	if err != nil {
		return nil, err
	}
	answer := &abi.BackendReadiness{Status: abi.ReadinessReady, Method: s.method()}
	if s.core {
		answer.Method = methodCore
	}
	queued, unread := readMarkers(r.Markers)
	if unread > 0 {
		answer.Status = abi.ReadinessUnknown
		answer.Warnings = append(answer.Warnings, "marker_unread: "+sdk.Itoa(unread)+" markers are not of this module; what they stand for is not known")
	}
	if len(queued) == 0 {
		return answer, nil
	}
	if s.core {
		return answer, s.coreReady(c, gid, queued, answer)
	}
	seen, err := s.look(c, gid, queued)
	if err != nil {
		return nil, err
	}
	s.judge(c, queued, seen, answer)
	return answer, nil
}

// method names the signal.
func (s *settings) method() string {
	switch {
	case s.bolt:
		return "episodes by name in Neo4j"
	case s.mcp:
		return "episodes listed by get_episodes"
	}
	return "episodes listed by GET /episodes"
}

// readMarkers reads markers; of a turn that was recorded twice the later counts.
func readMarkers(list []string) (queued []marker, unread int) {
	for _, text := range list {
		m, ok := parseMarker(text)
		if !ok {
			unread++
			continue
		}
		known := false
		for i := range queued {
			if queued[i].name == m.name {
				known = true
				if m.seq > queued[i].seq {
					queued[i] = m
				}
			}
		}
		if !known {
			queued = append(queued, m)
		}
	}
	return queued, unread
}

// sight is what the graph shows of a scope.
type sight struct {
	found map[string]named
	// newestMS is when the newest episode known was begun: of all scopes with Bolt, else of this one.
	newestMS int64
	// global: newestMS is of all scopes.
	global bool
}

// look finds the episodes of turns, by Bolt where it is configured: exact, and blind to nothing.
func (s *settings) look(c *sdk.Call, gid string, queued []marker) (sight, error) {
	if s.bolt {
		names := make([]string, len(queued))
		for i := range queued {
			names[i] = queued[i].name
		}
		found, err := boltNamed(c, gid, names)
		if err != nil {
			return sight{}, err
		}
		newest := int64(0)
		for i := range queued {
			if found[queued[i].name].copies == 0 { // the worker's pulse matters only while something is outstanding
				newest, err = boltIngest(c)
				break
			}
		}
		return sight{found: found, newestMS: newest, global: true}, err
	}
	most, err := s.episodesSent(c, queued)
	if err != nil {
		return sight{}, err
	}
	episodes, err := s.episodes(c, gid, most)
	if err != nil {
		return sight{}, err
	}
	seen := sight{found: make(map[string]named, len(episodes)), global: s.mcp} // an MCP server has a queue for each group: its own pulse is the one that counts
	for i := range episodes {
		e := &episodes[i]
		n := seen.found[e.name]
		n.copies++
		n.uuids = append(n.uuids, e.uuid)
		started := millis(e.createdAt.text)
		seen.found[e.name] = n
		seen.newestMS = max(seen.newestMS, started)
	}
	return seen, nil
}

// episodes lists a group's episodes by the surface.
func (s *settings) episodes(c *sdk.Call, gid string, most int64) ([]item, error) {
	if s.mcp {
		return s.mcpEpisodes(c, gid, most)
	}
	return s.restEpisodes(c, gid, most)
}

// slack is how many episodes more than were acknowledged are asked for: a turn whose answer got lost may be there too, and a list that is cut by event
// time or by UUID shows anything but the newest ones.
const slack = 200

// episodesSent is how many episodes the scope can have.
func (s *settings) episodesSent(c *sdk.Call, queued []marker) (int64, error) {
	last, _, err := readLast(c)
	most := last.seq
	for i := range queued {
		most = max(most, queued[i].seq)
	}
	return most + slack, err
}

// judge sorts the turns and sums up.
func (s *settings) judge(c *sdk.Call, queued []marker, seen sight, answer *abi.BackendReadiness) {
	now, lastSeen := millis(c.Now), int64(0)
	copies := 0
	for i := range queued {
		if n := seen.found[queued[i].name]; n.copies > 0 {
			lastSeen = max(lastSeen, queued[i].seq)
			if n.copies > 1 {
				copies++
			}
		}
	}
	ids := &answer.EventIDs
	oldest := int64(0)
	for i := range queued {
		m := &queued[i]
		switch {
		case seen.found[m.name].copies > 0:
		case !s.bolt && !s.mcp && m.eventMS > now:
			ids.Unknown = append(ids.Unknown, m.name)
		case m.seq < lastSeen:
			ids.Lost = append(ids.Lost, m.name)
		default:
			ids.Pending = append(ids.Pending, m.name)
			if oldest == 0 || m.sentMS < oldest {
				oldest = m.sentMS
			}
		}
	}
	if len(ids.Unknown) > 0 {
		answer.Status = abi.ReadinessUnknown
		answer.Warnings = append(answer.Warnings, "future_event: Graphiti's REST service does not list episodes whose time lies in its future; with bolt they are seen")
	}
	if copies > 0 {
		answer.Warnings = append(answer.Warnings, "stored_twice: "+sdk.Itoa(copies)+" events have more than one episode")
	}
	if len(ids.Pending) > 0 {
		answer.Status = abi.ReadinessPending
		answer.OldestPendingAt = stampMS(oldest)
		s.stall(now, max(oldest, seen.newestMS), seen.global, answer)
	}
	if len(ids.Lost) > 0 {
		answer.Status = abi.ReadinessFailed
		answer.Warnings = append(answer.Warnings, "event_lost: "+sdk.Itoa(len(ids.Lost))+
			" events were queued and will not come: later ones of the scope are there. Record them again")
	}
}

// stall applies the stall rule to what is pending.
func (s *settings) stall(now, since int64, global bool, answer *abi.BackendReadiness) {
	if now-since <= s.stallMS {
		return
	}
	answer.StalledSince = stampMS(since)
	if global {
		answer.Status = abi.ReadinessDegraded
		answer.Warnings = append(answer.Warnings, "ingest_stalled: nothing was ingested for "+sdk.Itoa((now-since)/1000)+
			" s: the ingest worker is presumed dead, or its LLM provider failing. See the server's log; a REST service must be restarted, which loses its queue")
		return
	}
	answer.Status = abi.ReadinessUnknown
	answer.EventIDs.Unknown, answer.EventIDs.Pending = append(answer.EventIDs.Unknown, answer.EventIDs.Pending...), nil
	answer.Warnings = append(answer.Warnings, "ingest_unseen: nothing of this scope was ingested for "+sdk.Itoa((now-since)/1000)+
		" s; without bolt nobody can tell a dead worker from one that is busy with other scopes")
}

// findEvent looks whether a turn has become an episode. Absent counts only when it should not come any more: a later turn of the scope is there, or nothing was
// ingested for stall_s. On REST without Bolt that is judged by the scope's own episodes, since nobody sees the one queue of all scopes: a turn that another
// scope's backlog holds up so long would be doubled, which adds an episode, but no second fact.
func findEvent(c *sdk.Call, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	gid, err := s.groupOf(c)
	if err != nil {
		return nil, err
	}
	want := marker{name: r.EventID, sentMS: millis(r.SentAt)}
	for _, text := range r.Markers {
		if m, ok := parseMarker(text); ok && m.name == r.EventID && m.seq > want.seq {
			want = m
		}
	}
	last, has, err := readLast(c)
	if err != nil {
		return nil, err
	}
	if s.core {
		return s.coreFindEvent(c, gid, want, last)
	}
	ask := []marker{want}
	if has && last.name != want.name {
		ask = append(ask, last)
	}
	seen, err := s.look(c, gid, ask)
	if err != nil {
		return nil, err
	}
	if n := seen.found[want.name]; n.copies > 0 {
		return &abi.FindEventAnswer{Found: "present", NativeIDs: n.uuids}, nil
	}
	now, since := millis(c.Now), max(want.sentMS, seen.newestMS)
	later := has && last.name != want.name && seen.found[last.name].copies > 0 && (last.sentMS > want.sentMS || want.seq > 0 && last.seq > want.seq)
	switch {
	case !s.bolt && !s.mcp && want.eventMS > now:
		return &abi.FindEventAnswer{Found: "unknown"}, nil
	case later:
		return &abi.FindEventAnswer{Found: "absent"}, nil
	case now-since > s.stallMS:
		return &abi.FindEventAnswer{Found: "absent"}, nil
	}
	return &abi.FindEventAnswer{Found: "unknown", RetryAfterMS: sdk.Ptr(min(s.stallMS-(now-since)+1, 2000))}, nil
}
