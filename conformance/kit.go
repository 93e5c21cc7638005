package conformance

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/extism"
	"github.com/memhost/memhost/internal/text/jsonpointer"
)

// clause is one of the contract's, with its check.
type clause struct {
	number int
	words  string
	check  func(*bench)
}

// clauses are those of the contract, in its words.
func clauses() []clause {
	return []clause{
		{1, "A two-message turn is accepted and gives a truthful receipt", checkReceipt},
		{2, "Retrieve in the same scope, from a new session, finds it after the readiness wait", checkFinds},
		{3, "Nothing crosses scopes, for hostile ids too", checkIsolation},
		{4, "Read-only sessions leave no trace in the backend", checkReadOnly},
		{5, "budget_applied agrees with the recorded native request; the formatted context names the backend and fits",
			checkBudget},
		{6, "Reset clears one scope only, comes to its end, and later events never enter the old generation",
			checkReset},
		{7, "Native errors become typed errors that keep the raw diagnostics; an outage is never an empty result",
			checkErrors},
		{8, "raw keeps ids, scores, times and type labels", checkRaw},
		{9, "scenario, context and attribute travel as the provider documents, and filter_mode is truthful",
			checkLabels},
		{10, "Test sessions never reset: in read-only a reset is refused with no native call", checkNoReset},
		{11, "Controls obey the same wall", checkWall},
		{12, "Re-sent events are not duplicated where find_event decides, and every possible double is announced " +
			"where it cannot", checkDelivery},
		{13, "Concurrent callers and scopes do not mix, and one scope's writes keep their order", checkConcurrency},
		{14, "Every answer has its required fields, and its words, counts, ranks and pointers are the contract's",
			checkAnswers},
		{15, "A provider that claims forget removes what it is asked to, and nothing else", checkForget},
		{16, "What people say, in any alphabet, form and order, is taken, whole", checkUtterances},
	}
}

// kit is one run.
type kit struct {
	target   Target
	options  Options
	module   *host.Module
	declared []abi.NotApplicable
	dir      string
	names    namer
	// breaches are the answers that the host refused because they break the contract, with where that was.
	breaches []string
}

// Run checks a provider, clause by clause.
//
// What the provider does wrong is a verdict, not an error. When the run cannot go on, because the backend is not there
// any more or ctx ended, the report is returned along with the error: it has what was seen until then, and Ended says
// why there is no more. A clause that was not looked at is missing in it, and what failed for want of a backend is
// inconclusive.
//
// Errors: invalid_argument for a target or options that make no sense (without a report), any error of opening the
// provider, and timeout when ctx ended.
func Run(ctx context.Context, target Target, o Options) (*Report, error) {
	k := &kit{target: target.withDefaults(), options: o}
	k.target.Provider.Feedback = true // off by default, and yet a part of what the provider does
	chosen, err := chooseClauses(o.Clauses)
	if err != nil {
		return nil, err
	}
	if k.module, err = host.Inspect(target.Provider.Module, o.Limits, extism.Engine()); err != nil {
		return nil, err
	}
	if c := k.module.Manifest.Conformance; c != nil {
		k.declared = c.NotApplicable
	}
	if k.dir, err = os.MkdirTemp("", "memhost-conformance-"); err != nil {
		return nil, abi.WrapError(abi.CodeUnavailable, "a folder for the kit: "+err.Error(), err)
	}
	defer func() { _ = os.RemoveAll(k.dir) }()
	if k.options.CacheDir == "" {
		k.options.CacheDir = filepath.Join(k.dir, "cache")
	}
	if k.options.Now == nil {
		k.options.Now = time.Now
	}
	if k.options.RunID == "" {
		k.options.RunID = "kit" + strings.ToLower(rand.Text()[:8])
	}
	began := time.Now()
	report := &Report{Module: k.module.Manifest.Name, Version: k.module.Manifest.Version, SHA256: k.module.SHA256}
	if c := k.module.Manifest.Conformance; c != nil {
		report.Notes = slices.Clone(c.Notes)
	}
	if w := k.module.SettleWarning(); w != "" {
		report.Notes = append(report.Notes, w)
	}
	for _, c := range chosen {
		done, err := k.run(ctx, c, report)
		if done != nil {
			report.Clauses = append(report.Clauses, *done)
			if o.Progress != nil {
				o.Progress(*done)
			}
		}
		if err != nil {
			report.end(began, fmt.Sprintf("in clause %d: %v", c.number, err))
			return report, err
		}
	}
	report.end(began, "")
	return report, nil
}

// counts reports whether a declaration applies to this configuration of the provider.
func counts(d abi.NotApplicable, config any) bool {
	if here, there := jsonpointer.Find(config, d.Unless); d.Unless != "" && there && here != nil {
		return false
	}
	if d.Pointer == "" {
		return true
	}
	here, there := jsonpointer.Find(config, d.Pointer)
	want, _ := decode(d.Equals)
	return there && sameValue(here, want)
}

func chooseClauses(numbers []int) ([]clause, error) {
	all := clauses()
	if len(numbers) == 0 {
		return all, nil
	}
	for _, n := range numbers {
		if n < 1 || n > len(all) {
			return nil, abi.NewError(abi.CodeInvalidArgument,
				fmt.Sprintf("there is no clause %d; clauses count from 1 to %d", n, len(all)))
		}
	}
	return slices.DeleteFunc(all, func(c clause) bool { return !slices.Contains(numbers, c.number) }), nil
}

// run checks one clause on a data folder of its own. With an error the report has what was seen before, nil for
// nothing.
func (k *kit) run(ctx context.Context, c clause, report *Report) (*ClauseReport, error) {
	began := time.Now()
	b := &bench{ctx: ctx, kit: k, wire: &wire{}, report: &ClauseReport{Number: c.number, Words: c.words,
		Parts: []PartReport{}}}
	llm := b.llmCalls()
	var err error
	if b.rig, err = b.open(filepath.Join(k.dir, strconv.Itoa(c.number)), 4, nil); err != nil {
		return nil, err
	}
	m, err := b.slot.Manifest(ctx)
	if err != nil {
		return nil, err
	}
	b.capabilities = m.Capabilities.Capabilities
	config, _ := decode(m.Config)
	for _, d := range k.declared {
		if !counts(d, config) {
			continue
		}
		if b.declared = append(b.declared, d); d.Clause == int64(c.number) && d.Part == "" {
			b.report.Declared = d.Because
		}
	}
	report.Provider, report.Kind = m.Provider, string(m.ConditionKind)
	report.Backend, report.BackendVersion = m.Health.BackendName, m.Health.BackendVersion
	b.kind, b.health = m.ConditionKind, m.Health
	c.check(b)
	outage := b.outage()
	b.cleanUp()
	b.close()
	b.settle()
	b.report.Cost = b.wire.cost(0)
	b.report.Cost.LLMCalls = b.llmSpent(llm)
	b.report.MS = time.Since(began).Milliseconds()
	if err := ctx.Err(); err != nil {
		outage = abi.WrapError(abi.CodeTimeout, "the kit was stopped", err)
	}
	if outage != nil && len(b.report.Parts) == 0 {
		return nil, outage
	}
	return b.report, outage
}

// can reports whether the provider has an optional operation.
func (b *bench) can(op string) bool { return slices.Contains(b.capabilities, op) }

// testSessions are the sessions that are read-only in every rig.
const testSessions = "kit-test-*"

// short cuts a text for people.
func short(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "..."
}

// parallel runs f for 0 to n-1, so many at once.
func parallel(n, atOnce int, f func(i int)) {
	seats := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i := range n {
		seats <- struct{}{}
		all.Go(func() {
			defer func() { <-seats }()
			f(i)
		})
	}
	all.Wait()
}
