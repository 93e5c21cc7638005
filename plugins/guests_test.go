package plugins_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/engine/wasmbin"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/plugins"
)

// TestPowersCanBeReadOffTheImportSection: imports that a control does not use are not linked.
func TestPowersCanBeReadOffTheImportSection(t *testing.T) {
	powers := map[string][]string{
		"no_memory":      {"config", "pull"},
		"static_profile": {"config", "pull", "tokens_count", "tokens_fit"},
		"oracle_ipas":    {"config", "pull", "tokens_count", "tokens_fit"},
		"memos":          {"config", "http_send", "pull", "state_get", "state_put", "tokens_count", "tokens_fit"},
		"bm25": {"config", "deadline", "http_send", "pull", "state_append", "state_delete", "state_get", "state_list",
			"state_put", "state_read", "tokens_count", "tokens_fit"}, // http_send: to an embedder that is configured
		"full_history": {"config", "pull", "state_delete", "state_get", "state_list", "state_put", "tokens_count",
			"tokens_fit"},
	}
	for _, m := range plugins.Builtin() {
		want, known := powers[m.Name]
		if !known {
			continue
		}
		module, err := wasmbin.Parse(m.Wasm)
		require.NoError(t, err)
		var imports []string
		for _, i := range module.Imports {
			if i.Module == abi.HostModule {
				imports = append(imports, i.Name)
			}
		}
		slices.Sort(imports)
		assert.Equal(t, want, imports, m.Name)
	}
}

// TestGuestsDoWithoutNewOfAnExpression: the released TinyGo 0.41 silently compiles new(v) of Go 1.26 into a pointer to
// zero; only the pinned toolchain does not. Language version 1.25 rejects it.
func TestGuestsDoWithoutNewOfAnExpression(t *testing.T) {
	brief.Leave(t)
	list := exec.Command("go", "list", "./abi", "./sdk", "./sdk/extism", "./plugins/...", "./examples/plugins/...",
		"./internal/test/testguest/...")
	list.Dir, list.Env = "..", append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	packages, err := list.Output()
	require.NoError(t, err)
	args := []string{"list", "-export", "-gcflags=-lang=go1.25"} // which compiles, and links nothing
	for name := range strings.FieldsSeq(string(packages)) {
		if !strings.HasSuffix(name, "test") { // helpers of tests are not guests
			args = append(args, name)
		}
	}
	compile := exec.Command("go", args...)
	compile.Dir, compile.Env = list.Dir, list.Env
	output, err := compile.CombinedOutput()
	assert.NoError(t, err, "%s\nuse sdk.Ptr", output)
}
