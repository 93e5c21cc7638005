package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/testkit/testcache"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot/nanobottest"
	"github.com/memhost/memhost/sdk"
)

// module is the operations, for the tests that all memories modelled on Nanobot's share.
var module = nanobottest.Module{Name: "layered_memory", RecordEvent: recordEvent, RecordEvents: recordEvents, Retrieve: retrieve, Format: formatContext, Readiness: readiness,
	Wait: waitUntilReady, Query: nativeQuery, Mutate: nativeMutation, Reset: resetScope}

var scope = nanobottest.Scope

func TestMain(m *testing.M) { testcache.Run(m) }

func TestChecksOfAll(t *testing.T) { nanobottest.Checks(t, module) }

// bench is a rig whose files have names.
type bench struct{ *nanobottest.Rig }

// bring makes a bench. config is what the block has besides llm: `"memory_window":100`.
func bring(t *testing.T, config string) *bench {
	t.Helper()
	return &bench{module.Bring(t, config)}
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

// dreamt is Dream's cursor.
func (b *bench) dreamt() string { return b.Files()[cursorFile] }

// write runs work that may write, as the host's own would.
func (b *bench) write(do func(c *sdk.Call) error) {
	b.T.Helper()
	require.NoError(b.T, do(b.Call(abi.OpWaitUntilReady, scope)))
}
