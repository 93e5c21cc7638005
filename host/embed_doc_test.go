package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheChapterOnEmbeddingIsTheExamples compares the Go code in docs/embed.md with the examples, which are compiled
// and run: every snippet must occur in one of them line by line, where "…" matches any lines.
func TestTheChapterOnEmbeddingIsTheExamples(t *testing.T) {
	page, err := os.ReadFile("../docs/embed.md")
	require.NoError(t, err)
	var sources []string
	for _, pattern := range []string{"example*_test.go", "../examples/contextmanager/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			sources = append(sources, dedent(string(text)))
		}
	}
	snippets := strings.Split(string(page), "```go\n")[1:]
	require.GreaterOrEqual(t, len(snippets), 6)
	for _, snippet := range snippets {
		code, _, ended := strings.Cut(snippet, "```")
		require.True(t, ended)
		found := false
		for _, source := range sources {
			found = found || inOrder(source, strings.Split(dedent(code), "…\n"))
		}
		require.True(t, found, "no example has this snippet of docs/embed.md:\n%s", code)
	}
}

// dedent is text without the indentation of its lines.
func dedent(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimLeft(line, " \t")
	}
	return strings.Join(lines, "\n")
}

func inOrder(text string, parts []string) bool {
	for _, part := range parts {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}
