package conformance

import (
	"context"
	"crypto/rand"
	"encoding/json"
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
// Errors: invalid_argument for a target or options that make no sense, and whatever the provider cannot be opened with.
// What the provider does wrong is no
// error but a verdict.
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
	if k.options.RunID == "" {
		k.options.RunID = "kit" + strings.ToLower(rand.Text()[:8])
	}
	began := time.Now()
	report := &Report{Module: k.module.Manifest.Name, Version: k.module.Manifest.Version, SHA256: k.module.SHA256}
	if c := k.module.Manifest.Conformance; c != nil {
		report.Notes = c.Notes
	}
	for _, c := range chosen {
		done, err := k.run(ctx, c, report)
		if err != nil {
			return nil, err
		}
		report.Clauses = append(report.Clauses, *done)
		if o.Progress != nil {
			o.Progress(*done)
		}
	}
	report.MS = time.Since(began).Milliseconds()
	report.settle()
	return report, nil
}

// counts tells whether a declaration is about a provider with this configuration.
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
				fmt.Sprintf("clauses: %d is none, they count from 1 to %d", n, len(all)))
		}
	}
	return slices.DeleteFunc(all, func(c clause) bool { return !slices.Contains(numbers, c.number) }), nil
}

// run checks one clause on a data folder of its own.
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
	b.cleanUp()
	b.close()
	if err := ctx.Err(); err != nil {
		return nil, abi.WrapError(abi.CodeTimeout, "the kit was stopped", err)
	}
	b.settle()
	b.report.Cost = b.wire.cost(0)
	b.report.Cost.LLMCalls = b.llmSpent(llm)
	b.report.MS = time.Since(began).Milliseconds()
	return b.report, nil
}

// bench is where one clause is checked.
type bench struct {
	*rig   // the one on which most is done
	ctx    context.Context
	kit    *kit
	wire   *wire
	report *ClauseReport
	kind   abi.ConditionKind
	health abi.BackendHealth
	// capabilities are those of this configuration, declared what its manifest says does not apply to it.
	capabilities []string
	declared     []abi.NotApplicable

	mu       sync.Mutex
	rigs     []*rig
	sessions int
	events   int
	toldLLM  *int64 // what traces told of calls to language models
	// confirmed: something was seen that a declaration of the clause can mean.
	confirmed bool
}

// rig is a slot on a data folder.
type rig struct {
	bench *bench
	dir   string
	host  *host.Host
	slot  *host.Slot

	mu     sync.Mutex
	scopes []abi.MemoryScope // that were written to
}

// testSessions are the sessions that are read-only by themselves, in every rig.
const testSessions = "kit-test-*"

// open makes a slot on a folder. now is its clock, nil for the real one.
func (b *bench) open(dir string, pool int, now func() time.Time) (*rig, error) {
	limits := b.kit.options.Limits
	limits.Pool = pool
	h, err := host.New(b.ctx, host.Options{DataDir: dir, CacheDir: b.kit.options.CacheDir, Durability: "process",
		Logger: b.kit.options.Logger, Limits: limits,
		Now: now, Intercept: b.wire.intercept, NoReadinessPolls: true, Engines: []host.Engine{extism.Engine()}})
	if err != nil {
		return nil, err
	}
	config := b.kit.target.Provider
	config.TestSessions = []string{testSessions}
	slot, err := h.Open(b.ctx, config)
	if err != nil {
		_ = h.Close(b.ctx)
		return nil, err
	}
	r := &rig{bench: b, dir: dir, host: h, slot: slot}
	b.mu.Lock()
	b.rigs = append(b.rigs, r)
	b.mu.Unlock()
	return r, nil
}

func (r *rig) close() {
	if r.slot == nil {
		return
	}
	ctx := context.WithoutCancel(r.bench.ctx)
	_ = r.slot.Close(ctx)
	_ = r.host.Close(ctx)
	r.slot = nil
}

// cleanUp resets every scope that was written to, as well as it can be done.
func (b *bench) cleanUp() {
	b.wire.set(nil)
	for _, r := range b.rigs {
		if r.slot == nil {
			continue
		}
		for _, s := range r.scopes {
			_, _ = r.slot.ResetScope(b.ctx, s)
		}
	}
}

func (b *bench) close() {
	for _, r := range b.rigs {
		r.close()
	}
}

// outcome is what a check came to.
type outcome struct {
	verdict Verdict
	reason  string
	// lacks: the provider cannot do what the check is about. Where the manifest declares that, it is not applicable.
	lacks bool
	// aside: that this check does not apply confirms no declaration about its clause.
	aside bool
	// breach: the host refused the answer because it breaks the contract. That is counted in clause 14.
	breach bool
}

func passed(format string, args ...any) outcome {
	return outcome{verdict: Pass, reason: fmt.Sprintf(format, args...)}
}

func failed(format string, args ...any) outcome {
	return outcome{verdict: Fail, reason: fmt.Sprintf(format, args...)}
}

func pending(format string, args ...any) outcome {
	return outcome{verdict: Pending, reason: fmt.Sprintf(format, args...)}
}

func inconclusive(format string, args ...any) outcome {
	return outcome{verdict: Inconclusive, reason: fmt.Sprintf(format, args...)}
}

// foundOut is not applicable by what the kit saw, declared or not.
func foundOut(format string, args ...any) outcome {
	return outcome{verdict: NotApplicable, reason: fmt.Sprintf(format, args...)}
}

// aside is not applicable for a reason that says nothing of the clause as a whole, such as a call too few.
func aside(format string, args ...any) outcome {
	return outcome{verdict: NotApplicable, reason: fmt.Sprintf(format, args...), aside: true}
}

// lacking is an inability that the manifest has to declare.
func lacking(format string, args ...any) outcome {
	return outcome{verdict: Inconclusive, reason: fmt.Sprintf(format, args...), lacks: true}
}

// refused is an operation that failed and should not have.
func refused(op string, err error) outcome {
	e := abi.AsError(err)
	said := ""
	if e.Native != nil {
		said = "; the backend said " + strconv.Quote(short(e.Native.Body, 200))
	}
	o := failed("%s: %v%s", op, err, said)
	o.breach = e.Reason == abi.ReasonContractBreach
	return o
}

// part runs one check and puts its verdict beside what the manifest declares of it. A declaration never excuses a
// failure, and one that the check disproves is a failure itself.
func (b *bench) part(name, words string, check func() outcome) outcome {
	o := check()
	if o.breach && b.report.Number != answersClause {
		b.kit.breaches = append(b.kit.breaches, fmt.Sprintf("clause %d, %s: %s", b.report.Number, name, o.reason))
		o.verdict, o.reason = Inconclusive, "the answer breaks the contract (clause 14): "+short(o.reason, 200)
	}
	p := PartReport{Name: name, Words: words, Verdict: o.verdict, Reason: o.reason}
	for _, d := range b.declared {
		if d.Clause == int64(b.report.Number) && d.Part == name {
			p.Declared = d.Because
		}
	}
	switch {
	case o.lacks && (p.Declared != "" || b.report.Declared != ""):
		p.Verdict = NotApplicable
	case o.lacks:
		p.Reason += fmt.Sprintf(`. If it is meant to be so, declare it in the manifest: conformance.not_applicable {"clause": %d, "part": %q, "because": ...}`, b.report.Number, name)
	case p.Declared != "" && o.verdict == Pass:
		p.Verdict, p.Reason = Fail, "the manifest declares this not applicable, and it is: "+o.reason
	}
	b.confirmed = b.confirmed || p.Verdict == NotApplicable && !o.aside
	b.report.Parts = append(b.report.Parts, p)
	return o
}

// settle decides the clause by its parts.
func (b *bench) settle() {
	c := b.report
	c.Verdict = NotApplicable
	for _, p := range c.Parts {
		if p.Verdict.gravity() > c.Verdict.gravity() {
			c.Verdict = p.Verdict
		}
	}
	switch {
	case c.Declared == "":
	case b.confirmed && c.Verdict.Green():
		c.Verdict = NotApplicable
	case !b.confirmed && c.Verdict == Pass:
		c.Verdict = Fail
		c.Parts = append(c.Parts, PartReport{Name: "declared", Words: "what the manifest declares of this clause holds",
			Verdict: Fail,
			Reason:  "the manifest declares it not applicable (" + c.Declared + "), and every part of it applies"})
	}
}

// scope is a scope of the kit's own: its run and persona begin with what no other run of the kit has.
func (b *bench) scope(run, persona string) abi.MemoryScope {
	return abi.MemoryScope{RunID: fmt.Sprintf("%s.%d%s", b.kit.options.RunID, b.report.Number, run), PersonaID: persona}
}

// session is one that nobody had before.
func (b *bench) session() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions++
	return "kit-session-" + strconv.Itoa(b.sessions)
}

// event is a turn of two messages that nobody had before.
func (b *bench) event(s abi.MemoryScope, text string) *abi.MemoryEvent {
	b.mu.Lock()
	b.events++
	n := b.events
	b.mu.Unlock()
	id, answer := fmt.Sprintf("kit-%d-%d", b.report.Number, n), "Thank you for telling me."
	return &abi.MemoryEvent{EventID: id, RunID: s.RunID, UserID: s.PersonaID, SessionID: b.session(), TurnID: id,
		Timestamp: time.Now().UTC().Add(time.Duration(n)*time.Second - time.Hour).Format(time.RFC3339),
		Messages:  []abi.Message{{Role: abi.RoleUser, Content: &text}, {Role: abi.RoleAssistant, Content: &answer}}}
}

// record delivers an event, and remembers its scope for the cleaning.
func (r *rig) record(ctx context.Context, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	r.wrote(abi.MemoryScope{RunID: e.RunID, PersonaID: e.UserID})
	receipt, err := r.slot.RecordEvent(ctx, e)
	if err != nil {
		return nil, err
	}
	r.bench.heard(receipt.Trace)
	return receipt, malformed(receipt)
}

// malformed is the error behind a receipt that the host made uncertain because the provider's own breaks the contract.
func malformed(r *abi.WriteReceipt) error {
	why := new(abi.Error)
	if r.Status != abi.StatusUncertain || r.Trace == nil || abi.Unmarshal(r.Trace.Details["error"], why) != nil ||
		why.Reason != abi.ReasonContractBreach {
		return nil
	}
	return why
}

func (r *rig) wrote(s abi.MemoryScope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.scopes, s) {
		r.scopes = append(r.scopes, s)
	}
}

// ask retrieves from a new session, without a budget.
func (r *rig) ask(s abi.MemoryScope) (*abi.RetrieveResult, error) {
	return r.retrieve(&abi.RetrieveRequest{Query: r.bench.kit.target.Probe.Question, Scope: s})
}

// retrieve asks from a new session where the request names none.
func (r *rig) retrieve(q *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	if q.SessionID == "" {
		q.SessionID = r.bench.session()
	}
	result, err := r.slot.Retrieve(r.bench.ctx, q)
	if err == nil {
		r.bench.heard(result.Trace)
	}
	return result, err
}

// wait waits until what was recorded in a scope can be retrieved. The outcome is set where that did not come.
func (r *rig) wait(s abi.MemoryScope) *outcome {
	if !slices.Contains(r.bench.capabilities, abi.OpReadiness) {
		return nil // written is readable, or the clause finds out
	}
	within := r.bench.kit.target.ReadyWithin
	ready, err := r.slot.Readiness(r.bench.ctx, &abi.ReadinessRequest{Scope: s, TimeoutMS: within.Milliseconds()})
	var o outcome
	switch {
	case err != nil:
		o = refused("readiness", err)
	case ready.Status == abi.ReadinessPending:
		o = pending("not ready within %v (%s)", within, ready.Method)
	case ready.Status == abi.ReadinessFailed:
		o = failed("readiness says failed (%s): %v", ready.Method, ready.Warnings)
	default:
		return nil
	}
	return &o
}

// readOnly raises or lowers the wall.
func (r *rig) readOnly(on bool) error {
	_, err := r.slot.SetMode(r.bench.ctx, &abi.AdapterMode{ReadOnly: on, Reason: "conformance kit"})
	return err
}

// heard takes what a trace tells of the backend's language models.
func (b *bench) heard(t *abi.Trace) {
	if t == nil || t.Details["llm_calls"] == nil {
		return
	}
	var n int64
	if json.Unmarshal(t.Details["llm_calls"], &n) != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.toldLLM != nil {
		n += *b.toldLLM
	}
	b.toldLLM = &n
}

func (b *bench) llmCalls() *int64 {
	if b.kit.target.LLMCalls == nil {
		return nil
	}
	n, err := b.kit.target.LLMCalls(b.ctx)
	if err != nil {
		return nil
	}
	return &n
}

func (b *bench) llmSpent(before *int64) *int64 {
	after := b.llmCalls()
	if before == nil || after == nil {
		return b.toldLLM
	}
	spent := *after - *before
	return &spent
}

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
