package serving

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

// runFile writes a file of a run.
func runFile(t *testing.T, text string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

func TestRunsAreListedWithTheirVerdicts(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	runFile(t, "hush", secret)
	runFile(t, `{"run":1,"begun_at":"2026-03-02T09:00:00.12Z","cells":[{"label":"a"},{"label":"a"},{"label":"b"},null]}`,
		dir, "old", "run.json")
	runFile(t, `{"metrics":1,"run":{"name":"tea","complete":true,"probes":3},"leak_control":{"detector":"works",
		"found":2,"planted":2},"self_test":{"verdict":"broken","label":"full_history"}}`, dir, "old", "metrics.json")
	runFile(t, "<p>report</p>", dir, "old", "report.html")
	runFile(t, `{"run":1,"begun_at":"2026-03-02T09:00:00.121Z","cells":[]}`, dir, "new", "run.json")
	runFile(t, `not JSON`, dir, "broken", "run.json")
	runFile(t, `{"run":1,"begun_at":"2026-03-01T08:00:00Z"}`, dir, "linked", "run.json")
	require.NoError(t, os.Symlink(secret, filepath.Join(dir, "linked", "report.html")))
	runFile(t, "nothing of a run", dir, "other", "notes.txt")

	f := runsFolder(dir)
	list, err := f.List()
	require.NoError(t, err)
	require.Len(t, list.Runs, 4)
	assert.Equal(t, "new", list.Runs[0].Name, "the newest first")
	assert.Contains(t, list.Runs[0].Problem, "not scored")
	old := list.Runs[1]
	assert.Equal(t, []string{"a", "b"}, old.Providers)
	assert.Equal(t, "tea", old.Title)
	assert.True(t, old.Report && old.Complete)
	assert.Equal(t, "leak detector", old.Verdicts[0].Name)
	assert.Equal(t, "good", old.Verdicts[0].Outcome)
	assert.Equal(t, "bad", old.Verdicts[1].Outcome)
	assert.False(t, list.Runs[2].Report, "a link that leads out of the folder")
	assert.NotEmpty(t, list.Runs[3].Problem)

	report, err := f.Report("old")
	require.NoError(t, err)
	text, err := io.ReadAll(report)
	require.NoError(t, err)
	require.NoError(t, report.Close())
	assert.Equal(t, "<p>report</p>", string(text))
	for _, name := range []string{"", "new", "linked", "..", "../old", "other/../old", "/etc", "."} {
		_, err := f.Report(name)
		assert.ErrorIs(t, err, &abi.Error{Code: abi.CodeNotFound}, name)
	}

	list, err = runsFolder(filepath.Join(dir, "old")).List()
	require.NoError(t, err)
	require.Len(t, list.Runs, 1, "a run itself")
	_, err = runsFolder(filepath.Join(dir, "old")).Report(list.Runs[0].Name)
	require.NoError(t, err)
	_, err = runsFolder(filepath.Join(dir, "none")).List()
	require.Error(t, err)
}
