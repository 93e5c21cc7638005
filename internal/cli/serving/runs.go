package serving

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/report"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/score"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// runsFolder is server.runs: a folder whose subfolders are evaluation runs, or a run itself. It is read anew each time.
// Nothing outside it is read, wherever a link in it points.
type runsFolder string

var _ server.Runs = runsFolder("")

const (
	// listedRuns is how many runs are listed.
	listedRuns = 100
	// runFileBytes bounds run.json and metrics.json of a run.
	runFileBytes = 64 << 20
)

// List implements server.Runs.
func (f runsFolder) List() (*wire.RunList, error) {
	root, err := os.OpenRoot(string(f))
	if err != nil {
		return nil, cli.FileError(string(f), err)
	}
	defer root.Close()
	names, err := f.names(root)
	if err != nil {
		return nil, cli.FileError(string(f), err)
	}
	list := &wire.RunList{}
	if len(names) > listedRuns {
		list.LeftOut, names = int64(len(names)-listedRuns), names[:listedRuns]
	}
	for _, name := range names {
		list.Runs = append(list.Runs, *describeRun(root, name))
	}
	slices.SortStableFunc(list.Runs, func(a, b wire.Run) int { return begunAt(b).Compare(begunAt(a)) })
	return list, nil
}

// begunAt is when a run began; zero if that is not known.
func begunAt(r wire.Run) time.Time {
	at, err := time.Parse(time.RFC3339Nano, r.BegunAt)
	if err != nil {
		return time.Time{}
	}
	return at
}

// names returns the folders with a run.json, the most recently changed first; "." if the folder is a run itself.
func (f runsFolder) names(root *os.Root) ([]string, error) {
	if _, err := root.Stat(rundir.File); err == nil {
		return []string{"."}, nil
	}
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return nil, err
	}
	var names []string
	changed := map[string]int64{}
	for _, e := range entries {
		info, err := root.Stat(filepath.Join(e.Name(), rundir.File))
		if err != nil {
			continue
		}
		names = append(names, e.Name())
		changed[e.Name()] = info.ModTime().UnixNano()
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(changed[b], changed[a]) })
	return names, nil
}

// describeRun reads a run's description. A read error becomes its Problem.
func describeRun(root *os.Root, name string) *wire.Run {
	described := &wire.Run{Name: name}
	var run rundir.Run
	if err := readRunFile(root, filepath.Join(name, rundir.File), &run); err != nil {
		described.Problem = err.Error()
		return described
	}
	described.BegunAt = run.BegunAt
	for _, c := range run.Cells {
		if c != nil && !slices.Contains(described.Providers, c.Label) {
			described.Providers = append(described.Providers, c.Label)
		}
	}
	if info, err := root.Stat(filepath.Join(name, report.HTMLFile)); err == nil {
		described.Report = info.Mode().IsRegular()
	}
	var m score.Metrics
	switch err := readRunFile(root, filepath.Join(name, score.MetricsFile), &m); {
	case errors.Is(err, fs.ErrNotExist):
		described.Problem = "it was not scored yet: `memhost eval report` does"
		return described
	case err != nil:
		described.Problem = err.Error()
		return described
	case m.Metrics != score.Version:
		described.Problem = "metrics.json is of another version: `memhost eval report` makes it anew"
		return described
	}
	described.Title, described.Complete, described.Probes = m.Run.Name, m.Run.Complete, int64(m.Run.Probes)
	for _, v := range report.Verdicts(&m) {
		described.Verdicts = append(described.Verdicts, wire.RunVerdict(v))
	}
	return described
}

func readRunFile(root *os.Root, name string, into any) error {
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, runFileBytes))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// Report implements server.Runs.
func (f runsFolder) Report(name string) (io.ReadCloser, error) {
	none := abi.NewError(abi.CodeNotFound, "there is no such report").WithReason("report").
		WithHint("GET " + wire.PathRuns + " lists the runs; `memhost eval report` writes a run's report")
	if name == "" || filepath.Base(name) != name {
		return nil, none
	}
	root, err := os.OpenRoot(string(f))
	if err != nil {
		return nil, cli.FileError(string(f), err)
	}
	defer root.Close()
	file, err := root.Open(filepath.Join(name, report.HTMLFile))
	if err != nil {
		return nil, none
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, none
	}
	return file, nil
}
