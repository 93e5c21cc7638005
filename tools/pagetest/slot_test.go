//go:build page

package pagetest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slot is a process that serves a data folder.
type slot struct {
	url, dir string
	said     string // the file of its standard error
	process  *exec.Cmd
}

// address returns a free port, which the slot reuses after it was killed.
func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// serve starts a slot and waits until it serves.
func serve(t *testing.T, dir, listen string, more ...string) *slot {
	t.Helper()
	program, err := memhost()
	require.NoError(t, err)
	s := &slot{url: "http://" + listen, dir: dir, process: exec.Command(program, append([]string{"run", "--data", dir,
		"--listen", listen}, more...)...)}
	s.process.Env = append(os.Environ(), "HOME="+dir)
	out, err := os.CreateTemp(t.TempDir(), "said-*")
	require.NoError(t, err)
	defer out.Close()
	s.said, s.process.Stderr = out.Name(), out
	require.NoError(t, s.process.Start())
	t.Cleanup(s.kill)
	require.Eventually(t, func() bool {
		r, err := http.Get(s.url + "/readyz")
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusOK
	}, 30*time.Second, 50*time.Millisecond)
	return s
}

func (s *slot) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// demoSlot serves the demo's conversation.
func demoSlot(t *testing.T) *slot {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	run(t, t.TempDir(), "demo", "--data", dir)
	report, err := demo()
	require.NoError(t, err)
	return serve(t, dir, address(t), "--set", "memory.archive=true", "--runs", filepath.Dir(filepath.Dir(report)))
}

// at opens a view of the slot's page and waits until it has content. It uses a different query each time to reload the
// page: with a new fragment only, the previous view would remain for a moment, and could be mistaken for the new one.
func (b *browser) at(s *slot, view string) []chromedp.Action {
	b.own = s.url + "/"
	b.loads++
	return []chromedp.Action{chromedp.Navigate(fmt.Sprintf("%s/page/?load=%d#%s", s.url, b.loads, view)), shown()}
}

// shown waits until the view is displayed.
func shown() chromedp.Action {
	return until(`document.querySelector("main h2") !== null &&
		!document.getElementById("main").hasAttribute("aria-busy")`)
}

// unbusy waits until nothing is being loaded.
func unbusy() chromedp.Action {
	return until(`!document.getElementById("main").hasAttribute("aria-busy")`)
}

// person selects a person in the list of people.
func person(id string) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`[...document.querySelectorAll(".person")].find(b => b.querySelector("b").textContent ===
		%q).click()`, id), nil)
}

// inside opens what a view shows on demand.
func inside(view string) []chromedp.Action {
	switch view {
	case "ask":
		return []chromedp.Action{chromedp.Click("main form button"), until(answered)}
	case "people":
		return []chromedp.Action{person("mara"), waitForText("What was said"), waitForText("mara-2026"), unbusy()}
	case "live": // a busier hour
		return []chromedp.Action{chromedp.Evaluate(`Promise.all([...Array(30)].map(() => fetch("/v1/retrieve",
			{ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ query: "tea?",
			session_id: "s", scope: { run_id: "demo", persona_id: "mara" } }) }))).then(() => true)`, nil, await),
			waitForText("retrieve"), chromedp.Click(".operations button"), waitForText("Where the")}
	case "runs":
		return []chromedp.Action{press("Show run"), waitForText("leak detector"),
			until(`document.querySelector("iframe") !== null`)}
	}
	return nil
}

// keep writes a screenshot of the page to bin/page, for people to look at.
func keep(t *testing.T, name string, shot []byte) {
	t.Helper()
	dir := filepath.Join("..", "..", "bin", "page")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+".png"), shot, 0o644))
}

const answered = `document.querySelector("main pre") !== null`

func TestEachViewOfTheSlotShowsTheDemo(t *testing.T) {
	s := demoSlot(t)
	for _, c := range []struct {
		width, height int
		dark          bool
	}{{1600, 1000, false}, {1600, 1000, true}, {400, 800, false}, {400, 800, true}} {
		t.Run(fmt.Sprintf("%d-%v", c.width, c.dark), func(t *testing.T) {
			b := open(t, c.width, c.height, c.dark)
			for view, want := range map[string]string{"people": "What was said", "live": "Serving", "ask": "Question",
				"turns": "Generation", "change": "runs here", "runs": "leak detector", "modules": "Configure it"} {
				name := fmt.Sprintf("%s-%d-%v", view, c.width, c.dark)
				var text string
				var overflow, fetched int
				var shot []byte
				b.run(t, append(append(b.at(s, view), inside(view)...), chromedp.Text("main", &text),
					chromedp.Evaluate(overflowing, &overflow),
					chromedp.Evaluate(jsonBytes, &fetched), chromedp.FullScreenshot(&shot, 100))...)
				assert.LessOrEqual(t, fetched, 1_000_000, "%s: bytes of JSON", name)
				t.Logf("%s: %d bytes of JSON", name, fetched)
				assert.Contains(t, text, want, name)
				assert.LessOrEqual(t, overflow, 0, "%s: nothing stands beyond the window's width", name)
				keep(t, name, shot)
			}
			b.clean(t)
		})
	}
}

// overflowing is by how many pixels the page is wider than the window.
const overflowing = `document.documentElement.scrollWidth - document.documentElement.clientWidth`

// jsonBytes is how much the page has fetched since it was loaded, without the stream.
const jsonBytes = `performance.getEntriesByType("resource").filter(r => r.name.includes("/v1/") &&
	!r.name.includes("/v1/operations")).reduce((sum, r) => sum + r.encodedBodySize, 0)`

// TestTheFirstViewIsThereAtOnce requires that the quickest of a hundred attempts takes at most 200 ms, because other
// load on the machine slows some of them.
func TestTheFirstViewIsThereAtOnce(t *testing.T) {
	s := demoSlot(t)
	b := open(t, 1300, 900, false)
	b.run(t, b.at(s, "live")...)
	assert.LessOrEqual(t, quickest(t, 100, 200, func() (ms float64) {
		b.run(t, append(b.at(s, "live"), chromedp.Evaluate(`performance.getEntriesByName("shown")[0].startTime`, &ms))...)
		return ms
	}), 200.0, "ms from the navigation to the first view")
}

func TestASwapIsWatchedAndMadeOnThePage(t *testing.T) {
	s := demoSlot(t)
	b := open(t, 1300, 900, false)
	live := until(`document.getElementById("link").textContent === "live"`)
	b.run(t, append(b.at(s, "live"), live)...)
	// A step that arrives through the stream is added alone; the steps of a view arrive with the whole view.
	b.run(t, chromedp.Evaluate(`window.seen = []; new MutationObserver((changes) => {
		for (const added of changes.flatMap((c) => [...c.addedNodes])) {
			if (added.nodeName === "LI") window.seen.push(added.textContent);
		} }).observe(document.getElementById("main"), { subtree: true, childList: true })`, nil))
	r, err := http.Post(s.url+"/v1/swap", "application/json", strings.NewReader(`{"condition": "no_memory"}`))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.StatusCode)
	_ = r.Body.Close()
	var seen []string
	b.run(t, waitForText("providerno_memory"), chromedp.Evaluate(`window.seen`, &seen))
	assert.Contains(t, strings.Join(seen, "; "), "load", "the steps were shown as they came")
	assert.Contains(t, strings.Join(seen, "; "), "serve", "the steps were shown as they came")

	// also by the page itself, which asks for confirmation
	b.run(t, append(b.at(s, "change"), chromedp.Click(`input[value="full_history"]`), press("Exchange"),
		chromedp.WaitVisible("#confirm-yes"), chromedp.Click("#confirm-yes"), waitForText("full_history serves."))...)
	b.clean(t)
}

func TestAScopeIsErasedAfterAQuestion(t *testing.T) {
	s := demoSlot(t)
	b := open(t, 1300, 900, false)
	var text string
	b.run(t, append(b.at(s, "turns"), press("Erase this scope's memory"), chromedp.WaitVisible("#confirm-no"),
		chromedp.Click("#confirm-no"), chromedp.Text("main", &text))...)
	assert.Contains(t, text, "Generation 1, 44 events")
	b.run(t, press("Erase this scope's memory"), chromedp.WaitVisible("#confirm-yes"), chromedp.Click("#confirm-yes"),
		waitForText("Erased: "), waitForText("Generation 2, 0 events"))
	b.clean(t)
}

func TestAReadingPageOffersNoChange(t *testing.T) {
	t.Setenv("MEMHOST_MEMORY__ARCHIVE", "true")
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t), "--page", "read")
	record(t, s, event("e1", "s", "I drink tea."))
	b := open(t, 1300, 900, false)
	var text string
	b.run(t, append(b.at(s, "live"), chromedp.Text("main", &text))...)
	assert.NotContains(t, text, "Make read-only")
	b.run(t, append(b.at(s, "change"), waitForText("offers no changes"), chromedp.Text("main", &text))...)
	assert.NotContains(t, text, "Exchange")
	assert.NotContains(t, text, "Make read-only")
	b.run(t, append(b.at(s, "turns"), waitForText("e1"), chromedp.Text("main", &text))...)
	assert.NotContains(t, text, "Erase")
	assert.NotContains(t, text, "Forget")
	b.run(t, append(b.at(s, "turns"), follow("s"), waitForText("Session"), chromedp.Text("main", &text))...)
	assert.NotContains(t, text, "Forget")
	b.clean(t)
}

// TestALinkWorksOnce opens the link of a slot with a token twice.
func TestALinkWorksOnce(t *testing.T) {
	t.Setenv("MEMHOST_TOKEN", "0123456789abcdef0123")
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t))
	var link []byte
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(s.said)
		link = regexp.MustCompile(`http\S+#code=\w+`).Find(text)
		return err == nil && link != nil
	}, 30*time.Second, 20*time.Millisecond)
	b := open(t, 1300, 900, false)
	b.own = s.url + "/"
	var hash string
	b.run(t, chromedp.Navigate(string(link)), shown(),
		until(`document.getElementById("link").textContent === "live"`),
		chromedp.Evaluate(`location.hash`, &hash))
	assert.Empty(t, hash)
	b.clean(t)
	other := open(t, 1300, 900, false)
	other.own = s.url + "/"
	other.run(t, chromedp.Navigate(string(link)),
		until(`document.querySelector("main input[type=password]") !== null`))
}

// smaller is a picture with three quarters of its width and height, each field the mean of what it covers.
func smaller(from image.Image) image.Image {
	size := from.Bounds().Size()
	to := image.NewRGBA(image.Rect(0, 0, size.X*3/4, size.Y*3/4))
	for y := range to.Rect.Dy() {
		for x := range to.Rect.Dx() {
			var sum [3]uint32
			var n uint32
			for row := y * 4 / 3; row < (y*4+6)/3; row++ {
				for column := x * 4 / 3; column < (x*4+6)/3; column++ {
					r, g, b, _ := from.At(min(column, size.X-1), min(row, size.Y-1)).RGBA()
					sum[0], sum[1], sum[2], n = sum[0]+r>>8, sum[1]+g>>8, sum[2]+b>>8, n+1
				}
			}
			to.SetRGBA(x, y, color.RGBA{uint8(sum[0] / n), uint8(sum[1] / n), uint8(sum[2] / n), 255})
		}
	}
	return to
}

// TestTheViewsLookAsInTheDocumentation roughly compares each view with its picture in docs/page, which UPDATE=1
// rewrites: both are reduced to 30 by 20 grey fields, so that fonts, times and digests don't matter.
func TestTheViewsLookAsInTheDocumentation(t *testing.T) {
	s := demoSlot(t)
	b := open(t, 1200, 800, false)
	for _, view := range []string{"people", "ask", "compare", "change", "turns", "runs", "modules"} { // Live is never the same
		switch view {
		case "people":
			b.run(t, append(append(b.at(s, view), inside(view)...), search("green tea"), waitForText("turns have these words"))...)
		case "compare":
			b.run(t, append(b.at(s, "ask"), chromedp.Evaluate(`{ const s = document.querySelector("main select");
				s.selectedIndex = 1; s.dispatchEvent(new Event("change"));
				document.querySelector("main form input").value = "Since when does she drink green tea?" }`, nil),
				chromedp.Click("main form button"), waitForText("What would another memory give?"), press("Ask them, too"),
				waitForText("Each was filled with"), chromedp.Evaluate(`{ const card = document.querySelector(".compared").closest(".card");
					scrollTo(0, card.getBoundingClientRect().top + scrollY - 64); }`, nil))...)
		default:
			b.run(t, append(b.at(s, view), inside(view)...)...)
		}
		file := filepath.Join("..", "..", "docs", "page", view+".png")
		if os.Getenv("UPDATE") != "" {
			time.Sleep(5 * time.Second) // so that late content is in the picture, too
			var small bytes.Buffer
			require.NoError(t, png.Encode(&small, smaller(b.screen(t))))
			require.NoError(t, os.WriteFile(file, small.Bytes(), 0o644))
		}
		kept, err := os.ReadFile(file)
		require.NoError(t, err)
		want, err := png.Decode(bytes.NewReader(kept))
		require.NoError(t, err)
		// A report's frame and the backend's answers arrive late, and the page does not say when everything is drawn.
		var off float64
		for end := time.Now().Add(30 * time.Second); ; {
			off = difference(scaled(b.screen(t), 30, 20), scaled(want, 30, 20))
			if off <= 0.02 || time.Now().After(end) {
				break
			}
		}
		t.Logf("%s: %.4f off", view, off)
		assert.LessOrEqual(t, off, 0.02, view)
	}
}

// screen is a screenshot of the window.
func (b *browser) screen(t *testing.T) image.Image {
	t.Helper()
	var text []byte
	b.run(t, chromedp.CaptureScreenshot(&text))
	shot, err := png.Decode(bytes.NewReader(text))
	require.NoError(t, err)
	return shot
}

// difference is 0 for equal pictures, and 1 for a white and a black one.
func difference(one, two *image.Gray) (off float64) {
	for i := range one.Pix {
		off += math.Abs(float64(one.Pix[i])-float64(two.Pix[i])) / 255 / float64(len(one.Pix))
	}
	return off
}

// scaled is a picture as width by height grey fields, each the mean of what it covers.
func scaled(from image.Image, width, height int) *image.Gray {
	to, size := image.NewGray(image.Rect(0, 0, width, height)), from.Bounds().Size()
	for i := range to.Pix {
		x, y := i%width, i/width
		var sum, n int
		for row := y * size.Y / height; row < (y+1)*size.Y/height; row++ {
			for column := x * size.X / width; column < (x+1)*size.X/width; column++ {
				sum += int(color.GrayModel.Convert(from.At(column, row)).(color.Gray).Y)
				n++
			}
		}
		to.Pix[i] = uint8(sum / n)
	}
	return to
}

// TestAnOpenPageCostsAnAgentNothing alternates between requests with and without an open page, and compares the medians
// of each pair. The target is 1.02; the test only fails far above it, because of other load on the machine.
func TestAnOpenPageCostsAnAgentNothing(t *testing.T) {
	s := demoSlot(t)
	b := open(t, 1300, 900, false)
	b.own = s.url + "/"
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("ROUNDS"), "10"))
	require.NoError(t, err)
	live := until(`document.getElementById("link").textContent === "live"`)
	ask := func() float64 {
		var took []float64
		for range 300 {
			began := time.Now()
			r, err := http.Post(s.url+"/v1/retrieve", "application/json", strings.NewReader(
				`{"query":"tea?","session_id":"s","scope":{"run_id":"demo","persona_id":"jonas"}}`))
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
			took = append(took, float64(time.Since(began).Microseconds())/1000)
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	ask() // warm up
	var ratios []float64
	for range rounds {
		b.run(t, append(b.at(s, "live"), live)...)
		with := ask()
		b.run(t, chromedp.Navigate("about:blank"))
		ratios = append(ratios, with/ask())
	}
	slices.Sort(ratios)
	t.Logf("with the page open an agent's call takes %.3f x at p50 (%d pairs, %.3f to %.3f)",
		ratios[len(ratios)/2], rounds, ratios[0], ratios[len(ratios)-1])
	assert.LessOrEqual(t, ratios[len(ratios)/2], 1.2)
}

// TestOtherScriptsAreShown records Chinese and Arabic, and checks that each text has its own direction.
func TestOtherScriptsAreShown(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t))
	for i, text := range []string{"我住在上海，养了一只猫。", "أسكن في القاهرة ولي قطة."} {
		record(t, s, map[string]any{"event_id": fmt.Sprint("e", i), "run_id": "r", "user_id": "ليلى", "session_id": "s",
			"turn_id": fmt.Sprint(i), "timestamp": "2026-03-02T09:00:00Z",
			"messages": []map[string]any{{"role": "user", "content": text}}})
	}
	b := open(t, 400, 800, false)
	var text string
	var overflow int
	var directions []string
	b.run(t, append(b.at(s, "ask"), chromedp.Click("main form button"), until(answered),
		chromedp.Text("main", &text), chromedp.Evaluate(`[...document.querySelectorAll("td bdi, option")].map(e =>
			e.textContent.slice(0, 12) + getComputedStyle(e).direction)`, &directions),
		chromedp.Evaluate(overflowing, &overflow))...)
	assert.Contains(t, text, "我住在上海，养了一只猫。")
	assert.Contains(t, text, "أسكن في القاهرة ولي قطة.")
	assert.LessOrEqual(t, overflow, 0)
	t.Log(directions)
	b.clean(t)
}

func record(t *testing.T, s *slot, event map[string]any) {
	t.Helper()
	body, err := json.Marshal(event)
	require.NoError(t, err)
	r, err := http.Post(s.url+"/v1/events", "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	_ = r.Body.Close()
	require.Equal(t, http.StatusOK, r.StatusCode, "%s", body)
}

// recordMany records a number of events in batches.
func recordMany(t *testing.T, s *slot, n int, nth func(i int) map[string]any) {
	t.Helper()
	for at := 0; at < n; {
		var events []map[string]any
		for ; at < n && len(events) < 500; at++ {
			events = append(events, nth(at))
		}
		body, err := json.Marshal(map[string]any{"events": events})
		require.NoError(t, err)
		r, err := http.Post(s.url+"/v1/events/batch", "application/json", bytes.NewReader(body))
		require.NoError(t, err)
		_ = r.Body.Close()
		require.Equal(t, http.StatusOK, r.StatusCode)
	}
}

// TestManyTurnsComeInPages records TURNS turns (20,000, which takes a minute) and opens the first pages. The cost of a
// page does not depend on the number of turns.
func TestManyTurnsComeInPages(t *testing.T) {
	turns, err := strconv.Atoi(cmp.Or(os.Getenv("TURNS"), "20000"))
	require.NoError(t, err)
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t), "--condition", "no_memory")
	recordMany(t, s, turns, func(i int) map[string]any {
		return map[string]any{"event_id": fmt.Sprintf("e%06d", i), "run_id": "r", "user_id": "u",
			"session_id": "s", "turn_id": fmt.Sprint(i), "timestamp": "2026-03-02T09:00:00Z",
			"messages": []map[string]any{{"role": "user", "content": "a turn"}}}
	})
	b := open(t, 1300, 900, false)
	var rows, fetched int
	var ms float64
	b.run(t, append(b.at(s, "turns"), chromedp.Evaluate(jsonBytes, &fetched),
		chromedp.Evaluate(`performance.getEntriesByName("shown")[0].startTime`, &ms),
		chromedp.Evaluate(`document.querySelectorAll("main tbody tr").length`, &rows))...)
	assert.Equal(t, 100, rows)
	assert.LessOrEqual(t, fetched, 1_000_000)
	t.Logf("%d turns: the first page after %.0f ms, %d bytes of JSON", turns, ms, fetched)
	first := func(id string) chromedp.Action {
		return until(fmt.Sprintf(`document.querySelector("main tbody td").textContent === %q`, id))
	}
	b.run(t, press("Next page"), first("e000100"), press("Next page"), first("e000200"), press("Page before"),
		first("e000100"))
	b.clean(t)
}

// TestTheModuleFormPrintsYAMLWithoutASecret fills in the form of mem0.
func TestTheModuleFormPrintsYAMLWithoutASecret(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t))
	b := open(t, 1300, 900, false)
	var yaml string
	b.run(t, append(b.at(s, "modules"), chromedp.Evaluate(`{ const s = document.querySelector("main select");
		s.selectedIndex = [...s.options].findIndex(o => o.textContent.startsWith("mem0 "));
		s.dispatchEvent(new Event("change")); }`, nil),
		until(`document.querySelector("pre[aria-label=YAML]").textContent.includes("backend: mem0")`), chromedp.Evaluate(`{
		for (const l of document.querySelectorAll("label.key")) {
			if (!/^(url|api_key)/.test(l.textContent)) continue;
			l.querySelector("input").value = l.textContent.startsWith("url") ? "http://127.0.0.1:8000" : "mem0";
			l.querySelector("input").dispatchEvent(new Event("input", { bubbles: true }));
		} }`, nil), chromedp.Evaluate(`document.querySelector("pre[aria-label=YAML]").textContent`, &yaml))...)
	assert.Contains(t, yaml, `{env: MEM0, origin: "http://127.0.0.1:8000"}`)
	file := filepath.Join(t.TempDir(), "memhost.yaml")
	require.NoError(t, os.WriteFile(file, []byte(yaml), 0o600))
	t.Setenv("MEM0", "hush")
	run(t, filepath.Dir(file), "config", "--config", file)
	b.clean(t)
}

// TestTheProvidersQueriesAreForms: the view has no code for a particular module; its form comes from the declaration.
func TestTheProvidersQueriesAreForms(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	manifest := filepath.Join(dir, "manifest.json")
	require.NoError(t, os.WriteFile(manifest, []byte(`{"manifest": 1, "name": "echo", "version": "0.1.0", "abi": "mh1", "description": "d",
		"providers": [{"name": "echo", "kind": "control"}], "config_schema": {"type": "object", "additionalProperties": false},
		"native_queries": [{"name": "greet", "about": "Says <b>it</b>.", "schema": {"type": "object", "required": ["text"],
		  "properties": {"text": {"type": "string"}, "times": {"type": "integer", "minimum": 1}, "tone": {"enum": ["warm", "cold"]}}},
		  "show": {"as": "table", "columns": [{"title": "said", "at": "/body/params/text"}, {"title": "times", "at": "/body/params/times"},
		    {"title": "tone", "at": "/body/params/tone"}]}}]}`), 0o600))
	echo, err := filepath.Abs("../../internal/test/testguest/echo/echo.wasm")
	require.NoError(t, err)
	module := filepath.Join(dir, "declares.wasm")
	run(t, dir, "pack", echo, "--manifest", manifest, "-o", module)
	s := serve(t, data, address(t), "--plugin", module)
	r, err := http.Post(s.url+"/v1/scopes", "application/json", strings.NewReader(`{"run_id": "r", "persona_id": "u"}`))
	require.NoError(t, err)
	_ = r.Body.Close()
	require.Equal(t, http.StatusOK, r.StatusCode)
	b := open(t, 1300, 900, false)
	var text string
	b.run(t, append(b.at(s, "provider"), waitForText("Says <b>it</b>."), chromedp.Evaluate(`{
		const [text, times] = document.querySelectorAll("label.key input");
		text.value = "<i>hello</i>"; times.value = "3";
		document.querySelector("label.key select").selectedIndex = 2; }`, nil), press("Ask"), waitForText("<i>hello</i>"),
		chromedp.Text("main table", &text))...)
	assert.Regexp(t, `(?s)said\s+times\s+tone\s+<i>hello</i>\s+3\s+cold`, text)
	b.clean(t)
}

// serious returns, as JSON, axe's findings that are serious or critical.
const serious = `axe.run().then(r => JSON.stringify(r.violations
	.filter(v => v.impact === "serious" || v.impact === "critical")
	.map(v => v.id + ": " + v.help + " " + v.nodes.slice(0, 3).map(n => n.target.join(" ")).join(", "))))`

func TestTheSlotsPageIsAccessible(t *testing.T) {
	local, remote := demoSlot(t), mem0Slot(t, same)
	record(t, remote, event("e1", "s", "I drink tea."))
	script := axe(t)
	for _, dark := range []bool{false, true} {
		for _, view := range []string{"people", "ask", "live", "change", "turns", "runs", "modules", "mem0"} {
			t.Run(fmt.Sprint(view, ", dark: ", dark), func(t *testing.T) {
				b, s := open(t, 1300, 900, dark), local
				more := inside(view)
				if view == "mem0" {
					s, view, more = remote, "turns", []chromedp.Action{press("Show e1"), waitForText("From turns: e1")}
				}
				var found string
				actions := append([]chromedp.Action{page.SetBypassCSP(true)}, b.at(s, view)...)
				b.run(t, append(append(actions, more...),
					chromedp.Evaluate(script, nil), chromedp.Evaluate(serious, &found, await))...)
				var violations []string
				require.NoError(t, json.Unmarshal([]byte(found), &violations))
				assert.Empty(t, violations)
			})
		}
	}
}

func TestTheSlotsPageWorksByKeyboard(t *testing.T) {
	s := demoSlot(t)
	b := open(t, 1300, 900, false)
	var title string
	// the skip link, People, Ask
	b.run(t, append(b.at(s, "live"), chromedp.KeyEvent(kb.Tab+kb.Tab+kb.Tab+kb.Enter),
		until(`document.title.startsWith("Ask")`), shown(), chromedp.Title(&title),
		chromedp.Evaluate(`document.querySelector("main form input").focus()`, nil), chromedp.KeyEvent(kb.Enter),
		until(answered))...)
	assert.Equal(t, "Ask - memhost", title)
	b.clean(t)
}

func TestThePageSurvivesAKillOfTheSlot(t *testing.T) {
	s := demoSlot(t)
	b := open(t, 1300, 900, false)
	link := func(word string) chromedp.Action {
		return until(fmt.Sprintf(`document.getElementById("link").textContent.includes(%q)`, word))
	}
	b.run(t, append(b.at(s, "live"), link("live"))...)
	s.kill()
	b.run(t, link("away"))
	serve(t, s.dir, strings.TrimPrefix(s.url, "http://"))
	b.run(t, link("live"), shown())
	assert.Empty(t, b.requests)
}

// unhurt requires that no text was executed as a script since the page was loaded.
func (b *browser) unhurt(t *testing.T) {
	t.Helper()
	var hurt bool
	b.run(t, chromedp.Evaluate(`window.hurt !== undefined`, &hurt))
	assert.False(t, hurt)
}

// TestHostileTextOnThePageDoesNothing records 60 texts as content and as ids, and opens every view that shows them.
func TestHostileTextOnThePageDoesNothing(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t))
	for i, text := range injections() {
		body, err := json.Marshal(map[string]any{"event_id": text, "run_id": injections()[i%3],
			"user_id": text[:min(len(text), 8)] + "u", "session_id": text, "turn_id": text, "timestamp": "2026-03-02T09:00:00Z",
			"messages": []map[string]any{{"role": "user", "name": text, "content": text}}})
		require.NoError(t, err)
		r, err := http.Post(s.url+"/v1/events", "application/json", bytes.NewReader(body))
		require.NoError(t, err)
		_ = r.Body.Close()
		require.Equal(t, http.StatusOK, r.StatusCode, text)
	}
	b := open(t, 1300, 900, false)
	var scopes int
	b.run(t, append(b.at(s, "ask"),
		chromedp.Evaluate(`document.querySelector("main select").options.length`, &scopes))...)
	assert.Greater(t, scopes, 1)
	for i := range scopes {
		choose := chromedp.Evaluate(fmt.Sprintf(`{ const s = document.querySelector("main select");
			s.selectedIndex = %d; s.dispatchEvent(new Event("change")); }`, i), nil)
		b.run(t, append(b.at(s, "ask"), choose, chromedp.Click("main form button"), until(answered),
			chromedp.Evaluate(`for (const d of document.querySelectorAll("details")) d.open = true`, nil))...)
		b.unhurt(t)
		// The list's table is replaced once the events of the chosen scope have arrived.
		b.run(t, append(b.at(s, "turns"), chromedp.Evaluate(`window.before = document.querySelector("main table")`, nil),
			choose, until(fmt.Sprintf(`%d === 0 || document.querySelector("main table") !== window.before`, i)))...)
		b.unhurt(t)
		b.run(t, append(b.at(s, "people"), chromedp.Evaluate(fmt.Sprintf(`document.querySelectorAll(".person")[%d].click()`, i), nil),
			waitForText("What was said"), unbusy(), chromedp.Evaluate(`for (const d of document.querySelectorAll("details")) d.open = true`,
				nil))...)
		b.unhurt(t)
	}
	b.run(t, b.at(s, "live")...)
	b.unhurt(t)
	b.clean(t)
}
