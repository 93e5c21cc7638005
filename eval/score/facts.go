package score

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
)

// facts returns what a reader needs to know about a run besides its figures.
func (s *scorer) facts() Run {
	r := Run{Name: s.run.Lab.Name, Program: s.run.Program, Commit: s.run.Commit, LabSHA256: s.run.LabSHA256,
		Complete: true}
	for _, c := range s.run.Cells {
		r.Complete = r.Complete && c.State == rundir.Complete
	}
	s.describe(&r)
	return r
}

// describe fills in the facts about the pack.
func (t *timeline) describe(r *Run) {
	m := &t.pack.Manifest
	r.Pack = Pack{m.Name, m.Source, m.Builder, m.Timestamps, m.Counts, firstPlaces(m.Repairs)}
	r.Labels, r.Probes, r.Sessions = t.labels(), len(t.probes), t.countSessions()
	for _, p := range t.probes {
		r.Answerable += int(yes(p.Gold.Answerable))
	}
}

// firstPlaces returns repairs with only their first places: the pack lists all.
func firstPlaces(repairs []pack.Repair) []pack.Repair {
	list := slices.Clone(repairs)
	for i := range list {
		list[i].Examples = list[i].Examples[:min(len(list[i].Examples), maxExamples)]
	}
	return list
}

// insertion are the builder's options that decide when probes are asked and what an event is.
var insertion = []string{"insert", "group", "perspective"}

func (s *scorer) keys() Keys {
	l := s.run.Lab
	k := Keys{PackSHA256: s.run.Pack.ContentSHA256, Budgets: s.budgets, MinTokens: l.MinTokens, Tokenizer: l.Tokenizer, Frame: l.Frame,
		Order: map[string]string{},
		Policies: Policies{Insertion: map[string]string{}, ReadinessTimeoutMS: l.Readiness.TimeoutMS,
			OnTimeout:  l.Readiness.OnTimeout,
			Replicates: l.Replicates, Seed: l.Seed, Stability: l.Stability, Concurrency: l.Concurrency,
			Cassettes: l.Cassettes}}
	for _, name := range insertion {
		if value, set := s.run.Pack.Builder.Options[name]; set {
			k.Policies.Insertion[name] = value
		}
	}
	contracts, profiles := map[string]int{}, map[string]int{}
	for _, c := range s.columns {
		for _, cell := range c.cells {
			if cell.manifest == nil {
				continue
			}
			contracts[cell.manifest.ABI]++
			if cell.manifest.Profile != "" {
				profiles[cell.manifest.Profile]++
			}
			var config struct{ Order string }
			if json.Unmarshal(cell.manifest.Config, &config) == nil && config.Order != "" {
				k.Order[c.Label] = config.Order
			}
		}
	}
	k.Contract = strings.Join(slices.Sorted(maps.Keys(contracts)), ", ")
	k.Profile = strings.Join(slices.Sorted(maps.Keys(profiles)), ", ")
	return k
}

// selfTest requires that full_history without a limit has recall 1. If it does not show all evidence, something between
// the pack, the provider and these figures is broken, and no figure can be trusted.
func (s *scorer) selfTest() SelfTest {
	t := SelfTest{Verdict: "not measured", Reason: "the lab has no full_history without a limit (budget 0)",
		Missed: []string{}}
	at := slices.Index(s.budgets, 0)
	i := slices.IndexFunc(s.columns, func(c *column) bool { return c.Provider == "full_history" && c.hasBudget(0) })
	if at < 0 || i < 0 {
		return t
	}
	c := s.columns[i]
	t.Label = c.Label
	total, n, number := 0.0, 0, place["recall@tokens"]
	for _, person := range s.personas {
		cut, asked := false, false
		for _, readings := range c.replicates(at) {
			for _, p := range person.probes {
				r := readings[p.number]
				asked = asked || r != nil && r.err == ""
				cut = cut || r != nil && r.truncated
			}
		}
		switch {
		case !asked:
			continue
		case cut:
			t.LeftOut++
			continue
		}
		t.Personas++
		for _, p := range person.probes {
			value, _, state := sample(c.replicates(at), p.number, true, math.NaN(),
				func(r *reading) float64 { return r.values[number] })
			if state != has {
				continue
			}
			total += value
			n++
			if value < 1 && len(t.Missed) < maxExamples {
				t.Missed = append(t.Missed, p.ProbeID)
			}
		}
	}
	if n == 0 {
		t.Reason = "no probe with evidence was answered by a context that was not cut"
		return t
	}
	recall := total / float64(n)
	t.Verdict, t.Reason, t.Recall = "pass", "", &recall
	if len(t.Missed) > 0 {
		t.Verdict = "broken"
	}
	return t
}

// notes lists what a reader must know before looking at figures.
func (s *scorer) notes(m *Metrics) []string {
	notes := []string{}
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	stub, given := 0, 0
	for i := range m.Columns {
		if a := m.Columns[i].Agent; a != nil {
			stub, given = stub+a.Stub, given+a.Given
		}
	}
	if stub > 0 {
		add("a stub answered instead of a model, %d of %d times: nothing here says anything about behaviour", stub,
			given)
	}
	for i := range m.Columns {
		c := &m.Columns[i]
		if c.Agent == nil {
			continue
		}
		for _, f := range c.Agent.FinishReasons {
			if f.Name == "length" {
				add("%s: %d of the agent's answers were cut off at agent.max_tokens (finish_reason length); those "+
					"without a text are missing, not wrong", c.Label, f.Count)
			}
		}
	}
	s.behaviourNotes(m, add)
	if m.SelfTest.Verdict == "broken" {
		add("the chain is broken: full_history without a limit shows %.3f of the evidence, and must show all of it",
			*m.SelfTest.Recall)
	}
	if m.LeakControl.Detector == "broken" {
		add("the leak detector found %d of %d planted texts: no verdict on isolation holds", m.LeakControl.Found,
			m.LeakControl.Planted)
	}
	if strings.Contains(m.Keys.Profile, ", ") {
		add("columns ran under different profiles (%s): the same provider was not asked in the same way",
			m.Keys.Profile)
	}
	for i := range m.Columns {
		c := &m.Columns[i]
		for _, b := range c.Budgets {
			if f, there := b.Overall["unsupported"]; there && f.Value != nil && f.Value.Mean > 0.2 {
				add("%s, %d tokens: %.0f %% of the evidence that its items name is not in what they show; it does not "+
					"count as shown (derived facts are under derived@tokens)", c.Label, b.Budget, 100*f.Value.Mean)
				break
			}
		}
		if c.Isolation.Leaking > 0 {
			add("%s showed text of another cluster in %d of %d clusters", c.Label, c.Isolation.Leaking,
				c.Isolation.Clusters)
		}
		if c.Wall.Breached > 0 || c.Wall.CanariesFound > 0 {
			add("%s changed behind the read-only wall in %d test sessions; %d canaries were found later", c.Label,
				c.Wall.Breached, c.Wall.CanariesFound)
		}
		if c.EventsFailed > 0 {
			add("%s could not record %d events: what asks for one of them counts as the worst", c.Label, c.EventsFailed)
		}
		if c.EventsLost > 0 {
			add("%s accepted %d events that failed or were lost later: what asks for one of them counts as the worst", c.Label,
				c.EventsLost)
		}
		recorded := 0
		for _, cell := range c.Cells {
			recorded += cell.Events
		}
		if c.Kind == string(abi.KindArchitecture) && 2*c.EventsEmpty > recorded { // some controls keep nothing by design
			add("%s kept nothing of %d of %d recorded events (not_retained): check the model that it extracts with, before "+
				"comparing it", c.Label, c.EventsEmpty, recorded)
		}
		if 2*c.EventsOutstanding > recorded {
			add("%s was not known to be ready with %d of %d recorded events when it was asked (pending or unknown): check that "+
				"it works on what it accepts, before comparing it", c.Label, c.EventsOutstanding, recorded)
		}
		if c.Partial {
			add("%s is partial: what it did not answer is missing, not wrong", c.Label)
		}
	}
	if n := s.run.Faults; n > 0 {
		add("the pack has %d faults that make the comparison wrong, and was run all the same: `memhost eval pack "+
			"lint` lists them", n)
	}
	if n := len(s.excluded); n > 0 {
		add("%d probes whose keys an audit found wrong are left out; the figures with them are under audit", n)
	}
	if s.run.Lab.Primary == nil {
		add("the lab sealed no primary comparison: every comparison is exploratory")
	}
	return notes
}
