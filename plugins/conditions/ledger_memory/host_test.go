package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/internal/test/testenv/llm"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot/nanobottest"
)

func TestMain(m *testing.M) { testcache.Run(m) }

// slot opens a slot on the built module. block is its configuration.
func slot(t testing.TB, block string) *host.Slot {
	t.Helper()
	return nanobottest.Open(t, nanobottest.ProviderConfig(t, "ledger_memory", block)).Slot
}

// stubModel starts the stub and returns it with the block llm that points to it.
func stubModel(t testing.TB) (*llm.Server, string) {
	t.Helper()
	stub, url := nanobottest.Serve(t)
	return stub, `"llm":{"base_url":"` + url + `/v1","model":"stub"}`
}

func TestConformance(t *testing.T) {
	_, endpoint := stubModel(t)
	for name, block := range map[string]string{"verbatim": `{}`, "control": `{` + endpoint + `,"profile":"control"}`,
		"local": `{` + endpoint + `,"profile":"local"}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "verbatim" {
				brief.Leave(t)
			}
			conformance.TestWith(t, conformance.Target{Provider: nanobottest.ProviderConfig(t, "ledger_memory", block)},
				conformance.Options{CacheDir: testcache.Dir()})
		})
	}
}

// TestConversations checks that no turn waits, that something was kept, and that the ledger is consistent. Whether the
// entries are good is for a person to judge: CHATS_OUT=DIR writes the files and the prompts there.
func TestConversations(t *testing.T) {
	_, endpoint := stubModel(t)
	s := slot(t, `{`+endpoint+`,"max_context_tokens":null}`)
	for scope := range nanobottest.Conversations(t, "ledger_memory", s) {
		shown, err := s.Retrieve(t.Context(), &abi.RetrieveRequest{Query: "x", Scope: scope, SessionID: "later"})
		require.NoError(t, err)
		assert.NotEmpty(t, shown.Evidence, "%s", scope)
		whole, err := s.NativeQuery(t.Context(), &abi.NativeQuery{Scope: scope, Name: "fsck"})
		require.NoError(t, err)
		assert.Contains(t, string(whole.Result), `"ok":true`)
		if out := os.Getenv("CHATS_OUT"); out != "" {
			path := filepath.Join(out, "ledger_memory", scope.RunID+"-"+scope.PersonaID, "context.txt")
			require.NoError(t, os.WriteFile(path, []byte(shown.FormattedContext), 0o600))
		}
	}
}
