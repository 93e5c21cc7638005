package main

import (
	"bytes"
	_ "embed" // the page's prose
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/memhost/memhost/eval/stats"
)

// page is docs/results.md with places for figures and tables: {{figure "bm25" 1000}}, {{table}}. figures is
// docs/reference/results.md, which has the figures that are not in it.
var (
	//go:embed page.tmpl
	page string
	//go:embed figures.tmpl
	figures string
)

// primaryBudget is that of the comparison that every lab seals.
const primaryBudget = 1000

// titles say what a column is, in words that promise no more than was run.
var titles = map[string]string{
	"no_memory":      "no memory",
	"random":         "random messages",
	"full_history":   "full history: the newest turns",
	"ledger_memory":  "ledger_memory, without a model",
	"bm25":           "bm25",
	"recall":         "recall, the built-in memory",
	"hybrid":         "hybrid: bm25 and vectors",
	"recall_vectors": "recall with an embedding model",
	"mem0":           "mem0's vector store (infer=false)",
	"memos":          "MemOS text_mem, fast mode",
	"hindsight":      "Hindsight chunks, no entities, rrf",
	"honcho":         "Honcho message search, deriver off",
	"evidence":       "the evidence alone",
}

func title(label string) string {
	if t := titles[label]; t != "" {
		return t
	}
	return label
}

// typeTitle is a type of question in LoCoMo's words.
func typeTitle(name string) string { return strings.ReplaceAll(name, "_", "-") }

// columns are all columns of all runs, worst first by the primary figure, so that order changes with the figures alone.
func (r *record) columns() []*columnRecord {
	var list []*columnRecord
	for i := range r.Runs {
		for j := range r.Runs[i].Columns {
			list = append(list, &r.Runs[i].Columns[j])
		}
	}
	slices.SortStableFunc(list, func(a, b *columnRecord) int {
		x, y := a.at(primaryBudget).Figures[recall].Mean, b.at(primaryBudget).Figures[recall].Mean
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return strings.Compare(a.Label, b.Label)
	})
	return list
}

// shown are the columns of the plots: without the floor and the ceiling.
func (r *record) shown() []*columnRecord {
	list := slices.DeleteFunc(r.columns(), func(c *columnRecord) bool {
		return c.Label == "no_memory" || c.Label == "evidence"
	})
	slices.Reverse(list)
	return list
}

func (r *record) budgets() []int64 {
	var list []int64
	for _, b := range r.column(reference).Budgets {
		list = append(list, b.Budget)
	}
	return list
}

// types are the types of questions that have evidence.
func (r *record) types() []string {
	return slices.Sorted(maps.Keys(r.column(reference).at(primaryBudget).Types))
}

// interval writes a share as .589 [.567, .612].
func interval(i stats.Interval) string {
	return fmt.Sprintf("%s [%s, %s]", share(i.Mean), share(i.Low), share(i.High))
}

func share(v float64) string {
	text := fmt.Sprintf("%.3f", v)
	if rest, cut := strings.CutPrefix(text, "0."); cut {
		return "." + rest
	}
	if rest, cut := strings.CutPrefix(text, "-0."); cut {
		return "-." + rest
	}
	return text
}

// markdown fills a page in.
//
// Errors: a place that names a column, budget or type that the record does not have.
func (r *record) markdown(page string) ([]byte, error) {
	find := func(label string, budget int64) (*budgetRecord, error) {
		if c := r.column(label); c != nil && c.at(budget) != nil {
			return c.at(budget), nil
		}
		return nil, fmt.Errorf("no run of the record has %s at %d tokens", label, budget)
	}
	t, err := template.New("").Option("missingkey=error").Funcs(template.FuncMap{
		"figure": func(label string, budget int64) (string, error) {
			b, err := find(label, budget)
			if err != nil {
				return "", err
			}
			return interval(b.Figures[recall]), nil
		},
		"metric": func(label string, budget int64, name string) (stats.Interval, error) {
			b, err := find(label, budget)
			if err != nil {
				return stats.Interval{}, err
			}
			f, there := b.Figures[name]
			if !there {
				return f, fmt.Errorf("%s has no %s", label, name)
			}
			return f, nil
		},
		"whole":    whole,
		"interval": interval,
		"oftype": func(label, name string) (string, error) {
			b, err := find(label, primaryBudget)
			if err != nil {
				return "", err
			}
			f, there := b.Types[name]
			if !there {
				return "", fmt.Errorf("%s has no questions of type %s", label, name)
			}
			return interval(f), nil
		},
		"primary":  r.primary,
		"beats":    r.beats,
		"has":      func(label string) bool { return r.column(label) != nil },
		"table":    r.table,
		"types":    r.typeTable,
		"verdicts": r.verdicts,
		"others":   r.otherTable,
		"cost":     r.costTable,
		"times":    r.times,
		"title":    title,
		"sources":  r.sources,
		"thousand": thousand,
	}).Parse(page)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, r)
	return b.Bytes(), err
}

// Uncounted is how many questions no figure is over.
func (r *record) Uncounted() int { return r.Data.Probes - r.Data.Counted }

// thousand writes a number with commas.
func thousand(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousand(n/1000), n%1000)
}

// compared is a memory's comparison with bm25 at a budget; nil if there is none.
func (r *record) compared(label string, budget int64) *comparisonRecord {
	for i := range r.Runs {
		for j := range r.Runs[i].Comparisons {
			if c := &r.Runs[i].Comparisons[j]; c.Label == label && c.Budget == budget {
				return c
			}
		}
	}
	return nil
}

func signed(i stats.Interval) string {
	return fmt.Sprintf("%+.3f [%+.3f, %+.3f]", i.Mean, i.Low, i.High)
}

func whole(i stats.Interval) string { return fmt.Sprintf("%.0f [%.0f, %.0f]", i.Mean, i.Low, i.High) }

// verdict is a comparison's verdict to be written after its difference; empty where there is no detectable difference.
func verdict(d *comparisonRecord) string {
	if d.Verdict == string(stats.Better) || d.Verdict == string(stats.Worse) {
		return ": " + d.Verdict
	}
	return ""
}

func pText(p float64) string { return fmt.Sprintf("%.2g", p) }

// table has recall@tokens of every column at every budget, and what it is less bm25 at the primary one.
func (r *record) table() string {
	var b strings.Builder
	b.WriteString("| memory |")
	for _, budget := range r.budgets() {
		fmt.Fprintf(&b, " %s tokens |", thousand(int(budget)))
	}
	fmt.Fprintf(&b, " less bm25, %s |\n|---|", thousand(primaryBudget))
	b.WriteString(strings.Repeat("---|", len(r.budgets())+1) + "\n")
	for _, c := range r.columns() {
		name := title(c.Label)
		if c.Version != "" {
			name += "; " + c.Version
		}
		fmt.Fprintf(&b, "| %s |", name)
		for _, budget := range r.budgets() {
			fmt.Fprintf(&b, " %s |", interval(c.at(budget).Figures[recall]))
		}
		less := ""
		if d := r.compared(c.Label, primaryBudget); d != nil {
			less = signed(d.Difference) + verdict(d)
		}
		fmt.Fprintf(&b, " %s |\n", less)
	}
	return b.String()
}

// otherTable has the metrics of the primary budget that the page leaves out.
func (r *record) otherTable() string {
	var b strings.Builder
	b.WriteString("| memory | all evidence | rank | tokens of other words |\n|---|---|---|---|\n")
	for _, c := range r.columns() {
		f := c.at(primaryBudget).Figures
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", title(c.Label), interval(f["all@tokens"]), interval(f["mrr"]),
			whole(f["frame_tokens"]))
	}
	return b.String()
}

// typeTable has recall@tokens at the primary budget by the type of question.
func (r *record) typeTable() string {
	var b strings.Builder
	b.WriteString("| memory |")
	of := r.column(reference).at(primaryBudget).Types
	for _, name := range r.types() {
		fmt.Fprintf(&b, " %s (%d) |", typeTitle(name), of[name].N)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(r.types())) + "\n")
	for _, c := range r.columns() {
		fmt.Fprintf(&b, "| %s |", title(c.Label))
		for _, name := range r.types() {
			fmt.Fprintf(&b, " %s |", interval(c.at(primaryBudget).Types[name]))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// verdicts has every memory against bm25, question by question: a row for each, with the difference at each budget, its
// adjusted p and the verdict. Without a detectable difference there is no verdict.
func (r *record) verdicts() string {
	var b strings.Builder
	b.WriteString("| memory, less bm25 |")
	for _, budget := range r.budgets() {
		fmt.Fprintf(&b, " %s tokens |", thousand(int(budget)))
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(r.budgets())) + "\n")
	for _, c := range r.columns() {
		if r.compared(c.Label, primaryBudget) == nil {
			continue
		}
		fmt.Fprintf(&b, "| %s |", title(c.Label))
		for _, budget := range r.budgets() {
			cell := ""
			if d := r.compared(c.Label, budget); d != nil {
				cell = fmt.Sprintf("%s, p %s%s", signed(d.Difference), pText(d.P), verdict(d))
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// servers are the names of the memories that have a server and search with vectors, by label.
var servers = map[string]string{"mem0": "mem0", "memos": "MemOS", "hindsight": "Hindsight", "honcho": "Honcho"}

// byVerdict are the names of the servers by their verdict against bm25 at a budget.
func (r *record) byVerdict(budget int64) map[string][]string {
	names := map[string][]string{}
	for _, c := range r.columns() {
		if d := r.compared(c.Label, budget); d != nil && servers[c.Label] != "" {
			names[d.Verdict] = append(names[d.Verdict], servers[c.Label])
		}
	}
	return names
}

// primary is the primary result in a sentence: how many of the servers show more than bm25.
func (r *record) primary() string {
	shows := interval(r.column(reference).at(primaryBudget).Figures[recall])
	by, n := r.byVerdict(primaryBudget), 0
	for _, names := range by {
		n += len(names)
	}
	if n == 0 {
		return fmt.Sprintf("At %s tokens bm25, a plain word search, shows %s of the evidence.", thousand(primaryBudget), shows)
	}
	subject := fmt.Sprintf("none of the %d memory servers shows", n)
	if better := len(by[string(stats.Better)]); better > 0 {
		subject = fmt.Sprintf("%d of the %d memory servers show", better, n)
	}
	return fmt.Sprintf("**At %s tokens %s more of the evidence than bm25**, a plain word search, which shows\n%s.",
		thousand(primaryBudget), subject, shows)
}

// beats says of each budget which of the servers show more than bm25, by their verdicts.
func (r *record) beats() string {
	var b strings.Builder
	b.WriteString("| against bm25 | better | no detectable difference | worse |\n|---|---|---|---|\n")
	for _, budget := range r.budgets() {
		fmt.Fprintf(&b, "| %s tokens |", thousand(int(budget)))
		by := r.byVerdict(budget)
		for _, v := range []stats.Verdict{stats.Better, stats.NoDifference, stats.Worse} {
			fmt.Fprintf(&b, " %s |", strings.Join(by[string(v)], ", "))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// costTable has what a recorded turn costs at the backend.
func (r *record) costTable() string {
	var b strings.Builder
	b.WriteString("| memory | native calls | bytes of requests and answers |\n|---|---|---|\n")
	for _, c := range r.columns() {
		if c.ManifestSHA256 != "" {
			fmt.Fprintf(&b, "| %s | %.2f | %s |\n", title(c.Label), c.Calls, thousand(int(math.Round(c.Bytes))))
		}
	}
	return b.String()
}

// times has for each run how long it worked.
func (r *record) times() string {
	var b strings.Builder
	b.WriteString("| run | minutes |\n|---|---|\n")
	all := 0.0
	for i := range r.Runs {
		fmt.Fprintf(&b, "| `%s` | %.1f |\n", r.Runs[i].Name, r.Runs[i].Minutes)
		all += r.Runs[i].Minutes
	}
	fmt.Fprintf(&b, "| together | %.1f |\n", all)
	return b.String()
}

// sources has for each run the command and the digests.
func (r *record) sources() string {
	var b strings.Builder
	b.WriteString("| run | memory | version | sealed manifest, SHA-256 |\n|---|---|---|---|\n")
	for i := range r.Runs {
		run := &r.Runs[i]
		for _, c := range run.Columns {
			if c.ManifestSHA256 == "" {
				continue
			}
			version := c.Version
			if version == "" {
				version = "built in"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` |\n", run.Name, title(c.Label), version, c.ManifestSHA256)
		}
	}
	b.WriteString("\n| run | bm25 in it, " + thousand(primaryBudget) + " tokens | command | head |\n|---|---|---|---|\n")
	for i := range r.Runs {
		run := &r.Runs[i]
		needs := ""
		if x, err := named(run.Name); err == nil {
			for _, name := range x.needs {
				needs += name + "=DIR "
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%smake results RESULTS='-only %s'` | `%s` |\n", run.Name, interval(run.Reference),
			needs, run.Name, run.Head)
	}
	return b.String()
}

// files returns all files that a record publishes, by their path in docs.
func (r *record) files() (map[string][]byte, error) {
	for _, c := range r.columns() {
		if c.Breached != "" {
			return nil, fmt.Errorf("%s: %s: its figures are not published", c.Label, c.Breached)
		}
	}
	files, err := r.plots()
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for name, text := range files {
		out[filepath.Join("results", name)] = text
	}
	for name, text := range map[string]string{"results.md": page, filepath.Join("reference", "results.md"): figures} {
		if out[name], err = r.markdown(text); err != nil {
			return nil, err
		}
	}
	out[filepath.Join("results", recordFile)], err = r.text()
	return out, err
}

// publish writes page, record and plots below docs.
func (r *record) publish(docs string) error {
	files, err := r.files()
	if err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(docs, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compare holds what is published below docs to what the record gives, byte for byte.
func (r *record) compare(docs string) error {
	files, err := r.files()
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text, err := os.ReadFile(filepath.Join(docs, name))
		if err == nil && !bytes.Equal(text, files[name]) {
			err = fmt.Errorf("%s is not what docs/results/%s gives; make results writes it", filepath.Join(docs, name),
				recordFile)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
