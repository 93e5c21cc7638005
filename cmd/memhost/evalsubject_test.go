//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/internal/test/brief"
)

// TestEverySeatIsRunFromPackToReport runs a small pack with each kind of subject: the two programs in examples/subject,
// the built-in agent on an endpoint, and the stub.
func TestEverySeatIsRunFromPackToReport(t *testing.T) {
	brief.Leave(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is missing")
	}
	var asked int
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Messages []struct{ Content string }
		}
		_ = json.NewDecoder(r.Body).Decode(&q)
		asked++
		if asked == 1 {
			assert.Contains(t, q.Messages[0].Content, "<memory-context", "the context stands in the prompt")
		}
		fmt.Fprint(w, `{"model":"m","choices":[{"message":{"role":"assistant","content":"I do not know that."}}]}`)
	}))
	defer endpoint.Close()
	m := memhost{t, t.TempDir(), cacheHome(t), plainProgram(t)}
	must := func(args ...string) string {
		out, code := m.run(args...)
		require.Zero(t, code, out)
		return out
	}
	must("eval", "pack", "build", "synth", "-o", "small.pack", "--option", "personas=1", "--option", "sessions=2",
		"--option", "turns=2")
	examples, err := filepath.Abs(filepath.Join(repository, "examples", "subject"))
	require.NoError(t, err)
	fakes, err := filepath.Abs(filepath.Join("testdata", "subject"))
	require.NoError(t, err)
	t.Setenv("PYTHONPATH", fakes)
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	for _, c := range []struct {
		name, seat, subject string
		notSent             bool // it sends no labels
		once                bool // it retrieves once for each conversation
	}{
		{"command", "command", `{seat: command, command: [python3, "` + examples + `/subject.py"]}`, false, false},
		{"nanobot", "command", `{seat: command, command: [python3, "` + examples + `/nanobot_agent.py", "` + examples + `/nanobot.json"]}`,
			false, false},
		{"picoclaw", "command", `{seat: command, command: [python3, "` + examples + `/picoclaw_agent.py", "` + examples +
			`/picoclaw.json", "` + fakes + `/picoclaw", "` + m.program + `"]}`, true, false},
		{"chat", "chat", `{seat: chat, command: [python3, "` + examples + `/chat.py", "{port}"]}`, true, false},
		{"builtin", "builtin", `{seat: builtin, url: "` + endpoint.URL + `/v1", model: m}`, false, false},
		{"session", "builtin", `{seat: builtin, url: "` + endpoint.URL + `/v1", model: m, retrieve: session}`, false, true},
		{"stub", "stub", `{seat: stub}`, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			lab := "lab: 1\npack: small.pack\nbudgets: [200]\nfreshness: 0\nproviders: [bm25]\nsubject: " + c.subject + "\n"
			require.NoError(t, os.WriteFile(filepath.Join(m.dir, c.name+".yaml"), []byte(lab), 0o600))
			must("eval", "run", c.name+".yaml", "--out", c.name, "--yes", "--no-references")
			must("eval", "verify", c.name)
			report := must("eval", "report", c.name)
			assert.Equal(t, c.seat == "stub", strings.Contains(report, "A STUB TOOK THE PLACE"), report)
			page, err := os.ReadFile(filepath.Join(m.dir, c.name, "report.html"))
			require.NoError(t, err)
			assert.Contains(t, string(page), `id="behaviour"`)
			talks, nonces, longer := 0, 0, 0
			for e, err := range journal.Read(filepath.Join(m.dir, c.name, "cells", "bm25", "1", journal.Name)) {
				require.NoError(t, err)
				if check := e.NonceCheck; check != nil {
					nonces += check.Nonces
					assert.Empty(t, check.Breaches)
					assert.Nil(t, check.Error)
				}
				talk := e.Transcript
				if talk == nil {
					continue
				}
				talks++
				nonces -= len(talk.Exchanges)
				assert.Equal(t, c.seat, talk.Seat)
				assert.Empty(t, talk.Breaches)
				assert.Nil(t, talk.Error)
				if c.once {
					require.Len(t, talk.Retrievals, 1)
					assert.Equal(t, 1, talk.Retrievals[0].Turn)
					longer += len(talk.Exchanges) - 1
				} else {
					assert.Len(t, talk.Retrievals, len(talk.Exchanges))
				}
				assert.Equal(t, c.notSent && talk.Attribute != "", len(talk.NotSent) > 0, talk.NotSent)
			}
			assert.Positive(t, talks)
			assert.Zero(t, nonces, "every exchange's nonce was searched for")
			assert.Equal(t, c.once, longer > 0, "later turns have the first one's context")
			left, err := filepath.Glob(filepath.Join(m.dir, c.name, "cells", "bm25", "1", "subjects", "*"))
			require.NoError(t, err)
			assert.Empty(t, left, "workspaces are removed")
		})
	}
}

// The example is short enough to read before connecting one's own agent.
func TestTheSubjectIsThirtyLines(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "examples", "subject", "subject.py"))
	require.NoError(t, err)
	lines := 0
	for _, line := range strings.Split(string(text), "\n") {
		if strings.TrimSpace(line) != "" {
			lines++
		}
	}
	assert.LessOrEqual(t, lines, 30)
}

// TestWhatASubjectMustNotDoIsInTheReport runs programs that fail or break the wall: each is bounded and named, every other
// conversation takes place, and no event or probe is lost.
func TestWhatASubjectMustNotDoIsInTheReport(t *testing.T) {
	brief.Leave(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is missing")
	}
	m := memhost{t, t.TempDir(), cacheHome(t), plainProgram(t)}
	must := func(args ...string) string {
		out, code := m.run(args...)
		require.Zero(t, code, out)
		return out
	}
	must("eval", "pack", "build", "synth", "-o", "small.pack", "--option", "personas=1", "--option", "sessions=1",
		"--option", "turns=2")
	script, err := filepath.Abs(filepath.Join("testdata", "subject", "misbehaves.py"))
	require.NoError(t, err)
	want := map[journal.Kind]int{}
	for _, c := range []struct {
		fault, breach, failure string
		patience               int // ms; a Python that starts on a busy machine needs some
	}{
		{"nothing", "", "", 30_000},
		{"hang", "", "did not answer in 5s", 5_000},
		{"exit", "", "it gave up", 30_000},
		{"rubbish", "", "rubbish", 30_000},
		{"endless", "", "a line of more than 1048576 bytes", 30_000},
		{"does not exit", "not_exited", "", 5_000},
		{"lowers the wall", "mode", "", 30_000},
		{"uses another scope", "other_scope", "", 30_000},
		{"delivers late", "late_delivery", "", 30_000},
		{"records after the wall", "late_delivery", "", 30_000},
	} {
		t.Run(c.fault, func(t *testing.T) {
			folder := strings.ReplaceAll(c.fault, " ", "-")
			lab, err := json.Marshal(map[string]any{"lab": 1, "pack": "small.pack", "budgets": []int{200}, "freshness": 0,
				"providers": []string{"bm25"}, "subject": map[string]any{"seat": "command", "timeout_ms": c.patience,
					"command": []string{"python3", script, c.fault}}})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(m.dir, folder+".json"), lab, 0o600))
			must("eval", "run", folder+".json", "--out", folder, "--yes", "--no-references")
			must("eval", "verify", folder)
			report := strings.ToLower(must("eval", "report", folder))
			kinds, failed, breached := map[journal.Kind]int{}, 0, 0
			for e, err := range journal.Read(filepath.Join(m.dir, folder, "cells", "bm25", "1", journal.Name)) {
				require.NoError(t, err)
				kinds[e.Kind]++
				if e.Transcript != nil {
					breached += len(e.Transcript.Breaches)
					if e.Transcript.Ended == journal.EndedSubject {
						failed++
						require.Contains(t, e.Transcript.Error.Message, c.failure)
					}
				}
				if e.NonceCheck != nil {
					breached += len(e.NonceCheck.Breaches)
				}
			}
			if c.fault == "nothing" {
				want = kinds
			}
			require.Equal(t, want, kinds, "nothing is lost")
			require.Equal(t, c.failure != "", failed > 0)
			require.Equal(t, c.breach != "", breached > 0)
			require.Less(t, failed, want[journal.KindTranscript])
			if c.failure != "" {
				require.Contains(t, report, strings.ToLower(fmt.Sprintf("the agent failed in %d of %d sessions", failed,
					want[journal.KindTranscript])))
				require.Contains(t, report, strings.ToLower(c.failure))
			}
			require.Equal(t, c.breach != "", strings.Contains(report, "the agent broke the wall in"), report)
			require.Contains(t, report, c.breach)
		})
	}
}
