package build

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
)

// longmemevalBuilder reads LongMemEval: each question has its own haystack of sessions, so each question becomes a
// persona.
//
// Format: [{question_id, question_type, question, answer, question_date, haystack_session_ids, haystack_dates,
// haystack_sessions [[{role, content, has_answer?}]], answer_session_ids}], as github.com/xiaowu0162/LongMemEval
// publishes it.
var longmemevalBuilder = &Builder{
	Name: "longmemeval", What: "LongMemEval: longmemeval_s.json, _m.json or _oracle.json",
	Sources: []string{"longmemeval_s.json"},
	Licence: "MIT", Timestamps: "source",
	Options:  map[string]string{"limit": "take the first N questions of each type; 0: all"},
	Defaults: map[string]string{"limit": "0"},
	build:    buildLongmemeval,
}

type longmemevalQuestion struct {
	QuestionID       string                 `json:"question_id"`
	QuestionType     string                 `json:"question_type"`
	Question         string                 `json:"question"`
	Answer           json.RawMessage        `json:"answer"`
	QuestionDate     string                 `json:"question_date"`
	SessionIDs       []string               `json:"haystack_session_ids"`
	Dates            []string               `json:"haystack_dates"`
	Sessions         [][]longmemevalMessage `json:"haystack_sessions"`
	AnswerSessionIDs []string               `json:"answer_session_ids"`
}

type longmemevalMessage struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	HasAnswer bool   `json:"has_answer"`
}

type longmemevalSession struct {
	id    string
	began time.Time
	turns []longmemevalMessage
}

const longmemevalStep = time.Minute

func buildLongmemeval(b *builder) (map[string]json.RawMessage, error) {
	limit, err := b.number("limit", 0)
	if err != nil {
		return nil, err
	}
	taken := map[string]int{}
	const want = "LongMemEval questions {question_id, question, question_date, haystack_dates, haystack_sessions}"
	return nil, elements(b, 0, want, func(i int, q *longmemevalQuestion) error {
		where := fmt.Sprintf("question %d (%s)", i, q.QuestionID)
		if q.QuestionID == "" || q.Question == "" || len(q.Sessions) == 0 {
			return wrong("%s: want %s; found an element without them", where, want)
		}
		if taken[q.QuestionType]++; limit > 0 && taken[q.QuestionType] > limit {
			return nil
		}
		sessions, err := b.longmemevalSessions(where, q)
		if err != nil {
			return err
		}
		return b.longmemevalPersona(i, where, q, sessions)
	})
}

// longmemevalDate parses "2023/05/30 (Tue) 23:40", in UTC: the source names no zone.
func longmemevalDate(text string) (time.Time, error) {
	return time.Parse("2006/01/02 (Mon) 15:04", strings.TrimSpace(text))
}

// longmemevalSessions sorts the haystack by time, because it is published in any order. A session that occurs twice is
// used once; one that is later than the question is kept as published. Both are counted as repairs.
func (b *builder) longmemevalSessions(where string, q *longmemevalQuestion) ([]longmemevalSession, error) {
	if len(q.Dates) != len(q.Sessions) || len(q.SessionIDs) != len(q.Sessions) {
		return nil, wrong("%s: want one date and one id for each of its %d sessions; found %d dates, %d ids",
			where, len(q.Sessions), len(q.Dates), len(q.SessionIDs))
	}
	asked, err := longmemevalDate(q.QuestionDate)
	if err != nil {
		return nil, wrong(`%s, question_date: want a date such as "2023/05/30 (Tue) 23:40"; found %q`, where, q.QuestionDate)
	}
	var list []longmemevalSession
	known := map[string]int{}
	for n, turns := range q.Sessions {
		began, err := longmemevalDate(q.Dates[n])
		if err != nil {
			return nil, wrong(`%s, haystack_dates[%d]: want a date such as "2023/05/30 (Tue) 23:40"; found %q`, where,
				n, q.Dates[n])
		}
		if len(turns) == 0 {
			b.Repair("session_without_turns", fmt.Sprintf("%s, haystack_sessions[%d]", where, n))
			continue
		}
		place := fmt.Sprintf("%s, haystack_sessions[%d] (%s)", where, n, q.SessionIDs[n])
		if first, twice := known[q.SessionIDs[n]]; twice {
			if slices.Equal(turns, q.Sessions[first]) {
				b.Repair("session_given_twice", place)
				continue
			}
			b.Repair("session_id_given_twice", place)
		}
		known[q.SessionIDs[n]] = n
		if began.After(asked) {
			b.Repair("session_later_than_its_question", place)
		}
		list = append(list, longmemevalSession{q.SessionIDs[n], began, turns})
	}
	slices.SortStableFunc(list, func(a, b longmemevalSession) int { return a.began.Compare(b.began) })
	return list, nil
}

// longmemevalPersona writes one question's haystack. Its ids are numbers, because the source's session ids reveal which
// session has the answer.
func (b *builder) longmemevalPersona(number int, where string, q *longmemevalQuestion,
	sessions []longmemevalSession) error {
	persona := fmt.Sprintf("lme-%04d", number+1)
	base, unanswerable := strings.CutSuffix(q.QuestionID, "_abs")
	b.Persona(persona, base)
	evidence := map[string][]string{} // answer session -> events
	var last time.Time
	for i, s := range sessions {
		at := s.began
		if at.Before(last) {
			at = last // two sessions in the same minute
		}
		for n, turns := range byUser(s.turns) {
			e := &pack.Event{SessionIndex: i + 1, EventID: fmt.Sprintf("%s-%d-%d", persona, i+1, n+1),
				SessionID: fmt.Sprintf("%s-session-%d", persona, i+1),
				TurnID:    fmt.Sprintf("turn-%d", n+1), Timestamp: at.Format(time.RFC3339)}
			answers := false
			for _, m := range turns {
				role := abi.Role(m.Role)
				if role != abi.RoleUser && role != abi.RoleAssistant && role != abi.RoleSystem {
					return wrong("%s, session %s: want role user or assistant; found %q", where, s.id, m.Role)
				}
				e.Messages = append(e.Messages, message(role, "", m.Content))
				answers = answers || m.HasAnswer
			}
			if answers {
				evidence[s.id] = append(evidence[s.id], e.EventID)
			}
			if err := b.Event(e); err != nil {
				return err
			}
			last = at
			at = at.Add(longmemevalStep)
		}
	}
	asked, err := longmemevalDate(q.QuestionDate)
	if err != nil {
		return err // longmemevalSessions has already parsed it
	}
	p := &pack.Probe{ProbeID: persona + "-q", AfterSession: len(sessions), Kind: "question", Label: q.QuestionType,
		Query: q.Question,
		AsOf:  asked.Format(time.RFC3339), Gold: pack.Gold{Answerable: !unanswerable}}
	if p.Gold.Answerable {
		p.Gold.Answers = [][]string{{scalar(q.Answer)}}
		for _, id := range q.AnswerSessionIDs {
			if len(evidence[id]) == 0 {
				b.Repair("answer_session_without_turns", fmt.Sprintf("%s, %s", where, id))
				continue
			}
			p.Gold.Evidence = append(p.Gold.Evidence, evidence[id])
		}
	}
	return b.Probe(p)
}

// byUser splits messages into turns: a user's message and what follows, up to the next one.
func byUser(messages []longmemevalMessage) [][]longmemevalMessage {
	var turns [][]longmemevalMessage
	for i, m := range messages {
		if i == 0 || m.Role == "user" {
			turns = append(turns, nil)
		}
		turns[len(turns)-1] = append(turns[len(turns)-1], m)
	}
	return turns
}
