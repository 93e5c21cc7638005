//go:build page

package pagetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/fakes/mem0"
)

// waitForText waits until the view has a text.
func waitForText(text string) chromedp.Action {
	return until(fmt.Sprintf(`document.querySelector("main").textContent.includes(%q)`, text))
}

// press clicks the first button in the view with this label or text.
func press(label string) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`[...document.querySelectorAll("main button")].find(b => !b.hidden &&
		(b.ariaLabel ?? b.textContent) === %q).click()`, label), nil)
}

// has reports whether the view has such a button.
func has(label string, found *bool) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`[...document.querySelectorAll("main button")].some(b => !b.hidden &&
		(b.ariaLabel ?? b.textContent) === %q)`, label), found)
}

// follow clicks the link with this text in a table of the view.
func follow(text string) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`[...document.querySelectorAll("main td a")].find(a => a.textContent === %q).click()`,
		text), nil)
}

// session makes the view Turns show one session.
func session(name string) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`{ const field = document.querySelector("main input[placeholder=all]");
		field.value = %q; field.dispatchEvent(new Event("change")); }`, name), nil)
}

// event is an event of run r and user u with one message.
func event(id, session, text string) map[string]any {
	return map[string]any{"event_id": id, "run_id": "r", "user_id": "u", "session_id": session, "turn_id": id,
		"timestamp": "2026-03-02T09:00:00Z", "messages": []map[string]any{{"role": "user", "content": text}}}
}

// mem0Slot serves with the fake of mem0's server, whose answers pass through change.
func mem0Slot(t *testing.T, change func(answer []byte) []byte) *slot {
	t.Helper()
	fake := mem0.New(mem0.Options{})
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		fake.ServeHTTP(answer, r)
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.Header().Del("Content-Length")
		w.WriteHeader(answer.Code)
		_, _ = w.Write(change(answer.Body.Bytes()))
	}))
	t.Cleanup(backend.Close)
	file := filepath.Join(t.TempDir(), "memhost.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil,
		"memory:\n  backend: mem0\n  archive: true\n  backends:\n    mem0: {url: %q}\n", backend.URL), 0o600))
	return serve(t, filepath.Join(t.TempDir(), "data"), address(t), "--config", file)
}

func same(answer []byte) []byte { return answer }

func TestTurnsAreFoundByTheirSessionFollowedBothWaysAndForgotten(t *testing.T) {
	s := mem0Slot(t, same)
	record(t, s, event("e1", "monday", "I drink green tea."))
	record(t, s, event("e2", "tuesday", "I live in Kyoto."))
	record(t, s, event("e3", "tuesday", "I have a cat."))
	b := open(t, 1300, 900, false)
	count := func(n int) chromedp.Action {
		return until(fmt.Sprintf(`document.querySelector("main tbody")?.rows.length === %d`, n))
	}
	b.run(t, append(b.at(s, "turns"), count(3), waitForText("in memory"),
		follow("tuesday"), count(2))...)
	// from a turn to what was said, to memory, and from there to its turns
	b.run(t, press("Show e2"), waitForText("What was said in e2"), waitForText("I live in Kyoto."), waitForText("From turns: e2"),
		chromedp.Evaluate(`[...document.querySelectorAll("main button")]
			.find(b => b.ariaLabel?.startsWith("Where ")).click()`, nil),
		until(`[...document.querySelectorAll("main h2")].some(h => /^Where \S+ came from$/.test(h.textContent))`),
		waitForText("From turns: e2"))
	b.run(t, press("Forget e2"), chromedp.WaitVisible("#confirm-no"), chromedp.Click("#confirm-no"), count(2),
		press("Forget e2"), chromedp.WaitVisible("#confirm-yes"), chromedp.Click("#confirm-yes"),
		waitForText("Forgotten: event e2"), waitForText("archived_event"), waitForText("mem0"))
	b.run(t, count(1)) // the provider has removed it, so neither the ledger nor the page has it
	b.run(t, press("Forget this session"), chromedp.WaitVisible("#confirm-yes"), chromedp.Click("#confirm-yes"),
		waitForText("Forgotten: session tuesday"))
	b.clean(t)

	// all events of a session, however many others there are in between
	s = serve(t, filepath.Join(t.TempDir(), "data"), address(t), "--condition", "no_memory", "--set", "memory.archive=false")
	recordMany(t, s, 12000, func(i int) map[string]any {
		session := "busy"
		if i%4000 == 3999 {
			session = "rare"
		}
		return event(fmt.Sprintf("e%05d", i), session, "a turn")
	})
	var forgets bool
	b.run(t, append(b.at(s, "turns"), count(100), session("rare"), count(3), waitForText("e03999"), waitForText("e11999"), has("Forget e03999",
		&forgets))...)
	assert.False(t, forgets, "no archive, and the provider cannot: there is nothing to forget")
	b.clean(t)
}

func TestAQuestionOfThePageIsARetrievalLikeAnAgents(t *testing.T) {
	s := mem0Slot(t, same)
	record(t, s, event("e1", "monday", "I drink green tea."))
	b := open(t, 1300, 900, false)
	var lanes []string
	b.run(t, append(b.at(s, "ask"), waitForText("a call of an embedding model (the query is embedded, once)"),
		chromedp.SendKeys("main form input", " green tea"), chromedp.Click("main form button"),
		until(answered), waitForText("I drink green tea."),
		chromedp.Evaluate(`[...document.querySelectorAll(".lane")].map(l => l.ariaLabel +
			" wide: " + (l.firstChild.getBoundingClientRect().width >= 2) + " within: " +
			(l.firstChild.getBoundingClientRect().right <= l.getBoundingClientRect().right + 2))`, &lanes))...)
	require.NotEmpty(t, lanes)
	assert.Regexp(t, `^search: [\d.]+ ms from [\d.]+ of [\d.]+ ms wide: true within: true$`, lanes[0])

	// while read-only, too
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.url+"/v1/mode",
		strings.NewReader(`{"read_only": true, "reason": "a test"}`))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	_ = answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	b.run(t, append(b.at(s, "live"), waitForText("moderead-only"))...)
	b.run(t, append(b.at(s, "ask"), chromedp.SendKeys("main form input", " green tea"),
		chromedp.Click("main form button"), until(answered), waitForText("I drink green tea."))...)
	b.clean(t)

	local := demoSlot(t)
	b.run(t, append(b.at(local, "ask"), waitForText("costs no model call"))...)
}

// shadowed answers the page's requests about shadows instead of the slot: TEXTS are inserted into each of their texts.
const shadowed = `{
  const texts = TEXTS, real = window.fetch;
  const json = (v) => new Response(JSON.stringify(v), { headers: { "Content-Type": "application/json" } });
  const shadow = (provider) => ({ provider, condition_kind: "control", state: "ready", since: "2026-03-01T09:00:00Z",
    sample_percent: 20, retention_ms: 1,
    progress: { events: 3, done: 2, left_out: 1, unseen: 0, open: 0, per_second: 0 },
    missed: 0, report: { answers: 2, failed: 1, empty: 0, tokens_mean: 12.5, serving_tokens_mean: 40, latency_p50_ms: 3,
      serving_p50_ms: 2, overlap_mean: 0.5, overlap_answers: 1 } });
  const answer = (i, more) => ({ at: "2026-03-01T09:00:0" + (9 - i) + "Z", provider: "bm25", serving: "full_history",
    query: "Which tea? " + texts[i], scope: { run_id: "r", persona_id: texts[i] }, session_id: texts[i],
    serving_context: "<memory-context>\ngreen tea\nlives in Kyoto " + texts[i] + "\n</memory-context>",
    serving_tokens: 40, serving_latency_ms: 2,
    formatted_context: "<memory-context>\ngreen tea\nhas a cat\n</memory-context>",
    tokens: 12, latency_ms: 3, behind: 1, both: 1, only_serving: 1, only_shadow: 1, overlap: 1 / 3, ...more });
  window.fetch = async (path, init) => {
    if (path === "/v1/manifest") {
      return json({ ...await (await real(path, init)).json(), followers: [{ role: "shadow", provider: "bm25" }] });
    }
    if (path === "/v1/shadows") return json({ serving: "full_history", shadows: [shadow("bm25"), shadow(texts[0])] });
    if (path !== "/v1/shadows/answers") return real(path, init);
    const asked = JSON.parse(init.body);
    if (asked.before) return json({ answers: [answer(5, {})] });
    return json({ answers: [answer(0, {}), answer(0, { provider: texts[0], formatted_context: texts[1] }),
      answer(1, { formatted_context: undefined, overlap: undefined,
        error: { code: "timeout", message: texts[2], hint: texts[3] } })],
      next: "n" });
  };
}`

// TestTheShadowsAnswersAreShownSideBySide simulates the slot's part in the browser, with hostile texts.
func TestTheShadowsAnswersAreShownSideBySide(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t))
	texts, err := json.Marshal(injections())
	require.NoError(t, err)
	script := strings.Replace(shadowed, "TEXTS", string(texts), 1)
	for _, width := range []int{1600, 400} {
		b := open(t, width, 900, width == 400)
		var marked []string
		var overflow, columns int
		var shot []byte
		play := chromedp.ActionFunc(func(ctx context.Context) error {
			_, err := page.AddScriptToEvaluateOnNewDocument(script).Do(ctx)
			return err
		})
		b.run(t, append(append([]chromedp.Action{play}, b.at(s, "side")...), waitForText("Which tea?"), waitForText("1 of both"),
			waitForText("timeout"), chromedp.Evaluate(`[...document.querySelectorAll("main mark")].map(m => m.textContent)`, &marked),
			chromedp.Evaluate(`document.querySelector(".question .columns").children.length`, &columns),
			chromedp.Evaluate(overflowing, &overflow), chromedp.FullScreenshot(&shot, 100))...)
		assert.Contains(t, marked, "has a cat")
		assert.NotContains(t, marked, "green tea", "both have it")
		assert.Equal(t, 3, columns, "who serves, and two shadows")
		assert.LessOrEqual(t, overflow, 0)
		keep(t, fmt.Sprintf("side-%d", width), shot)
		b.unhurt(t)
		b.run(t, press("Older"), waitForText("Which tea? "+injections()[5]))
		b.unhurt(t)
		b.clean(t)
		axed := open(t, width, 900, width == 400)
		b = axed
		var found string
		b.run(t, append(append([]chromedp.Action{page.SetBypassCSP(true), play}, b.at(s, "side")...), waitForText("Which tea?"),
			chromedp.Evaluate(axe(t), nil), chromedp.Evaluate(serious, &found, await))...)
		assert.Equal(t, "[]", found)
	}
	b := open(t, 1300, 900, false)
	var views string
	// The view Live reads the manifest, and then so does the page, to find out whether there are shadows.
	b.run(t, append(b.at(s, "side"), waitForText("Nothing was recorded yet"), until(`performance.getEntriesByType("resource")
		.filter(r => r.name.endsWith("/v1/manifest")).length >= 2`), chromedp.Text("nav", &views))...)
	assert.NotContains(t, views, "Side by side", "a slot without shadows has no such view")
	b.clean(t)
}

func TestAShadowIsShownBesideWhatServes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "memhost.yaml")
	require.NoError(t, os.WriteFile(file, []byte(
		"memory: {condition: full_history, archive: true, shadows: [bm25], shadow_percent: 100}\n"), 0o600))
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t), "--config", file, "--page", "read")
	record(t, s, event("e1", "monday", "I drink green tea."))
	b := open(t, 1300, 900, false)
	text := func(r *http.Response, err error) string {
		require.NoError(t, err)
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, r.StatusCode, "%s", body)
		return string(body)
	}
	// a shadow answers with what it has at that time
	require.Eventually(t, func() bool {
		return strings.Contains(text(http.Get(s.url+"/v1/shadows")), `"done":1`)
	}, 30*time.Second, 50*time.Millisecond)
	text(http.Post(s.url+"/v1/retrieve", "application/json", strings.NewReader(
		`{"query":"green tea?","session_id":"s2","scope":{"run_id":"r","persona_id":"u"}}`)))
	require.Eventually(t, func() bool {
		return strings.Contains(text(http.Post(s.url+"/v1/shadows/answers", "application/json",
			strings.NewReader("{}"))), "green tea")
	}, 30*time.Second, 50*time.Millisecond)
	b.run(t, append(b.at(s, "side"), waitForText("full_history (serves)"), waitForText("bm25 (shadow)"), waitForText("1 of both"))...)

	// the shadow is a column of a comparison, too, asked with what it has
	var chosen, columns []string
	b.run(t, append(b.at(s, "ask"), chromedp.Evaluate(`document.querySelector("main form input").value = "green tea"`, nil),
		chromedp.Click("main form button"), waitForText("What would another memory give?"), waitForText("Shadows: they get every turn"),
		chromedp.Evaluate(`[...document.querySelectorAll(".choices :checked")].map((c) => c.parentElement.textContent)`, &chosen),
		press("Ask them, too"), waitForText("Lines that only one side has are marked."),
		chromedp.Evaluate(`[...document.querySelectorAll(".compared section")].map((c) => [c.querySelector("h4").textContent,
			/\d+ tokens · [\d.]+ ms/.test(c.textContent), /filled in/.test(c.textContent), /green tea/.test(c.textContent)].join(" "))`,
			&columns))...)
	assert.Contains(t, chosen, "bm25")
	require.GreaterOrEqual(t, len(columns), 2)
	assert.Equal(t, "full_historyserves true false true", columns[0])
	assert.Equal(t, "bm25shadow true false true", columns[1])
	b.clean(t)
}

// hostileReport tries everything that a report might try, and reports how far it got. It makes its last request after
// the test has received that.
const hostileReport = `<!doctype html><title>hostile</title><p>A report</p><img src="%[1]s/image"><script>
const tried = {};
const attempt = async (name, what) => {
  try { tried[name] = String(await what() ?? "nothing"); } catch (e) { tried[name] = "refused"; }
};
(async () => {
  await attempt("parent", () => parent.document.title);
  await attempt("cookie", () => document.cookie);
  await attempt("storage", () => localStorage.length);
  await attempt("slot", () => fetch("/v1/manifest").then(r => r.status));
  await attempt("write", () => fetch("/v1/mode", { method: "PUT", body: "{}" }).then(r => r.status));
  await attempt("elsewhere", () => fetch("%[1]s/fetch").then(r => r.status));
  await attempt("window", () => window.open("%[1]s/window"));
  await attempt("top", () => { top.location = "%[1]s/top"; });
  await attempt("form", () => {
    const f = document.createElement("form");
    f.action = "%[1]s/form";
    document.body.append(f);
    f.submit();
  });
  await attempt("script", () => new Promise((yes, no) => {
    const s = document.createElement("script");
    Object.assign(s, { src: "%[1]s/script", onload: yes, onerror: no });
    document.body.append(s);
  }));
  parent.postMessage(tried, "*");
  location = "%[1]s/away";
})();
</script>`

func TestAnEvaluationsReportIsShownAndCanDoNothing(t *testing.T) {
	report, err := demo()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "demo"), os.DirFS(filepath.Dir(report))))
	var leaks atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaks.Add(1) }))
	defer elsewhere.Close()
	evil := filepath.Join(dir, "evil")
	require.NoError(t, os.Mkdir(evil, 0o700))
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(evil, name), []byte(text), 0o600))
	}
	write("report.html", fmt.Sprintf(hostileReport, elsewhere.URL))
	quoted, err := json.Marshal(injections())
	require.NoError(t, err)
	first, err := json.Marshal(injections()[0])
	require.NoError(t, err)
	cells, err := json.Marshal([]map[string]any{{"label": injections()[1]}, {"label": injections()[2]}})
	require.NoError(t, err)
	write("run.json", fmt.Sprintf(`{"run":1,"begun_at":%s,"cells":%s}`, first, cells))
	write("metrics.json", fmt.Sprintf(`{"metrics":%d,"run":{"name":%s},"self_test":{"verdict":"broken","label":%s,
		"missed":%s},"columns":[{"label":%s}]}`, 1, first, first, quoted, first))
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t), "--runs", dir)

	b := open(t, 1300, 900, false)
	var frame bool
	b.run(t, append(b.at(s, "runs"), press("Show demo"), waitForText("leak detector"), waitForText("found"),
		until(`document.querySelector("iframe") !== null`),
		chromedp.Evaluate(`document.querySelector("iframe").sandbox.value === ""`, &frame))...)
	assert.True(t, frame)
	b.run(t, reportLoaded())
	b.clean(t)

	b = open(t, 1300, 900, false)
	b.run(t, append(b.at(s, "runs"),
		chromedp.Evaluate(`window.heard = null; addEventListener("message", e => { window.heard = e.data; })`, nil),
		press("Show evil"), until(`document.querySelector("iframe") !== null`))...)
	var silent bool
	b.run(t, reportLoaded(), until(`document.title === "Runs - memhost"`), chromedp.Evaluate(`window.heard === null`, &silent))
	b.unhurt(t)
	assert.True(t, silent, "a script of the report ran")
	b.run(t, append(b.at(s, "live"), waitForText("Serving"))...) // whatever the frame still requested has been refused by now
	assert.Zero(t, leaks.Load(), "a request left the report")
}

// reportLoaded waits until the page's frame has fetched its report.
func reportLoaded() chromedp.Action {
	return until(`performance.getEntriesByType("resource").some((e) => e.name.includes("/page/report/"))`)
}

// TestHostileNativeAnswersDoNothing makes the backend insert 60 texts into every JSON answer, as additional members and
// as texts of memories.
func TestHostileNativeAnswersDoNothing(t *testing.T) {
	texts, err := json.Marshal(injections())
	require.NoError(t, err)
	s := mem0Slot(t, func(answer []byte) []byte {
		if !bytes.HasPrefix(bytes.TrimSpace(answer), []byte("{")) {
			return answer
		}
		rest := bytes.TrimSpace(answer)[1:]
		return bytes.Join([][]byte{[]byte(`{"hostile":`), texts, []byte(","), rest}, nil)
	})
	for i, text := range injections() {
		record(t, s, event(fmt.Sprintf("e%d %s", i, text), text, "I like "+text))
	}
	b := open(t, 1300, 900, false)
	b.run(t, append(b.at(s, "ask"), chromedp.Click("main form button"), until(answered),
		chromedp.Evaluate(`for (const d of document.querySelectorAll("details")) d.open = true`, nil), waitForText("hostile"))...)
	b.unhurt(t)
	b.run(t, append(b.at(s, "turns"), press("Show e1 "+injections()[1]), waitForText("What was said in"), waitForText("From turns"))...)
	b.unhurt(t)
	b.clean(t)
}

// TestTheHourBeforeThePageWasOpenedIsShown asks before the page is there.
func TestTheHourBeforeThePageWasOpenedIsShown(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t), "--condition", "full_history")
	record(t, s, event("e1", "s", "I drink tea."))
	b := open(t, 1300, 900, false)
	var operations []string
	b.run(t, append(b.at(s, "live"), until(`document.querySelector(".operations") !== null`),
		chromedp.Evaluate(`[...document.querySelectorAll(".operations .grow")].map((e) => e.firstChild.textContent)`, &operations))...)
	assert.Contains(t, operations, "record_event")
	b.clean(t)
}
