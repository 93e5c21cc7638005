package build

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
)

// locomoBuilder reads LoCoMo: conversations of two people over months, with questions whose evidence is named by turn.
//
// Format: [{sample_id, conversation {speaker_a, speaker_b, session_<n>_date_time, session_<n> [{speaker, dia_id, text,
// img_url?, blip_caption?}]}, qa [{question, answer?, adversarial_answer?, evidence [dia_id], category}]}], as
// github.com/snap-research/locomo publishes it.
var locomoBuilder = &Builder{
	Name: "locomo", What: "LoCoMo: locomo10.json", Sources: []string{"locomo10.json"}, Licence: "CC-BY-NC-4.0",
	Timestamps: "source",
	Options: map[string]string{
		"insert":      "when a question is asked: asap (after its newest evidence), end, every:N sessions",
		"group":       "what one event is: message, pair (a message and the next one), session; evidence is counted by event, so pair and session count neighbours of the evidence too",
		"perspective": "whose memory is built: a, b, or both (two personas of one cluster)",
	},
	Defaults: map[string]string{"insert": "end", "group": "message", "perspective": "a"},
	build:    buildLocomo,
}

type locomoSample struct {
	SampleID     string                     `json:"sample_id"`
	Conversation map[string]json.RawMessage `json:"conversation"`
	QA           []locomoQuestion           `json:"qa"`
}

type locomoQuestion struct {
	Question string          `json:"question"`
	Answer   json.RawMessage `json:"answer"`
	Evidence []string        `json:"evidence"`
	Category int             `json:"category"`
}

type locomoTurn struct {
	Speaker string `json:"speaker"`
	DiaID   string `json:"dia_id"`
	Text    string `json:"text"`
	Caption string `json:"blip_caption"`
}

type locomoSession struct {
	number int // of the source
	began  time.Time
	turns  []locomoTurn
}

// locomoCategories are the labels of categories 1 to 5.
var locomoCategories = []string{"multi_hop", "temporal", "open_domain", "single_hop", "adversarial"}

// locomoStep is the time between two turns of a session: the source only has the time of the session.
const locomoStep = 30 * time.Second

func buildLocomo(b *builder) (map[string]json.RawMessage, error) {
	insert, err := b.insertion()
	if err != nil {
		return nil, err
	}
	group, err := b.oneOf("group", "pair", "message", "session")
	if err != nil {
		return nil, err
	}
	perspective, err := b.oneOf("perspective", "a", "b", "both")
	if err != nil {
		return nil, err
	}
	sides := []string{perspective}
	if perspective == "both" {
		sides = []string{"a", "b"}
	}
	const want = "LoCoMo samples {sample_id, conversation, qa}"
	return nil, elements(b, 0, want, func(i int, s *locomoSample) error {
		name := cmp.Or(s.SampleID, strconv.Itoa(i+1))
		if len(s.Conversation) == 0 {
			return wrong("sample %s: want conversation with speaker_a, speaker_b and session_1; found none", name)
		}
		sessions, err := b.locomoSessions(name, s.Conversation)
		if err != nil {
			return err
		}
		if s.QA == nil {
			return wrong("sample %s: want qa [{question, answer, evidence, category}]; found none", name)
		}
		for n, side := range sides {
			b.again = n > 0
			if err := b.locomoPersona(name, side, group, insert, s, sessions); err != nil {
				return err
			}
		}
		b.again = false
		return nil
	})
}

var locomoKey = regexp.MustCompile(`^session_(\d+)(_date_time)?$`)

// locomoSessions reads a conversation's sessions in the order of their numbers.
func (b *builder) locomoSessions(sample string, conversation map[string]json.RawMessage) ([]locomoSession, error) {
	var list []locomoSession
	for _, key := range abi.SortedKeys(conversation) {
		part := locomoKey.FindStringSubmatch(key)
		if part == nil {
			continue
		}
		where := fmt.Sprintf("sample %s, %s", sample, key)
		if part[2] != "" {
			if _, there := conversation[strings.TrimSuffix(key, "_date_time")]; !there {
				b.Repair("date_without_session", where)
			}
			continue
		}
		s := locomoSession{}
		s.number, _ = strconv.Atoi(part[1])
		if err := json.Unmarshal(conversation[key], &s.turns); err != nil {
			return nil, wrong("%s: want turns [{speaker, dia_id, text}]; found %s", where, pack.Mismatch(err))
		}
		if len(s.turns) == 0 {
			b.Repair("session_without_turns", where)
			continue
		}
		date := scalar(conversation[key+"_date_time"])
		var err error
		if s.began, err = time.Parse("3:04 pm on 2 January, 2006", strings.TrimSpace(date)); err != nil {
			return nil, wrong(`%s_date_time: want a date such as "1:56 pm on 8 May, 2023"; found %q`, where, date)
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		return nil, wrong("sample %s: want at least one session_<n> with turns; found none", sample)
	}
	slices.SortFunc(list, func(a, b locomoSession) int { return a.number - b.number })
	for i := 1; i < len(list); i++ {
		if list[i].began.Before(list[i-1].began) {
			b.Repair("time_backwards", fmt.Sprintf("sample %s, session_%d", sample, list[i].number))
			list[i].began = list[i-1].began.Add(time.Hour)
		}
	}
	return list, nil
}

// locomoPersona writes the conversation as one of its two people would remember it, with that person as the user.
func (b *builder) locomoPersona(sample, side, group string, insert insertion, s *locomoSample,
	sessions []locomoSession) error {
	persona := "locomo-" + sample + "-" + side
	b.Persona(persona, "locomo-"+sample)
	user := scalar(s.Conversation["speaker_"+side])
	if user != "" {
		if err := b.Person(&pack.Person{Name: user}); err != nil {
			return err
		}
	}
	eventOf, sessionOf := map[string]string{}, map[string]int{} // by dia_id
	var ends []time.Time
	for i, session := range sessions {
		index, at := i+1, session.began
		for n, turns := range grouped(session.turns, group) {
			e := &pack.Event{SessionIndex: index, EventID: fmt.Sprintf("%s-%d-%d", persona, index, n+1),
				SessionID: fmt.Sprintf("%s-session-%d", persona, index), TurnID: fmt.Sprintf("turn-%d", n+1),
				Timestamp: at.Format(time.RFC3339)}
			for _, t := range turns {
				role := abi.RoleAssistant
				if t.Speaker == user {
					role = abi.RoleUser
				}
				e.Messages = append(e.Messages, message(role, t.Speaker, t.words()))
				if _, again := eventOf[t.DiaID]; again {
					b.Repair("doubled_dia_id", fmt.Sprintf("sample %s, %s", sample, t.DiaID))
				}
				eventOf[t.DiaID], sessionOf[t.DiaID] = e.EventID, index
				at = at.Add(locomoStep)
			}
			if err := b.Event(e); err != nil {
				return err
			}
		}
		ends = append(ends, at)
	}
	var probes []*pack.Probe
	for i, q := range s.QA {
		where := fmt.Sprintf("sample %s, qa %d", sample, i)
		if q.Category < 1 || q.Category > len(locomoCategories) {
			b.Repair("unknown_category", fmt.Sprintf("%s: %d", where, q.Category))
			continue
		}
		if strings.TrimSpace(q.Question) == "" {
			b.Repair("empty_question", where)
			continue
		}
		p := &pack.Probe{ProbeID: fmt.Sprintf("%s-q%d", persona, i+1), Kind: "question",
			Label: locomoCategories[q.Category-1], Query: q.Question}
		newest, seen := 0, map[string]bool{}
		for _, id := range b.locomoEvidence(where, q.Evidence, eventOf) {
			newest = max(newest, sessionOf[id])
			if event := eventOf[id]; !seen[event] {
				seen[event] = true
				p.Gold.Evidence = append(p.Gold.Evidence, []string{event})
			}
		}
		p.AfterSession = insert.after(newest, len(sessions))
		p.AsOf = ends[p.AfterSession-1].Format(time.RFC3339)
		if p.Gold.Answerable = q.Category != 5; p.Gold.Answerable && len(q.Answer) > 0 {
			p.Gold.Answers = [][]string{{scalar(q.Answer)}}
		}
		if !p.Gold.Answerable && len(q.Answer) > 0 {
			b.Repair("unanswerable_with_answer", fmt.Sprintf("%s: %q", where, scalar(q.Answer)))
		}
		if !p.Gold.Answerable {
			p.Gold.Evidence = nil // what the question distorts is not evidence for it
		}
		probes = append(probes, p)
	}
	inOrder(probes)
	for _, p := range probes {
		if err := b.Probe(p); err != nil {
			return err
		}
	}
	return nil
}

// words returns a turn's text, including the caption of an image.
func (t *locomoTurn) words() string {
	if t.Caption == "" {
		return t.Text
	}
	return strings.TrimSpace(t.Text + " [shares " + t.Caption + "]")
}

// grouped splits a session's turns into events.
func grouped(turns []locomoTurn, by string) [][]locomoTurn {
	size := map[string]int{"message": 1, "pair": 2, "session": len(turns)}[by]
	return slices.Collect(slices.Chunk(turns, size))
}

var diaID = regexp.MustCompile(`D:?(\d+):(\d+)`)

// locomoEvidence parses evidence ids, some of which are malformed in the published file: "D8:6; D9:17" means two ids,
// "D30:05" means D30:5, "D:11:26" means D11:26, and "D" means none.
func (b *builder) locomoEvidence(where string, given []string, known map[string]string) []string {
	var list []string
	for _, text := range given {
		if _, there := known[text]; there {
			list = append(list, text)
			continue
		}
		parts := diaID.FindAllStringSubmatch(text, -1)
		if len(parts) == 0 {
			b.Repair("evidence_unreadable", fmt.Sprintf("%s: %q", where, text))
		}
		for _, part := range parts {
			session, _ := strconv.Atoi(part[1])
			turn, _ := strconv.Atoi(part[2])
			id := fmt.Sprintf("D%d:%d", session, turn)
			if _, there := known[id]; !there {
				b.Repair("evidence_unknown", fmt.Sprintf("%s: %q", where, text))
				continue
			}
			b.Repair("evidence_mended", fmt.Sprintf("%s: %q is %s", where, text, id))
			list = append(list, id)
		}
	}
	return list
}
