package score

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
)

// submissionLine is one line of a submission: first the heading, then one ranking per probe, best first.
//
//	{"pack_sha256": "6e2b...", "label": "mine"}
//	{"probe_id": "q1", "event_ids": ["e7", "e2"]}
type submissionLine struct {
	PackSHA256 string   `json:"pack_sha256"`
	Label      string   `json:"label"`
	ProbeID    string   `json:"probe_id"`
	EventIDs   []string `json:"event_ids"`
}

// maxSubmitted bounds one line of a submission, in bytes.
const maxSubmitted = 4 << 20

// submissionSeed is the seed for intervals: a submission has no lab.
const submissionSeed = 1

// Submission scores a ranking of events that another program made from the same pack. It only computes ranking metrics,
// and does not check how the ranking was made: the run is marked as foreign. Probes without a ranking are missing.
//
// Errors: invalid_argument with the line, for another pack, unknown probes and events, events from after the probe, and
// duplicates.
func Submission(r io.Reader, p *pack.Pack) (*Metrics, error) {
	t, err := readTimeline(p, submissionSeed, nil)
	if err != nil {
		return nil, err
	}
	label, readings, err := t.readSubmission(r)
	if err != nil {
		return nil, err
	}
	c := &column{timeline: t, seed: submissionSeed, reference: [][]*reading{readings}, foreign: true}
	c.Column = Column{Label: label, Provider: label, Kind: "submission"}
	c.complete()
	c.ShownSpans = "none"
	c.Notes = append(c.Notes, "a submitted ranking: nothing but its order was seen")
	c.Budgets, c.Ages = []Budgeted{c.budgeted(0, 0)}, []AgeCurve{}
	c.Isolation = Isolation{Reason: "a submitted ranking has no contexts", Finds: []Leak{}}
	m := &Metrics{Metrics: Version, Catalogue: []Entry{}, Columns: []Column{c.Column}, Exploratory: []Family{},
		Run: Run{Name: label, Complete: true, Foreign: true},
		Keys: Keys{PackSHA256: p.Manifest.ContentSHA256, Budgets: []int64{0}, Order: map[string]string{},
			Policies: Policies{Insertion: map[string]string{}}},
		SelfTest:    SelfTest{Verdict: "not measured", Reason: "a submission is no run", Missed: []string{}},
		LeakControl: LeakControl{Detector: "not tested"},
		Notes:       []string{"this is a submitted ranking: how it was made was not checked"}}
	t.describe(&m.Run)
	for i := range metrics {
		if metrics[i].ofRanking() {
			m.Catalogue = append(m.Catalogue, metrics[i].Entry)
		}
	}
	return m, nil
}

// readSubmission reads the rankings, by probe; nil if a probe has none.
func (t *timeline) readSubmission(r io.Reader) (label string, readings []*reading, err error) {
	readings = make([]*reading, len(t.probes))
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxSubmitted)
	for number := 1; lines.Scan(); number++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var s submissionLine
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&s); err != nil {
			return "", nil, wrong("line %d: %v", number,
				err).WithHint(`want {"probe_id": "...", "event_ids": ["best", "next"]}`)
		}
		if label == "" {
			if label, err = t.heading(&s, number); err != nil {
				return "", nil, err
			}
			continue
		}
		p := t.probe[s.ProbeID]
		switch {
		case p == nil:
			return "", nil, wrong("line %d: probe_id: the pack has no probe %q", number, s.ProbeID)
		case readings[p.number] != nil:
			return "", nil, wrong("line %d: probe_id: %q is there twice", number, s.ProbeID)
		case s.PackSHA256 != "" || s.Label != "":
			return "", nil, wrong("line %d: is a second heading", number)
		}
		if readings[p.number], err = t.rank(p, s.EventIDs, number); err != nil {
			return "", nil, err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return "", nil, wrong("a line is longer than %d MiB", maxSubmitted>>20)
	case err != nil:
		return "", nil, abi.WrapError(abi.CodeUnavailable, err.Error(), err)
	case label == "":
		return "", nil, wrong("it is empty").WithHint(headingHint)
	}
	return label, readings, nil
}

const headingHint = `the first line is {"pack_sha256": "the content_sha256 of pack.json", "label": "a name"}`

// heading reads the first line.
func (t *timeline) heading(s *submissionLine, number int) (label string, err error) {
	switch want := t.pack.Manifest.ContentSHA256; {
	case s.PackSHA256 == "" || s.ProbeID != "":
		return "", wrong("line %d: pack_sha256: required before the first ranking", number).WithHint(headingHint)
	case s.PackSHA256 != want:
		return "", wrong("line %d: pack_sha256: the ranking was made from %.12s, this pack is %.12s", number,
			s.PackSHA256, want)
	case s.Label == "":
		return "submission", nil
	}
	return s.Label, nil
}

// rank scores one ranking.
func (t *timeline) rank(p *probe, ids []string, number int) (*reading, error) {
	evidence, seen := make([]abi.Evidence, len(ids)), map[string]bool{}
	for i, id := range ids {
		switch e := p.persona.events[id]; {
		case e == nil:
			return nil, wrong("line %d: event_ids[%d]: persona %s has no event %q", number, i, p.persona.id, id)
		case e.session > p.AfterSession:
			return nil, wrong("line %d: event_ids[%d]: event %q is in session %d, the probe is asked after session %d",
				number, i, id, e.session, p.AfterSession)
		case seen[id]:
			return nil, wrong("line %d: event_ids[%d]: event %q is there twice", number, i, id)
		}
		seen[id] = true
		evidence[i] = abi.Evidence{Rank: int64(i + 1), SourceEventIDs: []string{id}}
	}
	out, m := &reading{values: newValues(), top: math.NaN()}, t.measuring(p, &retrieval{evidence: evidence})
	for i := range metrics {
		if x := &metrics[i]; x.ofRanking() && x.applies(p) {
			out.values[i] = x.measure(m)
		}
	}
	return out, nil
}
