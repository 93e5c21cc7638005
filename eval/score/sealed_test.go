package score

import (
	"testing"

	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/simulate/simulatetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What cannot be concluded is known before the first call is paid for.
func TestASealedComparisonIsCheckedBeforeTheRun(t *testing.T) {
	for _, c := range []struct {
		name, personas, lab string
		warning, refused    string // part of it
	}{
		{"one comparison over six people", "6", "providers: [bm25, recall]\nprimary: {metric: recall@tokens, budget: 200, reference: bm25}", "", ""},
		{"two comparisons over six people", "6", "providers: [bm25, recall, full_history]\nprimary: {metric: recall@tokens, budget: 200, reference: bm25}",
			"with 2 comparisons over 6 clusters of people p is 0.062 at best", ""},
		{"five people", "5", "providers: [bm25, recall]\nprimary: {metric: recall@tokens, budget: 200, reference: bm25}",
			"the pack has 5 clusters of people to whom recall@tokens applies, and a verdict needs 6", ""},
		{"one replicate of conversations", "6", "providers: [bm25, recall]\nsubject: {seat: stub}\nprimary: {metric: abstained, budget: 200, reference: bm25}",
			"a verdict on behaviour needs 3 replicates, and the lab has 1", ""},
		{"conversations without a subject", "6", "providers: [bm25, recall]\nprimary: {metric: cs, budget: 200, reference: bm25}", "",
			"the lab has no subject"},
		{"preferences that the pack has not", "6", "providers: [bm25, recall]\nsubject: {seat: stub}\nprimary: {metric: cs, budget: 200, reference: bm25}", "",
			"applies to no probe of this pack"},
		{"an unknown metric", "6", "providers: [bm25, recall]\nprimary: {metric: recal@tokens, budget: 200, reference: bm25}", "", "recal@tokens"},
		{"a memory that names no events", "6", "providers: [bm25, layered_memory]\nprimary: {metric: recall@tokens, budget: 200, reference: bm25}",
			"", "layered_memory names none: pages"},
		{"a reference that names no events", "6", "providers: [bm25, layered_memory]\nprimary: {metric: recall@tokens, budget: 200, reference: layered_memory}",
			"", "layered_memory names none: pages"},
		{"what a memory without events shows", "6", "providers: [bm25, layered_memory]\nprimary: {metric: answer_shown, budget: 200, reference: bm25}", "", ""},
		{"no comparison", "2", "providers: [bm25, recall]", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, p := simulatetest.Synth(t, map[string]string{"personas": c.personas, "sessions": "4", "turns": "2"})
			l, err := lab.Parse([]byte("lab: 1\npack: synth.pack\ntokenizer: bytes4\nbudgets: [200]\n" + c.lab))
			require.NoError(t, err)
			warnings, err := CheckPrimary(l, p, map[string]string{"layered_memory": "pages"})
			if c.refused != "" {
				assert.ErrorContains(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			if c.warning == "" {
				assert.Empty(t, warnings)
				return
			}
			require.Len(t, warnings, 1)
			assert.Contains(t, warnings[0], c.warning)
		})
	}
}
