//go:build page

package pagetest

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asking asks about green tea and waits until other memories may be asked, too.
func asking(b *browser, s *slot) []chromedp.Action {
	return append(b.at(s, "ask"), chromedp.Evaluate(`document.querySelector("main form input").value = "green tea"`, nil),
		chromedp.Click("main form button"), waitForText("What would another memory give?"))
}

// TestOtherMemoriesAnswerTheSameQuestion fills them from the archive, with hostile, long and right-to-left text. It is
// asked by keyboard, at two widths, light and dark.
func TestOtherMemoriesAnswerTheSameQuestion(t *testing.T) {
	t.Setenv("MEMHOST_MEMORY__ARCHIVE", "true")
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t), "--condition", "bm25")
	record(t, s, event("e0", "monday", "I drink green tea."))
	record(t, s, event("long", "monday", "green tea "+unbroken))
	record(t, s, event("rtl", "monday", "green tea: أشرب الشاي الأخضر كل صباح."))
	for i, text := range injections() {
		record(t, s, event(fmt.Sprint("e", i+1), "tuesday", text+" tea"))
	}
	for _, width := range []int{1300, 400} {
		b := open(t, width, 900, width == 400)
		var names []string
		var overflow int
		var shot []byte
		b.run(t, append(asking(b, s),
			chromedp.Evaluate(`[...document.querySelectorAll(".choices label")].map((l) => l.textContent)`, &names),
			// the last choice, then the button
			chromedp.Evaluate(`[...document.querySelectorAll(".choices input")].at(-1).focus()`, nil),
			chromedp.KeyEvent(kb.Tab+kb.Enter), waitForText("Each was filled with 63 turns"),
			until(`[...document.querySelectorAll(".compared pre")].filter((p) => p.textContent.includes("I drink green tea.")).length === 3`),
			chromedp.Evaluate(overflowing, &overflow), chromedp.FullScreenshot(&shot, 100))...)
		assert.Subset(t, names, []string{"full_history", "recall"})
		for _, name := range []string{"bm25", "mem0", "honcho", "layered_memory", "simple_rag"} {
			assert.NotContains(t, names, name, "it serves, or needs a server or a model")
		}
		assert.LessOrEqual(t, overflow, 0)
		b.unhurt(t)
		b.clean(t)
		keep(t, fmt.Sprintf("compare-%d-%v", width, width == 400), shot)

		b = open(t, width, 900, width == 400)
		var found string
		b.run(t, append(append([]chromedp.Action{page.SetBypassCSP(true)}, asking(b, s)...), press("Ask them, too"),
			waitForText("Each was filled with"), chromedp.Evaluate(axe(t), nil), chromedp.Evaluate(serious, &found, await))...)
		var violations []string
		require.NoError(t, json.Unmarshal([]byte(found), &violations))
		assert.Empty(t, violations)
	}
}

// TestAComparisonTakesFiveThousandTurns says how long it takes. The slot ends one after two minutes.
func TestAComparisonTakesFiveThousandTurns(t *testing.T) {
	t.Setenv("MEMHOST_MEMORY__ARCHIVE", "true")
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t), "--condition", "full_history")
	recordMany(t, s, 5001, func(i int) map[string]any {
		return event(fmt.Sprintf("e%05d", i), fmt.Sprint("s", i/20), fmt.Sprintf("Turn %d was about tea, the weather and the garden.", i))
	})
	b := open(t, 1300, 900, false)
	var ms float64
	var about []string
	b.run(t, append(asking(b, s), press("Ask them, too"), waitForText("Each was filled with 5000 turns; 1 were left out"),
		chromedp.Evaluate(`[...document.querySelectorAll(".compared section")].map((c) => c.querySelector("h4").textContent + ": " +
			(c.querySelector("p")?.textContent ?? c.textContent))`, &about),
		chromedp.Evaluate(`performance.getEntriesByType("resource").findLast((r) => r.name.endsWith("/v1/compare")).duration`, &ms))...)
	t.Logf("a comparison of %d memories over 5,000 turns: %.0f ms; %q", len(about), ms, about)
	assert.Less(t, ms, 120_000.0)
	b.clean(t)
}
