package model

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/build"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/run"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/stats"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// endpoint answers chats with a function of the messages.
func endpoint(t *testing.T, answer func(messages []Message) string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct{ Messages []Message }
		if json.NewDecoder(r.Body).Decode(&request) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"model": "m", "system_fingerprint": StubFingerprint,
			"choices": []any{map[string]any{"message": map[string]string{"role": "assistant",
				"content": answer(request.Messages)}}}})
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// fromContext answers a prompt with the lines of its context that share a word with the question.
func fromContext(messages []Message) string {
	text := messages[len(messages)-1].Content
	context, question, _ := strings.Cut(text, "Question: ")
	context, _, _ = strings.Cut(context, "The present date and time: ") // the template's own words are not memory
	var found []string
	for _, line := range strings.Split(context, "\n") {
		for _, word := range strings.Fields(strings.ToLower(question)) {
			if len(word) > 4 && strings.Contains(strings.ToLower(line), strings.Trim(word, "?")) {
				found = append(found, line)
				break
			}
		}
	}
	if len(found) == 0 {
		return "I do not know"
	}
	return strings.Join(found, " ")
}

// exact accepts an answer that contains the expected one, or that says so if nothing was said.
func exact(messages []Message) string {
	if messages[0].Content == unanswerableRubric {
		if strings.HasSuffix(messages[len(messages)-1].Content, "Answer: I do not know") {
			return "yes"
		}
		return "no"
	}
	_, rest, _ := strings.Cut(messages[len(messages)-1].Content, "Expected answer: ")
	expected, answer, _ := strings.Cut(rest, "\nAnswer: ")
	if strings.Contains(strings.ToLower(answer), strings.ToLower(expected)) {
		return "Yes."
	}
	return "no"
}

// ran runs a small pack with an agent and returns run and pack.
func ran(t *testing.T, text string) (string, *rundir.Run, *pack.Pack) {
	t.Helper()
	b, err := build.Find("synth")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "synth.pack")
	_, err = b.Build(build.Request{Options: map[string]string{"personas": "3", "sessions": "3", "turns": "2"}}, path)
	require.NoError(t, err)
	p, err := pack.Open(path)
	require.NoError(t, err)
	l, err := lab.Parse([]byte("lab: 1\npack: p\ntokenizer: bytes4\nbudgets: [2000]\nproviders: [full_history, " +
		"no_memory]\n" + text))
	require.NoError(t, err)
	folder := filepath.Join(t.TempDir(), "run")
	r, err := run.Begin(folder, l, path, p, runOptions(t, l))
	require.NoError(t, err)
	require.NoError(t, run.Go(t.Context(), folder, r, p, runOptions(t, l)))
	return folder, r, p
}

func TestMain(m *testing.M) { testcache.Run(m) }

func runOptions(t *testing.T, l *lab.Lab) run.Options {
	t.Helper()
	agent, err := NewAgent(l, func(string) string { return "" })
	require.NoError(t, err)
	agent.client.wait = func(context.Context, time.Duration) error { return nil }
	return run.Options{Now: time.Now, Logger: hclog.NewNullLogger(), Agent: agent,
		Host: host.Options{CacheDir: testcache.Dir()},
		Provider: func(entry *lab.Provider) (host.ProviderConfig, error) {
			m, _ := plugins.Find(entry.Name())
			return host.ProviderConfig{Name: entry.Name(), Module: m.Wasm, Source: "builtin", Block: abi.Raw("{}")}, nil
		}}
}

func TestAgentAndJudgeTellAMemoryFromNone(t *testing.T) {
	folder, r, p := ran(t, fmt.Sprintf("agent: {url: %q, model: a}\njudge: {url: %q, model: j}",
		endpoint(t, fromContext), endpoint(t, exact)))
	answers := 0
	for l, err := range journal.Read(filepath.Join(r.Cells[0].Folder(folder), journal.Name)) {
		require.NoError(t, err)
		if l.Kind != journal.KindAnswer {
			continue
		}
		answers++
		assert.True(t, l.Answer.Stub, "a stand-in answered")
		request, err := rundir.Blobs(folder).Text(l.Answer.RequestSHA256)
		require.NoError(t, err)
		assert.Contains(t, string(request), "Question: ")
	}
	assert.Equal(t, p.Manifest.Counts.Probes, answers)
	require.NoError(t, RunJudge(t.Context(), folder, r, p, os.Getenv, func(int, int) {}))
	list, err := ReadJudgements(filepath.Join(folder, JudgementsFile))
	require.NoError(t, err)
	v := Conclude(list, nil, r.Lab)
	assert.True(t, v.Stub)
	require.Len(t, v.Providers, 2)
	require.Len(t, v.Compared, 1)
	assert.Equal(t, "full_history", v.Compared[0].Reference)
	assert.Equal(t, "no_memory", v.Compared[0].Comparisons[0].Label)
	assert.Less(t, v.Compared[0].Comparisons[0].Difference.Mean, -0.8)
	assert.Equal(t, stats.CannotDecide, v.Compared[0].Comparisons[0].Verdict, "three people")
	for _, of := range v.Providers {
		require.NotNil(t, of.Abstained)
		assert.Equal(t, 9, of.Abstained.N)
	}
	assert.InDelta(t, 1, v.Providers[1].Abstained.Mean, 1e-12, "no_memory says that it does not know")
	assert.Greater(t, v.Providers[0].Rate.Judged, 0.8, "full_history")
	assert.Zero(t, v.Providers[1].Rate.Judged, "no_memory")
	assert.Zero(t, v.Providers[0].Rate.FalseAccepts)
	assert.Zero(t, v.Providers[0].Rate.FalseRejects)

	// The same call asks nothing a second time, even after a truncated line.
	path := filepath.Join(folder, JudgementsFile)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, whole[:len(whole)-7], 0o600))
	require.NoError(t, RunJudge(t.Context(), folder, r, p, os.Getenv, func(int, int) {}))
	again, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(whole), string(again))

	r.Lab.Judge.Rubric = "another"
	assert.ErrorContains(t, RunJudge(t.Context(), folder, r, p, os.Getenv, func(int, int) {}), "another run or judge")
}

// TestJudgedAccuracyIsComparedOnTheSameQuestions: seven people with four questions each; one memory answers all
// correctly, the other half of them, in two replicates.
func TestJudgedAccuracyIsComparedOnTheSameQuestions(t *testing.T) {
	var list []Judgement
	add := func(label string, replicate, person, question int, right bool, err *abi.Error) {
		probe := fmt.Sprintf("p%d-q%d", person, question)
		list = append(list, Judgement{Item: fmt.Sprintf("%s/%d %s 500 1", label, replicate, probe), Sort: SortAnswer, Label: label,
			Budget: 500, ProbeID: probe, Cluster: fmt.Sprint("c", person), Accepted: right, Error: err})
	}
	for person := range 7 {
		for question := range 4 {
			for replicate := 1; replicate <= 2; replicate++ {
				add("good", replicate, person, question, true, nil)
				add("fair", replicate, person, question, replicate == 1, nil)
				add("floor", replicate, person, question, false, nil)
			}
		}
	}
	l := &lab.Lab{Seed: 1, Budgets: []int64{500, 1000}, Providers: []lab.Provider{{Label: "fair"}, {Label: "good"},
		{Label: "floor", Reference: true}}}
	v := Conclude(list, nil, l)
	require.Len(t, v.Compared, 1, "nothing was asked at 1000")
	require.Len(t, v.Compared[0].Comparisons, 1, "what stands beside is no candidate")
	c := v.Compared[0].Comparisons[0]
	assert.Equal(t, "good", c.Label)
	assert.Equal(t, 28, c.Difference.N)
	assert.InDelta(t, 0.5, c.Difference.Mean, 1e-12)
	assert.Equal(t, stats.Better, c.Verdict)

	gone := abi.NewError(abi.CodeBackend, "no verdict")
	for i := range list {
		if list[i].Label == "good" && list[i].Cluster < "c4" {
			list[i].Error = gone
		}
	}
	c = Conclude(list, nil, l).Compared[0].Comparisons[0]
	assert.Equal(t, 16, c.MissingA)
	assert.NotEqual(t, stats.Better, c.Verdict, "three people of seven are left")
}

// TestChoicesNeedNoJudge: an answer that chooses one of a probe's options is compared with the right one.
func TestChoicesNeedNoJudge(t *testing.T) {
	probe := &pack.Probe{ProbeID: "p", Options: []string{"(a) tea", "(b) coffee"},
		Gold: pack.Gold{Answerable: true, Answers: [][]string{{"(b) coffee"}}}}
	for text, right := range map[string]bool{"(b)": true, "Coffee.": true, "(a)": false, "I do not know": false} {
		item := newItem(probe, nil, SortAnswer, text, nil)
		require.NoError(t, judgeOne(t.Context(), nil, &lab.Lab{}, &item, nil))
		assert.Equal(t, right, item.Accepted, text)
		assert.True(t, item.Exact)
	}
	assert.Empty(t, calibration(nil, nil))
}

func TestALyingJudgeIsCorrected(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	lies := func(messages []Message) string {
		truth := exact(messages) == "Yes."
		if truth && random.Float64() < 0.10 || !truth && random.Float64() >= 0.30 {
			return "no"
		}
		return "yes"
	}
	var list []Judgement
	for i := range 3000 {
		right := i%10 < 6
		text, sort := "green tea", SortVerbatim
		if !right {
			text, sort = "coffee", SortOnTopic
		}
		for _, s := range []Sort{SortAnswer, sort} {
			answer := lies([]Message{{"user", "Question: q\nExpected answer: green tea\nAnswer: " + text}})
			list = append(list, Judgement{Item: fmt.Sprint(s, i), Sort: s, Label: "x", Budget: 1,
				Cluster: fmt.Sprint(i % 20), Accepted: answer == "yes"})
		}
	}
	rate := Conclude(list, nil, &lab.Lab{Seed: 1}).Providers[0].Rate
	assert.InDelta(t, 0.66, rate.Judged, 0.03, "0.6 * 0.9 + 0.4 * 0.3")
	assert.InDelta(t, 0.30, rate.FalseAccepts, 0.04)
	assert.InDelta(t, 0.10, rate.FalseRejects, 0.03)
	assert.InDelta(t, 0.60, rate.Rate, 0.05)
	assert.Less(t, rate.Low, 0.6)
	assert.Greater(t, rate.High, 0.6)
}

func TestWhatAnEndpointDoesWrongIsTypedAndNeverAMiss(t *testing.T) {
	answers := []func(w http.ResponseWriter){
		func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		func(w http.ResponseWriter) {
			_, _ = w.Write([]byte(`{"model":"m","choices":[{"message":{"content":"fine"}}]}`))
		},
	}
	at := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answers[at](w); at++ }))
	defer s.Close()
	c, err := NewClient(lab.Model{URL: s.URL, KeyEnv: "KEY", TimeoutMS: 5000}, func(string) string {
		return "sesame-sesame"
	})
	require.NoError(t, err)
	var waited []time.Duration
	c.wait = func(_ context.Context, d time.Duration) error { waited = append(waited, d); return nil }
	put := func([]byte) (string, error) { return "hash", nil }
	reply, err := c.Chat(t.Context(), nil, 1, put)
	require.NoError(t, err)
	assert.Equal(t, "fine", reply.Text)
	assert.Equal(t, []time.Duration{3 * time.Second, 2 * time.Second}, waited)

	for _, c := range []struct {
		name string
		say  func(w http.ResponseWriter)
		code abi.Code
	}{
		{"no chat completion", func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) }, abi.CodeBackend},
		{"no choices", func(w http.ResponseWriter) { _, _ = w.Write([]byte("{}")) }, abi.CodeBackend},
		{"a refusal", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte("bad key sesame-sesame"))
		}, abi.CodeUnauthenticated},
		{"rate limits without end", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusTooManyRequests)
		}, abi.CodeRateLimited},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { c.say(w) }))
			defer s.Close()
			client, err := NewClient(lab.Model{URL: s.URL, KeyEnv: "KEY", TimeoutMS: 5000}, func(string) string {
				return "sesame-sesame"
			})
			require.NoError(t, err)
			client.wait = func(context.Context, time.Duration) error { return nil }
			_, err = client.Chat(t.Context(), nil, 1, put)
			require.Error(t, err)
			assert.Equal(t, c.code, abi.CodeOf(err))
			if native := abi.AsError(err).Native; native != nil {
				assert.NotContains(t, native.Body, "sesame-sesame")
			}
		})
	}
	_, err = NewClient(lab.Model{KeyEnv: "NOBODY_SETS_THIS"}, func(string) string { return "" })
	assert.ErrorContains(t, err, "is empty")
}

// TestAnEndpointsRefusalOfAParameterIsFoundOutOnce: before the first answer, and the limit on the cost still applies.
func TestAnEndpointsRefusalOfAParameterIsFoundOutOnce(t *testing.T) {
	var asked []map[string]any
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		asked = append(asked, body)
		for _, name := range []string{"max_completion_tokens", "temperature"} {
			if _, given := body[name]; given {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = fmt.Fprintf(w, `{"error":{"message":"Unsupported parameter: '%s'"}}`, name)
				return
			}
		}
		_, _ = w.Write([]byte(`{"model":"m","choices":[{"message":{"content":[{"type":"text","text":"<think>hm</think>yes"}]}}]}`))
	}))
	defer s.Close()
	c, err := NewClient(lab.Model{URL: s.URL, TimeoutMS: 5000, MaxTokens: 64}, func(string) string { return "" })
	require.NoError(t, err)
	put := func([]byte) (string, error) { return "hash", nil }
	for range 2 {
		reply, err := c.Chat(t.Context(), nil, 1, put)
		require.NoError(t, err)
		assert.Equal(t, "yes", reply.Text)
		assert.Equal(t, "max_tokens, seed", reply.Params)
	}
	require.Len(t, asked, 4)
	assert.EqualValues(t, 64, asked[3]["max_tokens"])

	refused := 0
	s2 := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refused++
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":{"message":"This model's context is 8192 tokens."}}`))
	}))
	defer s2.Close()
	c, err = NewClient(lab.Model{URL: s2.URL, TimeoutMS: 5000}, func(string) string { return "" })
	require.NoError(t, err)
	_, err = c.Chat(t.Context(), nil, 1, put)
	require.ErrorContains(t, err, "answered 400: This model's context is 8192 tokens.")
	require.Equal(t, 1, refused)
}

func TestATemplateHasItsPlaces(t *testing.T) {
	l := &lab.Lab{Agent: &lab.Agent{Template: "only {{query}}"}}
	_, err := NewAgent(l, os.Getenv)
	assert.ErrorContains(t, err, "{{context}}")
	a := &Agent{template: lab.DefaultTemplate}
	text := a.prompt(&pack.Probe{Query: "Q", Options: []string{"(a) x"}}, "memory says {{query}}")
	assert.Contains(t, text, "memory says {{query}}", "a placeholder in memory is text")
	assert.Contains(t, text, "Choose one of these:\n(a) x")
}

func TestAnEndpointThatIsGoneEndsTheCellAndAResumptionAsksAgain(t *testing.T) {
	b, err := build.Find("synth")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "synth.pack")
	_, err = b.Build(build.Request{Options: map[string]string{"personas": "1", "sessions": "3", "turns": "2"}}, path)
	require.NoError(t, err)
	p, err := pack.Open(path)
	require.NoError(t, err)
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		switch {
		case asked == 2: // nonsense is a result: missing, and not retried
			_, _ = w.Write([]byte("<html>"))
		case asked > 4 && asked <= 4+attempts:
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			_, _ = w.Write([]byte(`{"model":"m","choices":[{"message":{"content":"fine"}}]}`))
		}
	}))
	defer s.Close()
	l, err := lab.Parse(fmt.Appendf(nil, "lab: 1\npack: p\ntokenizer: bytes4\nbudgets: [2000]\nproviders: "+
		"[no_memory]\nagent: {url: %q, model: a}", s.URL))
	require.NoError(t, err)
	folder := filepath.Join(t.TempDir(), "run")
	r, err := run.Begin(folder, l, path, p, runOptions(t, l))
	require.NoError(t, err)
	err = run.Go(t.Context(), folder, r, p, runOptions(t, l))
	assert.Equal(t, abi.CodeRateLimited, abi.CodeOf(err))
	assert.ErrorContains(t, err, "agent: ")
	assert.Equal(t, rundir.Failed, r.Cells[0].State)
	require.NoError(t, run.Go(t.Context(), folder, r, p, runOptions(t, l)))
	answers, failed := map[string]int{}, 0
	for l, err := range journal.Read(filepath.Join(r.Cells[0].Folder(folder), journal.Name)) {
		require.NoError(t, err)
		if l.Kind == journal.KindAnswer {
			answers[l.Answer.ProbeID]++
			if l.Answer.Error != nil {
				failed++
				assert.Equal(t, abi.CodeBackend, l.Answer.Error.Code)
			}
		}
	}
	assert.Len(t, answers, p.Manifest.Counts.Probes, "no probe lost its answer")
	assert.Equal(t, 1, failed)
}

func TestPeopleLabelAnswersBlind(t *testing.T) {
	folder, r, p := ran(t, fmt.Sprintf("agent: {url: %q, model: a}\njudge: {url: %q, model: j}",
		endpoint(t, fromContext), endpoint(t, exact)))
	require.NoError(t, RunJudge(t.Context(), folder, r, p, os.Getenv, func(int, int) {}))
	var sheet strings.Builder
	n, err := Sheet(&sheet, folder, r, p, 10)
	require.NoError(t, err)
	assert.Equal(t, 10, n)
	for _, word := range []string{"full_history", "no_memory", "2000", "model"} {
		assert.NotContains(t, strings.Split(sheet.String(), "\n")[0], word)
	}
	rows, err := csv.NewReader(strings.NewReader(sheet.String())).ReadAll()
	require.NoError(t, err)
	fill := func(right func(row []string) string) string {
		var b strings.Builder
		for i, row := range rows {
			if i > 0 {
				row[4] = right(row)
			}
		}
		require.NoError(t, csv.NewWriter(&b).WriteAll(rows))
		return b.String()
	}
	truth := func(row []string) string {
		if strings.Contains(strings.ToLower(row[3]), strings.ToLower(row[2])) {
			return "yes"
		}
		return "no"
	}
	windows := "\ufeff" + strings.ReplaceAll(fill(truth), "\n", "\r\n") // as Excel saves it
	labelled, empty, err := TakeLabels(strings.NewReader(windows), folder, r, p, "ann")
	require.NoError(t, err)
	assert.Equal(t, []int{10, 0}, []int{labelled, empty})
	_, _, err = TakeLabels(strings.NewReader(fill(func([]string) string { return "no" })), folder, r, p, "bob")
	require.NoError(t, err)
	list, err := ReadJudgements(filepath.Join(folder, JudgementsFile))
	require.NoError(t, err)
	labels, err := ReadLabels(folder)
	require.NoError(t, err)
	assert.Len(t, labels, 20)
	v := Conclude(list, labels, &lab.Lab{Seed: 1})
	assert.Equal(t, "made items", v.CorrectedOn, "20 labels are too few")
	require.Len(t, v.Agreement, 3)
	assert.Equal(t, v.Agreement[0].Items, v.Agreement[0].Agreed, "judge and ann")
	assert.Less(t, v.Agreement[2].Agreed, 10, "ann and bob")
	require.NotEmpty(t, v.Providers[0].ByLabel)

	_, _, err = TakeLabels(strings.NewReader(fill(func([]string) string { return "perhaps" })), folder, r, p, "ann")
	assert.ErrorContains(t, err, "row 2: right: want yes, no or nothing")
	rows[1][0] = "0000"
	_, _, err = TakeLabels(strings.NewReader(fill(truth)), folder, r, p, "ann")
	assert.ErrorContains(t, err, "is no answer of this run")
}

func TestAJudgeIsCorrectedByPeoplesLabels(t *testing.T) {
	var list []Judgement
	var labels []Labelled
	for i := range 2000 {
		right := i%10 < 6
		accepted := right && i%7 > 0 || !right && i%4 == 0 // wrong about some real answers, but perfect on made-up ones
		text := fmt.Sprint("text", i)
		list = append(list, Judgement{Item: text, Sort: SortAnswer, Label: "x", Budget: 1, Cluster: fmt.Sprint(i % 20),
			Accepted: accepted, Text: text},
			Judgement{Item: fmt.Sprint("good", i), Sort: SortVerbatim, Cluster: fmt.Sprint(i % 20), Accepted: true},
			Judgement{Item: fmt.Sprint("bad", i), Sort: SortOnTopic, Cluster: fmt.Sprint(i % 20)})
		if i%3 == 0 {
			labels = append(labels, Labelled{text, "ann", right})
		}
	}
	made, real := Conclude(list, nil, &lab.Lab{Seed: 1}).Providers[0].Rate, Conclude(list, labels, &lab.Lab{Seed: 1})
	assert.Greater(t, math.Abs(made.Rate-0.6), 0.01, "made items do not show these errors")
	assert.Equal(t, "667 answers that people labelled", real.CorrectedOn)
	assert.InDelta(t, 0.6, real.Providers[0].Rate.Rate, 0.03)
}

func TestAJudgeWithoutVerdictsHasNoRates(t *testing.T) {
	nonsense := abi.NewError(abi.CodeBackend, "neither yes nor no")
	v := Conclude([]Judgement{{Item: "1", Sort: SortAnswer, Label: "a", Budget: 300, Error: nonsense},
		{Item: "2", Sort: SortVerbatim, Accepted: true}, {Item: "3", Sort: SortVerbatim, Error: nonsense},
		{Item: "4", Sort: SortRefusal, Error: nonsense}}, nil, &lab.Lab{Seed: 1})
	assert.Equal(t, []SortRate{{Sort: SortVerbatim, Items: 1, Accepted: 1, Missing: 1}, {Sort: SortRefusal, Missing: 1}},
		v.Errors)
	require.Len(t, v.Providers, 1)
	assert.Zero(t, v.Providers[0].Answers)
	assert.Equal(t, 1, v.Providers[0].Missing)
}

// TestAnEmptyAnswerIsMissingAndNotWrong: a model that spends its tokens on thinking returns "" with finish_reason
// length. Agent, judge and simulator must not treat that as text.
func TestAnEmptyAnswerIsMissingAndNotWrong(t *testing.T) {
	brief.Leave(t)
	chats := func(content string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, `{"model":"m","choices":[{"finish_reason":"length","message":{"content":%s}}],`+
				`"usage":{"prompt_tokens":10,"completion_tokens":4}}`, content)
		}))
		t.Cleanup(s.Close)
		return s.URL + "/v1"
	}
	for _, content := range []string{`""`, `null`, `" \n"`, `"<think>Perhaps Quill"`} {
		t.Run(content, func(t *testing.T) {
			folder, r, p := ran(t, fmt.Sprintf("agent: {url: %q, model: a}\njudge: {url: %q, model: j}", chats(content),
				endpoint(t, exact)))
			require.NoError(t, RunJudge(t.Context(), folder, r, p, os.Getenv, func(int, int) {}))
			list, err := ReadJudgements(filepath.Join(folder, JudgementsFile))
			require.NoError(t, err)
			v := Conclude(list, nil, &lab.Lab{Seed: 1})
			require.NotEmpty(t, v.Providers)
			for _, of := range v.Providers {
				assert.Zero(t, of.Answers, "an empty answer is no answer")
				assert.Positive(t, of.Missing)
			}
			for l, err := range journal.Read(filepath.Join(r.Cells[0].Folder(folder), journal.Name)) {
				require.NoError(t, err)
				if l.Kind == journal.KindAnswer {
					assert.Equal(t, "length", l.Answer.FinishReason)
					assert.Equal(t, &journal.Usage{PromptTokens: 10, CompletionTokens: 4}, l.Answer.Usage)
					assert.Contains(t, l.Answer.Error.Hint, "raise max_tokens")
				}
			}
		})
	}
	t.Run("of a judge", func(t *testing.T) {
		folder, r, p := ran(t, fmt.Sprintf("agent: {url: %q, model: a}\njudge: {url: %q, model: j}",
			endpoint(t, fromContext), chats(`""`)))
		require.NoError(t, RunJudge(t.Context(), folder, r, p, os.Getenv, func(int, int) {}))
		list, err := ReadJudgements(filepath.Join(folder, JudgementsFile))
		require.NoError(t, err)
		for _, of := range Conclude(list, nil, &lab.Lab{Seed: 1}).Providers {
			assert.Zero(t, of.Answers)
		}
		assert.Equal(t, "length", list[1].FinishReason)
	})
}
