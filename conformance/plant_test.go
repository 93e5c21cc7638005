package conformance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/memhost/memhost/internal/test/fakes/embed"
)

// TestTheLastWordingIsFoundByABackendThatWantsLikeness: MemOS leaves out memories whose cosine with the question is below
// .45, and joins to the user's words roles, times and the assistant's thanks.
func TestTheLastWordingIsFoundByABackendThatWantsLikeness(t *testing.T) {
	probe := Target{}.withDefaults().Probe
	wording, question := probe.Wordings[len(probe.Wordings)-1], embed.Text(probe.Question)
	names, began := new(namer), time.Date(2026, 11, 11, 11, 0, 0, 0, time.UTC)
	for n := range 4096 { // every name
		at := began.Add(time.Duration(n) * time.Second).Format(time.RFC3339)
		text := "user: [" + at + "]: " + wording(names.name()) + "\nassistant: [" + at + "]: Thank you for telling me."
		assert.GreaterOrEqual(t, embed.Cosine(question, embed.Text(text)), .45, text)
	}
}
