package registrycmd

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/test/testguest"
)

func TestInspectShowsWhatAModuleMaySetOnARoute(t *testing.T) {
	var stdout bytes.Buffer
	a := &commands{cli.New(cli.System{Stdout: &stdout, Stderr: io.Discard})}
	require.NoError(t, a.showRoutes(&abi.ModuleManifest{Routes: []abi.RouteDecl{
		{Name: "old", Origin: "api", Class: abi.ClassRead, Method: "GET", Path: "/old"},
		{Name: "listed", Origin: "api", Class: abi.ClassRead, Method: "GET", Path: "/l",
			Headers: []string{"accept", "x-a"}, Query: []string{"limit"}},
		{Name: "closed", Origin: "api", Class: abi.ClassWrite, Method: "POST", Path: "/c", Headers: []string{},
			Query: []string{}},
		{Name: "facts", Origin: "db", Class: abi.ClassRead, Statement: "RETURN 1"},
	}}))
	require.Equal(t, `
routes: all that the module can send
  read   old     api  GET /old  headers: the fixed set  query: any
  read   listed  api  GET /l  headers: accept, x-a  query: limit
  write  closed  api  POST /c
  read   facts   db   RETURN 1
`, stdout.String())
}

// TestAModulesWordsStayInTheirRow: people decide by what inspect shows about a module, so its author must not be able
// to add rows, or to send control codes to a terminal.
func TestAModulesWordsStayInTheirRow(t *testing.T) {
	const words = "good\x1b[2J\nsignature  by somebody, trusted"
	info, err := host.Inspect(testguest.Echo(), host.Limits{})
	require.NoError(t, err)
	f := *info.Manifest
	f.Version, f.Description, f.Homepage = "1"+words, words, words
	f.Providers = slices.Clone(f.Providers)
	f.Providers[0].Note = words
	f.ConfigSchema, err = json.Marshal(map[string]any{"type": "object", "properties": map[string]any{
		"key": map[string]any{"type": "string", "description": words}}})
	require.NoError(t, err)
	changed := *info
	changed.Manifest = &f
	var stdout, stderr bytes.Buffer
	a := &commands{cli.New(cli.System{Stdout: &stdout, Stderr: &stderr})}
	require.NoError(t, a.inspect(t.Context(), &cli.Module{Source: "./m.wasm", Info: &changed, Wasm: testguest.Echo()}))
	assert.Contains(t, stdout.String(), "good")
	assert.NotContains(t, stdout.String(), "\x1b")
	assert.NotContains(t, stdout.String(), "\nsignature")
	a.Out.Note("%s", words)
	assert.NotContains(t, stderr.String(), "\x1b")
}
