//go:build page

package pagetest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAnEmptySlotTakesAConversation: the example, and a file of one's own with the person's name; nothing is recorded
// before the button that says how much.
func TestAnEmptySlotTakesAConversation(t *testing.T) {
	const line = `{"session_id": "s", "messages": [{"role": "user", "content": "I moved to Lyon.", ` +
		`"timestamp": "2026-03-02T09:00:00Z"}]}`
	file := filepath.Join(t.TempDir(), "chat.json")
	require.NoError(t, os.WriteFile(file, []byte(line), 0o600))
	t.Setenv("MEMHOST_MEMORY__ARCHIVE", "true")
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t), "--condition", "bm25")
	b := open(t, 1300, 900, false)
	var people int
	b.run(t, append(b.at(s, "people"), waitForText("Nothing was recorded yet"), press("Try it with the example conversation"),
		until(`document.querySelector("form.card") !== null`))...)
	b.run(t, chromedp.Evaluate(`document.querySelectorAll(".person").length`, &people))
	assert.Zero(t, people, "nothing before the confirmation")
	b.run(t, until(`document.querySelector("form.card button.act") !== null`),
		chromedp.Evaluate(`document.querySelector("form.card button.act").click()`, nil), waitForText("Recorded"), press("Show the people"),
		until(`document.querySelectorAll(".person").length > 1`), person("mara"), waitForText("What was said"))

	// a file that is dropped is read like one that is chosen
	var before int
	b.run(t, chromedp.Evaluate(`document.querySelectorAll(".person").length`, &before), chromedp.Evaluate(`document.querySelector("details.import summary").click()`, nil),
		drop(".drop", "dropped.jsonl", line), waitForText("Record 1 turn"), waitForText("This is"))
	b.run(t, drop(".drop", "photo.png", "no conversation"), waitForText("Nothing in it can be recorded"))
	b.run(t, chromedp.Evaluate(`document.querySelectorAll(".person").length`, &people))
	assert.Equal(t, before, people, "nothing of what was dropped before the confirmation")

	b.run(t,
		chromedp.SetUploadFiles("input[type=file]", []string{file}, chromedp.ByQuery), waitForText("Record 1 turn"),
		chromedp.Evaluate(`{ const field = document.querySelector("form.card input"); field.value = "ann";
			field.dispatchEvent(new Event("input", { bubbles: true })); }`, nil),
		chromedp.Evaluate(`document.querySelector("form.card button.act").click()`, nil), waitForText("Recorded"), press("Show the people"),
		until(`[...document.querySelectorAll(".person")].some((p) => p.textContent.includes("ann"))`), person("ann"),
		waitForText("I moved to Lyon."))
	b.clean(t)
}

// drop drags a file over what a selector names and drops it there. The events are real ones with a file in them, as the
// browser makes them; only the mouse is missing.
func drop(selector, name, text string) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`{ const to = document.querySelector(%q), dataTransfer = new DataTransfer();
		dataTransfer.items.add(new File([%q], %q));
		const send = (type) => to.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
		if (send("dragover")) throw new Error("the page does not take what is dragged over it");
		if (send("drop")) throw new Error("the browser would open the file"); }`, selector, text, name), nil)
}
