package score

import (
	"cmp"
	"fmt"
	"iter"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/internal/text/tokens"
)

// Score computes the metrics of a run with its pack. An incomplete run is scored as far as it got.
//
// Errors: invalid_argument for another pack, a broken journal, or an unknown primary metric; unavailable for files that
// cannot be read.
func Score(folder string, p *pack.Pack) (*Metrics, *Timings, error) {
	audit, err := readAudit(folder, p)
	if err != nil {
		return nil, nil, err
	}
	m, t, err := scoredWithout(folder, p, audit)
	if err != nil || audit == nil {
		return m, t, err
	}
	before, _, err := scoredWithout(folder, p, nil)
	if err != nil {
		return nil, nil, err
	}
	m.Audit, m.Keys.Audit = audited(audit, before), audit.SHA256()
	return m, t, nil
}

// scoredWithout computes the metrics without the probes that an audit excludes; nil excludes none.
func scoredWithout(folder string, p *pack.Pack, audit *pack.Audit) (*Metrics, *Timings, error) {
	s, err := load(folder, p, audit)
	if err != nil {
		return nil, nil, err
	}
	isolated, err := s.passOverPack()
	if err != nil {
		return nil, nil, err
	}
	m := s.metrics()
	m.LeakControl = isolated.control()
	for i, c := range s.all() {
		leaks, n, err := s.sequences(isolated, c)
		if err != nil {
			return nil, nil, err
		}
		m.Columns[i].Isolation = isolated.verdict(c, leaks, n)
	}
	m.withhold()
	m.Notes = s.notes(m)
	t := &Timings{Timings: Version, Columns: []ColumnTiming{}}
	for _, c := range s.columns {
		t.Columns = append(t.Columns, c.timing(s.budgets))
	}
	return m, t, nil
}

// scorer is a run that is being scored.
type scorer struct {
	*reader
	run        *rundir.Run
	columns    []*column // of providers, in the lab's order
	references *references
}

// load reads everything that the metrics need from a run, except for the references.
func load(folder string, p *pack.Pack, audit *pack.Audit) (*scorer, error) {
	r, err := rundir.Open(folder)
	if err != nil {
		return nil, err
	}
	if found := p.Manifest.ContentSHA256; found != r.Pack.ContentSHA256 {
		return nil, wrong("the pack %s has the content %.12s, the run is of %.12s", p.Manifest.Name, found,
			r.Pack.ContentSHA256).
			WithHint("score a run with the pack it ran on")
	}
	if r.Lab.Primary != nil {
		if err := Known(r.Lab.Primary.Metric); err != nil {
			return nil, err
		}
	}
	t, err := readTimeline(p, r.Lab.Seed, audit)
	if err != nil {
		return nil, err
	}
	if u := r.Lab.Simulator; u != nil {
		t.patience = u.Turns
	}
	s := &scorer{reader: &reader{t, folder, ascending(allBudgets(r.Lab))}, run: r}
	counter, err := tokens.New(r.Lab.Tokenizer)
	if err != nil {
		return nil, wrong("tokenizer: %v", err)
	}
	taken := map[string]bool{}
	for i := range r.Lab.Providers {
		c, err := s.column(&r.Lab.Providers[i])
		if err != nil {
			return nil, err
		}
		s.columns = append(s.columns, c)
		taken[strings.ToLower(c.Label)] = true
	}
	s.references = newReferences(t, r.Lab.Seed, s.budgets, counter, taken)
	return s, s.readCells()
}

// allBudgets returns the lab's budgets and those of individual providers, such as full_history without a limit as a
// self-test.
func allBudgets(l *lab.Lab) []int64 {
	list := slices.Clone(l.Budgets)
	for i := range l.Providers {
		for _, b := range l.Providers[i].Budgets {
			if !slices.Contains(list, b) {
				list = append(list, b)
			}
		}
	}
	return list
}

// ascending sorts budgets; 0, which means no limit, comes last.
func ascending(budgets []int64) []int64 {
	list := slices.Clone(budgets)
	slices.SortFunc(list, func(a, b int64) int {
		if (a == 0) != (b == 0) {
			return int(b - a)
		}
		return cmp.Compare(a, b)
	})
	return list
}

// all returns the providers' columns and the references.
func (s *scorer) all() []*column {
	return append(slices.Clone(s.columns), s.references.random, s.references.golden)
}

// column prepares the column of a provider.
func (s *scorer) column(p *lab.Provider) (*column, error) {
	c := &column{timeline: s.timeline, seed: s.run.Lab.Seed, Column: Column{Label: p.Label, Provider: p.Name(),
		Feedback: p.Feedback() && s.run.Lab.Subject != nil},
		budgets: s.run.Lab.BudgetsOf(p), beside: p.Reference}
	reported := false
	for _, info := range s.run.Cells {
		if info.Label != p.Label {
			continue
		}
		says, err := saysShown(filepath.Join(info.Folder(s.folder), journal.Name))
		if err != nil {
			return nil, err
		}
		reported = reported || says
		c.cells = append(c.cells, &cell{Cell: info})
	}
	c.located = !reported
	return c, nil
}

// readCells reads the journals, as many at a time as there are processors.
func (s *scorer) readCells() error {
	var todo []func() error
	for _, c := range s.columns {
		for i := range c.cells {
			todo = append(todo, func() (err error) {
				c.cells[i], err = s.cell(c.cells[i].Cell, c.located)
				return err
			})
		}
	}
	if err := runTogether(todo); err != nil {
		return err
	}
	s.spreadLeaks()
	for _, c := range s.columns {
		c.sum()
	}
	return nil
}

// runTogether runs tasks concurrently and returns the first error, in their order.
func runTogether(todo []func() error) error {
	errs := make([]error, len(todo))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(len(todo), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := range next {
				errs[i] = todo[i]()
			}
		})
	}
	for i := range todo {
		next <- i
	}
	close(next)
	workers.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// sum fills in what the column's replicates have in common, and their sums.
func (c *column) sum() {
	c.Cells, c.Smokes = []Cell{}, []SmokeLine{}
	c.Wall.Breaches = []string{}
	filter, warnings, writeErrs := map[string]int{}, map[string]int{}, map[string]int{}
	noAnswer, finished := map[string]int{}, map[string]int{}
	answers := &Answers{}
	sources := 0
	for _, cell := range c.cells {
		c.Cells = append(c.Cells, cell.row(len(c.budgets)))
		c.Partial = c.Partial || cell.State != rundir.Complete
		c.Wall.add(&cell.wall)
		c.Readiness.add(&cell.readiness)
		for into, from := range map[*map[string]int]map[string]int{&filter: cell.filter, &warnings: cell.warnings,
			&writeErrs: cell.writeErrs} {
			for name, n := range from {
				(*into)[name] += n
			}
		}
		for _, a := range cell.turns {
			if a.FinishReason != "" {
				finished[a.FinishReason]++
			}
			if u := a.Usage; u != nil {
				answers.PromptTokens += u.PromptTokens
				answers.CompletionTokens += u.CompletionTokens
				answers.Counted++
			}
			if a.Error == nil && strings.TrimSpace(a.Text) == "" { // a run of an earlier version
				noAnswer["backend"]++
				continue
			}
			if a.Error != nil {
				noAnswer[string(a.Error.Code)]++
				continue
			}
			answers.Given++
			answers.Stub += int(yes(a.Stub))
		}
		c.EventsEmpty += len(cell.empty)
		for _, w := range cell.waits {
			c.EventsOutstanding += w.outstanding
			c.EventsLost += len(w.lost)
		}
		for _, events := range cell.failed {
			c.EventsFailed += len(events)
		}
		c.FanOut.Items += cell.fan.Items
		c.FanOut.None += cell.fan.None
		c.FanOut.Few += cell.fan.Few
		c.FanOut.Many += cell.fan.Many
		c.FanOut.Max = max(c.FanOut.Max, cell.fan.Max)
		sources += cell.sources
		if m := cell.manifest; m != nil && c.Module == nil {
			c.Provider, c.Kind, c.Smokes = m.Provider, m.ConditionKind, append(c.Smokes, m.Smokes...)
			c.Module = &Module{m.Module.Name, m.Module.Version, m.Module.SHA256, m.ConfigHash, m.ABI}
		}
	}
	if answers.Given+len(noAnswer) > 0 {
		answers.Errors, answers.FinishReasons = counted(noAnswer), counted(finished)
		c.Agent = answers
	}
	c.Behaviour = c.behave()
	if named := c.FanOut.Few + c.FanOut.Many; named > 0 {
		c.FanOut.Mean = float64(sources) / float64(named)
	}
	slices.Sort(c.Wall.Breaches)
	c.Wall.Breaches = c.Wall.Breaches[:min(len(c.Wall.Breaches), maxExamples)]
	c.FilterMode, c.Warnings, c.WriteErrs = counted(filter), counted(warnings), counted(writeErrs)
	switch {
	case c.FanOut.Items == 0:
		c.ShownSpans = "none"
	case c.located:
		c.ShownSpans = "located"
	default:
		c.ShownSpans = "reported"
	}
}

// row is the cell's entry in metrics.json; asks is the number of budgets with which its provider is asked.
func (c *cell) row(asks int) Cell {
	row := Cell{Replicate: c.Replicate, State: c.State, Sessions: c.closed}
	for _, recorded := range c.recorded {
		row.Events += int(yes(recorded))
	}
	if c.Error != nil {
		row.Error = string(c.Error.Code)
	}
	for _, readings := range c.readings {
		for _, r := range readings {
			row.Asked += int(yes(r != nil))
		}
	}
	if len(c.readings) > 0 {
		row.Wanted = asks * len(c.readings[0])
	}
	return row
}

func (w *Wall) add(o *Wall) {
	w.Clean += o.Clean
	w.Breached += o.Breached
	w.Inconclusive += o.Inconclusive
	w.CanariesTried += o.CanariesTried
	w.CanariesSkipped += o.CanariesSkipped
	w.CanariesChecked += o.CanariesChecked
	w.CanariesFound += o.CanariesFound
	w.Breaches = append(w.Breaches, o.Breaches...)
}

func (r *Readiness) add(o *Readiness) {
	r.Waits += o.Waits
	r.TimedOut += o.TimedOut
	r.Errors += o.Errors
	r.PendingProbes += o.PendingProbes
}

// passOverPack reads the events cluster by cluster, for the references and the search for leaks.
func (s *scorer) passOverPack() (*isolation, error) {
	isolated := newIsolation(s.timeline)
	var todo []func() error
	for cluster := range isolated.clusters {
		todo = append(todo, func() error { return s.passOverCluster(isolated, cluster) })
	}
	if err := runTogether(todo); err != nil {
		return nil, err
	}
	return isolated, isolated.match()
}

// passOverCluster reads the events of one cluster.
func (s *scorer) passOverCluster(isolated *isolation, cluster int) error {
	own, members := &ownText{map[uint64]struct{}{}, map[uint64]struct{}{}}, isolated.members(cluster)
	for _, p := range members {
		var history []renderedEvent
		for e, err := range s.pack.Events(p.id) {
			if err != nil {
				return err
			}
			own.add(e)
			history = append(history, message(e))
		}
		s.references.persona(p, history)
	}
	var failed error
	err := isolated.collect(cluster, own, func(yield func(suspectContext) bool) {
		for _, c := range s.columns {
			for suspected, err := range s.contexts(c, members) {
				if failed = err; err != nil || !yield(suspected) {
					return
				}
			}
		}
	})
	return cmp.Or(failed, err)
}

// contexts returns the column's distinct contexts for the probes of some personas.
func (s *scorer) contexts(c *column, personas []*persona) iter.Seq2[suspectContext, error] {
	return func(yield func(suspectContext, error) bool) {
		seen := map[string]bool{}
		for _, person := range personas {
			for _, p := range person.probes {
				for at := range s.budgets {
					for _, readings := range c.replicates(at) {
						r := readings[p.number]
						if r == nil || r.context == "" || seen[r.context] {
							continue
						}
						seen[r.context] = true
						text, err := rundir.Contexts(s.folder).Text(r.context)
						if err != nil {
							yield(suspectContext{}, err)
							return
						}
						start, end := element(string(text))
						if !yield(suspectContext{p, foldedLines(string(text[start:end]))}, nil) {
							return
						}
					}
				}
			}
		}
	}
}

// sequences returns the leaks that the detector finds in a column's contexts, one for each context, and their number.
func (s *scorer) sequences(isolated *isolation, c *column) (list []Leak, n int, err error) {
	if !isolated.suspicious || c.reference != nil {
		return nil, 0, nil
	}
	for suspected, err := range s.contexts(c, s.personas) {
		if err != nil {
			return nil, 0, err
		}
		if found, first := isolated.leaks(suspected); found > 0 {
			list, n = append(list, first), n+found
		}
	}
	return list, n, nil
}

// metrics computes every figure.
func (s *scorer) metrics() *Metrics {
	m := &Metrics{Metrics: Version, Run: s.facts(), Keys: s.keys(), Catalogue: []Entry{}, Columns: []Column{},
		Exploratory: []Family{}}
	for i := range metrics {
		if s.hasConversations || metrics[i].behave == nil {
			m.Catalogue = append(m.Catalogue, metrics[i].Entry)
		}
	}
	m.Catalogue = append(m.Catalogue, auroc)
	var todo []func() error
	for _, c := range s.all() {
		c.complete()
		c.Budgets, c.Ages = []Budgeted{}, []AgeCurve{}
		if c.Behaviour != nil {
			for at, budget := range s.budgets {
				if c.hasBudget(budget) {
					c.Behaviour.Since = append(c.Behaviour.Since, c.since(at, budget))
				}
			}
		}
		for at, budget := range s.budgets {
			if !c.hasBudget(budget) {
				continue
			}
			n := len(c.Budgets)
			c.Budgets, c.Ages = append(c.Budgets, Budgeted{}), append(c.Ages, AgeCurve{})
			todo = append(todo, func() error {
				c.Budgets[n], c.Ages[n] = c.budgeted(at, budget), c.ages(at, budget)
				return nil
			})
		}
	}
	compared := &familyBuilder{s.timeline, s.run.Lab.Seed, s.columns, s.columns[0]}
	primary := s.run.Lab.Primary
	if primary != nil {
		i := slices.IndexFunc(s.columns, func(c *column) bool { return strings.EqualFold(c.Label, primary.Reference) })
		compared.reference = s.columns[i]
		m.Primary = new(Family)
		todo = append(todo, func() error {
			*m.Primary = compared.family(primary.Metric, slices.Index(s.budgets, primary.Budget), primary.Budget)
			return nil
		})
	}
	for at, budget := range s.budgets {
		if !slices.Contains(s.run.Lab.Budgets, budget) {
			continue
		}
		for i := range metrics {
			entry := &metrics[i]
			if entry.behave != nil && !s.hasConversations {
				continue
			}
			if !entry.Headline || !entry.comparable() || primary != nil && primary.Metric == entry.Name &&
				primary.Budget == budget {
				continue
			}
			n := len(m.Exploratory)
			m.Exploratory = append(m.Exploratory, Family{})
			todo = append(todo, func() error {
				m.Exploratory[n] = compared.family(entry.Name, at, budget)
				return nil
			})
		}
	}
	_ = runTogether(todo) // computing figures cannot fail
	for _, c := range s.all() {
		m.Columns = append(m.Columns, c.Column)
	}
	m.SelfTest = s.selfTest()
	return m
}

// complete fills in the texts of a column.
func (c *column) complete() {
	c.Notes = []string{}
	if c.reference != nil {
		c.Cells, c.Smokes, c.FilterMode, c.Warnings, c.WriteErrs = []Cell{}, []SmokeLine{}, []Count{}, []Count{},
			[]Count{}
		c.Wall.Breaches, c.ShownSpans = []string{}, "reported"
		for _, readings := range c.reference {
			for _, r := range readings {
				if r != nil && !c.foreign {
					c.FanOut.Items += int(r.values[place["items"]])
				}
			}
		}
		c.FanOut.Few = c.FanOut.Items
		c.FanOut.Max, c.FanOut.Mean = min(1, c.FanOut.Few), yes(c.FanOut.Few > 0)
		return
	}
	if c.ShownSpans == "located" {
		c.Notes = append(c.Notes, "shown spans: located by the items' text: the provider does not say where an item "+
			"is shown")
	}
	for _, cell := range c.Cells {
		switch cell.State {
		case rundir.Complete:
		case rundir.Failed:
			c.Notes = append(c.Notes, fmt.Sprintf("partial: replicate %d failed (%s) after %d of %d retrievals",
				cell.Replicate, cell.Error, cell.Asked, cell.Wanted))
		default:
			c.Notes = append(c.Notes, fmt.Sprintf("partial: replicate %d is %s, after %d of %d retrievals",
				cell.Replicate, cell.State, cell.Asked, cell.Wanted))
		}
	}
	if n := c.Readiness.PendingProbes; n > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d probes were asked before memory was ready", n))
	}
}
