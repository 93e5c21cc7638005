//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

// TestSignals ends a process by each signal that it handles.
func TestSignals(t *testing.T) {
	runProcessTests(t, []processTest{
		{"a recording that is killed goes on", func(t *testing.T, m memhost) {
			testEndedRecording(t, m, syscall.SIGKILL)
		}},
		{"a recording that is interrupted goes on", func(t *testing.T, m memhost) {
			testEndedRecording(t, m, syscall.SIGINT)
		}},
		{"a slot that is killed has what it acknowledged", testKilledSlot},
		{"a call under way ends before the slot does", testDrain},
		{"a second signal waits for nothing", testSecondSignal},
	})
}

// turns writes n events in one scope to a file and returns its lines.
func (m memhost) turns(n int) (file string, lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf(`{"event_id":"e%05d","run_id":"r","user_id":"u","session_id":"s","turn_id":"t%d","timestamp":"2026-01-01T00:00:00Z",`+
			`"messages":[{"role":"user","content":"turn %d, %s"}]}`+"\n", i, i, i,
			strings.Repeat("said at some length ", 40)))
	}
	file = filepath.Join(m.dir, "turns.jsonl")
	require.NoError(m.t, os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600))
	return file, lines
}

// remembered returns the ids of the events in the scope.
func (m memhost) remembered() (ids []string) {
	for _, e := range m.everything().Evidence {
		ids = append(ids, e.SourceEventIDs...)
	}
	slices.Reverse(ids) // a query that shares no word with them returns the newest first
	return ids
}

// interrupted starts recording from a pipe, and sends a signal once most of the lines must have been read, because a
// pipe only holds so much.
func (m memhost) interrupted(lines []string, signal syscall.Signal, args ...string) (code int, stderr string) {
	cmd := m.command(append([]string{"record", "-"}, args...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	require.NoError(m.t, err)
	require.NoError(m.t, cmd.Start())
	_, err = io.WriteString(in, strings.Join(lines, ""))
	require.NoError(m.t, err)
	require.NoError(m.t, cmd.Process.Signal(signal))
	err = cmd.Wait()
	require.Error(m.t, err)
	return cmd.ProcessState.ExitCode(), errs.String()
}

// Whatever ends a recording in the middle: after running the same command again, each event is there once, in order.
func testEndedRecording(t *testing.T, m memhost, signal syscall.Signal) {
	const n = 600
	file, lines := m.turns(n)
	code, said := m.interrupted(lines[:n*2/3], signal)
	if signal == syscall.SIGINT {
		require.Equal(t, 130, code)
		require.Contains(t, said, "interrupted after line ")
		require.Contains(t, said, "the same command goes on from there")
	}
	before := m.remembered()
	require.NotEmpty(t, before, "the pipe does not hold that much: something was recorded")
	require.Less(t, len(before), n)

	out, code := m.run("record", file)
	require.Zero(t, code)
	require.Contains(t, out, fmt.Sprintf("recorded %d events, %d already there", n-len(before), len(before)))
	m.requireAll(n)
	out, code = m.run("record", file)
	require.Zero(t, code)
	require.Contains(t, out, fmt.Sprintf("recorded 0 events, %d already there", n))
}

// requireAll requires that the scope has the n events of turns, once and in order.
func (m memhost) requireAll(n int) {
	ids := m.remembered()
	require.Len(m.t, ids, n)
	for i, id := range ids {
		require.Equal(m.t, fmt.Sprintf("e%05d", i), id)
	}
}

// A slot that is killed during a recording has everything that it acknowledged, and no duplicates afterwards.
func testKilledSlot(t *testing.T, m memhost) {
	const n = 600
	file, lines := m.turns(n)
	slot := m.serve()
	record := m.command("record", "-", "--server", slot.url, "--retries", "0", "--json")
	var summary bytes.Buffer
	record.Stdout = &summary
	in, err := record.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, record.Start())
	_, err = io.WriteString(in, strings.Join(lines[:n/2], ""))
	require.NoError(t, err)
	slot.kill()
	_, _ = io.WriteString(in, strings.Join(lines[n/2:], "")) // the reader may be gone
	_ = in.Close()
	_ = record.Wait()
	require.Equal(t, 3, record.ProcessState.ExitCode(), "failed for now: %s", summary.String())
	var said struct {
		Recorded int
		Error    abi.Error
	}
	require.NoError(t, json.Unmarshal(summary.Bytes(), &said))
	require.Equal(t, abi.CodeUnavailable, said.Error.Code)

	slot = m.serve()
	before := m.remembered()
	require.GreaterOrEqual(t, len(before), said.Recorded, "what was acknowledged is there")
	_, code := m.run("record", file)
	require.Zero(t, code)
	m.requireAll(n)
	slot.stop()
}
