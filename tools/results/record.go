package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/score"
	"github.com/memhost/memhost/eval/stats"
)

// record is docs/results/record.json: every published figure, with the digests of what it was computed from. It holds no
// text of the data set.
type record struct {
	Data dataRecord  `json:"data"`
	Runs []runRecord `json:"runs"`
}

// dataRecord says what was asked.
type dataRecord struct {
	URL        string `json:"url"`
	SHA256     string `json:"sha256"`
	Licence    string `json:"licence"`
	PackSHA256 string `json:"pack_sha256"`
	Tokenizer  string `json:"tokenizer"`
	// Conversations, Events and Probes are those of the pack, Counted the probes that name evidence: figures are means
	// over these.
	Conversations int `json:"conversations"`
	Events        int `json:"events"`
	Probes        int `json:"probes"`
	Counted       int `json:"counted"`
}

// runRecord is one run of memhost eval.
type runRecord struct {
	Name string `json:"name"`
	// Head is the run's, as `memhost eval verify` prints it: of the lab, the pack and every journal.
	Head      string `json:"head"`
	LabSHA256 string `json:"lab_sha256"`
	// Minutes is how long the run worked, by the times in its journals: without pauses of more than longestStep, in which
	// it was stopped.
	Minutes float64 `json:"minutes"`
	// Reference is bm25's recall@tokens at the primary budget in this run, with which its columns are compared.
	Reference   stats.Interval     `json:"bm25"`
	Columns     []columnRecord     `json:"columns"`
	Comparisons []comparisonRecord `json:"comparisons"`
}

// columnRecord is a memory, or a reference that was computed.
type columnRecord struct {
	Label string `json:"label"`
	// Version is the backend's; empty for what needs no server.
	Version string `json:"version,omitempty"`
	// ManifestSHA256 is the digest of the manifest that was sealed before the first event: module, configuration, health.
	// Empty for a reference.
	ManifestSHA256 string `json:"manifest_sha256,omitempty"`
	// Calls and Bytes are native calls, and bytes of their requests and answers, for each recorded turn.
	Calls float64 `json:"calls_per_turn"`
	Bytes float64 `json:"bytes_per_turn"`
	// Failed counts events and retrievals that failed, over all budgets. Breached names what went through the wall
	// between test sessions or between scopes, empty: nothing.
	Failed   int            `json:"failed"`
	Breached string         `json:"breached,omitempty"`
	Budgets  []budgetRecord `json:"budgets"`
}

// budgetRecord are a column's figures at one budget: by metric, and recall@tokens by type of question.
type budgetRecord struct {
	Budget  int64                     `json:"max_tokens"`
	Figures map[string]stats.Interval `json:"figures"`
	Types   map[string]stats.Interval `json:"recall_by_type"`
}

// comparisonRecord is a column against bm25, question by question.
type comparisonRecord struct {
	Label  string `json:"label"`
	Budget int64  `json:"max_tokens"`
	// Sealed: the lab named this comparison before the run. Others are exploratory.
	Sealed     bool           `json:"sealed"`
	Difference stats.Interval `json:"difference"`
	P          float64        `json:"p_adjusted"`
	Verdict    string         `json:"verdict"`
}

const (
	recordFile = "record.json"
	recall     = "recall@tokens"
	// reference is the column that every run has.
	reference = "bm25"
)

// published are the metrics of the table. all@tokens: all of a question's evidence is shown.
var published = []string{recall, "all@tokens", "content", "mrr", "items", "context_tokens", "frame_tokens"}

// gather makes the record of the runs in the workplace that are complete and scored.
func (w *workplace) gather() (*record, error) {
	r := &record{}
	for _, x := range experiments {
		there, err := exists(w.path(x.name, "run", score.MetricsFile))
		if err != nil {
			return nil, err
		}
		done, err := w.complete(x)
		if err != nil {
			return nil, err
		}
		if !there || !done || x.judged() {
			continue
		}
		m, t, err := w.metrics(x)
		if err != nil {
			return nil, err
		}
		if err := w.add(r, x, m, t); err != nil {
			return nil, fmt.Errorf("%s: %w", x.name, err)
		}
	}
	if len(r.Runs) == 0 {
		return nil, errors.New("no run is complete; make results makes them")
	}
	return r, nil
}

// metrics reads what score wrote.
func (w *workplace) metrics(x experiment) (*score.Metrics, *score.Timings, error) {
	folder := w.path(x.name, "run")
	m, err := score.Read(folder)
	if err != nil {
		return nil, nil, err
	}
	t := new(score.Timings)
	text, err := os.ReadFile(filepath.Join(folder, score.TimingsFile))
	if err != nil {
		return nil, nil, err
	}
	return m, t, json.Unmarshal(text, t)
}

// add puts a run into the record. The columns of bm25 are those of the first run; every run has its own reference.
func (w *workplace) add(r *record, x experiment, m *score.Metrics, t *score.Timings) error {
	run, err := rundir.Open(w.path(x.name, "run"))
	if err != nil {
		return err
	}
	data := dataRecord{URL: dataURL, SHA256: m.Run.Pack.Source.SHA256, Licence: m.Run.Pack.Source.Licence,
		PackSHA256: run.Pack.ContentSHA256, Tokenizer: m.Keys.Tokenizer, Conversations: m.Run.Pack.Counts.Clusters,
		Events: m.Run.Pack.Counts.Events, Probes: m.Run.Pack.Counts.Probes}
	out := runRecord{Name: x.name, Head: run.Head(), LabSHA256: run.LabSHA256}
	if out.Minutes, err = minutes(run, w.path(x.name, "run")); err != nil {
		return err
	}
	for i := range m.Columns {
		c := &m.Columns[i]
		if len(r.Runs) > 0 && c.Kind == "reference" { // random and evidence are those of the first run
			continue
		}
		column, err := w.column(x, c, t)
		if err != nil {
			return err
		}
		data.Counted = max(data.Counted, column.counted())
		if c.Label == reference {
			out.Reference = column.at(primaryBudget).Figures[recall]
		}
		if before := r.column(c.Label); before != nil {
			if err := near(before, column); err != nil {
				return err
			}
			continue
		}
		out.Columns = append(out.Columns, *column)
	}
	out.Comparisons = comparisons(m)
	if len(r.Runs) > 0 && r.Data != data {
		return fmt.Errorf("the run is of other data: %+v, not %+v", data, r.Data)
	}
	r.Data = data
	r.Runs = append(r.Runs, out)
	return nil
}

// longestStep is the longest time between two lines of a run's journals that counts as work. Readiness and inventory take
// ten to thirty seconds.
const longestStep = time.Minute

// minutes is how long a run worked, to a tenth.
func minutes(run *rundir.Run, folder string) (float64, error) {
	var at []time.Time
	for _, c := range run.Cells {
		for line, err := range journal.Read(filepath.Join(c.Folder(folder), journal.Name)) {
			if err != nil {
				return 0, err
			}
			t, err := time.Parse(time.RFC3339, line.At)
			if err != nil {
				return 0, err
			}
			at = append(at, t)
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	var worked time.Duration
	for i := range at[1:] {
		if step := at[i+1].Sub(at[i]); step <= longestStep {
			worked += step
		}
	}
	return math.Round(worked.Minutes()*10) / 10, nil
}

func (w *workplace) column(x experiment, c *score.Column, t *score.Timings) (*columnRecord, error) {
	out := &columnRecord{Label: c.Label, Failed: c.EventsFailed, Breached: breached(c)}
	if c.Kind != "reference" {
		text, err := os.ReadFile(w.path(x.name, "run", "cells", c.Label, "1", "manifest.json"))
		if err != nil {
			return nil, err
		}
		out.ManifestSHA256 = fmt.Sprintf("%x", sha256.Sum256(text))
		if x.version.name != "" && c.Label != reference {
			if out.Version, err = w.pinned(x); err != nil {
				return nil, err
			}
		}
	}
	for i := range t.Columns {
		if n := &t.Columns[i].Record; t.Columns[i].Label == c.Label && n.Operations > 0 {
			out.Calls = rounded(float64(n.Calls) / float64(n.Operations))
			out.Bytes = rounded(float64(n.BytesOut+n.BytesIn) / float64(n.Operations))
		}
	}
	for i := range c.Budgets {
		b := &c.Budgets[i]
		if b.Budget == 0 {
			continue
		}
		for _, e := range b.Errors {
			out.Failed += e.Count
		}
		entry := budgetRecord{Budget: b.Budget, Figures: map[string]stats.Interval{}, Types: map[string]stats.Interval{}}
		for _, name := range published {
			if f := b.Overall[name]; f.Value != nil {
				entry.Figures[name] = short(*f.Value)
			}
		}
		for _, s := range b.ByLabel {
			if f := s.Figures[recall]; f.Value != nil {
				entry.Types[s.Name] = short(*f.Value)
			}
		}
		out.Budgets = append(out.Budgets, entry)
	}
	return out, nil
}

// breached says what a column showed or took that it must not have; empty: nothing.
func breached(c *score.Column) string {
	switch {
	case c.Wall.Breached+c.Wall.CanariesFound > 0:
		return "it changed while it was read-only"
	case c.Isolation.Leaking > 0:
		return "it showed text of another conversation"
	case c.Partial:
		return "it is not complete"
	}
	return ""
}

// pinned is the version of an experiment's server, with its package's name.
func (w *workplace) pinned(x experiment) (string, error) {
	file := filepath.Join(w.root, filepath.FromSlash(x.version.file))
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`(?m)^` + x.version.name + `==?([0-9]\S*)`).FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("%s pins no version of %s", file, x.version.name)
	}
	return x.version.name + " " + string(found[1]), nil
}

// comparisons are those with bm25, on recall@tokens.
func comparisons(m *score.Metrics) []comparisonRecord {
	list := []comparisonRecord{}
	take := func(f *score.Family, sealed bool) {
		if f == nil || f.Metric != recall || f.Reference != reference || f.Budget == 0 {
			return
		}
		for i := range f.Comparisons {
			c := &f.Comparisons[i]
			if slices.ContainsFunc(list, func(b comparisonRecord) bool {
				return b.Label == c.Label && b.Budget == f.Budget
			}) {
				continue // the sealed one comes first
			}
			list = append(list, comparisonRecord{Label: c.Label, Budget: f.Budget, Sealed: sealed,
				Difference: short(c.Difference), P: rounded(c.Adjusted), Verdict: string(c.Verdict)})
		}
	}
	take(m.Primary, true)
	for i := range m.Exploratory {
		take(&m.Exploratory[i], false)
	}
	return list
}

// drift is how far a memory's figures may lie apart in two runs. A context begins with its scope, whose name has a
// hash of the lab file: a few tokens more or less are left for messages.
const drift = 0.005

// near holds a column to what another run had of it.
func near(before, now *columnRecord) error {
	for i := range before.Budgets {
		a, b := before.Budgets[i].Figures[recall].Mean, now.Budgets[i].Figures[recall].Mean
		if math.Abs(a-b) > drift {
			return fmt.Errorf("%s has %v at %d tokens, and %v in another run: the runs are not of one program or pack",
				now.Label, b, before.Budgets[i].Budget, a)
		}
	}
	return nil
}

// counted is how many questions the figures are over.
func (c *columnRecord) counted() int {
	if len(c.Budgets) == 0 {
		return 0
	}
	return c.Budgets[0].Figures[recall].N
}

// column is one by its label; nil if there is none.
func (r *record) column(label string) *columnRecord {
	for i := range r.Runs {
		for j := range r.Runs[i].Columns {
			if c := &r.Runs[i].Columns[j]; c.Label == label {
				return c
			}
		}
	}
	return nil
}

// at returns a column's figures at a budget, nil if there are none.
func (c *columnRecord) at(budget int64) *budgetRecord {
	for i := range c.Budgets {
		if c.Budgets[i].Budget == budget {
			return &c.Budgets[i]
		}
	}
	return nil
}

// short is an interval with as many digits as the page could ever need.
func short(i stats.Interval) stats.Interval {
	i.Mean, i.Low, i.High = rounded(i.Mean), rounded(i.Low), rounded(i.High)
	return i
}

func rounded(v float64) float64 { return math.Round(v*1e6) / 1e6 }

func (r *record) text() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", " ")
	return append(text, '\n'), err
}

// readRecord reads a published record.
func readRecord(docs string) (*record, []byte, error) {
	text, err := os.ReadFile(filepath.Join(docs, "results", recordFile))
	if err != nil {
		return nil, nil, err
	}
	r := new(record)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return r, text, d.Decode(r)
}

// check recomputes what is published. Page and plots must be what the record gives. Of each run in the record that the
// workplace keeps, the journals must be whole and have the record's head, and the figures are computed from them again.
// It asks no server and reads nothing from the network.
func (w *workplace) check(ctx context.Context, docs string) error {
	r, _, err := readRecord(docs)
	if err != nil {
		return err
	}
	if err := r.compare(docs); err != nil {
		return err
	}
	w.say("page and plots are what the record gives")
	again := &record{}
	for i := range r.Runs {
		want := &r.Runs[i]
		x, err := named(want.Name) // nothing that it needs to run is needed to check it
		if err != nil {
			return err
		}
		folder := w.path(x.name, "run")
		if there, err := exists(filepath.Join(folder, rundir.File)); err != nil {
			return err
		} else if !there {
			w.say("%s: the run is not kept here (%s): its figures are not computed again", x.name, folder)
			continue
		}
		if err := w.memhost(ctx, "eval", "verify", folder, "--head", want.Head); err != nil {
			return err
		}
		w.say("compute the figures of %s from its journals", x.name)
		m, t, err := w.scored(x)
		if err != nil {
			return err
		}
		if err := w.add(again, x, m, t); err != nil {
			return err
		}
		got := again.Runs[len(again.Runs)-1]
		if err := equal(want, &got); err != nil {
			return err
		}
		w.say("%s: every figure is as published", x.name)
	}
	return nil
}

// equal compares a published run with one that was computed again.
func equal(want, got *runRecord) error {
	a, err := json.MarshalIndent(want, "", " ")
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		return err
	}
	published, computed := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(published), len(computed)) {
		if !bytes.Equal(published[i], computed[i]) {
			return fmt.Errorf("%s, line %d of the run: published %s, computed %s", want.Name, i+1,
				bytes.TrimSpace(published[i]), bytes.TrimSpace(computed[i]))
		}
	}
	if len(published) != len(computed) {
		return fmt.Errorf("%s: %d lines are published, %d computed", want.Name, len(published), len(computed))
	}
	return nil
}
