package score

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/build"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/simulate"
	"github.com/memhost/memhost/eval/simulate/simulatetest"
	"github.com/memhost/memhost/eval/stats"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func overall(t *testing.T, m *Metrics, label, metric string) Figure {
	t.Helper()
	f := m.column(label).overall(1000, metric)
	require.NotNil(t, f, "%s of %s", metric, label)
	return *f
}

func TestBehaviourIsScoredFromTranscripts(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "8", "sessions": "12"})
	l := simulatetest.Lab(3, "stale", "knowing", "silent", "failing", "elsewhere")
	folder := simulatetest.Run(t, l, p, func(label string, _ int, s *simulate.Setting) simulatetest.Agent {
		switch {
		case label == "silent":
			return simulatetest.Always("")
		case label == "failing":
			return simulatetest.Agent{Say: func(int) (string, bool) { return "", false }}
		case label == "stale" && len(s.Stale) > 0:
			a := simulatetest.Always("Take " + s.Stale[0])
			a.Context = "They like " + s.Value
			return a
		case label == "elsewhere" && len(s.Elsewhere) > 0:
			return simulatetest.Always("Take " + s.Elsewhere[len(s.Elsewhere)-1])
		}
		return simulatetest.Knowing(s)
	})
	m, _, err := Score(folder, p)
	require.NoError(t, err)
	mean := func(label, metric string) float64 {
		f := overall(t, m, label, metric)
		require.NotNil(t, f.Value, "%s of %s: %s", metric, label, f.Reason)
		return f.Value.Mean
	}
	for label, want := range map[string]map[string]float64{
		"knowing":   {"cs": 1, "pet": 1, "pet_stale": 0, "cs_and_pet": 1, "corrections_needed": 0, "given_up": 0, "abstained": 1},
		"stale":     {"cs": 1, "pet": 0, "pet_stale": 1, "cs_and_pet": 0},
		"silent":    {"cs": 0, "cs_other_context": 0, "pet": 0, "pet_stale": 0, "corrections_needed": 3, "given_up": 1, "abstained": 0},
		"failing":   {"cs": 0, "pet": 0, "corrections_needed": 3, "given_up": 1, "abstained": 0},
		"elsewhere": {"cs": 0, "cs_other_context": 1, "pet": 1},
	} {
		for metric, value := range want {
			assert.InDelta(t, value, mean(label, metric), 1e-12, "%s of %s", metric, label)
		}
	}
	// Neither headline counts the other's sessions, and each session is of one kind.
	n := m.Run.Sessions
	assert.Equal(t, n.CS, overall(t, m, "knowing", "cs").Value.N)
	assert.Equal(t, n.PET, overall(t, m, "knowing", "pet").Value.N)
	assert.Equal(t, n.Both, overall(t, m, "knowing", "cs_and_pet").Value.N)
	assert.Equal(t, len(p.Manifest.Personas)*12*4+8*3, n.CS+n.PET+n.Both+n.Plain+n.Unknown)
	assert.Equal(t, []Explained{{"current", "stale", m.column("stale").Behaviour.Explained[0].Count},
		{"none", "current", m.column("stale").Behaviour.Explained[1].Count}}, m.column("stale").Behaviour.Explained)
	since := 0
	for _, bin := range m.column("stale").Behaviour.Since[0].Bins {
		since += bin.PET.Value.N
		assert.Zero(t, bin.PET.Value.Mean)
		assert.InDelta(t, 1, bin.Stale.Value.Mean, 0)
	}
	assert.Equal(t, n.PET, since)
	// Verdicts: pet is sealed, the others are exploratory; corrections are compared as numbers of corrections.
	verdict := func(f *Family, label string) Comparison {
		for _, c := range f.Comparisons {
			if c.Label == label {
				return c
			}
		}
		t.Fatalf("no comparison of %s", label)
		return Comparison{}
	}
	assert.Equal(t, stats.Better, verdict(m.Primary, "knowing").Verdict)
	for _, f := range m.Exploratory {
		if f.Metric == "corrections_needed" {
			assert.True(t, f.Turned)
			c := verdict(&f, "failing")
			assert.Equal(t, stats.Worse, c.Verdict)
			assert.InDelta(t, mean("stale", "corrections_needed")-3, c.Difference.Mean, 1e-9)
		}
	}
	assert.Contains(t, m.Notes, fmt.Sprintf("failing: the agent failed in %d of %[1]d sessions; they count as it answered: the agent hung",
		m.column("failing").Behaviour.Conversations))
}

func TestAVerdictOnBehaviourNeedsThreeReplicates(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "8", "sessions": "8"})
	for replicates, want := range map[int]stats.Verdict{2: stats.TooFewReplicates, 3: stats.Better} {
		folder := simulatetest.Run(t, simulatetest.Lab(replicates, "silent", "knowing"), p,
			func(label string, _ int, s *simulate.Setting) simulatetest.Agent {
				if label == "silent" {
					return simulatetest.Always("")
				}
				return simulatetest.Knowing(s)
			})
		m, _, err := Score(folder, p)
		require.NoError(t, err)
		assert.Equal(t, want, m.Primary.Comparisons[0].Verdict)
	}
}

// Budgets without conversations have no comparisons on behaviour, and a column with feedback none with columns that
// only accumulate.
func TestBehaviourIsComparedWhereItWasMeasuredAlike(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "6", "sessions": "6"})
	l := simulatetest.Lab(3, "usual", "knowing", "corrected")
	l.Budgets, l.Subject = []int64{1000, 2000}, &lab.Subject{Seat: lab.SeatStub, Budgets: []int64{1000}}
	l.Find("corrected").Memory["feedback"] = true
	folder := simulatetest.Run(t, l, p, func(label string, _ int, s *simulate.Setting) simulatetest.Agent {
		return simulatetest.Knowing(s)
	})
	m, _, err := Score(folder, p)
	require.NoError(t, err)
	of := 0
	for _, f := range append(m.Exploratory, *m.Primary) {
		i := slices.IndexFunc(m.Catalogue, func(e Entry) bool { return e.Name == f.Metric })
		if m.Catalogue[i].Group != "behaviour" {
			continue
		}
		of++
		if f.Budget == 2000 {
			assert.Equal(t, "no conversation had this budget", f.Reason, f.Metric)
			assert.Empty(t, f.Comparisons)
			continue
		}
		require.Len(t, f.Comparisons, 1, f.Metric)
		assert.Equal(t, "knowing", f.Comparisons[0].Label)
	}
	assert.Greater(t, of, 6)
	assert.True(t, m.column("corrected").Feedback)
	assert.Contains(t, strings.Join(m.Notes, "\n"), "corrected: the person's corrections were passed to apply_feedback (there were none)")
}

// TestNoAgentWinsByATrick: the reference is right in half of its sessions. An agent that always is wins every verdict;
// one that names everything it knows, answers nothing or fails wins none, except the one on abstaining.
func TestNoAgentWinsByATrick(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "10", "sessions": "20"})
	tricks := map[string]func(s *simulate.Setting) simulatetest.Agent{
		"hedging": func(s *simulate.Setting) simulatetest.Agent {
			return simulatetest.Always(strings.Join(slices.Concat([]string{s.Value}, s.Stale, s.Elsewhere), " or "))
		},
		"asking": func(*simulate.Setting) simulatetest.Agent { return simulatetest.Always("Which one would you like?") },
		"unsure": func(*simulate.Setting) simulatetest.Agent { return simulatetest.Always("I do not know.") },
		"silent": func(*simulate.Setting) simulatetest.Agent { return simulatetest.Always("") },
		"failing": func(*simulate.Setting) simulatetest.Agent {
			return simulatetest.Agent{Say: func(int) (string, bool) { return "", false }}
		},
	}
	l := simulatetest.Lab(3, append([]string{"usual", "knowing"}, slices.Sorted(maps.Keys(tricks))...)...)
	n := 0
	folder := simulatetest.Run(t, l, p, func(label string, _ int, s *simulate.Setting) simulatetest.Agent {
		if trick := tricks[label]; trick != nil {
			return trick(s)
		}
		if n++; label == "usual" && n%2 == 0 {
			return simulatetest.Always("Here is " + strings.Join(append(s.Elsewhere, s.Stale...), " "))
		}
		return simulatetest.Knowing(s)
	})
	s, err := load(folder, p, nil)
	require.NoError(t, err)
	won := 0
	for i := range metrics {
		if m := &metrics[i]; m.behave != nil && m.comparable() {
			for _, other := range s.columns[1:] {
				f := (&familyBuilder{s.timeline, 1, []*column{s.columns[0], other}, s.columns[0]}).family(m.Name, 0, 1000)
				switch verdict := f.Comparisons[0].Verdict; {
				case other.Label == "knowing":
					assert.Equal(t, stats.Better, verdict, "knowing, %s", m.Name)
				case m.Name == "abstained":
				default:
					won++
					assert.NotEqual(t, stats.Better, verdict, "%s, %s", other.Label, m.Name)
				}
			}
		}
	}
	assert.Greater(t, won, 30)
}

func TestALeakedSessionCountsForNoColumn(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "6", "sessions": "6"})
	leaks := 0
	folder := simulatetest.Run(t, simulatetest.Lab(3, "one", "two"), p, func(label string, replicate int, s *simulate.Setting) simulatetest.Agent {
		a := simulatetest.Knowing(s)
		if label == "two" {
			a = simulatetest.Always("nothing")
		}
		if label == "one" && s.Value != "" { // its user says it in every replicate
			leaks++
			a.Change = func(x *journal.Transcript) {
				x.Simulator = "a-model"
				x.Exchanges[0].User = "As you know, I like " + s.Value + ". " + x.Exchanges[0].User
			}
		}
		return a
	})
	m, _, err := Score(folder, p)
	require.NoError(t, err)
	require.Positive(t, leaks)
	for _, label := range []string{"one", "two"} {
		assert.Equal(t, leaks, m.column(label).Behaviour.Leaked, label)
		for _, metric := range []string{"cs", "pet", "corrections_needed"} {
			assert.Nil(t, overall(t, m, label, metric).Value, "%s of %s", metric, label)
		}
		assert.InDelta(t, 1, overall(t, m, "one", "abstained").Value.Mean, 0)
	}
}

func TestWhatBreaksTheWallIsNamedAndWithholdsVerdicts(t *testing.T) {
	_, p := simulatetest.Synth(t, map[string]string{"personas": "6", "sessions": "6"})
	broken := ""
	folder := simulatetest.Run(t, simulatetest.Lab(3, "one", "two"), p, func(label string, _ int, s *simulate.Setting) simulatetest.Agent {
		a := simulatetest.Knowing(s)
		if label == "two" && broken == "" {
			a.Late = []journal.Breach{{Kind: "nonce_found", Detail: "in session 3"}}
		}
		a.Change = func(x *journal.Transcript) {
			x.NotSent = []string{"context"}
			if x.Retrievals = nil; label == "two" && broken == "" {
				broken = s.ProbeID
				x.Breaches = []journal.Breach{{Kind: "mode"}}
			}
			if s.ProbeID == "synth-02-1-q1" {
				x.Ended = journal.EndedSimulator
			}
			x.Exchanges[0].Stub = true
		}
		return a
	})
	m, _, err := Score(folder, p)
	require.NoError(t, err)
	b := m.column("two").Behaviour
	assert.Equal(t, 1, b.Breached)
	assert.Equal(t, []Count{{"mode", 1}, {"nonce_found", 1}}, b.Breaches)
	assert.Equal(t, []string{broken + ": mode", broken + ": nonce_found: in session 3"}, b.Details)
	assert.Equal(t, Withheld, m.Primary.Comparisons[0].Verdict)
	total := b.Conversations
	assert.Equal(t, 3*(m.Run.Probes-6*2), total, "all but the canaries")
	assert.Contains(t, m.Notes, fmt.Sprintf("one: no retrieval in %d of %d sessions; they count as the agent answered", total-3,
		total), "not where the simulator failed, which says nothing about the agent")
	assert.Contains(t, m.Notes, fmt.Sprintf("one: the agent cannot send its context with a retrieval (%d sessions)", total))
	assert.Contains(t, m.Notes, "one: the simulator failed in 3 of "+fmt.Sprint(total)+" sessions; they are missing, not wrong")
	assert.Contains(t, m.Notes[0], "A STUB")
}

// A pack without stated preferences has no CS and no PET.
func TestAPackWithoutPreferencesHasNoCS(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pack")
	w, err := pack.Create(path, pack.Manifest{Name: "plain", Builder: pack.Builder{Name: "test"}, Timestamps: "source"})
	require.NoError(t, err)
	w.Persona("ann", "ann")
	text := "I live in Lagos."
	require.NoError(t, w.Event(&pack.Event{SessionIndex: 1, EventID: "e1", SessionID: "s1", TurnID: "t1",
		Timestamp: "2026-03-02T10:00:00Z", Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}}))
	require.NoError(t, w.Probe(&pack.Probe{ProbeID: "q", AfterSession: 1, Kind: "question", Label: "l", Query: "Where?"}))
	require.NoError(t, w.Close(nil))
	p, err := pack.Open(path)
	require.NoError(t, err)
	folder := simulatetest.Run(t, simulatetest.Lab(1, "one"), p, func(string, int, *simulate.Setting) simulatetest.Agent { return simulatetest.Always("Lagos") })
	m, _, err := Score(folder, p)
	require.NoError(t, err)
	assert.Nil(t, m.Run.Sessions)
	assert.Contains(t, overall(t, m, "one", "cs").Reason, "no preference that differs")
	assert.Contains(t, m.Notes, "the pack says nothing about preferences: CS and PET are not computed")
}

// TestAnIndependentScriptFindsTheSameBehaviour recomputes the figures with Python, only from the files of pack and run.
func TestAnIndependentScriptFindsTheSameBehaviour(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	path := filepath.Join(t.TempDir(), "synth.pack")
	b, err := build.Find("synth")
	require.NoError(t, err)
	_, err = b.Build(build.Request{Options: map[string]string{"personas": "7", "sessions": "14", "seed": "3"}}, path)
	require.NoError(t, err)
	p, err := pack.Open(path)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(47, 1))
	folder := simulatetest.Run(t, simulatetest.Lab(3, "one", "two", "three"), p, func(_ string, _ int, s *simulate.Setting) simulatetest.Agent {
		values := append([]string{s.Value, "I do not know", "", "nothing that counts"}, s.Stale...)
		values = append(values, s.Elsewhere...)
		a := simulatetest.Agent{Say: func(int) (string, bool) {
			text := values[random.IntN(len(values))]
			if random.IntN(4) == 0 {
				text += " or " + values[random.IntN(len(values))]
			}
			return text, random.IntN(40) > 0
		}}
		kind := random.IntN(30)
		a.Change = func(x *journal.Transcript) {
			switch kind {
			case 0:
				x.Exchanges[0].User += " I like " + s.Value + "."
			case 1:
				x.Ended = journal.EndedSimulator
			case 2:
				x.Retrievals = nil
			}
		}
		return a
	})
	m, _, err := Score(folder, p)
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), python, "testdata/behaviour.py", path, folder).Output()
	require.NoError(t, err)
	var found map[string]map[string]struct {
		Mean *float64
		N    int
	}
	require.NoError(t, json.Unmarshal(out, &found))
	require.Len(t, found, 3)
	for label, figures := range found {
		require.Len(t, figures, 9)
		for metric, f := range figures {
			ours := overall(t, m, label, metric)
			require.NotNil(t, ours.Value, metric)
			require.NotNil(t, f.Mean, metric)
			assert.Equal(t, fmt.Sprintf("%.12f", *f.Mean), fmt.Sprintf("%.12f", ours.Value.Mean), "%s of %s", metric, label)
			assert.Equal(t, f.N, ours.Value.N, "%s of %s", metric, label)
		}
	}
}
