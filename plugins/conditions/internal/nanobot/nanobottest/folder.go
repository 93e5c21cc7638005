// Package nanobottest is shared by the tests of the memories modelled on Nanobot.
package nanobottest

import (
	"encoding/json"
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

// Workspace reads a folder below internal/nanobot/testdata: "old" as nanobot-ai 0.1.4 wrote it, "new" as 0.3.5 did.
func Workspace(t testing.TB, name string) map[string]string {
	t.Helper()
	files, dir := map[string]string{}, os.DirFS("../internal/nanobot/testdata/"+name)
	require.NoError(t, fs.WalkDir(dir, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(dir, path)
		files[path] = string(text)
		return err
	}))
	require.NotEmpty(t, files)
	return files
}

// Files runs the query files, page by page.
func Files(t testing.TB, query func(params map[string]abi.Raw) *abi.NativeQueryResult) (files map[string]string,
	pages int) {
	t.Helper()
	files = map[string]string{}
	for params := map[string]abi.Raw{}; ; pages++ {
		answer := query(params)
		var page map[string]string
		require.NoError(t, json.Unmarshal(answer.Result, &page))
		for path, text := range page {
			files[path] += text
		}
		next := answer.Trace.Details["next"]
		if next == nil {
			return files, pages + 1
		}
		params = map[string]abi.Raw{"after": next}
	}
}

// Params returns the parameters of import_files.
func Params(t testing.TB, files map[string]string, goesOn, done bool) map[string]abi.Raw {
	t.Helper()
	text, err := json.Marshal(files)
	require.NoError(t, err)
	flag := map[bool]abi.Raw{true: abi.Raw("true"), false: abi.Raw("false")}
	return map[string]abi.Raw{"files": text, "continues": flag[goesOn], "done": flag[done]}
}
