package score

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
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
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/simulate"
	"github.com/memhost/memhost/eval/stats"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// talking is how a made-up agent talks in one conversation.
type talking struct {
	// say is what it answers to the nth text of a person, from 1. ok is false where it fails instead.
	say func(n int) (text string, ok bool)
	// change alters the transcript before it is written.
	change func(*journal.Transcript)
}

// fabricateTalks writes the folder of a run in which agents talk with scripted people.
func fabricateTalks(t *testing.T, l *lab.Lab, p *pack.Pack,
	agent func(label string, replicate int, s *simulate.Setting) talking) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "run")
	r := &rundir.Run{Run: rundir.Version, Program: "test", Lab: l, PackPath: "synth.pack", Pack: p.Manifest,
		LabSHA256: l.SHA256(p.Manifest.ContentSHA256)}
	for i := range l.Providers {
		for replicate := 1; replicate <= l.Replicates; replicate++ {
			c := &rundir.Cell{Label: l.Providers[i].Label, Replicate: replicate, RunID: "eval", State: rundir.Complete}
			r.Cells = append(r.Cells, c)
			dir := c.Folder(folder)
			require.NoError(t, os.MkdirAll(dir, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.json"), fmt.Appendf(nil,
				`{"provider":%q,"condition_kind":"control","abi":"mh1","config":{},"module":{},"smokes":[]}`, c.Label), 0o600))
			w, err := journal.Append(filepath.Join(dir, journal.Name), func() string { return "2026-03-02T10:00:00Z" },
				func(*journal.Line) {})
			require.NoError(t, err)
			require.NoError(t, w.Write(&journal.Line{Kind: journal.KindBegin, Begin: &journal.Begin{Label: c.Label,
				Replicate: replicate, PackSHA256: p.Manifest.ContentSHA256}}))
			for _, persona := range p.Manifest.Personas {
				list, err := p.Preferences(persona.PersonaID)
				require.NoError(t, err)
				for probe, err := range p.Probes(persona.PersonaID) {
					require.NoError(t, err)
					s := simulate.NewSetting(probe, list)
					for _, budget := range l.Budgets {
						require.NoError(t, w.Write(&journal.Line{Kind: journal.KindTranscript, PersonaID: probe.PersonaID,
							Session: probe.AfterSession, Transcript: talk(t, s, budget, agent(c.Label, replicate, s))}))
					}
				}
			}
			require.NoError(t, w.Write(&journal.Line{Kind: journal.KindEnd, End: &journal.End{}}))
			c.Head = w.Head()
			require.NoError(t, w.Close())
		}
	}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, rundir.File), text, 0o600))
	return folder
}

func talk(t *testing.T, s *simulate.Setting, budget int64, a talking) *journal.Transcript {
	t.Helper()
	out := &journal.Transcript{ProbeID: s.ProbeID, Budget: budget, Context: s.Context, Attribute: s.Attribute, Seat: "builtin",
		Simulator: "scripted", Ended: journal.EndedSubject, Retrievals: []journal.Retrieval{{Turn: 1, Query: s.Opening}}}
	user, err := simulate.Scripted{}.Open(t.Context(), s)
	require.NoError(t, err)
	says := user.Opening()
	for n := 1; says != ""; n++ {
		x := journal.Exchange{User: says}
		text, ok := a.say(n)
		if !ok {
			out.Exchanges, out.Error = append(out.Exchanges, x), abi.NewError(abi.CodeTimeout, "the agent hung")
			break
		}
		r, err := user.React(t.Context(), text)
		require.NoError(t, err)
		x.Agent, x.Action, says = text, r.Action, r.Text
		out.Exchanges = append(out.Exchanges, x)
		switch r.Action {
		case journal.ActionAccept:
			out.Ended = journal.EndedAccepted
		case journal.ActionGiveUp:
			out.Ended = journal.EndedGivenUp
		}
	}
	if a.change != nil {
		a.change(out)
	}
	return out
}

// always is an agent that answers the same again and again.
func always(text string) talking {
	return talking{say: func(int) (string, bool) { return text, true }}
}

// knowing is an agent that knows what the person wants.
func knowing(s *simulate.Setting) talking {
	if s.Value == "" {
		return always("I do not know.")
	}
	return always("Here is " + s.Value + ".")
}

func behaviourLab(replicates int, labels ...string) *lab.Lab {
	l := &lab.Lab{Lab: lab.Version, Name: "talks", Budgets: []int64{1000}, Replicates: replicates, Seed: 1, Tokenizer: "o200k_base",
		Primary: &lab.Primary{Metric: "pet", Budget: 1000, Reference: labels[0]}}
	for _, label := range labels {
		l.Providers = append(l.Providers, lab.Provider{Label: label, Memory: map[string]any{"provider": label}})
	}
	return l
}

func synthPack(t *testing.T, options map[string]string) *pack.Pack {
	t.Helper()
	b, err := build.Find("synth")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "synth.pack")
	_, err = b.Build(build.Request{Options: options}, path)
	require.NoError(t, err)
	p, err := pack.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func overall(t *testing.T, m *Metrics, label, metric string) Figure {
	t.Helper()
	f := m.column(label).overall(1000, metric)
	require.NotNil(t, f, "%s of %s", metric, label)
	return *f
}

func TestBehaviourIsScoredFromTranscripts(t *testing.T) {
	p := synthPack(t, map[string]string{"personas": "8", "sessions": "12"})
	l := behaviourLab(3, "stale", "knowing", "silent", "failing", "elsewhere")
	folder := fabricateTalks(t, l, p, func(label string, _ int, s *simulate.Setting) talking {
		switch {
		case label == "silent":
			return always("")
		case label == "failing":
			return talking{say: func(int) (string, bool) { return "", false }}
		case label == "stale" && len(s.Stale) > 0:
			return always("Take " + s.Stale[0])
		case label == "elsewhere" && len(s.Elsewhere) > 0:
			return always("Take " + s.Elsewhere[len(s.Elsewhere)-1])
		}
		return knowing(s)
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
	since := 0
	for _, bin := range m.column("stale").Behaviour.Since[0].Bins {
		since += bin.PET.Value.N
		assert.Zero(t, bin.PET.Value.Mean)
		assert.InDelta(t, 1, bin.Stale.Value.Mean, 0)
	}
	assert.Equal(t, n.PET, since)
	// Verdicts: pet is sealed, the others are exploratory; corrections are compared in corrections.
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
	assert.Contains(t, m.Notes, fmt.Sprintf("failing: the agent failed in %d of %[1]d sessions; they count as it answered",
		3*m.Run.Probes))
}

func TestAVerdictOnBehaviourNeedsThreeReplicates(t *testing.T) {
	p := synthPack(t, map[string]string{"personas": "8", "sessions": "8"})
	for replicates, want := range map[int]stats.Verdict{2: TooFewReplicates, 3: stats.Better} {
		folder := fabricateTalks(t, behaviourLab(replicates, "silent", "knowing"), p,
			func(label string, _ int, s *simulate.Setting) talking {
				if label == "silent" {
					return always("")
				}
				return knowing(s)
			})
		m, _, err := Score(folder, p)
		require.NoError(t, err)
		assert.Equal(t, want, m.Primary.Comparisons[0].Verdict)
	}
}

// TestNoAgentWinsByATrick: the reference is right in half of its sessions. An agent that always is wins every verdict; one
// that names everything it knows, says nothing or fails wins none but that on abstaining.
func TestNoAgentWinsByATrick(t *testing.T) {
	p := synthPack(t, map[string]string{"personas": "10", "sessions": "20"})
	tricks := map[string]func(s *simulate.Setting) talking{
		"hedging": func(s *simulate.Setting) talking {
			return always(strings.Join(slices.Concat([]string{s.Value}, s.Stale, s.Elsewhere), " or "))
		},
		"asking":  func(*simulate.Setting) talking { return always("Which one would you like?") },
		"unsure":  func(*simulate.Setting) talking { return always("I do not know.") },
		"silent":  func(*simulate.Setting) talking { return always("") },
		"failing": func(*simulate.Setting) talking { return talking{say: func(int) (string, bool) { return "", false }} },
	}
	l := behaviourLab(3, append([]string{"usual", "knowing"}, slices.Sorted(maps.Keys(tricks))...)...)
	n := 0
	folder := fabricateTalks(t, l, p, func(label string, _ int, s *simulate.Setting) talking {
		if trick := tricks[label]; trick != nil {
			return trick(s)
		}
		if n++; label == "usual" && n%2 == 0 {
			return always("Here is " + strings.Join(append(s.Elsewhere, s.Stale...), " "))
		}
		return knowing(s)
	})
	s, err := load(folder, p, nil)
	require.NoError(t, err)
	won := 0
	for i := range metrics {
		if m := &metrics[i]; m.behave != nil && m.comparable() {
			for _, other := range s.columns[1:] {
				f := (&comparing{s.timeline, 1, []*column{s.columns[0], other}, s.columns[0]}).family(m.Name, 0, 1000)
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
	p := synthPack(t, map[string]string{"personas": "6", "sessions": "6"})
	leaks := 0
	folder := fabricateTalks(t, behaviourLab(3, "one", "two"), p, func(label string, replicate int, s *simulate.Setting) talking {
		a := knowing(s)
		if label == "two" {
			a = always("nothing")
		}
		if label == "one" && s.Value != "" { // its user says it in every replicate
			leaks++
			a.change = func(x *journal.Transcript) {
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
	p := synthPack(t, map[string]string{"personas": "6", "sessions": "6"})
	broken := ""
	folder := fabricateTalks(t, behaviourLab(3, "one", "two"), p, func(label string, _ int, s *simulate.Setting) talking {
		a := knowing(s)
		a.change = func(x *journal.Transcript) {
			x.NotSent = []string{"context"}
			if x.Retrievals = nil; label == "two" && broken == "" {
				broken = s.ProbeID
				x.Breaches = []journal.Breach{{Kind: "nonce_found", Detail: "in session 3"}}
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
	assert.Equal(t, []Count{{"nonce_found", 1}}, b.Breaches)
	assert.Equal(t, []string{broken + ": nonce_found: in session 3"}, b.Details)
	assert.Equal(t, Withheld, m.Primary.Comparisons[0].Verdict)
	total := 3 * m.Run.Probes
	assert.Contains(t, m.Notes, fmt.Sprintf("one: no retrieval in %d of %[1]d sessions; they count as the agent answered", total))
	assert.Contains(t, m.Notes, fmt.Sprintf("one: the agent cannot send its context with a retrieval (%d sessions)", total))
	assert.Contains(t, m.Notes, "one: the simulator failed in 3 of "+fmt.Sprint(total)+" sessions; they are missing, not wrong")
	assert.Contains(t, m.Notes[0], "A STUB")
}

// A pack whose people never said what they want has no CS and no PET.
func TestAPackWithoutPreferencesHasNoCS(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pack")
	w, err := pack.Create(path, pack.Manifest{Name: "plain", Builder: pack.Builder{Name: "test"}, Timestamps: "source"})
	require.NoError(t, err)
	w.Persona("ann", "ann")
	text := "I live in Lagos."
	require.NoError(t, w.Event(&pack.Event{SessionIndex: 1, EventID: "e1", SessionID: "s1", TurnID: "t1",
		Timestamp: "2026-03-02T10:00:00Z", Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}}))
	require.NoError(t, w.Probe(&pack.Probe{ProbeID: "q", AfterSession: 1, Kind: "question", Label: "l", Query: "Where?",
		Gold: pack.Gold{Answerable: true, Answers: [][]string{{"Lagos"}}, Evidence: [][]string{{"e1"}}}}))
	require.NoError(t, w.Close(nil))
	p, err := pack.Open(path)
	require.NoError(t, err)
	folder := fabricateTalks(t, behaviourLab(1, "one"), p, func(string, int, *simulate.Setting) talking { return always("Lagos") })
	m, _, err := Score(folder, p)
	require.NoError(t, err)
	assert.Nil(t, m.Run.Sessions)
	assert.Contains(t, overall(t, m, "one", "cs").Reason, "no preference that differs")
	assert.Contains(t, m.Notes, "the pack says nothing about preferences: CS and PET are not computed")
}

// TestAnIndependentScriptFindsTheSameBehaviour recomputes the figures with Python, from the files of pack and run alone.
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
	folder := fabricateTalks(t, behaviourLab(3, "one", "two", "three"), p, func(_ string, _ int, s *simulate.Setting) talking {
		values := append([]string{s.Value, "I do not know", "", "nothing that counts"}, s.Stale...)
		values = append(values, s.Elsewhere...)
		a := talking{say: func(int) (string, bool) {
			text := values[random.IntN(len(values))]
			if random.IntN(4) == 0 {
				text += " or " + values[random.IntN(len(values))]
			}
			return text, random.IntN(40) > 0
		}}
		kind := random.IntN(30)
		a.change = func(x *journal.Transcript) {
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
