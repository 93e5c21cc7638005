package compat_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/examples/demo"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/fakes/graphiti"
	"github.com/memhost/memhost/internal/test/fakes/honcho"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/internal/test/fakes/memos"
	"github.com/memhost/memhost/internal/test/testenv/llm"
)

// backendURL is where a block finds its backend or its language model. Nothing listens there: host.Options.Intercept
// answers. The URL is a part of a scope's key in the data folder, so it must stay as it is.
const backendURL = "http://backend.test:8000"

// providerSetup is a provider in one configuration.
type providerSetup struct {
	// name is that of its files in testdata.
	name string
	// provider and module are names; module is also that of the module's file.
	provider, module string
	block            string
	// backend makes the server at backendURL; nil if the provider needs none.
	backend func(now func() time.Time) http.Handler
	// kit is what the conformance kit needs to know besides the provider.
	kit conformance.Target
}

// setUps has one for each provider, and a second one for a provider that works in two ways. A release that has no
// module or no data folder for one is not tested with it.
func setUps(t testing.TB) []providerSetup {
	t.Helper()
	oracle, err := demo.Oracle()
	require.NoError(t, err)
	profiles, err := demo.Profiles()
	require.NoError(t, err)
	const model = `{"llm":{"base_url":"` + backendURL + `/v1","model":"stub"}`
	const url = `{"url":"` + backendURL + `"`
	known := conformance.Target{Known: &conformance.Known{Scope: abi.MemoryScope{RunID: demo.RunID, PersonaID: "mara"},
		Query: "What does she drink?"}}
	boom := conformance.Target{ErrorBodies: map[string]string{"": `{"code":500,"message":"boom","data":null}`}}
	list := []providerSetup{
		{name: "full_history"},
		{name: "bm25"},
		{name: "static_profile", block: string(profiles), kit: known},
		{name: "oracle_ipas", block: string(oracle), kit: known},
		{name: "no_memory", kit: known},
		{name: "rolling_summary", block: model + `,"update_policy":"every_event"}`, backend: languageModel},
		{name: "layered_memory", block: model + `,"update_policy":"every_event"}`, backend: languageModel},
		{name: "ledger_memory"},
		{name: "ledger_memory_model", provider: "ledger_memory", block: model + `,"profile":"control"}`,
			backend: languageModel},
		{name: "mem0", block: url + `,"add_timeout_s":2}`, backend: mem0Server},
		{name: "simple_rag", module: "mem0", block: url + `,"add_timeout_s":2}`, backend: mem0Server},
		{name: "honcho", block: url + `}`, backend: func(now func() time.Time) http.Handler {
			return honcho.New(honcho.Options{Now: now, Mood: honcho.Mood{Flush: true}})
		}},
		{name: "memos", block: url + `,"add_mode":"sync/fast"}`, kit: boom,
			backend: func(now func() time.Time) http.Handler {
				return memos.New(memos.Options{Now: now, Flavour: memos.Community})
			}},
		{name: "graphiti_rest", provider: "graphiti", block: url + `,"surface":"rest","stall_s":2}`,
			backend: func(now func() time.Time) http.Handler { return graphiti.New(graphiti.Options{Now: now}).REST() }},
		{name: "graphiti_core", provider: "graphiti", block: url + `,"surface":"core"}`,
			backend: func(now func() time.Time) http.Handler { return graphiti.New(graphiti.Options{Now: now}).Gateway() }},
		{name: "notes_extism", provider: "notes"},
		{name: "notes_assemblyscript", provider: "notes"},
	}
	for i := range list {
		u := &list[i]
		if u.provider == "" {
			u.provider = u.name
		}
		if u.module == "" {
			u.module = u.provider
		}
		if u.provider == "notes" {
			u.module = u.name
		}
		if u.block == "" {
			u.block = `{}`
		}
	}
	return list
}

func languageModel(now func() time.Time) http.Handler { return llm.New(llm.Options{Now: now}) }

func mem0Server(now func() time.Time) http.Handler { return mem0.New(mem0.Options{Now: now}) }

// config is the set-up with a module. url takes the place of backendURL.
func (u providerSetup) config(wasm []byte, url string) host.ProviderConfig {
	block := strings.ReplaceAll(u.block, backendURL, url)
	return host.ProviderConfig{Name: u.provider, Module: wasm, Source: "builtin", Block: abi.Raw(block)}
}
