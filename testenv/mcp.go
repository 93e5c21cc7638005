package testenv

import (
	"os"
	"path/filepath"
	"testing"
)

// mcpTypeScript is the official TypeScript client, as npm knows it.
const mcpTypeScript = "@modelcontextprotocol/sdk@1.32.2"

// MCPPython gives a Python that has the official MCP client.
func MCPPython(t testing.TB) string {
	t.Helper()
	bin, err := newForTest(t).python(t.Context(), "mcp")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(bin, "python")
}

// MCPNode gives Node.js, and the folder whose node_modules has the official MCP client.
func MCPNode(t testing.TB) (node, dir string) {
	t.Helper()
	e := newForTest(t)
	node, err := e.tool(t.Context(), "node", "nodejs")
	if err != nil {
		t.Fatal(err)
	}
	npm, err := e.tool(t.Context(), "npm", "npm")
	if err != nil {
		t.Fatal(err)
	}
	dir, err = e.installed("node-mcp", mcpTypeScript, func(dir string) error {
		e.say("install %s into %s (once)", mcpTypeScript, dir)
		if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private": true}`), 0o644); err != nil {
			return err
		}
		return e.run(t.Context(), command{name: "npm-mcp",
			args: []string{npm, "install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts", "--silent",
				mcpTypeScript}})
	})
	if err != nil {
		t.Fatal(err)
	}
	return node, dir
}
