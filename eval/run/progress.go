package run

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
)

// cellProgress is the progress recorded in a cell's journal.
type cellProgress struct {
	begin    *journal.Begin
	ended    bool
	personas map[string]*personaDone
	lines    int // events and retrievals
	fresh    map[string]bool
}

// personaDone is the progress of one persona.
type personaDone struct {
	events   map[string]bool // recorded, or given up
	sessions map[int]*sessionDone
	// last is the newest test session that was started; 0 before the first.
	last int
	// known is the last inventory that was complete and quiescent. since is how many events were recorded after it, and
	// native how many native items all receipts named.
	known  *abi.Inventory
	since  int
	native int
}

// sessionDone is the progress of one test session.
type sessionDone struct {
	readiness *journal.Readiness
	checked   bool // the canary of the previous session was searched for
	before    *journal.Inventory
	wallUp    bool
	// probes has the retrievals that were made, with the context of each: empty if it failed.
	probes map[retrievalKey]string
	// answers has the probes that the agent answered, or failed to answer.
	answers map[retrievalKey]bool
	// transcripts has the conversations that took place; searched means that memory was searched for them afterwards.
	transcripts map[retrievalKey]*conversation
	searched    bool
	feedback    map[string]bool // ids of corrections that were passed on

	canary   *journal.Canary
	wallDown bool
	after    *journal.Inventory
	closed   bool
}

// retrievalKey identifies one retrieval.
type retrievalKey struct {
	probe  string
	budget int64
	read   int
}

func newDone() *cellProgress {
	return &cellProgress{personas: map[string]*personaDone{}, fresh: map[string]bool{}}
}

func (d *cellProgress) persona(id string) *personaDone {
	p := d.personas[id]
	if p == nil {
		p = &personaDone{events: map[string]bool{}, sessions: map[int]*sessionDone{}}
		d.personas[id] = p
	}
	return p
}

func (p *personaDone) session(n int) *sessionDone {
	s := p.sessions[n]
	if s == nil {
		s = &sessionDone{probes: map[retrievalKey]string{}, answers: map[retrievalKey]bool{},
			transcripts: map[retrievalKey]*conversation{}, feedback: map[string]bool{}}
		p.sessions[n] = s
	}
	return s
}

// close ends the session. Only the nonces of its conversations are still needed.
func (s *sessionDone) close() {
	s.closed = true
	for _, c := range s.transcripts {
		c.script = nil
	}
}

// add updates the progress from a line.
func (d *cellProgress) add(l *journal.Line) {
	switch l.Kind {
	case journal.KindBegin:
		d.begin = l.Begin
		return
	case journal.KindEnd:
		d.ended = true
		return
	case journal.KindFreshness:
		d.fresh[l.Freshness.EventID] = true
		return
	case journal.KindDropped:
		return
	}
	p := d.persona(l.PersonaID)
	if l.Kind == journal.KindRecord {
		if l.Record.Error == nil || l.Record.Failed {
			p.events[l.Record.EventID] = true
			p.since++
			p.native += l.Record.Native
			d.lines++
		}
		return
	}
	if l.Kind == journal.KindInventory && certain(l.Inventory.Inventory) {
		p.known, p.since = l.Inventory.Inventory, 0
	}
	if l.Kind == journal.KindInventory && l.Inventory.When == journal.Resumed {
		return
	}
	s := p.session(l.Session)
	p.last = max(p.last, l.Session)
	switch l.Kind {
	case journal.KindReadiness:
		s.readiness = l.Readiness
	case journal.KindCanaryCheck:
		s.checked = true
	case journal.KindInventory:
		if l.Inventory.When == "before" {
			s.before = l.Inventory
		} else {
			s.after = l.Inventory
		}
	case journal.KindWall:
		if l.Wall.Up {
			s.wallUp = true
		} else {
			s.wallDown = true
		}
	case journal.KindProbe:
		s.probes[retrievalKey{l.Probe.ProbeID, l.Probe.Budget, l.Probe.Read}] = l.Probe.ContextSHA256
		d.lines++
	case journal.KindAnswer:
		s.answers[retrievalKey{l.Answer.ProbeID, l.Answer.Budget, 1}] = true
	case journal.KindTranscript:
		s.transcripts[retrievalKey{l.Transcript.ProbeID, l.Transcript.Budget, 1}] = searchTargets(l.Transcript, nil)
	case journal.KindNonceCheck:
		s.searched = true
	case journal.KindCanary:
		s.canary = l.Canary
	case journal.KindFeedback:
		s.feedback[l.Feedback.FeedbackID] = true
		p.since++ // it may have merged or removed items
	case journal.KindClosed:
		s.close()
	}
}
