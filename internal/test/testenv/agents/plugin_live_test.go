//go:build live && linux

package agents_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// thePlugin walks the README of integrations/claude-code: the plugin is installed from its marketplace, and is there
// with its hooks and its tools.
func thePlugin(t *testing.T) {
	m := start(t)
	folder, err := filepath.Abs("../../../../integrations/claude-code")
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(folder, "README.md"))
	require.NoError(t, err)
	walked := 0
	for _, line := range regexp.MustCompile(`(?m)^\$ claude (.*)$`).FindAllStringSubmatch(string(readme), -1) {
		args := strings.Fields(strings.ReplaceAll(line[1], "/path/to/integrations/claude-code", folder))
		m.output(m.command(m.home, os.Getenv(claudeVariable), args...))
		walked++
	}
	require.Equal(t, 2, walked)
	for _, text := range []string{"I like oolong tea.", "Which tea do I like?"} {
		m.model.take()
		m.output(m.command(m.home, os.Getenv(claudeVariable), "-p", text))
	}
	requests := m.model.take()
	require.Len(t, requests, 1)
	require.Contains(t, contexts(t, requests[0]), "user: I like oolong tea.")
	var request struct{ Tools []struct{ Name string } }
	require.NoError(t, json.Unmarshal([]byte(requests[0]), &request))
	var names []string
	for _, tool := range request.Tools {
		names = append(names, tool.Name)
	}
	require.Contains(t, strings.Join(names, " "), "memory_search")
}
