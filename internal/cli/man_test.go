package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
)

// TestTheManualIsOnePageWithEachLineOfHelp: cobra's own generator writes a page for each command, and reads the texts as
// Markdown, which joins lines that are set by hand.
func TestTheManualIsOnePageWithEachLineOfHelp(t *testing.T) {
	root := (&app{}).root()
	page := manPage(root, "v1")
	assert.Equal(t, 1, strings.Count(page, ".TH "))
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		for line := range strings.Lines(cmd.Long) {
			assert.Contains(t, page, roff(strings.TrimRight(line, "\n")), cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}
