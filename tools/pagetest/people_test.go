//go:build page

package pagetest

import (
	"cmp"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/fakes/memos"
)

// TestAPersonsTurnsAndItemsLeadToEachOther asks what a new user would ask: since when does Mara drink tea?
func TestAPersonsTurnsAndItemsLeadToEachOther(t *testing.T) {
	s := demoSlot(t)
	for _, condition := range []string{"full_history", "bm25"} {
		if condition != "full_history" {
			t.Setenv("MEMHOST_MEMORY__ARCHIVE", "true")
			s = serve(t, filepath.Join(t.TempDir(), "data"), address(t), "--condition", condition)
			record(t, s, event("e1", "monday", "I drink coffee."))
			record(t, s, event("e2", "tuesday", "Only green tea from now on."))
			record(t, s, event("e3", "wednesday", "It rains."))
		}
		b := open(t, 1300, 900, false)
		var turns, items, lit int
		var address, text string
		b.run(t, b.at(s, "people")...)
		if condition == "full_history" {
			b.run(t, person("mara"))
		}
		b.run(t, waitForText("What was said"), waitForText("What "+condition+" made of it"), waitForText("in memory"), unbusy(),
			chromedp.Evaluate(`{ const field = document.querySelectorAll("main input[type=search]")[1];
				field.value = "green tea"; field.dispatchEvent(new Event("input", { bubbles: true })); }`, nil),
			until(`[...document.querySelectorAll(".both li")].every(l => /green tea/i.test(l.textContent))`),
			chromedp.Evaluate(`document.querySelectorAll(".both section:first-child > .session li").length`, &turns),
			chromedp.Evaluate(`document.querySelectorAll(".item").length`, &items))
		assert.Positive(t, turns, "%s: turns with the words", condition)
		assert.Positive(t, items, "%s: items with the words", condition)

		// from an item to its turn, and from a turn to its items
		b.run(t, chromedp.Evaluate(`document.querySelector(".item .link").click()`, nil),
			until(`document.querySelectorAll(".turn.lit:not(.item)").length === 1`),
			chromedp.Evaluate(`document.querySelector(".turn:not(.item) .link").click()`, nil),
			waitForText("Only what came from"), chromedp.Evaluate(`document.querySelectorAll(".item.lit").length`, &lit),
			chromedp.Location(&address), chromedp.Text("main", &text))
		assert.Positive(t, lit)
		assert.Equal(t, s.url+"/page/?load=1#people", address, "no id stands in the address")

		var shown string
		b.run(t, chromedp.Evaluate(`[...document.querySelectorAll("header button")].find(b => b.textContent === "Blur").click()`, nil),
			until(`document.querySelector("main").classList.contains("blurred")`),
			chromedp.Evaluate(`getComputedStyle(document.querySelector(".said .words")).filter`, &shown))
		assert.Contains(t, shown, "blur")
		b.clean(t)
	}
}

// TestTenThousandPeopleAreSearched records EVENTS turns (10,000, one of each person) and times the list, the search and
// one person.
func TestTenThousandPeopleAreSearched(t *testing.T) {
	events, err := strconv.Atoi(cmp.Or(os.Getenv("EVENTS"), "10000"))
	require.NoError(t, err)
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t), "--condition", "no_memory")
	recordMany(t, s, events, func(i int) map[string]any {
		return map[string]any{"event_id": fmt.Sprint("e", i), "run_id": "r", "user_id": fmt.Sprintf("person %05d", i%10_000),
			"session_id": "s", "turn_id": "1", "timestamp": "2026-03-02T09:00:00Z",
			"messages": []map[string]any{{"role": "user", "content": "a turn"}}}
	})
	b := open(t, 1300, 900, false)
	var ms float64
	var fetched, shown int
	b.run(t, append(b.at(s, "people"), waitForText("500 or more people"), chromedp.Evaluate(jsonBytes, &fetched),
		chromedp.Evaluate(`performance.getEntriesByName("shown").at(-1).startTime`, &ms),
		chromedp.Evaluate(`document.querySelectorAll(".person").length`, &shown))...)
	t.Logf("10,000 people, %d events: listed after %.0f ms, %d bytes of JSON", events, ms, fetched)
	assert.LessOrEqual(t, fetched, 1_000_000)
	assert.Equal(t, 100, shown, "others are found by searching")
	began := time.Now()
	b.run(t, chromedp.Evaluate(`{ const field = document.querySelector("main input[type=search]");
		field.value = "09987"; field.dispatchEvent(new Event("input", { bubbles: true })); }`, nil), waitForText("1 person"), unbusy())
	t.Logf("found by searching after %d ms", time.Since(began).Milliseconds())
	began = time.Now()
	b.run(t, person("person 09987"), waitForText("What was said"), unbusy())
	t.Logf("one person shown after %d ms", time.Since(began).Milliseconds())
	b.clean(t)
}

// search types into the person's field for searching.
func search(text string) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`{ const field = document.querySelectorAll("main input[type=search]")[1];
		field.value = %q; field.dispatchEvent(new Event("input", { bubbles: true })); }`, text), nil)
}

// waitForTurns waits until the turns that are shown are those with these texts.
func waitForTurns(texts ...string) chromedp.Action {
	return until(fmt.Sprintf(`[...document.querySelectorAll(".turn:not(.item) .said > .words")].map((e) => e.textContent)
		.join("|") === %q`, strings.Join(texts, "|")))
}

// TestASearchFindsWordsAndMarksThem: "tea" is at the start of "teapot", and not a part of "steam".
func TestASearchFindsWordsAndMarksThem(t *testing.T) {
	t.Setenv("MEMHOST_MEMORY__ARCHIVE", "true")
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t), "--condition", "bm25")
	all := []string{"The steam rises.", "A teapot of green TEA.", "我喝绿茶。"}
	for i, text := range all {
		record(t, s, event(fmt.Sprint("e", i), "s", text))
	}
	b := open(t, 1300, 900, false)
	var hits []string
	marks := chromedp.Evaluate(`[...document.querySelectorAll(".turn:not(.item) .hit")].map((e) => e.textContent)`, &hits)
	b.run(t, append(b.at(s, "people"), waitForTurns(all...), search("tea"), waitForTurns(all[1]), marks)...)
	assert.Equal(t, []string{"tea", "TEA"}, hits)
	b.run(t, search("gre te"), waitForTurns(all[1]), marks)
	assert.Equal(t, []string{"te", "gre", "TE"}, hits)
	b.run(t, search("绿茶"), waitForTurns(all[2]), marks)
	assert.Equal(t, []string{"绿茶"}, hits)
	b.run(t, search("(.*"), waitForText("0 of 3 turns have these words"), waitForText("No turn has these words."),
		// a question typed into the search leads to Ask
		search("since when tea?"), waitForText("0 of 3 turns"), chromedp.Evaluate(`[...document.querySelectorAll("main a")]
			.find((a) => a.textContent === "Ask it as a question").click()`, nil), shown(),
		until(`document.querySelector("main form input[required]").value === "since when tea?"`), chromedp.Click("main form button"),
		until(answered), waitForText("A teapot of green TEA."))
	b.clean(t)
}

// TestATurnIsCorrectedAndForgottenOnThePage: what the memory made of the turn goes with it.
func TestATurnIsCorrectedAndForgottenOnThePage(t *testing.T) {
	t.Setenv("MEMHOST_MEMORY__ARCHIVE", "true")
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t), "--condition", "bm25")
	record(t, s, event("e1", "monday", "I drink coffee."))
	record(t, s, event("e2", "tuesday", "I live in Kyoto."))
	b := open(t, 1300, 900, false)
	items := func(texts ...string) chromedp.Action {
		return until(fmt.Sprintf(`[...document.querySelectorAll(".item .said")].map((e) => e.textContent.replace(/^user: /, ""))
			.sort().join("|") === %q`, strings.Join(texts, "|")))
	}
	yes := []chromedp.Action{chromedp.WaitVisible("#confirm-yes"), chromedp.Click("#confirm-yes")}
	var asked string
	b.run(t, append(b.at(s, "people"), waitForTurns("I drink coffee.", "I live in Kyoto."), items("I drink coffee.", "I live in Kyoto."),
		press("Correct e1"), chromedp.Evaluate(`document.querySelector(".turn textarea").value = "I drink tea."`, nil),
		press("Correct it"), chromedp.WaitVisible("#confirm-no"), chromedp.Text("#confirm", &asked), chromedp.Click("#confirm-no"),
		waitForTurns("I drink coffee.", "I live in Kyoto."))...)
	assert.Contains(t, asked, "At least this goes: the turn in the archive, and 1 item that bm25 made of it.")
	b.run(t, append(append([]chromedp.Action{press("Correct it")}, yes...), waitForTurns("I drink tea.", "I live in Kyoto."),
		items("I drink tea.", "I live in Kyoto."))...)
	b.run(t, append(append([]chromedp.Action{press("Forget e2")}, yes...), waitForTurns("I drink tea."), items("I drink tea."))...)
	b.clean(t)

	// without an archive a turn is shown as the memory keeps it, which is not enough to record it anew
	s = serve(t, filepath.Join(t.TempDir(), "data"), address(t), "--condition", "bm25", "--set", "memory.archive=false")
	record(t, s, event("e1", "monday", "I drink coffee."))
	var corrects, forgets bool
	b.run(t, append(b.at(s, "people"), waitForText("I drink coffee."), has("Correct e1", &corrects), has("Forget e1", &forgets))...)
	assert.False(t, corrects)
	assert.True(t, forgets)
	b.clean(t)
}

// unbroken is a text without a place to break a line.
var unbroken = strings.Repeat("unbroken", 200)

// TestLongAndRightToLeftTextsOfAPersonAreShown: each text has its own direction, and nothing is wider than the window.
func TestLongAndRightToLeftTextsOfAPersonAreShown(t *testing.T) {
	t.Setenv("MEMHOST_MEMORY__ARCHIVE", "true")
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t), "--condition", "full_history")
	arabic := "أسكن في القاهرة ولي قطة."
	for i, text := range []string{arabic, unbroken, strings.Repeat("a long text of many words ", 400)} {
		e := event(fmt.Sprint("e", i)+strings.Repeat("-id", 60), "جلسة", text)
		e["user_id"] = "ليلى"
		record(t, s, e)
	}
	for _, width := range []int{1600, 400} {
		b := open(t, width, 900, width == 400)
		var overflow int
		var directions []string
		var shot []byte
		b.run(t, append(b.at(s, "people"), waitForText("What was said"), waitForText(arabic), unbusy(), chromedp.Evaluate(overflowing, &overflow),
			chromedp.Evaluate(fmt.Sprintf(`[...document.querySelectorAll("main .words")].filter((e) => [%q, "ليلى"].includes(e.textContent))
				.map((e) => getComputedStyle(e).direction)`, arabic), &directions), chromedp.FullScreenshot(&shot, 100))...)
		assert.LessOrEqual(t, overflow, 0, "%d px", width)
		assert.GreaterOrEqual(t, len(directions), 3, "the name twice, and the turn")
		for _, d := range directions {
			assert.Equal(t, "rtl", d)
		}
		keep(t, fmt.Sprintf("scripts-%d", width), shot)
		b.clean(t)
	}
}

// TestASearchCoversAllTurns: for a person with many turns the page shows 50 at a time, and searches all.
func TestASearchCoversAllTurns(t *testing.T) {
	t.Setenv("MEMHOST_MEMORY__ARCHIVE", "true")
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t), "--condition", "no_memory")
	recordMany(t, s, 1200, func(i int) map[string]any {
		text := "a turn"
		if i == 777 {
			text = "Since May I drink green tea."
		}
		return event(fmt.Sprintf("e%04d", i), "s", text)
	})
	b := open(t, 1300, 900, false)
	shown := func(n int) chromedp.Action {
		return until(fmt.Sprintf(`document.querySelectorAll(".turn").length === %d`, n))
	}
	began := time.Now()
	b.run(t, append(b.at(s, "people"), waitForText("1,200 turns"), shown(50), search("green tea"),
		waitForText("1 of 1,200 turns has these words"), waitForTurns("Since May I drink green tea."))...)
	t.Logf("opened and searched in %d ms", time.Since(began).Milliseconds())
	b.run(t, search("turn"), waitForText("1199 of 1,200 turns have these words"), shown(50), press("Next page"), waitForText("e0050"),
		search(""), waitForText("e0000"), shown(50))
	b.clean(t)
}

// TestAnItemIsCorrectedOnThePage: the memory gets the correction, and the page shows the result.
func TestAnItemIsCorrectedOnThePage(t *testing.T) {
	backend := httptest.NewServer(memos.New(memos.Options{}))
	t.Cleanup(backend.Close)
	file := filepath.Join(t.TempDir(), "memhost.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "memory:\n  backend: memos\n  archive: true\n  feedback: true\n  backends:\n"+
		"    memos: {url: %q, feedback_enabled: true}\n", backend.URL), 0o600))
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t), "--config", file)
	record(t, s, event("e1", "monday", "I drink coffee."))
	b := open(t, 1300, 900, false)
	first := `[...document.querySelectorAll(".item button")].find((b) => b.ariaLabel?.startsWith("Correct "))`
	var overflow int
	b.run(t, append(b.at(s, "people"), waitForText("I drink coffee."), unbusy(), until(first), chromedp.Evaluate(first+`.focus()`, nil),
		chromedp.KeyEvent(kb.Enter), until(`document.querySelector(".item textarea")`),
		chromedp.Evaluate(overflowing, &overflow), chromedp.SendKeys(".item textarea", "I drink tea."), press("Correct it"),
		waitForText("applied"), until(`[...document.querySelectorAll(".item .said")].some((e) => e.textContent.includes("I drink tea."))`))...)
	assert.LessOrEqual(t, overflow, 0)
	b.clean(t)
}
