//go:build live

package mcpclients_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/testenv"
)

// scenarios are those of the official conformance suite that are about a server as this one. The others call tools,
// prompts and resources that only the suite's own example server has (test_simple_text, test://static-text, ...), or
// are about what this server does not offer; docs/mcp.md lists them.
var scenarios = []string{"server-initialize", "ping", "tools-list", "resources-list", "prompts-list",
	"logging-set-level", "dns-rebinding-protection"}

// The official conformance test suite passes against the door over HTTP.
func TestLive_mcp_conformance(t *testing.T) {
	node, suite := testenv.MCPConformance(t)
	program := built(t)
	serving := serve(t, program, filepath.Join(t.TempDir(), "data"), "", "--mcp=http", "--run", "r", "--user", "ann")
	for _, scenario := range scenarios {
		t.Run(scenario, func(t *testing.T) {
			cmd := exec.Command(node, suite, "server", "--url", serving.url+"/mcp", "--scenario", scenario)
			cmd.Dir = t.TempDir() // it writes its results there
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Regexp(t, `Passed: ([1-9]\d*)/\d+, 0 failed, 0 warnings`, string(out))
		})
	}
	serving.stop()
}
