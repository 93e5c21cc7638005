package score

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/internal/base/wholefile"
)

// The files that scoring writes to a run's folder.
const (
	MetricsFile = "metrics.json"
	TimingsFile = "timings.json"
	TableFile   = "metrics.csv"
)

// Write writes metrics.json, timings.json and metrics.csv to a folder, each atomically.
//
// Errors: unavailable.
func Write(folder string, m *Metrics, t *Timings) error {
	for name, write := range map[string]func(io.Writer) error{
		MetricsFile: m.WriteJSON,
		TimingsFile: t.WriteJSON,
		TableFile:   m.WriteCSV,
	} {
		if err := wholefile.Stream(filepath.Join(folder, name), 0o644, write); err != nil {
			return abi.WrapError(abi.CodeUnavailable, err.Error(), err)
		}
	}
	return nil
}

// Read reads metrics.json from a run's folder.
//
// Errors: invalid_argument if it is not such a file, or of another version.
func Read(folder string) (*Metrics, error) {
	path := filepath.Join(folder, MetricsFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := rundir.Open(folder); err != nil {
			return nil, err
		}
		return nil, wrong("%s has no %s", folder, MetricsFile).WithHint("`memhost eval score " + folder + "` makes it")
	}
	if err != nil {
		return nil, abi.WrapError(abi.CodeUnavailable, err.Error(), err).WithHint("`memhost eval score " + folder +
			"` makes it")
	}
	m := new(Metrics)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, wrong("%s: %v", path, err)
	}
	if m.Metrics != Version {
		return nil, wrong("%s is of version %d, this program reads version %d", path, m.Metrics, Version).
			WithHint("`memhost eval score " + folder + "` makes it anew")
	}
	return m, nil
}

// WriteJSON writes metrics.json.
func (m *Metrics) WriteJSON(w io.Writer) error { return writeJSON(w, m) }

// WriteJSON writes timings.json.
func (t *Timings) WriteJSON(w io.Writer) error { return writeJSON(w, t) }

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(v)
}

// WriteCSV writes one row per figure, in the order of columns, budgets, slices and the catalogue.
func (m *Metrics) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{"label", "kind", "budget", "slice", "name", "metric", "mean", "low", "high", "n", "clusters",
		"missing", "chance", "reason"})
	for i := range m.Columns {
		column := &m.Columns[i]
		for j := range column.Budgets {
			b := &column.Budgets[j]
			rows := func(kind, name string, f Figures) {
				for k := range m.Catalogue {
					if figure, there := f[m.Catalogue[k].Name]; there {
						_ = c.Write(figure.row(column, b.Budget, kind, name, m.Catalogue[k].Name))
					}
				}
			}
			rows("all", "", b.Overall)
			rows("without_pending", "", b.WithoutPending)
			for kind, list := range slicesByKind(b) {
				for _, s := range list {
					rows(kind, s.Name, s.Figures)
				}
			}
		}
	}
	c.Flush()
	return c.Error() // of any row
}

// slicesByKind iterates over the slices in a fixed order.
func slicesByKind(b *Budgeted) func(yield func(string, []Slice) bool) {
	return func(yield func(string, []Slice) bool) {
		_ = yield("label", b.ByLabel) && yield("session", b.BySession) && yield("speaker", b.BySpeaker)
	}
}

func (f *Figure) row(c *Column, budget int64, kind, name, metric string) []string {
	row := []string{SafeCell(c.Label), SafeCell(c.Kind), strconv.FormatInt(budget, 10), kind, SafeCell(name), metric,
		"", "", "", "", "",
		strconv.Itoa(f.Missing), "", SafeCell(f.Reason)}
	if v := f.Value; v != nil {
		row = slices.Concat(row[:6], []string{number(v.Mean), number(v.Low), number(v.High), strconv.Itoa(v.N),
			strconv.Itoa(v.Clusters)}, row[11:])
	}
	if f.Chance != nil {
		row[12] = number(*f.Chance)
	}
	return row
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// SafeCell keeps a spreadsheet from interpreting a text as a formula, by putting an apostrophe before it.
//
//	=HYPERLINK("http://example.com")  ->  '=HYPERLINK("http://example.com")
func SafeCell(text string) string {
	if strings.IndexAny(strings.TrimLeft(text, " "), "=+-@\t\r\n|%") == 0 {
		return "'" + text
	}
	return text
}
