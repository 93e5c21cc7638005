package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

// recordEvent stores the messages behind those of their session. The model is not asked here: work that is due is done in wait_until_ready.
//
// Errors: conflict when the scope holds the event id with other content; what the state answers.
func recordEvent(c *sdk.Call, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	r, err := recorderOf(c)
	if err != nil {
		return nil, err
	}
	receipt, err := r.Add(e)
	if err != nil {
		return nil, err
	}
	return receipt, r.Close(receipt)
}

// recordEvents is recordEvent for each, in order; what is due is looked at once, at the end. An event that is wrong does not stop the others.
func recordEvents(c *sdk.Call, batch *abi.EventBatch) (*abi.BatchReceipts, error) {
	r, err := recorderOf(c)
	if err != nil {
		return nil, err
	}
	return r.AddAll(batch)
}

func recorderOf(c *sdk.Call) (*nanobot.Recorder, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	return nanobot.NewRecorder(c, s.config.Provider, s.policy, func(session *nanobot.Session) error {
		due, err := s.due(c, session)
		if due {
			session.Want = session.Messages
		}
		return err
	})
}

// due tells whether the policy asks for an archive of the session as it stands.
func (s *settings) due(c *sdk.Call, session *nanobot.Session) (bool, error) {
	switch s.policy {
	case nanobot.PolicyWindow:
		return session.Open() >= s.window, nil
	case nanobot.PolicyEvent:
		return session.Open() > 0, nil
	case nanobot.PolicyTokens:
		if !s.tokens.On() {
			return false, nil
		}
		size, err := s.size(c, session)
		return err == nil && s.tokens.Due(size), err
	}
	return false, nil
}

// size estimates the prompt of an agent that works on the session.
func (s *settings) size(c *sdk.Call, session *nanobot.Session) (int64, error) {
	files, err := readFolder(c)
	if err != nil {
		return 0, err
	}
	size := s.tokens.Overhead + session.Head.Tokens - session.Mark.Tokens
	if session.Summary != "" {
		size += c.CountTokens(session.Summary)
	}
	for _, f := range files {
		size += c.CountTokens(f.text)
	}
	items, _, err := s.recent(c, session.ID)
	for _, x := range items {
		size += c.CountTokens(x.Text)
	}
	return size, err
}

func findEvent(c *sdk.Call, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	return nanobot.FindEvent(c, r)
}

func readiness(c *sdk.Call, r *abi.ReadinessMarkers) (*abi.BackendReadiness, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	return s.readiness(c, r.Markers)
}

// readiness is that of the sessions and, where Dream runs behind them, of Dream.
func (s *settings) readiness(c *sdk.Call, markers []string) (*abi.BackendReadiness, error) {
	answer, err := nanobot.Readiness(c, markers, s.bySession())
	if err != nil || !s.dream.on || !s.dream.afterSession {
		return answer, err
	}
	d, err := readDream(c)
	if err != nil {
		return nil, err
	}
	left, err := d.left(c)
	if err != nil || !left || answer.Status == abi.ReadinessFailed {
		return answer, err
	}
	answer.Status = abi.ReadinessPending
	answer.Warnings = append(answer.Warnings, "llm_work_waits: Dream has not read all of the history")
	if d.RetryAt > nanobot.NowMS(c) {
		answer.Status = abi.ReadinessFailed
		answer.Warnings = append(answer.Warnings, d.Reason+": Dream, nothing is lost: "+d.Said)
	}
	return answer, nil
}

// waitUntilReady archives what is due, then lets Dream run: behind every archive, or by its interval.
func waitUntilReady(c *sdk.Call, r *abi.WaitRequest) (*abi.BackendReadiness, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	if err := s.askIdle(c); err != nil {
		return nil, err
	}
	began := c.Remaining()
	_, err = nanobot.Work(c, r, s.bySession(), s.llm, func(session *nanobot.Session, u *nanobot.Usage) error {
		captured := session.Messages
		err := s.work(c, session, u, r.Background)
		if err == nil {
			session.Checked = captured
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := s.dreamDue(c, began/4); err != nil {
		return nil, err
	}
	return s.readiness(c, nil)
}

// askIdle asks for the archive of sessions without an event for long.
func (s *settings) askIdle(c *sdk.Call) error {
	if s.idleMS == 0 {
		return nil
	}
	sessions, err := nanobot.Sessions(c)
	for _, session := range sessions {
		if err == nil && session.Open() > 0 && nanobot.NowMS(c)-session.Arrived >= s.idleMS {
			session.IdleTo = session.Messages
			err = session.Save(c)
		}
	}
	return err
}

// work does what waits for one session.
func (s *settings) work(c *sdk.Call, session *nanobot.Session, u *nanobot.Usage, background bool) error {
	if end := max(session.IdleTo, session.Archive); end > session.Pointer && (background || !s.bySession()) {
		_, err := s.archive(c, session, min(end, session.Messages), u)
		return err
	}
	if s.bySession() {
		_, err := s.archive(c, session, session.Messages, u)
		return err
	}
	if s.policy == nanobot.PolicyTokens {
		return s.tokens.Shorten(c, session, func() (int64, error) { return s.size(c, session) }, func(end int64) (bool, error) {
			text, err := s.archive(c, session, end, u)
			return text != "", err // after a raw archive one failed call is enough
		})
	}
	due, err := s.due(c, session)
	if err != nil || !due {
		return err
	}
	end := session.Messages
	if s.policy == nanobot.PolicyWindow {
		end -= s.window / 2
	}
	_, err = s.archive(c, session, end, u)
	return err
}
