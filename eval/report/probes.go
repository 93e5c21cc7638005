package report

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/simulate"
)

// chunk has the texts of some probes in the form in which the page contains them: JSON, gzip, base64.
type chunk struct {
	N int
	// Data is base64, because a script element neither needs nor decodes escapes.
	Data string
}

// indexEntry is one probe in the page's list.
type indexEntry struct {
	ID      string `json:"id"`
	Persona string `json:"persona"`
	Session int    `json:"session"`
	Label   string `json:"label"`
	Query   string `json:"query,omitempty"`
	Chunk   int    `json:"chunk"` // -1: left out
}

// ProbeAnswers is one probe with all answers to it.
type ProbeAnswers struct {
	Probe         *pack.Probe    `json:"probe"`
	Answers       []Answered     `json:"answers"`
	Conversations []Conversation `json:"conversations,omitempty"`
}

// Conversation is one conversation about a probe: what was said, what the agent retrieved, and what it used.
type Conversation struct {
	Label     string `json:"label"`
	Replicate int    `json:"replicate"`
	*journal.Transcript
	// Used says which of the person's values the first answer names.
	Used simulate.Use `json:"used"`
}

// Answered is one retrieval of the first read.
type Answered struct {
	Label     string `json:"label"`
	Replicate int    `json:"replicate"`
	Budget    int64  `json:"budget"`
	Context   string `json:"context,omitempty"` // a hash; the text is in the chunk's contexts
	// Items has the first maxItems items; Of is the number of all.
	Items  []Item     `json:"items,omitempty"`
	Of     int        `json:"of,omitempty"`
	Tokens *int64     `json:"tokens,omitempty"`
	Result string     `json:"result,omitempty"`
	Calls  []abi.IO   `json:"calls,omitempty"`
	Error  *abi.Error `json:"error,omitempty"`
	Said   []string   `json:"said,omitempty"` // the agent's answers
}

// Item is one piece of evidence of a retrieval.
type Item struct {
	Rank   int64      `json:"rank"`
	Text   string     `json:"text,omitempty"` // empty for an item that the context shows
	Score  *float64   `json:"score,omitempty"`
	Time   string     `json:"time,omitempty"`
	Events []string   `json:"events,omitempty"`
	Shown  *abi.Shown `json:"shown,omitempty"`
}

// maxItems and maxItemText limit the listed items of one answer, and the text of each: the context has the whole text.
// A full history has hundreds of items for each question.
const maxItems, maxItemText = 30, 300

// collection is the page's data about probes.
type collection struct {
	in    Input
	index []indexEntry
	told  []*ProbeAnswers
	// settings are the situations of the conversations about probes.
	settings map[string]*simulate.Setting
}

// collect reads probes and journals.
func collect(in Input) (*collection, error) {
	c := &collection{in: in, index: []indexEntry{}, settings: map[string]*simulate.Setting{}}
	byID := map[string]*ProbeAnswers{}
	for _, persona := range in.Pack.Manifest.Personas {
		preferences, err := in.Pack.Preferences(persona.PersonaID)
		if err != nil {
			return nil, err
		}
		for p, err := range in.Pack.Probes(persona.PersonaID) {
			if err != nil {
				return nil, err
			}
			entry := indexEntry{ID: p.ProbeID, Persona: p.PersonaID, Session: p.AfterSession, Label: p.Label,
				Query: cut(p.Query, 120), Chunk: -1}
			if in.WithoutText {
				entry.Query = ""
			}
			t := &ProbeAnswers{Probe: p}
			c.settings[p.ProbeID] = simulate.NewSetting(p, preferences)
			byID[p.ProbeID] = t
			c.index, c.told = append(c.index, entry), append(c.told, t)
		}
	}
	if in.WithoutText {
		return c, nil
	}
	for _, cell := range in.Run.Cells {
		if err := c.addCell(cell, byID); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *collection) addCell(cell *rundir.Cell, byID map[string]*ProbeAnswers) error {
	if cell.State == rundir.Waiting {
		return nil
	}
	for l, err := range journal.Read(filepath.Join(cell.Folder(c.in.Folder), journal.Name)) {
		if err != nil {
			if cell.State != rundir.Complete {
				return nil // it is being written, or was cut off
			}
			return err
		}
		switch {
		case l.Kind == journal.KindProbe && l.Probe.Read == 1:
			if t := byID[l.Probe.ProbeID]; t != nil {
				t.Answers = append(t.Answers, answer(cell, l.Probe))
			}
		case l.Kind == journal.KindTranscript:
			if t := byID[l.Transcript.ProbeID]; t != nil {
				t.Conversations = append(t.Conversations, Conversation{cell.Label, cell.Replicate, l.Transcript,
					c.settings[l.Transcript.ProbeID].UseOf(l.Transcript.First())})
			}
		case l.Kind == journal.KindAnswer:
			if t := byID[l.Answer.ProbeID]; t != nil {
				t.addAnswer(cell, l.Answer)
			}
		}
	}
	return nil
}

// addAnswer adds what the agent said to the context that it was given. A conversation that was interrupted started
// over.
func (t *ProbeAnswers) addAnswer(cell *rundir.Cell, said *journal.Answer) {
	for i := len(t.Answers) - 1; i >= 0; i-- {
		a := &t.Answers[i]
		if a.Label != cell.Label || a.Replicate != cell.Replicate || a.Budget != said.Budget {
			continue
		}
		text := said.Text
		if said.Error != nil {
			text = "(no answer: " + string(said.Error.Code) + ")"
		}
		a.Said = append(a.Said[:min(len(a.Said), max(0, said.Turn-1))], text)
		return
	}
}

func answer(cell *rundir.Cell, p *journal.Probe) Answered {
	a := Answered{Label: cell.Label, Replicate: cell.Replicate, Budget: p.Budget, Context: p.ContextSHA256,
		Error: p.Error}
	if p.Trace != nil {
		a.Tokens, a.Result, a.Calls = p.Trace.TokenCount, string(p.Trace.ResultState), p.Trace.IO
	}
	a.Of = len(p.Evidence)
	a.Items = make([]Item, 0, min(a.Of, maxItems))
	for i := range cap(a.Items) {
		e := &p.Evidence[i]
		text := cut(e.Text, maxItemText)
		if e.Shown != nil && e.Shown.End > e.Shown.Start {
			text = ""
		}
		shown := Item{Rank: e.Rank, Text: text, Score: e.Score, Events: e.SourceEventIDs, Shown: e.Shown}
		for _, at := range []string{e.ValidAt, e.CreatedAt, e.UpdatedAt} {
			if shown.Time == "" {
				shown.Time = at
			}
		}
		a.Items = append(a.Items, shown)
	}
	return a
}

// perChunk is how many probes share a chunk, and so can share equal contexts.
const perChunk = 64

// chunks packs the probes' texts, as far as they fit into most bytes. It returns how many probes were left out.
func (c *collection) chunks(most int) (list []chunk, leftOut int, err error) {
	if c.in.WithoutText {
		return nil, 0, nil
	}
	total := 0
	for from := 0; from < len(c.told); from += perChunk {
		until := min(from+perChunk, len(c.told))
		data, err := c.chunk(c.told[from:until])
		if err != nil {
			return nil, 0, err
		}
		if total += len(data); total > most {
			return list, len(c.told) - from, nil
		}
		for i := from; i < until; i++ {
			c.index[i].Chunk = len(list)
		}
		list = append(list, chunk{len(list), data})
	}
	return list, 0, nil
}

// contexts returns the hashes of all contexts that were retrieved for a probe.
func (t *ProbeAnswers) contexts() []string {
	var list []string
	for i := range t.Answers {
		list = append(list, t.Answers[i].Context)
	}
	for _, c := range t.Conversations {
		for i := range c.Retrievals {
			list = append(list, c.Retrievals[i].ContextSHA256)
		}
	}
	return list
}

func (c *collection) chunk(probes []*ProbeAnswers) (string, error) {
	lines := []string{}
	number := map[string]int{}
	contexts := map[string][]int{} // by hash: the numbers of its lines, since contexts share many lines
	for _, t := range probes {
		for _, name := range t.contexts() {
			if _, there := contexts[name]; there || name == "" {
				continue
			}
			text, err := rundir.Contexts(c.in.Folder).Text(name)
			if err != nil {
				return "", err
			}
			contexts[name] = []int{}
			for line := range strings.SplitSeq(string(text), "\n") {
				n, there := number[line]
				if !there {
					n = len(lines)
					number[line], lines = n, append(lines, line)
				}
				contexts[name] = append(contexts[name], n)
			}
		}
	}
	for _, t := range probes {
		for i := range t.Answers {
			for at := range t.Answers[i].Items {
				roundScore(&t.Answers[i].Items[at])
			}
		}
	}
	text, err := json.Marshal(map[string]any{"probes": probes, "contexts": contexts, "lines": lines})
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(text)
	}
	if err == nil {
		err = z.Close()
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes()), err
}

// roundScore leaves the four digits of an item's score that the page shows. All digits of all scores would be a third
// of the page.
func roundScore(i *Item) {
	if i.Score != nil {
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(*i.Score, 'g', 4, 64), 64)
		i.Score = &rounded
	}
}

// cut shortens a text to at most n bytes, between characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xc0 == 0x80 {
		n--
	}
	return text[:n] + "…"
}

// Probe returns everything about one probe of a run.
//
// Errors: not_found if the pack has no such probe; those of reading.
func Probe(in Input, id string) (*ProbeAnswers, error) {
	c, err := collect(in)
	if err != nil {
		return nil, err
	}
	for _, t := range c.told {
		if t.Probe.ProbeID == id {
			return t, nil
		}
	}
	return nil, abi.NewError(abi.CodeNotFound, fmt.Sprintf("the pack has no probe %q", id)).
		WithHint("`memhost eval failures` lists some")
}
