package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var dependencyRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (yes|no|tests) \\| (.+) \\|$")

// TestDependenciesArePutDownWithAReason compares docs/reference/dependencies.md with the direct requirements in
// go.mod.
func TestDependenciesArePutDownWithAReason(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "reference", "dependencies.md"))
	require.NoError(t, err)
	var listed []string
	for _, row := range dependencyRow.FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, row[1])
		assert.Greater(t, len(row[3]), 7, "why is %s there?", row[1])
	}
	mod, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	require.NoError(t, err)
	block, _, _ := strings.Cut(string(mod[strings.Index(string(mod), "require (\n"):]), "\n)")
	var required []string
	for line := range strings.Lines(block) {
		fields := strings.Fields(line)
		if len(fields) == 2 && strings.HasPrefix(fields[1], "v") {
			required = append(required, fields[0])
		}
	}
	require.NotEmpty(t, required)
	slices.Sort(listed)
	slices.Sort(required)
	assert.Equal(t, required, listed)
}
