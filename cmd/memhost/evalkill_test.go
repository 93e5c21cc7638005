//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/brief"
)

const killedLab = `{"lab": 1, "pack": "small.pack", "budgets": [300], "providers": ["full_history", "ledger_memory"], "stability": 0.1,
  "subject": {"seat": "stub"},
  "primary": {"metric": "answer_shown", "budget": 300, "reference": "full_history"}}`

// TestAKilledEvaluationHasTheSameMetrics kills the process of a run at random moments (KILLS, default 3, or 1 in short
// tests) and resumes it: metrics.json must be the same as in a run that was never killed, byte for byte.
func TestAKilledEvaluationHasTheSameMetrics(t *testing.T) {
	killEvaluations(t, killedLab, "3", "4", "3")
}

// TestAKilledEvaluationWithAProgramHasTheSameMetrics is the same with a subject in a process of its own.
func TestAKilledEvaluationWithAProgramHasTheSameMetrics(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is missing")
	}
	program, err := filepath.Abs(filepath.Join(repository, "examples", "subject", "subject.py"))
	require.NoError(t, err)
	seat, err := json.Marshal(map[string]any{"seat": "command", "command": []string{"python3", program}})
	require.NoError(t, err)
	killEvaluations(t, strings.Replace(killedLab, `{"seat": "stub"}`, string(seat), 1), "2", "3", "2")
}

func killEvaluations(t *testing.T, lab, personas, sessions, turns string) {
	brief.Leave(t)
	kills := 3
	if brief.Tests() {
		kills = 1
	}
	if text := os.Getenv("KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		kills = n
	}
	m := memhost{t, t.TempDir(), cacheHome(t), plainProgram(t)}
	mustRun := func(args ...string) {
		out, code := m.run(args...)
		require.Zero(t, code, out)
	}
	metrics := func(folder string) string {
		mustRun("eval", "score", folder)
		text, err := os.ReadFile(filepath.Join(m.dir, folder, "metrics.json"))
		require.NoError(t, err)
		return string(text)
	}
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, "lab.json"), []byte(lab), 0o600))
	mustRun("eval", "pack", "build", "synth", "-o", "small.pack", "--option", "personas="+personas, "--option",
		"sessions="+sessions, "--option", "turns="+turns)
	mustRun("eval", "run", "lab.json", "--out", "compiled") // so that the next one is as fast as those that are killed
	began := time.Now()
	mustRun("eval", "run", "lab.json", "--out", "whole")
	took := time.Since(began)
	want := metrics("whole")

	random := rand.New(rand.NewPCG(5, 6))
	inside := 0
	for done := 0; done < kills; {
		folder := "run" + strconv.Itoa(done)
		args := []string{"eval", "run", "lab.json", "--out", folder}
		for left := 1 + random.IntN(3); ; {
			cmd := m.command(args...)
			var said bytes.Buffer
			cmd.Stderr = &said
			require.NoError(t, cmd.Start())
			var killed *time.Timer
			if left > 0 && done < kills {
				killed = time.AfterFunc(time.Duration(random.Int64N(int64(took))), func() { _ = cmd.Process.Kill() })
			}
			err := cmd.Wait()
			if killed != nil {
				killed.Stop()
			}
			if err == nil {
				break
			}
			require.False(t, cmd.ProcessState.Exited(), "it was killed, and did not fail: %s", &said)
			done++
			left--
			if _, err := os.Stat(filepath.Join(m.dir, folder, "run.json")); err == nil {
				args = []string{"eval", "resume", folder}
				inside++
			} else {
				require.NoError(t, os.RemoveAll(filepath.Join(m.dir, folder)))
			}
		}
		assert.Equal(t, want, metrics(folder), "after %d kills", done)
		mustRun("eval", "verify", folder)
		require.NoError(t, os.RemoveAll(filepath.Join(m.dir, folder)))
	}
	t.Logf("%d kills, %d of them after the run had begun", kills, inside)
}
