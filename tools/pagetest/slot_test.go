//go:build page

package pagetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
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
	process  *exec.Cmd
}

// address finds a free port, which a slot has again after it was killed.
func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// serve starts a slot and waits until it serves.
func serve(t *testing.T, dir, listen string) *slot {
	t.Helper()
	program, err := memhost()
	require.NoError(t, err)
	s := &slot{url: "http://" + listen, dir: dir, process: exec.Command(program, "run", "--data", dir, "--listen",
		listen)}
	s.process.Env = append(os.Environ(), "HOME="+dir)
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
	return serve(t, dir, address(t))
}

// at opens a view of the slot's page and waits until it has content.
func (b *browser) at(s *slot, view string) []chromedp.Action {
	b.own = s.url + "/"
	return []chromedp.Action{chromedp.Navigate(s.url + "/page/#" + view), shown()}
}

// shown waits until the view is there.
func shown() chromedp.Action {
	return chromedp.Poll(`document.querySelector("main h2") !== null && !document.getElementById("main").hasAttribute("aria-busy")`,
		nil)
}

const answered = `document.querySelector("main pre") !== null`

func TestEachViewOfTheSlotShowsTheDemo(t *testing.T) {
	s := demoSlot(t)
	for _, c := range []struct {
		width, height int
		dark          bool
	}{{1600, 1000, false}, {1600, 1000, true}, {400, 800, false}} {
		b := open(t, c.width, c.height, c.dark)
		for view, want := range map[string]string{"now": "Serving", "ask": "Question", "turns": "Generation", "module": "sha256"} {
			name := fmt.Sprintf("%s-%d-%v", view, c.width, c.dark)
			var text string
			var overflow int
			var shot []byte
			actions := append(b.at(s, view), chromedp.Reload(), shown())
			if view == "ask" {
				actions = append(actions, chromedp.Click("main form button"), chromedp.Poll(answered, nil))
			}
			b.run(t, append(actions, chromedp.Text("main", &text),
				chromedp.Evaluate(`document.documentElement.scrollWidth - document.documentElement.clientWidth`, &overflow),
				chromedp.FullScreenshot(&shot, 100))...)
			assert.Contains(t, text, want, name)
			assert.LessOrEqual(t, overflow, 0, "%s: nothing stands beyond the window's width", name)
			if dir := os.Getenv("SHOTS"); dir != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name+".png"), shot, 0o600))
			}
		}
		b.clean(t)
	}
}

func TestTheSlotsPageIsAccessible(t *testing.T) {
	s := demoSlot(t)
	script := axe(t)
	for _, dark := range []bool{false, true} {
		for _, view := range []string{"now", "ask", "turns", "module"} {
			b := open(t, 1300, 900, dark)
			var found string
			b.run(t, append(append([]chromedp.Action{page.SetBypassCSP(true)}, b.at(s, view)...),
				chromedp.Evaluate(script, nil),
				chromedp.Evaluate(`axe.run().then(r => JSON.stringify(r.violations.filter(v => v.impact === "serious" || v.impact === "critical")
					.map(v => v.id + ": " + v.help + " " + v.nodes.slice(0, 3).map(n => n.target.join(" ")).join(", "))))`,
					&found, await))...)
			var violations []string
			require.NoError(t, json.Unmarshal([]byte(found), &violations))
			assert.Empty(t, violations, "%s, dark: %v", view, dark)
		}
	}
}

func TestTheSlotsPageWorksByKeyboard(t *testing.T) {
	s := demoSlot(t)
	b := open(t, 1300, 900, false)
	var title string
	// the skip link, Now, Ask
	b.run(t, append(b.at(s, "now"), chromedp.KeyEvent(kb.Tab+kb.Tab+kb.Tab+kb.Enter),
		chromedp.Poll(`document.querySelector("main form input") !== null`, nil), chromedp.Title(&title),
		chromedp.Evaluate(`document.querySelector("main form input").focus()`, nil), chromedp.KeyEvent(kb.Enter),
		chromedp.Poll(answered, nil))...)
	assert.Equal(t, "Ask - memhost", title)
	b.clean(t)
}

func TestThePageSurvivesAKillOfTheSlot(t *testing.T) {
	s := demoSlot(t)
	b := open(t, 1300, 900, false)
	says := func(word string) chromedp.Action {
		return chromedp.Poll(fmt.Sprintf(`document.getElementById("link").textContent.includes(%q)`, word), nil)
	}
	b.run(t, append(b.at(s, "now"), says("live"))...)
	s.kill()
	b.run(t, says("away"))
	serve(t, s.dir, strings.TrimPrefix(s.url, "http://"))
	b.run(t, says("live"), shown())
	assert.Empty(t, b.requests)
}

// TestHostileTextOnThePageDoesNothing records 60 texts as content and as ids, and opens every view that shows them.
func TestHostileTextOnThePageDoesNothing(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "data"), address(t))
	for i, text := range injections() {
		body, err := json.Marshal(map[string]any{"event_id": text, "run_id": injections()[i%3], "user_id": text[:min(len(text), 8)] + "u",
			"session_id": text, "turn_id": text, "timestamp": "2026-03-02T09:00:00Z",
			"messages": []map[string]any{{"role": "user", "name": text, "content": text}}})
		require.NoError(t, err)
		r, err := http.Post(s.url+"/v1/events", "application/json", bytes.NewReader(body))
		require.NoError(t, err)
		_ = r.Body.Close()
		require.Equal(t, http.StatusOK, r.StatusCode, text)
	}
	b := open(t, 1300, 900, false)
	var hurt bool
	var scopes int
	b.run(t, append(b.at(s, "ask"), chromedp.Evaluate(`document.querySelector("main select").options.length`, &scopes))...)
	assert.Greater(t, scopes, 1)
	for i := range scopes {
		choose := chromedp.Evaluate(fmt.Sprintf(`{ const s = document.querySelector("main select"); s.selectedIndex = %d; s.dispatchEvent(new Event("change")); }`, i), nil)
		b.run(t, append(b.at(s, "ask"), chromedp.Reload(), shown(), choose, chromedp.Click("main form button"),
			chromedp.Poll(answered, nil), chromedp.Evaluate(`for (const d of document.querySelectorAll("details")) d.open = true`, nil))...)
		b.run(t, append(b.at(s, "turns"), chromedp.Reload(), shown(), choose)...)
	}
	b.run(t, append(b.at(s, "now"), chromedp.Evaluate(`window.hurt !== undefined`, &hurt))...)
	assert.False(t, hurt)
	b.clean(t)
}
