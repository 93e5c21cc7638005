package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/internal/test/testenv"
)

// TestThePublishedPageIsWhatTheRecordGives is make results-check without run folders.
func TestThePublishedPageIsWhatTheRecordGives(t *testing.T) {
	r, text, err := readRecord("../../docs")
	require.NoError(t, err)
	require.NoError(t, r.compare("../../docs"))
	again, err := r.text()
	require.NoError(t, err)
	assert.Equal(t, string(text), string(again))
	assert.Equal(t, dataSHA256, r.Data.SHA256)
	assert.Less(t, len(text), 200_000)
	page, err := os.ReadFile("../../docs/results.md")
	require.NoError(t, err)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	for name, text := range map[string]string{"the page": string(page), "README": string(readme)} {
		assert.Contains(t, text, "etrieval of stored messages", name)
		assert.Contains(t, strings.ToLower(text), "no architecture is ranked here", name)
	}
	plots, err := r.plots()
	require.NoError(t, err)
	for name, svg := range plots {
		assert.Contains(t, string(svg), caption, name)
		assert.Less(t, len(svg), 100_000, name)
	}
}

func TestAnswersAreJudgedBeforeTheirReport(t *testing.T) {
	w := &workplace{root: t.TempDir(), folder: t.TempDir()}
	require.NoError(t, os.Mkdir(filepath.Join(w.root, "bin"), 0o755))
	program := filepath.Join(w.root, "bin", "memhost")
	script := "#!/bin/sh\necho \"$@\" >>" + w.path("called") + "\n"
	require.NoError(t, os.WriteFile(program, []byte(script), 0o755))
	x, err := named("model-mem0")
	require.NoError(t, err)
	require.NoError(t, w.judge(t.Context(), x))
	run := w.path("model-mem0", "run")
	called, err := os.ReadFile(w.path("called"))
	require.NoError(t, err)
	assert.Equal(t, "eval judge "+run+"\neval report "+run+"\n", string(called))

	require.NoError(t, os.WriteFile(program, []byte(script+"exit 1\n"), 0o755))
	require.ErrorContains(t, w.judge(t.Context(), x), "eval judge", "a report without verdicts is not written")
}

func TestEachLabComparesWithTheSameReferenceAtTheSameBudgets(t *testing.T) {
	for _, x := range experiments {
		if x.judged() {
			continue
		}
		l, err := x.lab(nil)
		require.NoError(t, err, x.name)
		assert.Equal(t, x.name, l.Name)
		assert.Equal(t, []int64{500, 1000, 4000}, l.Budgets, x.name)
		assert.NotNil(t, l.Find(reference), x.name)
		require.NotNil(t, l.Primary, x.name)
		assert.Equal(t, []any{recall, int64(primaryBudget), reference},
			[]any{l.Primary.Metric, l.Primary.Budget, l.Primary.Reference}, x.name)
		for _, p := range l.Providers {
			assert.NotEqual(t, "", titles[p.Label], p.Label)
		}
		text, err := labs.ReadFile("labs/" + x.name + ".yaml")
		require.NoError(t, err)
		if x.port != 0 {
			assert.Contains(t, string(text), fmt.Sprintf("http://127.0.0.1:%d", x.port), x.name)
		}
		if x.server+x.script != "" {
			version, err := (&workplace{root: "../.."}).pinned(x)
			require.NoError(t, err)
			assert.Regexp(t, `^\S+ \d`, version)
		}
	}
	_, err := choose("local,mem1")
	assert.ErrorContains(t, err, `there is no "mem1"; there are local, hybrid, mem0`)
}

func TestALanguageModelAddsExperimentsWithAnAgent(t *testing.T) {
	t.Setenv(modelURL, "")
	t.Setenv(honchoSource, "")
	list, err := choose("")
	require.NoError(t, err)
	for _, x := range list {
		assert.False(t, x.judged(), x.name)
		assert.NotEqual(t, "honcho", x.name)
	}
	_, err = choose("model-mem0")
	require.ErrorContains(t, err, "model-mem0 needs the variable MODEL_URL")
	t.Setenv(modelURL, "http://127.0.0.1:9100/v1")
	t.Setenv(modelName, "my-$model")
	t.Setenv(modelKey, "secret")
	t.Setenv(honchoSource, "honcho")
	list, err = choose("")
	require.NoError(t, err)
	assert.Len(t, list, len(experiments))
	for _, x := range list {
		if !x.judged() {
			continue
		}
		provider, _, _ := strings.Cut(strings.TrimPrefix(x.name, "model-"), ":")
		server := &testenv.Backend{Provider: provider, Config: object{"url": "http://127.0.0.1:1"},
			Secrets: map[string]testenv.Secret{"key": {Variable: "KEY", Origin: "http://127.0.0.1:1", Value: "hidden"}}}
		l, err := x.lab(server)
		require.NoError(t, err, x.name)
		assert.Equal(t, x.name, l.Name)
		require.NotNil(t, l.Find(provider), x.name)
		for _, m := range []lab.Model{l.Agent.Model, l.Judge.Model} {
			assert.Equal(t, []string{"http://127.0.0.1:9100/v1", "my-$model", modelKey}, []string{m.URL, m.Model, m.KeyEnv})
		}
		text, err := x.labText(server)
		require.NoError(t, err)
		assert.NotContains(t, string(text), "hidden")
	}
}

func TestDataAreTakenByTheirDigestAlone(t *testing.T) {
	answer := `[{"qa": []}]`
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte(answer)))
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	t.Setenv(dataVariable, "")
	w := &workplace{folder: t.TempDir(), began: time.Now()}
	_, err := w.data(t.Context(), server.URL, strings.Repeat("0", 64))
	require.ErrorContains(t, err, "it is another version")
	require.NoFileExists(t, w.path("locomo10.json"))
	status = http.StatusNotFound
	_, err = w.data(t.Context(), server.URL, digest)
	require.ErrorContains(t, err, "LOCOMO=FILE make results")
	status = http.StatusOK
	file, err := w.data(t.Context(), server.URL, digest)
	require.NoError(t, err)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, answer, string(text))
	server.Close()
	_, err = w.data(t.Context(), server.URL, digest)
	require.NoError(t, err, "it is fetched once")

	copied := &workplace{folder: t.TempDir(), began: time.Now()}
	t.Setenv(dataVariable, file)
	_, err = copied.data(t.Context(), server.URL, digest)
	require.NoError(t, err)
	_, err = (&workplace{folder: t.TempDir(), began: time.Now()}).data(t.Context(), server.URL, strings.Repeat("0", 64))
	require.ErrorContains(t, err, "it is another version")
}

type object = map[string]any

// conversations are made up, in LoCoMo's form, with each type of question.
func conversations(n int) []object {
	var list []object
	for i := range n {
		people := []string{fmt.Sprint("Ann", i), fmt.Sprint("Bo", i)}
		conversation := object{"speaker_a": people[0], "speaker_b": people[1]}
		var questions []object
		for session := 1; session <= 3; session++ {
			var turns []object
			for turn := 1; turn <= 8; turn++ {
				thing := fmt.Sprintf("thing%dx%dx%d", i, session, turn)
				turns = append(turns, object{"speaker": people[turn%2], "dia_id": fmt.Sprintf("D%d:%d", session, turn),
					"text": fmt.Sprintf("Yesterday I found the %s in a drawer of the old desk upstairs.", thing)})
				questions = append(questions, object{"question": "Where was the " + thing + "?", "answer": "in a drawer",
					"evidence": []string{fmt.Sprintf("D%d:%d", session, turn)}, "category": 1 + turn%4})
			}
			conversation[fmt.Sprintf("session_%d", session)] = turns
			conversation[fmt.Sprintf("session_%d_date_time", session)] = fmt.Sprintf("1:56 pm on %d May, 2023", session)
		}
		list = append(list, object{"sample_id": fmt.Sprint("made-up-", i), "conversation": conversation, "qa": questions})
	}
	return list
}

// TestARunIsMadePublishedAndComputedAgain goes the whole way with the memories that need no server, on made-up data.
func TestARunIsMadePublishedAndComputedAgain(t *testing.T) {
	root, docs := t.TempDir(), filepath.Join(t.TempDir(), "docs")
	out, err := exec.Command("go", "build", "-C", "../..", "-o", filepath.Join(root, "bin", "memhost"), "./cmd/memhost").
		CombinedOutput()
	require.NoError(t, err, "%s", out)
	w := &workplace{root: root, folder: filepath.Join(root, "work"), began: time.Now()}
	require.NoError(t, os.MkdirAll(w.folder, 0o755))
	text, err := json.Marshal(conversations(4))
	require.NoError(t, err)
	file := w.path("made-up.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	w.conversations = 3
	require.NoError(t, w.pack(t.Context(), file))
	w.conversations = 0
	_, err = w.gather()
	require.ErrorContains(t, err, "no run is complete")

	local := experiments[0]
	require.NoError(t, w.experiment(t.Context(), local))
	require.NoError(t, w.score(local, false))
	r, err := w.gather()
	require.NoError(t, err)
	assert.Equal(t, []int{3, 72, 72}, []int{r.Data.Conversations, r.Data.Events, r.Data.Counted})
	figure := r.column(reference).at(primaryBudget).Figures[recall]
	assert.InDelta(t, 1, figure.Mean, 1e-9, "a question has a word that its evidence alone has")
	assert.Zero(t, r.column("no_memory").at(primaryBudget).Figures[recall].Mean)
	assert.Less(t, r.column("random").at(500).Figures[recall].Mean, 1.0)
	require.NoError(t, r.publish(docs))
	require.NoError(t, w.check(t.Context(), docs))
	page, err := os.ReadFile(filepath.Join(docs, "results.md"))
	require.NoError(t, err)
	published, err := os.ReadFile(filepath.Join(docs, "results", recordFile))
	require.NoError(t, err)
	every, err := os.ReadFile(filepath.Join(docs, "reference", "results.md"))
	require.NoError(t, err)
	assert.Contains(t, string(every), r.Runs[0].Head)
	assert.NotContains(t, string(page)+string(every)+string(published), "drawer", "no text of the data set is published")
	assert.Contains(t, string(page), "1.000 [1.000, 1.000]")

	t.Run("a complete run is not made again", func(t *testing.T) {
		done, err := w.complete(local)
		require.NoError(t, err)
		assert.True(t, done)
	})
	// Whatever was changed by hand is found, with its place.
	record := filepath.Join(docs, "results", recordFile)
	for name, c := range map[string]struct{ file, old, new, want string }{
		"the page": {filepath.Join(docs, "results.md"), "1.000 [1.000", "0.999 [1.000", "results.md is not what"},
		"a plot":   {filepath.Join(docs, "results", "types.svg"), "bm25", "bm26", "types.svg is not what"},
		"a figure of the record, with page and plots": {record, `"mean": 1,`, `"mean": 0.999,`, "computed \"mean\": 1"},
		"a head": {record, r.Runs[0].Head, strings.Repeat("0", 64), "memhost eval verify"},
		"a journal": {w.path("local", "run", "cells", "bm25", "1", "trace.jsonl"), "committed", "commixted",
			"memhost eval verify"},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := os.ReadFile(c.file)
			require.NoError(t, err)
			require.Contains(t, string(before), c.old)
			require.NoError(t, os.WriteFile(c.file, []byte(strings.Replace(string(before), c.old, c.new, 1)), 0o600))
			if c.file == record { // a forger of the record would also make page and plots from it
				forged, _, err := readRecord(docs)
				require.NoError(t, err)
				require.NoError(t, forged.publish(docs))
			}
			require.ErrorContains(t, w.check(t.Context(), docs), c.want)
			require.NoError(t, os.WriteFile(c.file, before, 0o600))
			require.NoError(t, r.publish(docs))
		})
	}
}
