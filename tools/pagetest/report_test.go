//go:build page

package pagetest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// work is a folder that is removed after all tests.
var work string

func TestMain(m *testing.M) {
	var err error
	if work, err = os.MkdirTemp("", "memhost-page-"); err != nil {
		panic(err)
	}
	m.Run()
	for range 50 { // a browser's last processes may write for some milliseconds after it has exited
		if err = os.RemoveAll(work); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		panic(err)
	}
}

// memhost builds the program once.
var memhost = sync.OnceValues(func() (string, error) {
	path := filepath.Join(work, "memhost")
	out, err := exec.Command("go", "build", "-C", "../..", "-o", path, "./cmd/memhost").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

// run runs the program in a folder, and requires that it succeeds.
func run(t *testing.T, dir string, args ...string) {
	t.Helper()
	program, err := memhost()
	require.NoError(t, err)
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(work, "cache"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// demo returns the report of `memhost eval demo`.
var demo = sync.OnceValues(func() (string, error) {
	program, err := memhost()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(work, "demo")
	out, err := exec.Command(program, "eval", "demo", "-o", dir).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return filepath.Join(dir, "run", "report.html"), err
})

// browser is a Chromium that can resolve no name except loopback.
type browser struct {
	context.Context
	mu       sync.Mutex
	problems []string // console errors, exceptions, policy violations, dialogs
	requests []string // requests outside the file, or outside the slot at own
	own      string   // prefix of the slot's URLs
	loads    int      // how often a view was opened
}

func open(t *testing.T, width, height int, dark bool) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	require.NoError(t, err, "Chromium is missing; `tools/page test` installs Debian's")
	profile, err := os.MkdirTemp(work, "browser-")
	require.NoError(t, err)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.UserDataDir(profile), chromedp.DisableGPU, chromedp.WindowSize(width, height),
		chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
	allocated, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(allocated)
	t.Cleanup(end)
	b := &browser{}
	chromedp.ListenTarget(ctx, b.event)
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	require.NoError(t, chromedp.Run(ctx, network.Enable(), cdplog.Enable(), cdpruntime.Enable(),
		emulation.SetDeviceMetricsOverride(int64(width), int64(height), 1, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme",
			Value: scheme}})))
	b.Context = ctx
	return b
}

func (b *browser) event(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.LevelError {
			b.problems = append(b.problems, "log: "+e.Entry.Text)
		}
	case *cdpruntime.EventConsoleAPICalled:
		if e.Type == cdpruntime.APITypeError {
			b.problems = append(b.problems, fmt.Sprint("console: ", e.Args))
		}
	case *cdpruntime.EventExceptionThrown:
		b.problems = append(b.problems, "exception: "+e.ExceptionDetails.Error())
	case *page.EventJavascriptDialogOpening:
		b.problems = append(b.problems, "dialog: "+e.Message)
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, "file://") && !strings.HasPrefix(url, "data:") &&
			!strings.HasPrefix(url, "blob:") && (b.own == "" || !strings.HasPrefix(url, b.own)) {
			b.requests = append(b.requests, url)
		}
	}
}

// clean requires that there were no problems and no outside requests.
func (b *browser) clean(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(t, b.problems)
	assert.Empty(t, b.requests, "a request left the file")
}

func (b *browser) run(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	ctx, stop := context.WithTimeout(b, 2*time.Minute)
	defer stop()
	if err := chromedp.Run(ctx, actions...); err != nil {
		var text string
		late, end := context.WithTimeout(b, 10*time.Second)
		defer end()
		_ = chromedp.Run(late, chromedp.Evaluate(`document.body.innerText.slice(0, 2000)`, &text))
		require.NoError(t, err, text)
	}
}

// until waits for a condition in JavaScript, in whatever document is then present: a document may be loading, so an
// error means "not yet".
func until(condition string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for {
			var met bool
			err := chromedp.Evaluate("Boolean("+condition+")", &met).Do(ctx)
			if err == nil && met {
				return nil
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("waiting for %s: %w", condition, cmp.Or(err, ctx.Err()))
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
}

// openEveryProbe clicks through the first probes and opens each memory's answer. A probe's heading appears before its
// texts, which end with the expected answer and each memory's answer.
const openEveryProbe = `(async () => {
  const buttons = [...document.querySelectorAll("#list button")].slice(0, 40);
  for (const b of buttons) {
    b.click();
    const end = Date.now() + 30000;
    while (!document.querySelector("#detail .gold")) {
      if (Date.now() > end) throw new Error("no texts of " + b.textContent);
      await new Promise(r => setTimeout(r, 5));
    }
    for (const d of document.querySelectorAll("#detail details")) d.open = true;
  }
  return buttons.length;
})()`

func await(p *cdpruntime.EvaluateParams) *cdpruntime.EvaluateParams { return p.WithAwaitPromise(true) }

// tablesCutOff lists the captions of tables that are wider than the page, folded ones included.
const tablesCutOff = `(() => {
  for (const d of document.querySelectorAll("details")) d.open = true;
  return [...document.querySelectorAll(".scroll")].filter((s) => s.scrollWidth > s.clientWidth)
    .map((s) => s.getAttribute("aria-label") + ": " + s.scrollWidth + " px");
})()`

func TestTheReportRendersAndAsksNobody(t *testing.T) {
	path, err := demo()
	require.NoError(t, err)
	for _, c := range []struct {
		name          string
		width, height int
		dark          bool
	}{{"wide, light", 1400, 900, false}, {"wide, dark", 1400, 900, true}, {"phone", 400, 800, false}} {
		t.Run(c.name, func(t *testing.T) {
			b := open(t, c.width, c.height, c.dark)
			var title string
			var tables, plots, probes, overflow int
			var shot []byte
			var cut []string
			b.run(t, chromedp.Navigate("file://"+path), chromedp.Title(&title),
				chromedp.Evaluate(`document.querySelectorAll("table").length`, &tables),
				chromedp.Evaluate(`document.querySelectorAll("svg").length`, &plots),
				chromedp.Evaluate(openEveryProbe, &probes, await),
				chromedp.Evaluate(`document.documentElement.scrollWidth - document.documentElement.clientWidth`,
					&overflow),
				chromedp.Evaluate(tablesCutOff, &cut),
				chromedp.FullScreenshot(&shot, 90))
			assert.Equal(t, "demo: memories compared", title)
			assert.Greater(t, tables, 4)
			assert.Greater(t, plots, 2)
			assert.Equal(t, 40, probes)
			assert.LessOrEqual(t, overflow, 0, "nothing stands beyond the window's width")
			if c.width == 1400 {
				assert.Empty(t, cut, "tables that one has to scroll sideways")
			}
			b.clean(t)
			if dir := os.Getenv("SHOTS"); dir != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, strings.ReplaceAll(c.name, ", ", "-")+".jpg"), shot,
					0o600))
			}
		})
	}
}

// quickest measures until a time is below the limit, at most tries times, and returns the shortest.
func quickest(t *testing.T, tries int, limit float64, measure func() float64) float64 {
	t.Helper()
	var all []float64
	for len(all) == 0 || len(all) < tries && slices.Min(all) >= limit {
		all = append(all, measure())
	}
	t.Logf("measured, in ms: %.0f", all)
	return slices.Min(all)
}

// axe returns axe-core's script, which `tools/page test` downloads.
func axe(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(os.Getenv("AXE"))
	require.NoError(t, err, "AXE names axe.min.js; `tools/page test` fetches it")
	return string(text)
}

func TestTheReportIsAccessible(t *testing.T) {
	path, err := demo()
	require.NoError(t, err)
	script := axe(t)
	for _, dark := range []bool{false, true} {
		b := open(t, 1300, 900, dark)
		var probes int
		var found string
		// The page's policy blocks scripts; the test's script bypasses it through the debugger.
		b.run(t, page.SetBypassCSP(true), chromedp.Navigate("file://"+path),
			chromedp.Evaluate(openEveryProbe, &probes, await), chromedp.Evaluate(script, nil),
			chromedp.Evaluate(serious, &found, await))
		var violations []string
		require.NoError(t, json.Unmarshal([]byte(found), &violations))
		assert.Empty(t, violations, "dark: %v", dark)
	}
}

// injections are hostile texts that a memory may contain. If not escaped, each would set window.hurt, open a dialog or
// contact another host.
func injections() []string {
	act := []string{`window.hurt=1`, `alert(1)`, `fetch("http://127.0.0.1:9/leak")`}
	forms := []string{`<script>%s</script>`, `<img src=x onerror='%s'>`, `<svg onload='%s'>`,
		`</script><script>%s</script>`, `"><script>%s</script>`, `'-%s-'`,
		`</textarea><script>%s</script>`, `<iframe srcdoc="<script>parent.%s</script>">`, `javascript:%s`,
		`<a href="javascript:%s">x</a>`, `{{%s}}`, `${%s}`, `<!--<script>%s</script>-->`,
		`]]><script>%s</script>`, `\u003cscript\u003e%s\u003c/script\u003e`, `<math><mi xlink:href="javascript:%s">`,
		`<style>@import 'http://127.0.0.1:9/%s'</style>`, `<base href='//%s/'>`,
		`<meta http-equiv="refresh" content="0;url=javascript:%s">`, `<object data="javascript:%s">`}
	var list []string
	for _, form := range forms {
		for _, what := range act {
			list = append(list, fmt.Sprintf(form, what))
		}
	}
	return list
}

func TestTextOfAMemoryDoesNothing(t *testing.T) {
	dir := t.TempDir()
	var events, probes strings.Builder
	for i, text := range injections() {
		quoted, err := json.Marshal(text)
		require.NoError(t, err)
		fmt.Fprintf(&events, `{"session_id":"s%d","start":"2026-03-%02dT%02d:00:00Z",`+
			`"messages":[{"role":"user","name":"x","content":%s}]}`+"\n", i, 1+i/24, i%24, quoted)
		fmt.Fprintf(&probes, `{"probe_id":%s,"label":%s,"query":%s,`+
			`"gold":{"answerable":true,"answers":[[%s]],"stale":[]}}`+"\n", quoted, quoted, quoted, quoted)
	}
	require.Len(t, injections(), 60)
	for name, text := range map[string]string{"chats.jsonl": events.String(), "probes.jsonl": probes.String()} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	run(t, dir, "eval", "pack", "build", "chats", "chats.jsonl", "probes.jsonl", "-o", "p", "--name", injections()[0])
	run(t, dir, "eval", "run", "--pack", "p", "--providers", "full_history", "--budgets", "4000", "--out", "run")
	run(t, dir, "eval", "report", "run")
	b := open(t, 1300, 900, false)
	var hurt bool
	var probed int
	b.run(t, chromedp.Navigate("file://"+filepath.Join(dir, "run", "report.html")),
		chromedp.Evaluate(openEveryProbe, &probed, await),
		chromedp.Evaluate(`window.hurt !== undefined`, &hurt))
	assert.Equal(t, 40, probed)
	assert.False(t, hurt)
	b.clean(t)
}

// TestTwoThousandProbesOpenWithinASecond requires that of the quickest of ten attempts, because other load on the
// machine slows some of them.
func TestTwoThousandProbesOpenWithinASecond(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "eval", "pack", "build", "synth", "-o", "p", "--option", "personas=14", "--option", "sessions=36",
		"--option", "turns=2")
	run(t, dir, "eval", "run", "--pack", "p", "--providers",
		"no_memory,full_history,static_profile,oracle_ipas,ledger_memory", "--budgets", "300", "--out", "run")
	run(t, dir, "eval", "report", "run")
	path := filepath.Join(dir, "run", "report.html")
	info, err := os.Stat(path)
	require.NoError(t, err)
	b := open(t, 1300, 900, false)
	const end = `performance.getEntriesByType("navigation")[0].loadEventEnd`
	took := quickest(t, 40, 1000, func() (ms float64) {
		b.run(t, chromedp.Navigate("file://"+path), until(end+` > 0`),
			chromedp.Evaluate(end, &ms))
		return ms
	})
	t.Logf("%.1f MB opened in %.0f ms", float64(info.Size())/1e6, took)
	assert.Less(t, took, 1000.0)
	assert.Less(t, info.Size(), int64(50<<20))
	b.clean(t)
}
