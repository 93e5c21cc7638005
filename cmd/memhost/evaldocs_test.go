//go:build unix

package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
)

// docsCommands returns the commands in docs/eval.md, in order: lines of blocks, and those inside sentences.
func docsCommands(text string) []string {
	var list []string
	for _, found := range regexp.MustCompile("(?m)^memhost eval .*$|`memhost eval [^`]+`").FindAllString(text, -1) {
		command, _, _ := strings.Cut(strings.Trim(found, "`"), " #")
		list = append(list, strings.Join(strings.Fields(command), " "))
	}
	return list
}

// TestDocsEvalIsWalked follows docs/eval.md: with a file in LoCoMo's format, the page's lab file (with fake servers)
// and every command on the page.
func TestDocsEvalIsWalked(t *testing.T) {
	brief.Leave(t)
	text, err := os.ReadFile(filepath.Join(repository, "docs", "eval.md"))
	require.NoError(t, err)
	backend := httptest.NewServer(mem0.New(mem0.Options{}))
	defer backend.Close()
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"model":"m","choices":[{"message":{"role":"assistant","content":"yes"}}]}`)
	}))
	defer endpoint.Close()
	t.Setenv("MY_KEY", "secret")

	m := memhost{t, t.TempDir(), cacheHome(t), plainProgram(t)}
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, name), []byte(content), 0o600))
	}
	run := func(args ...string) {
		out, code := m.run(args...)
		require.Zero(t, code, "%v: %s", args, out)
	}
	sample, err := os.ReadFile(filepath.Join(repository, "eval", "build", "testdata", "locomo.json"))
	require.NoError(t, err)
	write("locomo10.json", string(sample))
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.Len(t, blocks, 3, "the lab file, columns of their own, and models")
	columns, err := lab.Parse([]byte("lab: 1\npack: p\n" + blocks[1][1]))
	require.NoError(t, err)
	require.True(t, columns.Find("named").Named())
	require.True(t, columns.Find("memos-feedback").Feedback())
	first := strings.ReplaceAll(blocks[0][1], "http://127.0.0.1:8000", backend.URL)
	models := strings.ReplaceAll(blocks[2][1], "http://127.0.0.1:8080", endpoint.URL)
	write("lab.yaml", first+models)
	write("taped.yaml", first+"cassettes: true\n")

	before := map[string]func(){
		"eval audit locomo.pack --in": func() { fillColumn(t, filepath.Join(m.dir, "sheet.csv"), "wrong", "the key is wrong") },
		"eval label runs/first --out": func() { require.NoError(t, os.Remove(filepath.Join(m.dir, "sheet.csv"))) },
		"eval label runs/first --in":  func() { fillColumn(t, filepath.Join(m.dir, "sheet.csv"), "right", "yes") },
		"eval replay runs/recorded":   func() { run("eval", "run", "taped.yaml", "--out", "runs/recorded", "--yes") },
		"eval score --submission":     func() { write("ranking.jsonl", submission(t, filepath.Join(m.dir, "locomo.pack"))) },
	}
	placeholders := strings.NewReplacer("PACK", "locomo.pack", "FILE", "ranking.jsonl", "PROBE", "locomo-conv-1-a-q1",
		"runs/a runs/b", "runs/first runs/first")
	commands := docsCommands(string(text))
	require.Greater(t, len(commands), 15)
	for _, command := range commands {
		args := strings.Fields(placeholders.Replace(command))[1:]
		switch strings.Join(args[:2], " ") {
		case "eval demo": // tests the page of the report, too
			continue
		case "eval run":
			args = append(args, "--yes")
		}
		for prefix, prepare := range before {
			if strings.HasPrefix(strings.Join(args, " "), prefix) {
				prepare()
			}
		}
		run(args...)
	}
}

// fillColumn writes a value to a column of a sheet's first row.
func fillColumn(t *testing.T, path, column, value string) {
	f, err := os.Open(path)
	require.NoError(t, err)
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Greater(t, len(rows), 1)
	at := slices.Index(rows[0], column)
	require.GreaterOrEqual(t, at, 0, rows[0])
	rows[1][at] = value
	out, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, csv.NewWriter(out).WriteAll(rows))
	require.NoError(t, out.Close())
}

// submission writes a ranking of one probe.
func submission(t *testing.T, path string) string {
	p, err := pack.Open(path)
	require.NoError(t, err)
	defer p.Close()
	persona := p.Manifest.Personas[0].PersonaID
	var lines []string
	for _, line := range []any{map[string]any{"pack_sha256": p.Manifest.ContentSHA256, "label": "mine"},
		map[string]any{"probe_id": persona + "-q1", "event_ids": []string{persona + "-1-1"}}} {
		text, err := json.Marshal(line)
		require.NoError(t, err)
		lines = append(lines, string(text))
	}
	return strings.Join(lines, "\n") + "\n"
}
