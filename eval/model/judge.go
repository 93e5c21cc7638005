package model

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/sdk/chat"
)

// JudgementsFile is the judge's file in a run's folder. Another judge writes another file, without a new run.
const JudgementsFile = "judgements.jsonl"

// Judgement is one line of a judge's file. The first line is the Header.
type Judgement struct {
	Header *Header `json:"header,omitempty"`
	// Item identifies what was judged: an answer by cell, probe and budget, or a calibration item by probe and sort.
	Item string `json:"item,omitempty"`
	Sort Sort   `json:"sort,omitempty"`
	// Label is the provider's label, for scoring; the judge does not see it.
	Label      string `json:"label,omitempty"`
	Budget     int64  `json:"budget,omitempty"`
	ProbeID    string `json:"probe_id,omitempty"`
	ProbeLabel string `json:"probe_label,omitempty"`
	Cluster    string `json:"cluster,omitempty"`
	// Unanswerable means that the conversation does not contain the answer, and a right reply says so.
	Unanswerable bool `json:"unanswerable,omitempty"`
	// Exact means that the answer is one of the probe's options, and no judge was asked.
	Exact    bool `json:"exact,omitempty"`
	Accepted bool `json:"accepted"`
	Asked
	// Text is the hash of an answer's text, which people are shown for labelling.
	Text string `json:"text,omitempty"`
	// Error is the judge's error, or the agent's if it gave no answer.
	Error *abi.Error `json:"error,omitempty"`
}

func (j *Judgement) header() *Header     { return j.Header }
func (j *Judgement) key() string         { return j.Item }
func (j *Judgement) failure() *abi.Error { return j.Error }

// Header binds a judge's file to the run: to every cell's head, and to the rubric. Judge is empty if all answers are
// choices, for which no judge is asked.
type Header struct {
	RunHead string    `json:"run_head"`
	Judge   lab.Judge `json:"judge"`
}

// Sort is the kind of a judged text.
type Sort string

// The sorts: agents' answers, and calibration items whose truth is known.
const (
	SortAnswer     Sort = "answer"
	SortVerbatim   Sort = "right_verbatim"
	SortParaphrase Sort = "right_paraphrased"
	SortStale      Sort = "wrong_stale"
	SortOther      Sort = "wrong_other_probe"
	SortOnTopic    Sort = "wrong_on_topic"
	SortRefusal    Sort = "wrong_refusal"
)

// Right reports whether a calibration item should be accepted.
func (s Sort) Right() bool { return strings.HasPrefix(string(s), "right") }

// judgeItem is one text to judge.
type judgeItem struct {
	Judgement
	question, expected, text string
	options                  []string
}

// RunJudge judges every answer of a complete run, and calibrates the judge on made-up items for the same probes.
// Answers that choose one of a probe's options are compared with it, without a judge. It continues where an earlier
// call stopped. tell reports the progress.
//
// Errors: invalid_argument if the lab names no judge but answers need one; conflict if the file belongs to another run
// or judge; unavailable, rate_limited and unauthenticated if the endpoint does not answer, after which another call
// continues. If the judge's answer on a single text is not a verdict, its line has an error: that text is missing, not
// wrong.
func RunJudge(ctx context.Context, folder string, r *rundir.Run, p *pack.Pack, getenv func(string) string,
	tell func(done, total int)) error {
	items, err := itemsOf(folder, r, p)
	if err != nil {
		return err
	}
	header, client := &Header{RunHead: r.Head()}, (*Client)(nil)
	if r.Lab.Judge != nil {
		header.Judge = *r.Lab.Judge
		if client, err = NewClient(r.Lab.Judge.Model, getenv); err != nil {
			return prefixed("judge.", err)
		}
	} else {
		items = slices.DeleteFunc(items, func(j judgeItem) bool { return !j.Exact })
		if len(items) == 0 {
			return abi.NewError(abi.CodeInvalidArgument, "the lab names no judge")
		}
	}
	put := rundir.Blobs(folder).Put
	return judgeItems(filepath.Join(folder, JudgementsFile), &Judgement{Header: header}, len(items),
		func(n int) *Judgement { return &items[n].Judgement },
		func(n int) error {
			if items[n].Error != nil {
				return nil
			}
			return judgeOne(ctx, client, r.Lab, &items[n], put)
		}, tell)
}

// judgeOne asks about one text. If the endpoint rejects it, the line has the error: it is missing, not wrong.
func judgeOne(ctx context.Context, client *Client, l *lab.Lab, j *judgeItem, put Put) error {
	if j.Exact {
		j.Accepted = chosen(j.text, j.options) == j.expected
		return nil
	}
	question := fmt.Sprintf("Question: %s\nExpected answer: %s\nAnswer: %s", j.question, j.expected, j.text)
	system := rubric(l, j.ProbeLabel, j.Unanswerable)
	var answer string
	var err error
	answer, j.Asked, j.Error, err = askJudge(ctx, client, l, system, question, put)
	if err != nil || j.Error != nil {
		return err
	}
	switch chat.Word(answer, "yes", "no") {
	case "yes":
		j.Accepted = true
	case "no":
	default:
		j.Error = abi.NewError(abi.CodeBackend, fmt.Sprintf("the judge said neither yes nor no, but %.80q", answer))
	}
	return nil
}

// itemsOf returns all texts to judge: answers by cell, then calibration items by probe.
func itemsOf(folder string, r *rundir.Run, p *pack.Pack) ([]judgeItem, error) {
	probes, order, clusters := map[string]*pack.Probe{}, []*pack.Probe{}, map[string]string{}
	for _, persona := range p.Manifest.Personas {
		for probe, err := range p.Probes(persona.PersonaID) {
			if err != nil {
				return nil, err
			}
			if !probe.Gold.Answerable && probe.Kind != pack.CanaryKind || len(probe.Gold.Answers) > 0 {
				probes[probe.ProbeID] = probe
				clusters[probe.ProbeID] = persona.Cluster
			}
			if probe.Gold.Answerable && len(probe.Gold.Answers) > 0 && !isChoice(probe) {
				order = append(order, probe)
			}
		}
	}
	var items []judgeItem
	at := map[string]int{} // index in items of a cell's answer: a repeated answer counts once
	for _, c := range r.Cells {
		for l, err := range journal.Read(filepath.Join(c.Folder(folder), journal.Name)) {
			if err != nil {
				return nil, err
			}
			if l.Kind != journal.KindAnswer || probes[l.Answer.ProbeID] == nil {
				continue
			}
			probe := probes[l.Answer.ProbeID]
			item := newItem(probe, clusters, SortAnswer, l.Answer.Text, func(j *Judgement) {
				j.Item = fmt.Sprintf("%s/%d %s %d %d", c.Label, c.Replicate, probe.ProbeID, l.Answer.Budget,
					l.Answer.Turn)
				j.Label, j.Budget, j.Error = c.Label, l.Answer.Budget, l.Answer.Error
				if j.Error == nil && strings.TrimSpace(l.Answer.Text) == "" { // a run of an earlier version
					j.Error = emptyAnswer(l.Answer.FinishReason)
				}
				j.Text = textID(probe.ProbeID, l.Answer.Text)
			})
			if i, again := at[item.Item]; again {
				items[i] = item
				continue
			}
			at[item.Item] = len(items)
			items = append(items, item)
		}
	}
	return append(items, calibration(order, clusters)...), nil
}

func newItem(p *pack.Probe, clusters map[string]string, sort Sort, text string, set func(*Judgement)) judgeItem {
	j := judgeItem{Judgement: Judgement{Item: string(sort) + " " + p.ProbeID, Sort: sort, ProbeID: p.ProbeID,
		ProbeLabel: p.Label, Cluster: clusters[p.ProbeID], Unanswerable: !p.Gold.Answerable, Exact: isChoice(p)},
		question: p.Query, expected: expected(p), text: text, options: p.Options}
	if set != nil {
		set(&j.Judgement)
	}
	return j
}

func expected(p *pack.Probe) string {
	if !p.Gold.Answerable {
		return neverSaid
	}
	var parts []string
	for _, group := range p.Gold.Answers {
		parts = append(parts, strings.Join(group, " or "))
	}
	return strings.Join(parts, "; ")
}

// calibrationProbes limits for how many probes calibration items are made; they are spread over the pack.
const calibrationProbes = 100

// calibration makes items whose truth is known. Paraphrases and wrong answers on topic come from fixed sentences, not
// from a model.
func calibration(probes []*pack.Probe, clusters map[string]string) []judgeItem {
	var items []judgeItem
	step := max(1, len(probes)/calibrationProbes)
	byLabel := map[string][]*pack.Probe{}
	for _, p := range probes {
		byLabel[p.Label] = append(byLabel[p.Label], p)
	}
	for i := 0; i < len(probes); i += step {
		p := probes[i]
		answer := p.Gold.Answers[0][0]
		add := func(sort Sort, text string) { items = append(items, newItem(p, clusters, sort, text, nil)) }
		add(SortVerbatim, expected(p))
		add(SortParaphrase, fmt.Sprintf("If I remember correctly, that would be %s.", answer))
		add(SortRefusal, "I do not know; that was never mentioned.")
		if len(p.Gold.Stale) > 0 {
			add(SortStale, fmt.Sprintf("It is %s.", p.Gold.Stale[len(p.Gold.Stale)-1].Value))
		}
		if other := otherAnswer(p, byLabel[p.Label]); other != "" {
			add(SortOther, other)
			add(SortOnTopic, fmt.Sprintf("You asked: %s The answer to that is %s, as you told me.", p.Query, other))
		}
	}
	return items
}

// otherAnswer returns the answer of another probe with the same label that is wrong for this one.
func otherAnswer(p *pack.Probe, same []*pack.Probe) string {
	own := slices.Concat(p.Gold.Answers...)
	at := slices.Index(same, p)
	for n := 1; n < len(same); n++ {
		answer := same[(at+n)%len(same)].Gold.Answers[0][0]
		if !slices.ContainsFunc(own, func(a string) bool { return strings.EqualFold(a, answer) }) {
			return answer
		}
	}
	return ""
}

// ReadJudgements reads a judge's file; none if it does not exist.
func ReadJudgements(path string) ([]Judgement, error) { return readLines[Judgement](path) }
