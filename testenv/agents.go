package testenv

import (
	"path/filepath"
	"testing"
)

// The agents as npm knows them. Each is a program for one platform, in a package of its own that the named one asks
// for.
const (
	ClaudeCode = "@anthropic-ai/claude-code@2.1.330"
	Codex      = "@openai/codex@0.169.0"
)

// Agents gives the programs of Claude Code and Codex, installed from npm into the cache folder (0.8 GB). They are for
// tests with a stub model on this machine, and are not to be passed on.
func Agents(t testing.TB) (claude, codex string) {
	t.Helper()
	_, dir := newForTest(t).npm(t, "node-agents", ClaudeCode, Codex)
	for pattern, program := range map[string]*string{"@anthropic-ai/claude-code-*/claude": &claude,
		"@openai/codex-*/vendor/*/bin/codex": &codex} {
		found, err := filepath.Glob(filepath.Join(dir, "node_modules", pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("npm has installed no program for this platform: node_modules/%s in %s: %v", pattern, dir, found)
		}
		*program = found[0]
	}
	return claude, codex
}
