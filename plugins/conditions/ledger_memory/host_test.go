package main

import (
	"testing"

	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/testcache"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot/nanobottest"
	"github.com/memhost/memhost/testenv/llm"
)

func TestMain(m *testing.M) { testcache.Run(m) }

// slot opens a slot on the module as it is built. block is its configuration.
func slot(t testing.TB, block string) *host.Slot {
	t.Helper()
	return nanobottest.Open(t, nanobottest.Built(t, "ledger_memory", block)).Slot
}

// model starts the stub and returns it with the block llm that points to it.
func model(t testing.TB) (*llm.Server, string) {
	t.Helper()
	stub, url := nanobottest.Serve(t)
	return stub, `"llm":{"base_url":"` + url + `/v1","model":"stub"}`
}

func TestConformance(t *testing.T) {
	_, endpoint := model(t)
	for name, block := range map[string]string{"verbatim": `{}`, "control": `{` + endpoint + `,"profile":"control"}`, "local": `{` + endpoint + `,"profile":"local"}`} {
		t.Run(name, func(t *testing.T) {
			conformance.TestWith(t, conformance.Target{Provider: nanobottest.Built(t, "ledger_memory", block)}, conformance.Options{CacheDir: testcache.Dir()})
		})
	}
}
