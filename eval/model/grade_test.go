package model

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/build"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/simulate"
	"github.com/memhost/memhost/eval/simulate/simulatetest"
	"github.com/memhost/memhost/eval/stats"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// grader grades by how often the person had to ask, and remembers what it read.
type grader struct {
	mu   sync.Mutex
	read []string
}

func (g *grader) answer(messages []Message) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	text := messages[1].Content
	g.read = append(g.read, messages[0].Content+"\n"+text)
	if !strings.Contains(text, "The person was content.") {
		return "0"
	}
	return fmt.Sprintf("Grade: %d", max(1, 5-strings.Count(text, "Assistant: ")))
}

// conversed runs three memories with an agent that has conversations, and a judge.
func conversed(t *testing.T, replicates int) (path, folder string, r *rundir.Run, p *pack.Pack, g *grader) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "synth.pack")
	b, err := build.Find("synth")
	require.NoError(t, err)
	_, err = b.Build(build.Request{Options: map[string]string{"personas": "7", "sessions": "6"}}, path)
	require.NoError(t, err)
	p, err = pack.Open(path)
	require.NoError(t, err)
	l := simulatetest.Lab(replicates, "provider-silent", "provider-knowing", "provider-late")
	g = &grader{}
	l.Judge = &lab.Judge{Model: lab.Model{URL: endpoint(t, g.answer), Model: "grader", TimeoutMS: 60_000, MaxTokens: 100}}
	folder = simulatetest.Run(t, l, p, func(label string, replicate int, s *simulate.Setting) simulatetest.Agent {
		a := simulatetest.Knowing(s)
		switch label {
		case "provider-silent":
			a = simulatetest.Always("")
		case "provider-late":
			a = simulatetest.Agent{Say: func(n int) (string, bool) {
				if n < 3 {
					return "Which one?", true
				}
				return s.Value, true
			}}
		}
		a.Context = "SECRETCONTEXT"
		a.Change = func(x *journal.Transcript) {
			for i := range x.Exchanges {
				x.Exchanges[i].Nonce, x.Exchanges[i].Model = "SECRETNONCE", "SECRETMODEL"
			}
			if label == "provider-late" && replicate == 1 && strings.HasSuffix(s.ProbeID, "-3-q1") {
				x.Exchanges[0].User += " I like " + s.Value
			}
		}
		return a
	})
	r, err = rundir.Open(folder)
	require.NoError(t, err)
	return path, folder, r, p, g
}

func grades(t *testing.T, folder string, r *rundir.Run) *Grades {
	t.Helper()
	list, err := ReadGrades(filepath.Join(folder, GradesFile))
	require.NoError(t, err)
	labels, err := ReadGradeLabels(folder)
	require.NoError(t, err)
	return ConcludeGrades(list, labels, r.Lab)
}

func TestAJudgeGradesConversationsBlind(t *testing.T) {
	path, folder, r, p, judge := conversed(t, 3)
	talked, err := HasConversations(folder, r)
	require.NoError(t, err)
	assert.True(t, talked)
	require.NoError(t, RunGrades(t.Context(), folder, r, p, os.Getenv, func(int, int) {}))
	// What the judge sees: rubric, transcript and the preferences in force, but no provider, no context, and nothing
	// about how the subject was connected.
	require.NotEmpty(t, judge.read)
	for _, text := range judge.read {
		for _, secret := range append([]string{"SECRET", "builtin", "scripted", "synth"}, "provider-silent", "provider-knowing", "provider-late") {
			require.NotContains(t, text, secret)
		}
		require.Contains(t, text, DefaultGradeRubric)
		require.Contains(t, text, "The person's preferences at this time:\n- ")
		require.Contains(t, text, "\nPerson: ")
	}
	g := grades(t, folder, r)
	require.Len(t, g.Providers, 3)
	for i, want := range []float64{0, 4, 2} {
		require.NotNil(t, g.Providers[i].Mean, g.Providers[i].Label)
		assert.InDelta(t, want, g.Providers[i].Mean.Mean, 1e-12, g.Providers[i].Label)
		assert.Zero(t, g.Providers[i].Missing)
	}
	assert.Equal(t, 7, g.Leaked)
	require.Len(t, g.Compared, 1)
	assert.Equal(t, "provider-silent", g.Compared[0].Reference)
	for i, difference := range []float64{4, 2} {
		c := g.Compared[0].Comparisons[i]
		assert.Equal(t, stats.Better, c.Verdict)
		assert.InDelta(t, difference, c.Difference.Mean, 1e-12, "in grades")
	}
	// Conversations without answers are graded without a judge; the judge's file is continued where it was cut off.
	asked := len(judge.read)
	file := filepath.Join(folder, GradesFile)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	half := bytes.LastIndexByte(text[:len(text)/2], '\n') + 20 // in the middle of a line
	require.NoError(t, os.WriteFile(file, text[:half], 0o600))
	require.NoError(t, RunGrades(t.Context(), folder, r, p, os.Getenv, func(int, int) {}))
	again, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(text), string(again))
	assert.Less(t, len(judge.read), 2*asked)

	if python, err := exec.LookPath("python3"); err == nil {
		out, err := exec.CommandContext(t.Context(), python, "../score/testdata/behaviour.py", path, folder, file).Output()
		require.NoError(t, err)
		var found map[string]map[string]struct {
			Mean float64
			N    int
		}
		require.NoError(t, json.Unmarshal(out, &found))
		for _, provider := range g.Providers {
			f := found[provider.Label]["iqi_judge"]
			assert.Equal(t, fmt.Sprintf("%.12f", f.Mean), fmt.Sprintf("%.12f", provider.Mean.Mean))
			assert.Equal(t, f.N, provider.Mean.N)
		}
	}

	r.Lab.Judge.Model.Model = "another"
	assert.Equal(t, abi.CodeConflict, abi.CodeOf(RunGrades(t.Context(), folder, r, p, os.Getenv, func(int, int) {})))
}

func TestTheGradeInAnAnswer(t *testing.T) {
	for text, want := range map[string]int{"4": 4, "Grade: 3": 3, "**2**": 2, "I would give this 1/4.": 1, "0 out of 4": 0,
		"<think>maybe 3</think>2": 2, "": -1, "5": -1, "between 2 and 3": -1, "good": -1, "14": -1} {
		grade, ok := gradeIn(text)
		assert.Equal(t, want >= 0, ok, text)
		if ok {
			assert.Equal(t, want, grade, text)
		}
	}
}

func TestGradesWithoutThreeReplicatesHaveNoVerdict(t *testing.T) {
	_, folder, r, p, _ := conversed(t, 2)
	require.NoError(t, RunGrades(t.Context(), folder, r, p, os.Getenv, func(int, int) {}))
	for _, c := range grades(t, folder, r).Compared[0].Comparisons {
		assert.Equal(t, stats.TooFewReplicates, c.Verdict)
	}
}

func TestPeopleGradeWhatTheJudgeRead(t *testing.T) {
	_, folder, r, p, judge := conversed(t, 1)
	require.NoError(t, RunGrades(t.Context(), folder, r, p, os.Getenv, func(int, int) {}))
	var sheet bytes.Buffer
	n, err := GradeSheet(&sheet, folder, r, p, 30)
	require.NoError(t, err)
	assert.Equal(t, 30, n)
	rows, err := csv.NewReader(strings.NewReader(sheet.String())).ReadAll()
	require.NoError(t, err)
	require.NotContains(t, sheet.String(), "provider-")
	for i, row := range rows[1:] {
		require.Contains(t, strings.Join(judge.read, "\n"), strings.TrimSpace(row[1]))
		row[2] = map[bool]string{true: "4", false: "2"}[strings.Count(row[1], "Assistant: ") == 1]
		if i == 0 {
			row[2] = ""
		}
	}
	var filled bytes.Buffer
	require.NoError(t, csv.NewWriter(&filled).WriteAll(rows))
	taken, empty, err := TakeGradeLabels(&filled, folder, r, p, "ann")
	require.NoError(t, err)
	assert.Equal(t, []int{29, 1}, []int{taken, empty})
	agreement := grades(t, folder, r).Agreement
	require.Len(t, agreement, 1)
	assert.Equal(t, 29, agreement[0].Items)
	require.NotNil(t, agreement[0].Kappa)
	assert.InDelta(t, 1, *agreement[0].Kappa, 1e-12)

	rows[1][2] = "5"
	filled.Reset()
	require.NoError(t, csv.NewWriter(&filled).WriteAll(rows))
	_, _, err = TakeGradeLabels(&filled, folder, r, p, "bob")
	require.ErrorContains(t, err, "want 0 to 4")
}

func TestAModelPlaysAUser(t *testing.T) {
	says := []string{}
	var read [][]Message
	url := endpoint(t, func(messages []Message) string {
		read = append(read, messages)
		next := says[0]
		says = says[1:]
		return next
	})
	l := &lab.Lab{Seed: 1, Simulator: &lab.Simulator{Model: lab.Model{URL: url, Model: "user", TimeoutMS: 60_000, MaxTokens: 100}, Turns: 3}}
	u, err := NewUserModel(l, t.TempDir(), os.Getenv)
	require.NoError(t, err)
	assert.Equal(t, "user", u.Name())
	setting := &simulate.Setting{Opening: "Tea, please.", Value: "Assam", Attribute: "hot_tea", Context: "work"}
	says = []string{`{"action":"repeat","text":"Get me my tea."}`, "```json\n{\"action\":\"correct\",\"text\":\"No, Assam.\"}\n```",
		`{"action":"repeat","text":"Well?"}`, `{"action":"repeat","text":"Well?"}`}
	c, err := u.Open(t.Context(), setting)
	require.NoError(t, err)
	assert.Equal(t, "Get me my tea.", c.Opening())
	assert.Contains(t, read[0][0].Content, "Assam (hot tea, work)")
	for _, want := range []journal.Action{journal.ActionCorrect, journal.ActionRepeat, journal.ActionGiveUp} {
		r, err := c.React(t.Context(), "Sencha?")
		require.NoError(t, err)
		assert.Equal(t, want, r.Action)
		assert.Equal(t, want == journal.ActionGiveUp, r.Text == "")
	}
	for _, bad := range []string{"I would accept that.", `{"action":"dance","text":"x"}`, `{"action":"correct","text":" "}`} {
		says = []string{`{"action":"repeat","text":"Tea!"}`, bad}
		c, err := u.Open(t.Context(), setting)
		require.NoError(t, err)
		_, err = c.React(t.Context(), "Sencha?")
		assert.Equal(t, abi.CodeBackend, abi.CodeOf(err), bad)
	}
}
