package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot/nanobottest"
)

// module is the memory, for the tests shared by all memories modelled on Nanobot.
var module = nanobottest.Module{Plugin: &plugin, Name: "layered_memory"}

var scope = nanobottest.Scope

func TestMain(m *testing.M) { testcache.Run(m) }

func TestChecksOfAll(t *testing.T) { nanobottest.Checks(t, module) }

// bench is a rig with named files.
type bench struct{ *nanobottest.Rig }

// newBench makes a bench. config is the rest of the block after llm: `"memory_window":100`.
func newBench(t *testing.T, config string) *bench {
	t.Helper()
	return &bench{module.NewRig(t, config)}
}

// history is the entries of history.jsonl.
func (b *bench) history() (list []historyLine) {
	b.T.Helper()
	for line := range strings.Lines(b.Files()["memory/history.jsonl"]) {
		var x historyLine
		require.NoError(b.T, json.Unmarshal([]byte(line), &x))
		list = append(list, x)
	}
	return list
}

type historyLine struct {
	Cursor  int    `json:"cursor"`
	Content string `json:"content"`
	Session string `json:"session_key"`
}

// dreamt returns Dream's cursor.
func (b *bench) dreamt() string { return b.Files()[cursorFile] }

// write runs work that may write, in an operation like the host's.
func (b *bench) write(do func(m *memory)) {
	b.T.Helper()
	m := b.open()
	do(m)
	require.NoError(b.T, m.Err())
}

// open returns the memory in an operation.
func (b *bench) open() *memory {
	b.T.Helper()
	m, err := open(b.Call(abi.OpWaitUntilReady, scope))
	require.NoError(b.T, err)
	return m.(*memory)
}

// entries adds entries to the history.
func (b *bench) entries(contents ...string) {
	b.T.Helper()
	for _, content := range contents {
		b.write(func(m *memory) { m.remember(entry{at: nanobot.Minute(m.Now), content: content}, maxSummary) })
	}
}

// teas are n facts about tea.
func teas(n int) (contents []string) {
	for i := range n {
		contents = append(contents, fmt.Sprintf("- [durable] I like tea number %d.", i+1))
	}
	return contents
}
