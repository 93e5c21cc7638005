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

// due tells whether the policy asks for a consolidation of the session as it stands.
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
	m, err := readMemory(c)
	if err != nil {
		return 0, err
	}
	return s.tokens.Overhead + session.Head.Tokens - session.Mark.Tokens + c.CountTokens(m.text), nil
}

func findEvent(c *sdk.Call, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	return nanobot.FindEvent(c, r)
}

func readiness(c *sdk.Call, r *abi.ReadinessMarkers) (*abi.BackendReadiness, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	return nanobot.Readiness(c, r.Markers, s.bySession())
}

// waitUntilReady does the work that is due. Where sessions are archived at their end, the one that is open is too, unless nobody waits.
func waitUntilReady(c *sdk.Call, r *abi.WaitRequest) (*abi.BackendReadiness, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	return nanobot.Work(c, r, s.bySession(), s.llm, func(session *nanobot.Session, u *nanobot.Usage) error {
		captured := session.Messages
		err := s.work(c, session, u, r.Background)
		if err == nil {
			session.Checked = captured
		}
		return err
	})
}

// work does what waits for one session.
func (s *settings) work(c *sdk.Call, session *nanobot.Session, u *nanobot.Usage, background bool) error {
	if s.bySession() {
		end := session.Messages
		if background {
			end = min(end, session.Archive)
		}
		return s.consolidateTo(c, session, end, u)
	}
	if s.policy == nanobot.PolicyTokens {
		return s.tokens.Shorten(c, session, func() (int64, error) { return s.size(c, session) }, func(end int64) (bool, error) {
			return true, s.consolidateTo(c, session, end, u)
		})
	}
	due, err := s.due(c, session)
	if err != nil || !due {
		return err
	}
	return s.consolidateTo(c, session, session.Messages-s.keep(), u)
}
