package conversations

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

// TestSourcesAreRecognised: each source is recognised by its file, its folder and its archive, and nothing else is.
func TestSourcesAreRecognised(t *testing.T) {
	const aiStudio = `{"runSettings":{},"chunkedPrompt":{"chunks":[]}}`
	const activity = `[{"header":"Gemini Apps","title":"Prompted x","time":"2026-04-01T09:00:00Z"}]`
	for _, c := range []struct {
		name, text string
		want       Source
	}{
		{"conversations.json", `[{"id":"x","mapping":{"a":{}},"create_time":1}]`, ChatGPT},
		{"conversations.json", "\xEF\xBB\xBF[\n {\"title\": \"x\", \"create_time\": 1.5, \"mapping\": {\"a\"", ChatGPT},
		{"conversations.json", `[{"uuid":"x","name":"y","chat_messages":[]}]`, Claude},
		{"a.jsonl", `{"type":"user","sessionId":"s","message":{}}`, ClaudeCode},
		{"a.jsonl", "{\"type\":\"file-history-snapshot\"}\n{\"type\":\"user\",\"sessionId\":\"s\"}\n", ClaudeCode},
		{"rollout-1.jsonl", `{"timestamp":"2026-01-08T09:00:00Z","type":"session_meta","payload":{}}`, Codex},
		{"MyActivity.json", activity, Gemini},
		{"A talk", aiStudio, Gemini},
		{"a.jsonl", `{"event_id":"e","messages":[]}`, ""},
		{"a.jsonl", `[{"role":"user","content":"\"mapping\": sessionId type"}]`, ""},
		{"a.json", `[{"role":"user","content":"x","metadata":{"mapping":{},"chat_messages":[]}}]`, ""},
		{"a.jsonl", `{"messages":[{"role":"user","content":"x"}],"model":"m"}`, ""},
		{"a.json", `[{"title":"x","mapping":{}}]`, ""},
		{"a.txt", "text", ""},
		{"a.json", "", ""},
	} {
		t.Run(string(c.want)+" "+c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "folder", c.name)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			packed := filepath.Join(dir, "export.zip")
			f, err := os.Create(packed)
			require.NoError(t, err)
			w := zip.NewWriter(f)
			in, err := w.Create("inner/" + c.name)
			require.NoError(t, err)
			_, err = in.Write([]byte(c.text))
			require.NoError(t, err)
			require.NoError(t, w.Close())
			require.NoError(t, f.Close())
			for _, at := range []string{path, filepath.Dir(path), packed} {
				got, err := Detect([]string{at})
				require.NoError(t, err)
				require.Equal(t, c.want, got, at)
			}
		})
	}
}

// TestPathsOfTwoSourcesAreRefused, because it would be unclear which half was read.
func TestPathsOfTwoSourcesAreRefused(t *testing.T) {
	_, err := Detect([]string{"testdata/codex", "testdata/claude-code"})
	require.ErrorIs(t, err, &abi.Error{Code: abi.CodeInvalidArgument})
	_, err = Detect([]string{"testdata"})
	require.ErrorIs(t, err, &abi.Error{Code: abi.CodeInvalidArgument})
	got, err := Detect([]string{"testdata/codex", "nowhere"})
	require.NoError(t, err)
	require.Equal(t, Codex, got)
}
