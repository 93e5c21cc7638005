package score

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/run"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/simulate/simulatetest"
	"github.com/memhost/memhost/eval/stats"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/plugins"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// perfect answers with the evidence, or with nothing if there is none.
func perfect(_ string, probe *pack.Probe, _ int64, events []*pack.Event) fabricatedAnswer {
	return fabricatedAnswer{items: asItems(evidenceOf(probe, events)...)}
}

func scoredOf(t *testing.T, l *lab.Lab, p *pack.Pack, answer func(string, *pack.Probe, int64,
	[]*pack.Event) fabricatedAnswer) *Metrics {
	t.Helper()
	m, _, err := Score(fabricate(t, l, p, answer), p)
	require.NoError(t, err)
	return m
}

func TestAResumedRunHasTheSameMetrics(t *testing.T) {
	path, p := simulatetest.Synth(t, map[string]string{"personas": "2", "sessions": "3", "turns": "2"})
	whole, _, err := Score(ran(t, labs, path, p), p)
	require.NoError(t, err)
	random, times := rand.New(rand.NewPCG(3, 4)), 3
	if brief.Tests() {
		times = 1
	}
	for range times {
		folder := filepath.Join(t.TempDir(), "run")
		_, err := run.Begin(folder, labOf(t, labs), path, p, options(t, p))
		require.NoError(t, err)
		for interrupted := 0; ; interrupted++ {
			r, err := rundir.Open(folder)
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			left, o := 10+random.IntN(60), options(t, p)
			o.Progress = func(run.Progress) {
				if left--; left == 0 {
					stop()
				}
			}
			err = run.Go(ctx, folder, r, p, o)
			stop()
			if err == nil {
				assert.Positive(t, interrupted)
				break
			}
			require.ErrorIs(t, err, context.Canceled)
			_, _, err = Score(folder, p)
			require.NoError(t, err, "it is scored while it is not complete")
		}
		resumed, timings, err := Score(folder, p)
		require.NoError(t, err)
		assert.Equal(t, bytesOf(t, whole), bytesOf(t, resumed))
		assert.True(t, slices.ContainsFunc(timings.Columns, func(c ColumnTiming) bool { return c.Latency == nil }),
			"a cell that was interrupted has no comparable latency")
	}
}

func TestAPlantedLeakIsFound(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "4", "sessions": "3", "turns": "6"})
	canaryOf := map[string]string{}
	foreign := ""
	for _, persona := range p.Manifest.Personas {
		for probe, err := range p.Probes(persona.PersonaID) {
			require.NoError(t, err)
			if probe.Kind == pack.CanaryKind {
				canaryOf[persona.PersonaID] = probe.Gold.Answers[0][0]
			}
		}
	}
	for e, err := range p.Events("synth-03") {
		require.NoError(t, err)
		if text := *e.Messages[0].Content; strings.Contains(text, "hot drink") {
			foreign = text
		}
	}
	require.NotEmpty(t, foreign)
	l := labOf(t, "providers: [clean, tells, whispers, hides]\nbudgets: [500]")
	m := scoredOf(t, l, p, func(label string, probe *pack.Probe, budget int64, events []*pack.Event) fabricatedAnswer {
		a := perfect(label, probe, budget, events)
		if probe.ProbeID != "synth-02-2-q1" {
			return a
		}
		switch label {
		case "tells":
			a.items = append(a.items, abi.Evidence{Text: "He said: " + foreign})
		case "whispers":
			a.items = append(a.items, abi.Evidence{Text: "the word " + strings.ToUpper(canaryOf["synth-04"]) +
				" came up"})
		case "hides": // returned, but not shown
			a.items = append(a.items, abi.Evidence{Text: canaryOf["synth-01"]})
			a.unshown = true
		}
		return a
	})
	clean, tells, whispers, hides := m.Columns[0].Isolation, m.Columns[1].Isolation, m.Columns[2].Isolation,
		m.Columns[3].Isolation
	assert.Zero(t, clean.Leaking+clean.Canaries+clean.Sequences)
	require.NotNil(t, clean.Bound)
	assert.Equal(t, 4, clean.Clusters)

	assert.Equal(t, 1, tells.Leaking)
	assert.Nil(t, tells.Bound)
	assert.Positive(t, tells.Sequences)
	require.NotEmpty(t, tells.Finds)
	assert.Equal(t, "synth-02-2-q1", tells.Finds[0].ProbeID)
	assert.Equal(t, "synth-03", tells.Finds[0].Owner)
	assert.Contains(t, fold(foreign).text, tells.Finds[0].Text)

	require.Len(t, whispers.Finds, 1)
	assert.Equal(t, Leak{"synth-02-2-q1", "synth-02", "synth-04", "canary", strings.ToLower(canaryOf["synth-04"])},
		whispers.Finds[0])
	assert.Equal(t, 1, hides.Canaries)
	assert.Equal(t, "works", m.LeakControl.Detector)
	assert.Equal(t, 8, m.LeakControl.Planted)
	assert.Contains(t, strings.Join(m.Notes, "\n"), "tells showed text of another cluster in 1 of 4 clusters")
}

func TestAFailureIsWrongAndWhatWasNeverAskedIsMissing(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "8", "sessions": "4", "turns": "3"})
	l := labOf(t, "providers: [whole, failing, broken, empty]\nbudgets: [500]\nprimary: {metric: answer_shown, "+
		"budget: 500, reference: empty}")
	m := scoredOf(t, l, p, func(label string, probe *pack.Probe, budget int64, events []*pack.Event) fabricatedAnswer {
		switch {
		case label == "empty":
			return fabricatedAnswer{}
		case label == "failing" && strings.HasSuffix(probe.ProbeID, "q1"):
			return fabricatedAnswer{err: abi.NewError(abi.CodeUnavailable, "no answer")}
		case label == "broken" && probe.PersonaID > "synth-02":
			return fabricatedAnswer{silent: true}
		}
		return perfect(label, probe, budget, events)
	})
	whole, failing, broken := &m.Columns[0], &m.Columns[1], &m.Columns[2]
	assert.InDelta(t, 1, mean(t, m, "whole", 500, "answer_shown"), 1e-12)
	assert.Zero(t, whole.Budgets[0].Overall["answer_shown"].Missing)

	f := failing.Budgets[0].Overall["answer_shown"]
	assert.Equal(t, 32, f.Failed)
	assert.Zero(t, f.Missing)
	assert.InDelta(t, float64(f.Value.N-32)/float64(f.Value.N), f.Value.Mean, 1e-12, "a failure counts as the worst")
	assert.InDelta(t, f.Value.Mean, f.Bounds.Worst, 1e-12)
	assert.InDelta(t, 1, f.Bounds.Best, 1e-12)
	assert.Nil(t, whole.Budgets[0].Overall["answer_shown"].Bounds)
	assert.Equal(t, []Count{{"unavailable", 32}}, failing.Budgets[0].Errors)
	assert.False(t, failing.Partial)

	assert.True(t, broken.Partial)
	assert.InDelta(t, 1, mean(t, m, "broken", 500, "answer_shown"), 1e-12)
	assert.Equal(t, "failed", broken.Cells[0].State)
	assert.Equal(t, "unavailable", broken.Cells[0].Error)
	assert.Less(t, broken.Cells[0].Asked, broken.Cells[0].Wanted)
	assert.Equal(t, broken.Cells[0].Wanted-broken.Cells[0].Asked, broken.Budgets[0].Missing)
	assert.False(t, m.Run.Complete)

	verdicts := map[string]Comparison{}
	for _, c := range m.Primary.Comparisons {
		verdicts[c.Label] = c
	}
	assert.Equal(t, stats.Better, verdicts["whole"].Verdict)
	assert.Equal(t, stats.Better, verdicts["failing"].Verdict, "a third that is wrong at worst does not turn it")
	assert.Equal(t, 32, verdicts["failing"].FailedA)
	assert.Zero(t, verdicts["failing"].MissingA)
	assert.NotEqual(t, stats.Better, verdicts["broken"].Verdict, "two clusters of eight answered")
}

// TestFailingNeverPays: whatever a provider refuses to record or to answer, its figures do not improve.
func TestFailingNeverPays(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "6", "sessions": "4", "turns": "3"})
	l := labOf(t, "providers: [honest, unread, unwritten, stale_unwritten]\nbudgets: [500]")
	m := scoredOf(t, l, p, func(label string, probe *pack.Probe, budget int64, events []*pack.Event) fabricatedAnswer {
		a := perfect(label, probe, budget, events)
		switch label {
		case "unread":
			if probe.PersonaID <= "synth-03" {
				return fabricatedAnswer{err: abi.NewError(abi.CodeInternal, "cannot")}
			}
		case "unwritten":
			for _, group := range probe.Gold.Evidence {
				a.gaveUp = append(a.gaveUp, group...)
			}
		case "stale_unwritten": // it rejects what would later be outdated
			for _, s := range probe.Gold.Stale {
				a.gaveUp = append(a.gaveUp, s.EventID)
			}
		}
		return a
	})
	for _, label := range []string{"unread", "unwritten", "stale_unwritten"} {
		better := 0
		for name, honest := range m.column("honest").Budgets[0].Overall {
			number, known := place[name]
			failing := m.column(label).Budgets[0].Overall[name]
			if !known || math.IsNaN(metrics[number].worst()) || honest.Value == nil || failing.Value == nil {
				continue
			}
			gain := failing.Value.Mean - honest.Value.Mean
			if metrics[number].Better == "less" {
				gain = -gain
			}
			assert.LessOrEqual(t, gain, 1e-12, "%s gains %s", label, name)
			if gain < 0 {
				better++
			}
		}
		assert.Positive(t, better, "%s loses something", label)
	}
	assert.InDelta(t, 1, m.column("stale_unwritten").Budgets[0].Overall["stale_shown"].Value.Mean, 1e-12)
	assert.Positive(t, m.column("unwritten").EventsFailed)
	assert.Contains(t, strings.Join(m.Notes, "\n"), "unwritten could not record")
}

// TestAMemoryThatKeptNothingIsNamed: without the note, a model that cannot extract would look like a memory that finds
// nothing.
func TestAMemoryThatKeptNothingIsNamed(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "3", "sessions": "2", "turns": "2"})
	l := labOf(t, "providers: [empty, again, kept]\nbudgets: [500]")
	m := scoredOf(t, l, p, func(label string, probe *pack.Probe, budget int64, events []*pack.Event) fabricatedAnswer {
		a := perfect(label, probe, budget, events)
		for _, e := range events {
			first, last := abi.StatusNotRetained, abi.StatusCommitted
			switch label {
			case "empty":
				last = first
			case "kept":
				first = last
			}
			a.recorded = append(a.recorded, journal.Record{EventID: e.EventID, Status: first},
				journal.Record{EventID: e.EventID, Status: last})
		}
		return a
	})
	events := m.column("empty").Cells[0].Events
	require.Positive(t, events)
	assert.Equal(t, events, m.column("empty").EventsEmpty)
	assert.Zero(t, m.column("again").EventsEmpty, "a resumed run recorded them again")
	assert.Zero(t, m.column("kept").EventsEmpty)
	notes := strings.Join(m.Notes, "\n")
	assert.Contains(t, notes, fmt.Sprintf("empty kept nothing of %d of %d recorded events (not_retained)", events, events))
	assert.NotContains(t, notes, "again kept nothing")
	assert.NotContains(t, notes, "kept kept nothing")
}

// TestAMemoryThatWasNeverReadyIsNamed: otherwise a backend that accepts events and never works on them looks like a
// memory that finds nothing.
func TestAMemoryThatWasNeverReadyIsNamed(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "3", "sessions": "2", "turns": "2"})
	l := labOf(t, "providers: [unknown, silent, failing, few, ready]\nbudgets: [500]")
	m := scoredOf(t, l, p, func(label string, probe *pack.Probe, budget int64, events []*pack.Event) fabricatedAnswer {
		a := perfect(label, probe, budget, events)
		a.readiness = &journal.Readiness{Status: abi.ReadinessReady}
		var ids []string
		for _, e := range events {
			a.recorded = append(a.recorded, journal.Record{EventID: e.EventID, Status: abi.StatusQueued})
			ids = append(ids, e.EventID)
		}
		switch label {
		case "unknown":
			a.readiness.Status, a.readiness.Events.Unknown = abi.ReadinessUnknown, ids
		case "silent": // the wait failed: no event is listed
			a.readiness.Status, a.readiness.Error = abi.ReadinessUnknown, abi.NewError(abi.CodeBackend, "no")
		case "failing": // one event failed, the others are pending
			a.readiness.Status = abi.ReadinessFailed
			a.readiness.Events.Failed, a.readiness.Events.Pending = ids[:1], ids[1:]
		case "few":
			a.readiness.Status, a.readiness.Events.Pending = abi.ReadinessPending, ids[:1]
		}
		return a
	})
	events, notes := m.column("ready").Cells[0].Events, strings.Join(m.Notes, "\n")
	require.Greater(t, events, 12)
	for label, want := range map[string]int{"unknown": events, "silent": events, "failing": events - 3, "few": 3, "ready": 0} {
		c := m.column(label)
		assert.Equal(t, want, c.EventsOutstanding, label)
		pending := 0
		if want > 0 {
			pending = m.Run.Probes
		}
		assert.Equal(t, pending, c.Readiness.PendingProbes, label)
		note := fmt.Sprintf("%s was not known to be ready with %d of %d recorded events when it was asked", label, want, events)
		assert.Equal(t, 2*want > events, strings.Contains(notes, note), label)
	}
}

// TestAnEventThatWasLostAfterItsReceiptCountsAsTheWorst: a memory must not gain by losing what it accepted.
func TestAnEventThatWasLostAfterItsReceiptCountsAsTheWorst(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "3", "sessions": "2", "turns": "2"})
	lost := map[string]func(*abi.ReadinessEventIDs, []string){
		"failed": func(e *abi.ReadinessEventIDs, ids []string) { e.Failed = ids },
		"lost":   func(e *abi.ReadinessEventIDs, ids []string) { e.Lost = ids },
		"kept":   func(*abi.ReadinessEventIDs, []string) {},
	}
	m := scoredOf(t, labOf(t, "providers: [failed, lost, kept]\nbudgets: [500]"), p,
		func(label string, probe *pack.Probe, budget int64, events []*pack.Event) fabricatedAnswer {
			a := perfect(label, probe, budget, events)
			a.readiness = &journal.Readiness{Status: abi.ReadinessFailed}
			var ids []string
			for _, e := range events {
				ids = append(ids, e.EventID)
			}
			lost[label](&a.readiness.Events, ids)
			return a
		})
	for label := range lost {
		c, want, events := m.column(label), 0.0, 0
		if label == "kept" {
			want = 1
		} else {
			for _, persona := range p.Manifest.Personas {
				events += persona.Events
			}
		}
		assert.InDelta(t, want, c.Budgets[0].Overall["answer_shown"].Value.Mean, 1e-12, label)
		assert.Equal(t, events, c.EventsLost, label)
		assert.Zero(t, c.Readiness.PendingProbes, "%s: what is lost does not come", label)
		assert.Equal(t, events > 0, strings.Contains(strings.Join(m.Notes, "\n"), fmt.Sprintf(
			"%s accepted %d events that failed or were lost later", label, events)), label)
	}
}

// TestWhatReadinessReportsAsEmptyWasNotKept: a backend with a queue says only later that it kept nothing.
func TestWhatReadinessReportsAsEmptyWasNotKept(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "3", "sessions": "1", "turns": "2"})
	m := scoredOf(t, labOf(t, "providers: [empty]\nbudgets: [500]"), p,
		func(label string, probe *pack.Probe, budget int64, events []*pack.Event) fabricatedAnswer {
			a := perfect(label, probe, budget, events)
			a.readiness = &journal.Readiness{Status: abi.ReadinessReady}
			for _, e := range events {
				a.recorded = append(a.recorded, journal.Record{EventID: e.EventID, Status: abi.StatusQueued})
				a.readiness.Events.Empty = append(a.readiness.Events.Empty, e.EventID)
			}
			return a
		})
	events := m.Columns[0].Cells[0].Events
	assert.Equal(t, events, m.Columns[0].EventsEmpty)
	assert.Contains(t, strings.Join(m.Notes, "\n"), fmt.Sprintf("empty kept nothing of %d of %d recorded events", events, events))
}

func TestPendingSessionsAreShownWithAndWithout(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "2", "sessions": "3", "turns": "2"})
	m := scoredOf(t, labOf(t, "providers: [slow]\nbudgets: [500]"), p,
		func(label string, probe *pack.Probe, budget int64, events []*pack.Event) fabricatedAnswer {
			if probe.AfterSession == 2 {
				return fabricatedAnswer{pending: true}
			}
			return perfect(label, probe, budget, events)
		})
	b := m.Columns[0].Budgets[0]
	assert.Less(t, b.Overall["answer_shown"].Value.Mean, 1.0)
	assert.InDelta(t, 1, b.WithoutPending["answer_shown"].Value.Mean, 1e-12)
	assert.Zero(t, b.WithoutPending["answer_shown"].Missing, "they are left out, not missing")
	assert.Equal(t, 2, m.Columns[0].Readiness.TimedOut)
	assert.Equal(t, 8, m.Columns[0].Readiness.PendingProbes)
}

func TestAVerdictNeedsContentToAgree(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "8", "sessions": "3", "turns": "3"})
	l := labOf(t, "providers: [honest, boasting, nothing]\nbudgets: [500]\nprimary: {metric: recall@10, budget: "+
		"500, reference: nothing}")
	m := scoredOf(t, l, p, func(label string, probe *pack.Probe, budget int64, events []*pack.Event) fabricatedAnswer {
		a := perfect(label, probe, budget, events)
		switch label {
		case "nothing":
			return fabricatedAnswer{}
		case "boasting": // it names the evidence but shows something else
			for i := range a.items {
				a.items[i].Text = "lorem ipsum"
			}
		}
		return a
	})
	require.Len(t, m.Primary.Comparisons, 2)
	assert.Equal(t, stats.Better, m.Primary.Comparisons[0].Verdict)
	assert.Equal(t, stats.Better, m.Primary.Comparisons[0].Content)
	assert.Equal(t, DependsOnAttribution, m.Primary.Comparisons[1].Verdict)
	assert.Equal(t, stats.NoDifference, m.Primary.Comparisons[1].Content)
}

func TestSpansAreLocatedOnlyWhereNobodyReportsThem(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "2", "sessions": "2", "turns": "2"})
	m := scoredOf(t, labOf(t, "providers: [reports, silent]\nbudgets: [500]"), p,
		func(label string, probe *pack.Probe, budget int64, events []*pack.Event) fabricatedAnswer {
			a := perfect(label, probe, budget, events)
			a.unshown = label == "silent"
			return a
		})
	assert.Equal(t, "reported", m.Columns[0].ShownSpans)
	assert.Equal(t, "located", m.Columns[1].ShownSpans)
	assert.Contains(t, m.Columns[1].Notes[0], "shown spans: located")
	assert.InDelta(t, 1, mean(t, m, "silent", 500, "recall@tokens"), 1e-12)
}

func TestReferencesOfTheLabAreNotCompared(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "7", "sessions": "2", "turns": "2"})
	l := labOf(t, "providers: [one, base]\nbudgets: [500]\n"+
		"primary: {metric: answer_shown, budget: 500, reference: base}")
	l.AddReferences(func(string) bool { return true })
	m := scoredOf(t, l, p, func(label string, probe *pack.Probe, budget int64, events []*pack.Event) fabricatedAnswer {
		if label == "full_history" && budget > 0 || label == "one" {
			return perfect(label, probe, budget, events)
		}
		if label == "full_history" {
			return fabricatedAnswer{items: asItems(events...)}
		}
		return fabricatedAnswer{}
	})
	require.Len(t, m.Primary.Comparisons, 1)
	assert.Equal(t, "one", m.Primary.Comparisons[0].Label)
	assert.Equal(t, stats.Better, m.Primary.Comparisons[0].Verdict)
	assert.Equal(t, "pass", m.SelfTest.Verdict)
	for _, c := range m.Columns {
		assert.Zero(t, c.Budgets[0].Missing, c.Label)
		assert.False(t, c.Partial)
	}
	assert.Len(t, m.Columns[0].Budgets, 1)
	assert.Len(t, m.Columns[4].Budgets, 2, "the self-test has no limit")
}

func TestAbstentionNeedsScores(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "4", "sessions": "3", "turns": "2"})
	m := scoredOf(t, labOf(t, "providers: [scores, mute]\nbudgets: [500]"), p,
		func(label string, probe *pack.Probe, _ int64, events []*pack.Event) fabricatedAnswer {
			a := fabricatedAnswer{items: asItems(events[0])}
			if score := 0.2 + yes(probe.Gold.Answerable); label == "scores" {
				a.score = &score
			}
			return a
		})
	assert.InDelta(t, 1, mean(t, m, "scores", 500, "auroc"), 1e-12)
	assert.Equal(t, "not measured: the provider gives no scores", m.Columns[1].Budgets[0].Overall["auroc"].Reason)
	assert.InDelta(t, 1, mean(t, m, "mute", 500, "items_unanswerable"), 1e-12)
}

func TestWhatDoesNotBelongTogetherIsRefused(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "1", "sessions": "2", "turns": "2"})
	_, other := simulatetest.Synth(t, map[string]string{"personas": "1", "sessions": "1", "turns": "2"})
	l := labOf(t, "providers: [one]\nbudgets: [500]")
	folder := fabricate(t, l, p, perfect)
	_, _, err := Score(folder, other)
	assert.ErrorContains(t, err, "the run is of")

	file := filepath.Join(folder, "cells", "one", "1", "trace.jsonl")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1], 0o600))
	_, _, err = Score(folder, p)
	assert.ErrorContains(t, err, "dropped from its end")
	require.NoError(t, os.WriteFile(file, text, 0o600))

	contexts, err := filepath.Glob(filepath.Join(folder, "contexts", "*", "*"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(contexts[0], []byte("another"), 0o600))
	_, _, err = Score(folder, p)
	assert.ErrorContains(t, err, "was changed")

	l = labOf(t, "providers: [one]\nbudgets: [500]\nprimary: {metric: recal@tokens, budget: 500, reference: one}")
	_, _, err = Score(fabricate(t, l, p, perfect), p)
	assert.ErrorContains(t, err, `"recal@tokens" is no metric`)
	assert.Contains(t, abi.AsError(err).Hint, "recall@tokens")
	for i := range metrics {
		assert.Equal(t, metrics[i].comparable(), Known(metrics[i].Name) == nil, metrics[i].Name)
	}
}

func TestOrderChangesNoByte(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "3", "sessions": "2", "turns": "2"})
	whole := labOf(t, "providers: [one, two, three]\nbudgets: [100, 500]")
	answer := func(label string, probe *pack.Probe, budget int64, events []*pack.Event) fabricatedAnswer {
		random := stats.Random(7, label+probe.ProbeID+fmt.Sprint(budget))
		var list []*pack.Event
		for _, i := range random.Perm(len(events))[:min(3, len(events))] {
			list = append(list, events[i])
		}
		return fabricatedAnswer{items: asItems(list...)}
	}
	figures := func(m *Metrics) string {
		copied := *m
		copied.Run.LabSHA256 = "" // it depends on the order of the providers
		copied.Exploratory = nil  // their reference is the first one
		copied.Columns = slices.Clone(m.Columns)
		slices.SortFunc(copied.Columns, func(a, b Column) int { return strings.Compare(a.Label, b.Label) })
		return bytesOf(t, &copied)
	}
	want := figures(scoredOf(t, whole, p, answer))
	tried, most := map[string]bool{}, 12
	if brief.Tests() {
		most = 3
	}
	rapid.Check(t, func(r *rapid.T) {
		l, walked := *whole, *p
		l.Providers = rapid.Permutation(whole.Providers).Draw(r, "providers")
		l.Budgets = rapid.Permutation(whole.Budgets).Draw(r, "budgets")
		walked.Manifest.Personas = rapid.Permutation(p.Manifest.Personas).Draw(r,
			"personas") // they run concurrently and end in any order
		drawn := fmt.Sprint(l.Providers, l.Budgets, walked.Manifest.Personas)
		if tried[drawn] || len(tried) == most { // each takes a run
			return
		}
		tried[drawn] = true
		m, _, err := Score(fabricate(t, &l, &walked, answer), p)
		require.NoError(t, err)
		require.Equal(t, want, figures(m))
	})
}

func TestASubmissionHasRankingMetricsOnly(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "2", "sessions": "2", "turns": "2"})
	heading := fmt.Sprintf("{\"pack_sha256\":%q,\"label\":\"=mine\"}\n", p.Manifest.ContentSHA256)
	lines, n := "", 0
	for probe, err := range p.Probes("synth-01") {
		require.NoError(t, err)
		if probe.Gold.Answerable {
			lines += fmt.Sprintf("{\"probe_id\":%q,\"event_ids\":[%q]}\n", probe.ProbeID, probe.Gold.Evidence[0][0])
			n++
		}
	}
	m, err := Submission(strings.NewReader(heading+"\n"+lines), p)
	require.NoError(t, err)
	assert.True(t, m.Run.Foreign)
	require.Len(t, m.Columns, 1)
	overall := m.Columns[0].Budgets[0].Overall
	assert.InDelta(t, 1, overall["recall@1"].Value.Mean, 1e-12)
	assert.Equal(t, n, overall["recall@1"].Value.N)
	assert.Positive(t, overall["recall@1"].Missing, "synth-02 is not ranked")
	assert.NotContains(t, overall, "answer_shown")
	assert.NotContains(t, overall, "recall@tokens")
	var csv bytes.Buffer
	require.NoError(t, m.WriteCSV(&csv))
	assert.Contains(t, csv.String(), "\n'=mine,submission,0,all,,hit@1,1,1,1,")

	for text, says := range map[string]string{
		"":    "it is empty",
		lines: "line 1: pack_sha256: required",
		strings.Replace(heading, p.Manifest.ContentSHA256[:4], "zzzz",
			1): "the ranking was made from",
		heading + `{"probe_id":"x","event_ids":[]}`:                   `line 2: probe_id: the pack has no probe "x"`,
		heading + lines + lines:                                       "is there twice",
		heading + `{"probe_id":"synth-01-1-q1","event_ids":["nope"]}`: `event_ids[0]: persona synth-01 has no event "nope"`,
		heading + `{"probe_id":"synth-01-1-q1","event_ids":["synth-01-2-1"]}`: "is in session 2, the " +
			"probe is asked after session 1",
		heading + `{"probe_id":"synth-01-1-q1","event_ids":["synth-01-1-1","synth-01-1-1"]}`: "event_ids[1]: event \"synth-01-1-1\" is there twice",
		heading + `{"probe_id":"synth-01-1-q1","events":[]}`:                                 "unknown field",
		heading + heading: "has no probe",
	} {
		_, err := Submission(strings.NewReader(text), p)
		assert.ErrorContains(t, err, says)
	}
}

func TestRunsAreComparedWhereTheirKeysAreEqual(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "2", "sessions": "2", "turns": "2"})
	a := scoredOf(t, labOf(t, "providers: [one, two]\nbudgets: [500]"), p, perfect)
	b := scoredOf(t, labOf(t, "providers: [two, three]\nbudgets: [500]"), p,
		func(string, *pack.Probe, int64, []*pack.Event) fabricatedAnswer { return fabricatedAnswer{} })
	s, err := Compare(a, b)
	require.NoError(t, err)
	require.Len(t, s.Columns, 5)
	assert.Equal(t, "two", s.Columns[1].Label)
	assert.Equal(t, "three", s.Columns[4].Label)
	assert.False(t, s.Columns[4].InA)
	i := slices.IndexFunc(s.Columns[1].Figures, func(f BothFigure) bool { return f.Metric == "answer_shown" })
	assert.InDelta(t, 1, *s.Columns[1].Figures[i].Difference, 1e-12)

	other := scoredOf(t, labOf(t, "providers: [one]\nbudgets: [400]\nreadiness: {timeout_ms: 5}"), p, perfect)
	_, err = Compare(a, other)
	assert.ErrorContains(t, err, "budgets: [500] and [400]; policies.readiness_timeout_ms: 60000 and 5")
	a.Keys.Profile, b.Keys.Profile = "source-design", "best"
	_, err = Compare(a, b)
	assert.ErrorContains(t, err, "differ in profile: source-design and best")
	b.Keys.Profile = a.Keys.Profile
	a.Keys.Order, b.Keys.Order = map[string]string{"one": "time", "two": "time"}, map[string]string{"two": "relevant",
		"three": "time"}
	_, err = Compare(a, b)
	assert.ErrorContains(t, err, "differ in order.two: time and relevant")
}

func TestFailuresShowWhatWasExpectedAndShown(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "1", "sessions": "2", "turns": "2"})
	folder := fabricate(t, labOf(t, "providers: [one, two]\nbudgets: [500, 0]"), p,
		func(label string, probe *pack.Probe, budget int64, events []*pack.Event) fabricatedAnswer {
			switch {
			case label == "one":
			case probe.ProbeID == "synth-01-1-q2" && budget == 0:
				return fabricatedAnswer{err: abi.NewError(abi.CodeTimeout, "late")}
			case probe.ProbeID == "synth-01-1-q1":
				return fabricatedAnswer{items: []abi.Evidence{{Text: "something else"}}}
			}
			return perfect(label, probe, budget, events)
		})
	list, err := Failures(folder, p, FailureOptions{})
	require.NoError(t, err)
	require.Len(t, list, 3)
	assert.Equal(t, "timeout", list[0].Error)
	assert.Equal(t, "synth-01-1-q1", list[1].Probe.ProbeID)
	assert.Contains(t, list[1].Context, "something else")
	assert.Zero(t, *list[1].AnswerShown)
	none := int64(0)
	list, err = Failures(folder, p, FailureOptions{Label: "two", Budget: &none, Limit: 1})
	require.NoError(t, err)
	assert.Len(t, list, 1)
	_, err = Failures(folder, p, FailureOptions{Label: "three"})
	assert.ErrorContains(t, err, `no provider "three"`)
}

func TestTwoThousandProbesOfEightProvidersAreScoredInSeconds(t *testing.T) {
	brief.Skip(t) // its time under the race detector is meaningless
	_, p := simulatetest.Synth(t, map[string]string{"personas": "15", "sessions": "32", "turns": "6"})
	require.Greater(t, p.Manifest.Counts.Probes, 2000)
	folder := fabricate(t, labOf(t, "providers: [a, b, c, d, e, f, g, h]\nbudgets: [1000]\nprimary: {metric: "+
		"answer_shown, budget: 1000, reference: a}"), p,
		func(label string, probe *pack.Probe, _ int64, events []*pack.Event) fabricatedAnswer {
			random := stats.Random(7, label+probe.ProbeID)
			var list []*pack.Event
			for _, i := range random.Perm(len(events))[:min(30, len(events))] {
				list = append(list, events[i])
			}
			return fabricatedAnswer{items: asItems(list...)}
		})
	began := time.Now()
	m, _, err := Score(folder, p)
	require.NoError(t, err)
	took := time.Since(began)
	t.Logf("%d probes, 8 providers: %v", p.Manifest.Counts.Probes, took)
	assert.Less(t, took, 60*time.Second, "a few seconds on a quiet machine")
	assert.Equal(t, "works", m.LeakControl.Detector)
}

func TestFormulasAreGuarded(t *testing.T) {
	for text, want := range map[string]string{"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@x": "'@x", "\tx": "'\tx",
		" =x": "' =x", "plain": "plain", "": "", "|x": "'|x"} {
		assert.Equal(t, want, SafeCell(text))
	}
}

func TestAnAuditLeavesProbesOutForEverybody(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "7", "sessions": "3", "turns": "2"})
	l := labOf(t, "providers: [whole, empty]\nbudgets: [500]\nprimary: {metric: answer_shown, budget: 500, "+
		"reference: empty}")
	folder := fabricate(t, l, p, func(label string, probe *pack.Probe, budget int64, events []*pack.Event) fabricatedAnswer {
		if label == "empty" || probe.ProbeID == "synth-01-1-q1" {
			return fabricatedAnswer{}
		}
		return perfect(label, probe, budget, events)
	})
	before, _, err := Score(folder, p)
	require.NoError(t, err)
	assert.Less(t, before.Columns[0].Budgets[0].Overall["answer_shown"].Value.Mean, 1.0)

	var sheet, filled bytes.Buffer
	n, err := pack.AuditSheet(&sheet, p, 0)
	require.NoError(t, err)
	assert.Equal(t, p.Manifest.Counts.Probes, n)
	rows, err := csv.NewReader(&sheet).ReadAll()
	require.NoError(t, err)
	for i := range rows[1:] {
		if rows[i+1][0] == "synth-01-1-q1" {
			rows[i+1][len(rows[i+1])-1] = "the key is wrong"
		}
	}
	require.NoError(t, csv.NewWriter(&filled).WriteAll(rows))
	audit, err := pack.TakeAudit(&filled, p, "ann")
	require.NoError(t, err)
	require.Equal(t, []pack.Excluded{{ProbeID: "synth-01-1-q1", Why: "the key is wrong"}}, audit.Excluded)
	path := filepath.Join(t.TempDir(), "audit.json")
	var text bytes.Buffer
	require.NoError(t, audit.Write(&text))
	require.NoError(t, os.WriteFile(path, text.Bytes(), 0o600))
	require.NoError(t, TakeAudit(folder, p, path))

	after, _, err := Score(folder, p)
	require.NoError(t, err)
	assert.InDelta(t, 1, after.Columns[0].Budgets[0].Overall["answer_shown"].Value.Mean, 1e-12)
	assert.Equal(t, before.Run.Probes-1, after.Run.Probes)
	require.NotNil(t, after.Audit)
	assert.Equal(t, before.Columns[0].Budgets[0].Overall["answer_shown"], after.Audit.Before[0].Figures["answer_shown"])
	assert.Equal(t, before.Primary, after.Audit.Primary)
	_, err = Compare(before, after)
	assert.ErrorContains(t, err, "audit", "with and without are never compared")

	_, other := simulatetest.Synth(t, map[string]string{"personas": "2", "sessions": "2", "turns": "2"})
	assert.ErrorContains(t, TakeAudit(folder, other, path), "is an audit of a pack with the content")
}

func TestAStubsAnswersAreSaidFirst(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "2", "sessions": "2", "turns": "2"})
	folder := fabricate(t, labOf(t, "providers: [a]\nbudgets: [500]"), p, perfect)
	r, err := rundir.Open(folder)
	require.NoError(t, err)
	c := r.Cells[0]
	w, err := journal.Append(filepath.Join(c.Folder(folder), journal.Name), func() string {
		return "2026-03-02T10:00:00Z"
	}, func(*journal.Line) {})
	require.NoError(t, err)
	// again, after an interruption
	for _, a := range []journal.Answer{{ProbeID: "x", Turn: 1, Text: "a", Stub: true},
		{ProbeID: "x", Turn: 1, Text: "a", Stub: true, FinishReason: "stop",
			Usage: &journal.Usage{PromptTokens: 7, CompletionTokens: 2}},
		{ProbeID: "y", Turn: 1, Error: abi.NewError(abi.CodeBackend, "nonsense")},
		{ProbeID: "z", Turn: 1, FinishReason: "length"}} { // from a version that stored empty answers as answers
		require.NoError(t, w.Write(&journal.Line{Kind: journal.KindAnswer, Answer: &a}))
	}
	require.NoError(t, w.Close())
	c.Head = w.Head()
	require.NoError(t, r.Save(folder))
	m, _, err := Score(folder, p)
	require.NoError(t, err)
	assert.Equal(t, &Answers{Given: 1, Stub: 1, Errors: []Count{{"backend", 2}}, PromptTokens: 7, CompletionTokens: 2,
		Counted: 1, FinishReasons: []Count{{"length", 1}, {"stop", 1}}}, m.Columns[0].Agent)
	require.NotEmpty(t, m.Notes)
	assert.Contains(t, m.Notes[0], "a stub answered instead of a model, 1 of 1 times")
}

func TestTwoReplaysOfACassetteRunHaveTheSameMetrics(t *testing.T) {
	brief.Leave(t)
	path, p := simulatetest.Synth(t, map[string]string{"personas": "2", "sessions": "3", "turns": "2"})
	const block = "providers: [full_history, bm25]\nbudgets: [200]\ncassettes: true"
	folder := ran(t, block, path, p)
	want, _, err := Score(folder, p)
	require.NoError(t, err)
	assert.True(t, want.Keys.Policies.Cassettes, "compared with cassette runs only")
	require.NotEmpty(t, want.Columns[0].Smokes)
	assert.NotEqual(t, "skipped", want.Columns[0].Smokes[0].Verdict, "smokes ran in a host of their own")
	for range 2 {
		again := filepath.Join(t.TempDir(), "again")
		_, err := run.Replay(t.Context(), folder, again, p, options(t, p))
		require.NoError(t, err)
		m, _, err := Score(again, p)
		require.NoError(t, err)
		assert.Equal(t, bytesOf(t, want), bytesOf(t, m))
	}

	other := options(t, p)
	other.Provider = func(*lab.Provider) (host.ProviderConfig, error) {
		m, _ := plugins.Find("no_memory")
		return host.ProviderConfig{Name: "no_memory", Module: m.Wasm, Source: "builtin", Block: abi.Raw("{}")}, nil
	}
	_, err = run.Replay(t.Context(), folder, filepath.Join(t.TempDir(), "other"), p, other)
	require.Error(t, err)
	t.Log(err)

	_, err = run.Replay(t.Context(), ran(t, "providers: [no_memory]", path, p), filepath.Join(t.TempDir(), "none"), p,
		options(t, p))
	assert.ErrorContains(t, err, "has no cassettes")
}

func TestARunUnderTwoProfilesSaysSo(t *testing.T) {
	for profile, want := range map[string]int{"best": 0, "best, source-design": 1} {
		of := &scorer{reader: &reader{timeline: new(timeline)}, run: &rundir.Run{Lab: new(lab.Lab)}}
		notes := of.notes(&Metrics{Keys: Keys{Profile: profile}})
		found := 0
		for _, note := range notes {
			if strings.Contains(note, "different profiles ("+profile+")") {
				found++
			}
		}
		assert.Equal(t, want, found, notes)
	}
}
