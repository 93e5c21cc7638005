package main

import (
	"testing"

	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot/nanobottest"
)

// module is the memory, for the tests that all memories modelled on Nanobot's share.
var module = nanobottest.Module{Plugin: &plugin, Name: "rolling_summary"}

var scope = nanobottest.Scope

func TestMain(m *testing.M) { testcache.Run(m) }

func TestChecksOfAll(t *testing.T) { nanobottest.Checks(t, module) }

// bench is a rig whose files have names.
type bench struct{ *nanobottest.Rig }

// newBench makes a bench. config has the members of the block other than llm: `"memory_window":100`.
func newBench(t *testing.T, config string) *bench {
	t.Helper()
	return &bench{module.NewRig(t, config)}
}

// window is the everyday trigger, without the tail.
const window = `"profile":"local","include_tail":false`

func (b *bench) memory() string { return b.Files()["memory/MEMORY.md"] }

func (b *bench) log() string { return b.Files()["memory/HISTORY.md"] }
