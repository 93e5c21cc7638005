package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/simulate"
	"github.com/memhost/memhost/sdk/chat"
)

// GradesFile is the file with a judge's grades of conversations in a run's folder.
const GradesFile = "grades.jsonl"

// MaxGrade is the best grade; 0 is the worst.
const MaxGrade = 4

// Grade is one line of a judge's grades. The first line is the Header.
type Grade struct {
	Header *Header `json:"header,omitempty"`
	// Label, Replicate, Budget and ProbeID identify the conversation. The judge does not see the label.
	Label     string `json:"label,omitempty"`
	Replicate int    `json:"replicate,omitempty"`
	Budget    int64  `json:"budget,omitempty"`
	ProbeID   string `json:"probe_id,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	// Leaked means that the simulated user stated the preference before the agent had acted. No judge is asked, and the
	// same conversation counts for no provider.
	Leaked bool `json:"leaked,omitempty"`
	// Grade is 0 to MaxGrade; nil if the judge gave none. A conversation without any answer of the agent gets 0 without
	// asking a judge.
	Grade *int `json:"grade,omitempty"`
	// Text is the hash of what the judge read: people grade the same text.
	Text string `json:"text,omitempty"`
	Asked
	Error *abi.Error `json:"error,omitempty"`
}

// key identifies the conversation.
func (g *Grade) key() string {
	return fmt.Sprintf("%s/%d %s %d", g.Label, g.Replicate, g.ProbeID, g.Budget)
}

func (g *Grade) header() *Header     { return g.Header }
func (g *Grade) failure() *abi.Error { return g.Error }

// DefaultGradeRubric is the default instruction for grading conversations.
const DefaultGradeRubric = `You grade how well an assistant served a person who expects it to know what they want. Answer with one digit.
4: it used what the person wants at once.
3: it used it without being told, after the person had asked again.
2: it used it after being told once.
1: it used it only in part, or after being told several times.
0: it never used it, or made something up.
Where nothing is known, 4 is an assistant that says so at once, and 0 one that makes something up.`

// gradeItem is a conversation to grade.
type gradeItem struct {
	Grade
	text   string
	silent bool // the agent never answered
}

// RunGrades makes the lab's judge grade every conversation of a run. The judge sees the transcript, the preferences in
// force and the rubric, but neither the provider's name nor what was retrieved. It continues where an earlier call
// stopped. tell reports the progress.
//
// Errors: those of RunJudge.
func RunGrades(ctx context.Context, folder string, r *rundir.Run, p *pack.Pack, getenv func(string) string,
	tell func(done, total int)) error {
	if r.Lab.Judge == nil {
		return abi.NewError(abi.CodeInvalidArgument, "the lab names no judge")
	}
	items, err := conversationsOf(folder, r, p)
	if err != nil {
		return err
	}
	client, err := NewClient(r.Lab.Judge.Model, getenv)
	if err != nil {
		return prefixed("judge.", err)
	}
	header, put := &Header{RunHead: r.Head(), Judge: *r.Lab.Judge}, rundir.Blobs(folder).Put
	return judgeItems(filepath.Join(folder, GradesFile), &Grade{Header: header}, len(items),
		func(n int) *Grade { return &items[n].Grade },
		func(n int) error { return gradeOne(ctx, client, r.Lab, &items[n], put) }, tell)
}

// gradeOne asks for the grade of one conversation.
func gradeOne(ctx context.Context, client *Client, l *lab.Lab, g *gradeItem, put Put) error {
	switch {
	case g.Leaked:
		return nil
	case g.silent:
		g.Grade.Grade = new(int)
		return nil
	}
	rubric := cmp.Or(l.Judge.Grades, DefaultGradeRubric)
	var answer string
	var err error
	answer, g.Asked, g.Error, err = askJudge(ctx, client, l, rubric, g.text, put)
	if err != nil || g.Error != nil {
		return err
	}
	grade, ok := gradeIn(answer)
	if !ok {
		g.Error = abi.NewError(abi.CodeBackend, fmt.Sprintf("the judge gave no grade from 0 to 4, but %.80q", answer))
		return nil
	}
	g.Grade.Grade = &grade
	return nil
}

// gradeForm matches a number.
var gradeForm = regexp.MustCompile(`\d+`)

// gradeIn extracts the grade from a judge's answer: its first word, or the only number in it, apart from the maximum
// ("3 out of 4").
func gradeIn(text string) (grade int, ok bool) {
	if word := chat.Word(text, "0", "1", "2", "3", "4"); word != "" {
		grade, err := strconv.Atoi(word)
		return grade, err == nil
	}
	text, _ = chat.StripThoughts(text)
	numbers := gradeForm.FindAllString(strings.NewReplacer("/4", "", "/ 4", "", "out of 4", "").Replace(text), -1)
	if len(numbers) != 1 {
		return 0, false
	}
	grade, err := strconv.Atoi(numbers[0])
	return grade, err == nil && grade <= MaxGrade
}

// HasConversations reports whether a subject had conversations with users in a run.
//
// Errors: those of reading.
func HasConversations(folder string, r *rundir.Run) (bool, error) {
	for l, err := range transcripts(folder, r) {
		if err != nil || l != nil {
			return l != nil, err
		}
	}
	return false, nil
}

// cellTranscript is one conversation of a run.
type cellTranscript struct {
	*rundir.Cell
	*journal.Transcript
}

// transcripts iterates over the conversations of all cells.
func transcripts(folder string, r *rundir.Run) func(yield func(*cellTranscript, error) bool) {
	return func(yield func(*cellTranscript, error) bool) {
		for _, c := range r.Cells {
			path := filepath.Join(c.Folder(folder), journal.Name)
			if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
				continue
			}
			for l, err := range journal.Read(path) {
				var cut *journal.CutOff
				switch {
				case errors.As(err, &cut):
				case err != nil:
					yield(nil, err)
					return
				case l.Kind == journal.KindTranscript:
					if !yield(&cellTranscript{c, l.Transcript}, nil) {
						return
					}
				}
			}
		}
	}
}

// conversationsOf returns the conversations that can be graded: the person has a preference, and the simulator did not
// fail.
func conversationsOf(folder string, r *rundir.Run, p *pack.Pack) ([]gradeItem, error) {
	settings, wishes, clusters := map[string]*simulate.Setting{}, map[string]pack.Preferences{}, map[string]string{}
	for _, persona := range p.Manifest.Personas {
		list, err := p.Preferences(persona.PersonaID)
		if err != nil {
			return nil, err
		}
		wishes[persona.PersonaID] = list
		for probe, err := range p.Probes(persona.PersonaID) {
			if err != nil {
				return nil, err
			}
			settings[probe.ProbeID], clusters[probe.ProbeID] = simulate.NewSetting(probe, list), persona.Cluster
		}
	}
	var items []gradeItem
	for t, err := range transcripts(folder, r) {
		if err != nil {
			return nil, err
		}
		s := settings[t.ProbeID]
		if s == nil || s.Value == "" || t.Ended == journal.EndedSimulator {
			continue
		}
		g := gradeItem{Grade: Grade{Label: t.Label, Replicate: t.Replicate, Budget: t.Budget, ProbeID: t.ProbeID,
			Cluster: clusters[t.ProbeID]}, text: forJudge(s, wishes[s.PersonaID], t.Transcript), silent: true}
		for _, x := range t.Exchanges {
			g.silent = g.silent && strings.TrimSpace(x.Agent) == ""
		}
		g.Leaked = len(t.Exchanges) > 0 && simulate.Names(t.Exchanges[0].User, s.Value)
		g.Text = textID(g.ProbeID, g.text)
		items = append(items, g)
	}
	return items, nil
}

// forJudge is the text for judge and people: the preferences in force for the topic of the conversation, and what was
// said.
func forJudge(s *simulate.Setting, list pack.Preferences, t *journal.Transcript) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The person's preferences at this time:\n- %s: %s\n", about(s.Attribute, s.Preference.Context), s.Value)
	if now, err := abi.ParseTime(s.Now); err == nil {
		for _, o := range list.Elsewhere(s.Preference, now) {
			if o.Holds(now) {
				fmt.Fprintf(&b, "- %s: %s\n", about(o.Attribute, o.Context), o.Value)
			}
		}
	}
	fmt.Fprintf(&b, "This conversation is about: %s\n\nThe conversation:\n", about(s.Attribute, s.Context))
	for _, x := range t.Exchanges {
		fmt.Fprintf(&b, "Person: %s\nAssistant: %s\n", x.User, cmp.Or(x.Agent, "(no answer)"))
	}
	switch t.Ended {
	case journal.EndedAccepted:
		b.WriteString("The person was content.\n")
	case journal.EndedGivenUp:
		b.WriteString("The person gave up.\n")
	}
	return b.String()
}

// ReadGrades reads a judge's grades; none if the file does not exist.
func ReadGrades(path string) ([]Grade, error) { return readLines[Grade](path) }
