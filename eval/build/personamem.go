package build

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
)

// personamemBuilder reads PersonaMem: long conversations, with multiple-choice questions, each asked at a certain
// message.
//
// Format: contexts JSONL {id: [{role, content}]}; questions CSV with question_id, question_type, question or
// user_question_or_message, persona_id, correct_answer "(c)", all_options, shared_context_id,
// end_index_in_shared_context, as huggingface.co/datasets/bowen-upenn/PersonaMem publishes it.
var personamemBuilder = &Builder{
	Name: "personamem", What: "PersonaMem: shared_contexts_*.jsonl and questions_*.csv", Timestamps: "synthetic",
	Sources: []string{"shared_contexts_32k.jsonl", "questions_32k.csv"}, Licence: "MIT",
	Options: map[string]string{"start": "RFC 3339: when the first message was said; each further one is a minute " +
		"later"},
	Defaults: map[string]string{"start": "2026-01-05T09:00:00Z"},
	build:    buildPersonamem,
}

type personamemQuestion struct {
	id, kind, text, correct string
	options                 []string
	end                     int
	person                  string // persona_id; empty if the file does not name it
}

func buildPersonamem(b *builder) (map[string]json.RawMessage, error) {
	start, err := abi.ParseTime(b.options["start"])
	if err != nil {
		return nil, wrong("option start: %s", abi.AsError(err).Message)
	}
	questions, err := b.personamemQuestions()
	if err != nil {
		return nil, err
	}
	in, err := b.open(0)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	name, d := filepath.Base(b.sources[0]), json.NewDecoder(bufio.NewReaderSize(in, 1<<20))
	for n := 1; ; n++ {
		var context map[string][]longmemevalMessage
		err := d.Decode(&context)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, wrong("%s, line %d: want {id: [{role, content}]}; found %s", name, n, pack.Mismatch(err))
		}
		for _, id := range abi.SortedKeys(context) {
			if err := b.personamemPersona(id, context[id], questions[id], start); err != nil {
				return nil, err
			}
			delete(questions, id)
		}
	}
	for _, id := range abi.SortedKeys(questions) {
		b.Repair("question_without_context", fmt.Sprintf("shared_context_id %s: %d questions", id, len(questions[id])))
	}
	return nil, nil
}

// personamemQuestions reads the questions by context, in the order in which they are asked.
func (b *builder) personamemQuestions() (map[string][]personamemQuestion, error) {
	in, err := b.open(1)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	name, r := filepath.Base(b.sources[1]), csv.NewReader(bufio.NewReader(in))
	head, err := r.Read()
	if err != nil {
		return nil, wrong("%s: want a CSV file with a header; found: %v", name, err)
	}
	column := func(names ...string) int {
		return slices.IndexFunc(head, func(h string) bool { return slices.Contains(names, h) })
	}
	columns := map[string]int{"question_id": column("question_id"), "question_type": column("question_type"),
		"question or user_question_or_message": column("question", "user_question_or_message"),
		"correct_answer":                       column("correct_answer"),
		"all_options":                          column("all_options"), "shared_context_id": column("shared_context_id"),
		"end_index_in_shared_context": column("end_index_in_shared_context")}
	for _, wanted := range abi.SortedKeys(columns) {
		if columns[wanted] < 0 {
			return nil, wrong("%s: want the column %s; found %s", name, wanted, strings.Join(head, ", "))
		}
	}
	person := column("persona_id") // in the published file; a question's context is one of several of this person
	questions := map[string][]personamemQuestion{}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, wrong("%s: %v", name, err)
		}
		line, _ := r.FieldPos(0)
		q := personamemQuestion{id: row[columns["question_id"]], kind: row[columns["question_type"]],
			text: row[columns["question or user_question_or_message"]], correct: row[columns["correct_answer"]]}
		if q.end, err = strconv.Atoi(row[columns["end_index_in_shared_context"]]); err != nil {
			return nil, wrong("%s, line %d: want a whole number in end_index_in_shared_context; found %q", name, line,
				row[columns["end_index_in_shared_context"]])
		}
		if person >= 0 {
			q.person = strings.TrimSpace(row[person])
		}
		if q.options = optionList(row[columns["all_options"]]); len(q.options) == 0 {
			b.Repair("options_unreadable", fmt.Sprintf("%s, line %d", name, line))
		}
		id := row[columns["shared_context_id"]]
		questions[id] = append(questions[id], q)
	}
	for _, list := range questions {
		slices.SortStableFunc(list, func(a, b personamemQuestion) int { return a.end - b.end })
	}
	return questions, nil
}

var quotedOption = regexp.MustCompile(`(?s)'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"`)

// optionList parses a list in JSON or in Python's notation.
func optionList(text string) []string {
	var list []string
	if json.Unmarshal([]byte(text), &list) == nil {
		return list
	}
	for _, m := range quotedOption.FindAllStringSubmatch(text, -1) {
		list = append(list, strings.NewReplacer(`\'`, "'", `\"`, `"`, `\n`, "\n", `\\`, `\`).Replace(m[1]+m[2]))
	}
	return list
}

// personamemPersona writes one context, split into sessions at the points where questions are asked.
func (b *builder) personamemPersona(id string, messages []longmemevalMessage, questions []personamemQuestion,
	start time.Time) error {
	if len(messages) == 0 {
		b.Repair("context_without_messages", id)
		return nil
	}
	persona := "personamem-" + id
	b.Persona(persona, b.personamemCluster(id, questions))
	session, turn, from, asked := 1, 0, 0, 0
	at := func(n int) string { return start.Add(time.Duration(n) * time.Minute).Format(time.RFC3339) }
	var probes []*pack.Probe
	for from < len(messages) {
		until := len(messages)
		// before anything was said, or at the same place as the previous one
		for asked < len(questions) && questions[asked].end <= from {
			probes = append(probes, b.personamemProbe(persona, max(1, session-1), at(from), &questions[asked]))
			asked++
		}
		if asked < len(questions) {
			until = min(until, questions[asked].end)
		}
		for _, turns := range byUser(messages[from:until]) {
			turn++
			e := &pack.Event{SessionIndex: session, EventID: fmt.Sprintf("%s-%d", persona, turn),
				SessionID: fmt.Sprintf("%s-session-%d", persona, session),
				TurnID:    fmt.Sprintf("turn-%d", turn), Timestamp: at(from)}
			for _, m := range turns {
				e.Messages = append(e.Messages, message(abi.Role(m.Role), "", m.Content))
				from++
			}
			if err := b.Event(e); err != nil {
				return err
			}
		}
		session++
	}
	for ; asked < len(questions); asked++ {
		probes = append(probes, b.personamemProbe(persona, session-1, at(from), &questions[asked]))
	}
	for _, p := range probes {
		if err := b.Probe(p); err != nil {
			return err
		}
	}
	return nil
}

// personamemCluster is the person of a context. Several contexts may be about one person, so they are not independent
// observations. A context whose questions name no person, or several, is its own cluster.
func (b *builder) personamemCluster(id string, questions []personamemQuestion) string {
	person := ""
	for _, q := range questions {
		switch {
		case q.person == "":
			b.Repair("person_unknown", fmt.Sprintf("question %s of shared_context_id %s", q.id, id))
			return id
		case person != "" && q.person != person:
			b.Repair("several_persons", fmt.Sprintf("shared_context_id %s: %s and %s", id, person, q.person))
			return id
		}
		person = q.person
	}
	if person == "" {
		return id // it has no questions
	}
	return "person-" + person
}

func (b *builder) personamemProbe(persona string, after int, at string, q *personamemQuestion) *pack.Probe {
	p := &pack.Probe{ProbeID: persona + "-" + q.id, AfterSession: after, Kind: "choice", Label: q.kind, Query: q.text,
		AsOf: at, Options: q.options}
	letter := strings.ToLower(strings.Trim(q.correct, "() "))
	n := -1
	if len(letter) == 1 {
		n = int(letter[0] - 'a')
	}
	if n >= 0 && n < len(q.options) {
		p.Gold = pack.Gold{Answerable: true, Answers: [][]string{{q.options[n]}}}
	} else {
		b.Repair("correct_answer_unknown", fmt.Sprintf("question %s: %q", q.id, q.correct))
	}
	return p
}
