package nanobot

import (
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/sdk"
)

// due reports whether the policy requests work on the session in its current state.
func due(m Memory, s *Session) bool {
	b := m.Common()
	switch b.Policy {
	case model.PolicyWindow:
		return s.Open() >= b.Window
	case model.PolicyEvent:
		return s.Open() > 0
	case model.PolicyTokens:
		return b.Tokens.On() && size(m, s) >= b.Tokens.Limit()
	}
	return false
}

// size estimates the prompt of an agent that continues the session, in tokens.
func size(m Memory, s *Session) int64 {
	return m.Common().Tokens.Overhead + s.Head.Tokens - s.Mark.Tokens + m.PromptTokens(s)
}

// workAll archives the sessions that are due, starting with the one whose last event is the oldest, until one fails or
// half of the time is used.
func workAll(m Memory, background bool) {
	b := m.Common()
	var u model.Usage
	began, now := b.Remaining(), b.NowMS()
	for _, s := range Sessions(b.State) {
		if !s.outstanding(b.BySession() && !background) {
			continue
		}
		if s.GivenUp(s.Messages) {
			continue
		}
		if s.RetryAt > now || b.Remaining() < began/2 || !b.OK() {
			break
		}
		captured := s.Messages
		failed := work(m, s, &u, background)
		if failed == nil {
			s.Checked = captured
		} else if model.OutOfTime(b.Call, failed) {
			break
		} else {
			s.Note(b.State, failed, b.Model.Retries, s.Messages)
		}
		s.Save(b.State)
		if failed != nil {
			break
		}
	}
	u.Add(b.State)
}

// work does the waiting work of one session. Its error is the model's.
func work(m Memory, s *Session, u *model.Usage, background bool) error {
	b := m.Common()
	end := s.Messages
	switch asked := max(s.IdleTo, s.EndedAt); {
	case asked > s.Pointer && (background || !b.BySession()):
		end = min(end, asked)
	case b.BySession():
	case b.Policy == model.PolicyTokens:
		return shorten(m, s, u)
	case !due(m, s):
		return nil
	case b.Policy == model.PolicyWindow:
		end -= b.Window / 2
	}
	_, failed := m.Archive(s, end, u)
	return failed
}

// readiness is ready if no work waits, failed if the last attempt failed and the next one is not due yet, otherwise
// pending. It lists the markers that wait, and those in which the model found nothing worth keeping.
func readiness(m Memory, markers []string) *abi.BackendReadiness {
	b := m.Common()
	answer := &abi.BackendReadiness{Status: abi.ReadinessReady, Method: "work on sessions"}
	sessions, waiting := Sessions(b.State), int64(0)
	sessions = slices.DeleteFunc(sessions, func(s *Session) bool { return !s.outstanding(b.BySession()) })
	for _, s := range sessions {
		waiting += s.Open()
		if answer.OldestPendingAt == "" || s.Created < answer.OldestPendingAt {
			answer.OldestPendingAt = s.Created
		}
		if answer.Status == abi.ReadinessReady {
			answer.Status = abi.ReadinessPending
		}
		if s.Waits(b.NowMS(), s.Messages) {
			answer.Status = abi.ReadinessFailed
			answer.Warnings = append(answer.Warnings, or(s.Reason,
				"llm_failed")+": session "+sdk.OneLine(s.ID)+", "+
				s.Story(s.Messages))
		}
	}
	if waiting > 0 {
		answer.Warnings = append(answer.Warnings, "llm_work_waits: "+sdk.Itoa(waiting)+" messages wait for the model")
	}
	for _, id := range markers {
		var at index
		b.Load(eventKey(id), at.members()...)
		if slices.ContainsFunc(sessions, func(s *Session) bool { return s.key == at.session && at.last > s.Pointer }) {
			answer.EventIDs.Pending = append(answer.EventIDs.Pending, id)
		} else if at.empty {
			answer.EventIDs.Empty = append(answer.EventIDs.Empty, id)
		}
	}
	m.Waits(answer)
	return answer
}

// TokensOf counts the tokens of messages if the policy uses them, else returns 0.
func (b *Base) TokensOf(messages []Message) (n int64) {
	if b.Policy == model.PolicyTokens {
		for i := range messages {
			n += messages[i].tokens(b.Call)
		}
	}
	return n
}
