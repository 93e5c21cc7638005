package host

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
	"github.com/memhost/memhost/host/internal/wall"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
)

// When a swap tries the provider out before it serves: see ProviderConfig.Smoke.
const (
	SmokeAuto   = "auto"
	SmokeAlways = "always"
	SmokeNever  = "never"
)

// Verdicts of a step of the swap flow. Only fail stops it.
const (
	verdictPass         = "pass"
	verdictFail         = "fail"
	verdictPending      = "pending"
	verdictInconclusive = "inconclusive"
	verdictSkipped      = "skipped"
)

// Names of the steps that try out a provider.
const (
	stepIsolation = "isolation_smoke"
	stepWriteRead = "write_read_smoke"
	stepGate      = "pending_gate"
)

var smokeSteps = []string{stepIsolation, stepWriteRead, stepGate}

// stepLog collects the steps of a swap and reports each as it ends.
type stepLog struct {
	steps   []report.RunStep
	current string
	began   time.Time
	tell    func(report.RunStep)
}

func (l *stepLog) begin(name string) {
	l.current, l.began = name, time.Now()
}

func (l *stepLog) fail(err error) { l.end(verdictFail, abi.AsError(err).Message) }

func (l *stepLog) end(verdict, detail string) {
	step := report.RunStep{Name: l.current, Verdict: verdict, MS: ms(time.Since(l.began)), Detail: detail}
	l.steps = append(l.steps, step)
	if l.tell != nil {
		l.tell(step)
	}
}

// smoke tries out a provider before it serves: it records one synthetic event in each of two throw-away scopes, and
// erases them afterwards. trial is a separate slot with this provider.
type smoke struct {
	trial *Slot
	wait  time.Duration
	// calls counts the native calls that the smoke test made.
	calls int
}

// smokeFact is what the smoke test records in a scope, and how it asks for it. The names are made up, so that finding
// one proves where it came from.
type smokeFact struct{ persona, text, question, name string }

var smokeFacts = [2]smokeFact{
	{"a", "My cat is called Zorvexa.", "What is my cat called?", "zorvexa"},
	{"b", "My dog is called Quilmorro.", "What is my dog called?", "quilmorro"},
}

// tryOut runs the smoke tests and the pending gate, or logs why it skips them. An error means that a step failed.
func (s *Slot) tryOut(ctx context.Context, p *Provider, health *abi.BackendHealth, steps *stepLog) error {
	skip := func(why string) error {
		for _, name := range smokeSteps {
			steps.begin(name)
			steps.end(verdictSkipped, why)
		}
		return nil
	}
	key := smokeKey(p, health)
	switch {
	case p.config.Smoke == "" || p.config.Smoke == SmokeNever:
		return skip("not asked for")
	case s.host.recorded:
		return skip("a cassette holds what the caller asks, and nothing else")
	case s.wall.ReadOnly(wall.Slot):
		return skip("the slot is read-only: a smoke would write")
	case p.config.Smoke == SmokeAuto:
		since, err := s.host.smokeVerdict(ctx, key)
		if err != nil {
			return err
		}
		if since != "" {
			return skip("passed " + since + " with this module, configuration and backend version")
		}
	}
	wait := p.config.SmokeWait
	if wait <= 0 {
		wait = 30 * time.Second
	}
	passed, err := (&smoke{trial: s.trial(p), wait: wait}).run(ctx, steps)
	if err != nil || !passed {
		return err
	}
	return s.host.keepSmokeVerdict(ctx, key)
}

// trial returns a slot for a provider that does not serve yet. It shares the wall.
func (s *Slot) trial(p *Provider) *Slot {
	trial := &Slot{host: s.host, wall: s.wall}
	trial.current.Store(&servingProvider{provider: p})
	return trial
}

// run records, waits, asks and cleans up. passed is false if any verdict is worse than pass.
func (k *smoke) run(ctx context.Context, steps *stepLog) (passed bool, err error) {
	var id [6]byte
	_, _ = rand.Read(id[:])
	run := "mh_smoke_" + hex.EncodeToString(id[:])
	steps.begin(stepIsolation)
	defer func() {
		if left := k.cleanUp(context.WithoutCancel(ctx), run); left != "" {
			k.trial.host.logger.Warn("a smoke could not clean up after itself", "run_id", run, "remains", left)
		}
	}()
	statuses := [2]abi.WriteStatus{}
	for i, fact := range smokeFacts {
		r, err := k.trial.RecordEvent(ctx, fact.event(run, k.trial.host.stamp()))
		if err != nil {
			return false, err
		}
		k.count(r.Trace)
		statuses[i] = r.Status
	}
	if statuses[0] == abi.StatusNotRetained && statuses[1] == abi.StatusNotRetained {
		return k.judgeNothing(ctx, run, steps)
	}
	gate, how, err := k.await(ctx, run)
	if err != nil {
		return false, err
	}
	if gate == verdictPending {
		why := fmt.Sprintf("not ready within %s (%s): serving without the verdict", k.wait, how)
		for i, name := range smokeSteps {
			if i > 0 {
				steps.begin(name)
			}
			steps.end(verdictPending, why)
		}
		return false, nil
	}
	found, leaked, err := k.ask(ctx, run)
	if err != nil {
		return false, err
	}
	if leaked != "" {
		return false, abi.NewError(abi.CodeIsolationBreach,
			leaked).WithHint("the provider's scopes are not kept apart in this backend: do not use it")
	}
	verdict := func(ok bool) string {
		if ok {
			return verdictPass
		}
		return verdictInconclusive
	}
	steps.end(verdict(found[1]), fmt.Sprintf(
		"scope b finds its own fact: %v, never that of scope a; %d native calls so far, in %s, which is erased",
		found[1], k.calls, run))
	steps.begin(stepWriteRead)
	steps.end(verdict(found[0] && found[1]), fmt.Sprintf("recorded as %s, found from a new session: %v", statuses[0],
		found[0]))
	steps.begin(stepGate)
	steps.end(gate, how)
	return gate == verdictPass && found[0] && found[1], nil
}

// judgeNothing is the smoke test of a provider that retains nothing: it passes if nothing is returned.
func (k *smoke) judgeNothing(ctx context.Context, run string, steps *stepLog) (bool, error) {
	found, leaked, err := k.ask(ctx, run)
	if err != nil {
		return false, err
	}
	if leaked != "" || found[0] || found[1] {
		return false, abi.NewError(abi.CodeBackend,
			"the receipts say that nothing is retained, and yet it is found: "+leaked)
	}
	for i, name := range smokeSteps {
		if i > 0 {
			steps.begin(name)
		}
		steps.end(verdictPass, "the provider retains nothing, and nothing was found")
	}
	return true, nil
}

// await polls readiness of both scopes. For a backend without readiness whose writes are not immediate, the verdict is
// inconclusive.
func (k *smoke) await(ctx context.Context, run string) (verdict, how string, err error) {
	p := k.trial.current.Load().provider
	if !p.has(abi.OpReadiness) {
		if p.consistency == answercheck.ConsistencyImmediate {
			return verdictPass, "writes can be read at once", nil
		}
		return verdictInconclusive, "the provider has no readiness, and its consistency is " + p.consistency, nil
	}
	until := time.Now().Add(k.wait)
	for _, fact := range smokeFacts {
		r, err := k.trial.Readiness(ctx, &abi.ReadinessRequest{Scope: fact.scope(run),
			TimeoutMS: max(0, time.Until(until).Milliseconds())})
		if err != nil {
			return "", "", err
		}
		how = fmt.Sprintf("readiness %s by %s", r.Status, r.Method)
		if len(r.Warnings) > 0 {
			how += ": " + strings.Join(r.Warnings, "; ")
		}
		switch r.Status {
		case abi.ReadinessReady:
		case abi.ReadinessPending:
			return verdictPending, how, nil
		case abi.ReadinessFailed:
			return "", "", abi.NewError(abi.CodeBackend, "the backend did not work off what was recorded: "+how)
		default:
			verdict = verdictInconclusive
		}
	}
	if verdict == "" {
		verdict = verdictPass
	}
	return verdict, how, nil
}

// ask looks for each fact from a new session of its own scope, and checks the same answers for the other scope's fact.
func (k *smoke) ask(ctx context.Context, run string) (found [2]bool, leaked string, err error) {
	for i, fact := range smokeFacts {
		other := smokeFacts[1-i]
		for _, question := range []string{fact.question, other.question} {
			r, err := k.trial.Retrieve(ctx, &abi.RetrieveRequest{Query: question, Scope: fact.scope(run),
				SessionID: "mh_smoke_2"})
			if err != nil {
				return found, "", err
			}
			k.count(r.Trace)
			text := strings.ToLower(r.FormattedContext)
			for _, c := range r.Raw.Calls {
				text += strings.ToLower(string(c.Body))
			}
			found[i] = found[i] || strings.Contains(text, fact.name)
			if strings.Contains(text, other.name) {
				leaked = fmt.Sprintf("what was recorded under persona %s was found under persona %s", other.persona,
					fact.persona)
			}
		}
	}
	return found, leaked, nil
}

// cleanUp erases both scopes, in the backend and in the host's own records. It returns what could not be erased.
func (k *smoke) cleanUp(ctx context.Context, run string) (left string) {
	for _, fact := range smokeFacts {
		r, err := k.trial.ResetScope(ctx, fact.scope(run))
		switch {
		case err != nil:
			left += err.Error() + " "
			continue
		case r.Status != abi.ResetDone:
			left += string(r.Status) + " " + strings.Join(r.Remains, ", ")
			continue
		}
		if err := k.trial.forget(ctx, fact.scope(run)); err != nil {
			left += err.Error() + " "
		}
	}
	return left
}

// forget drops the host's records of a scope that was reset.
func (s *Slot) forget(ctx context.Context, scope abi.MemoryScope) error {
	sc, err := s.current.Load().provider.scopeOf(scope)
	if err != nil {
		return err
	}
	var b state.Batch
	b.DeleteRecord(tableScopes, sc.key[:])
	b.DeletePrefix(sc.space(sc.generation.Load()), "")
	if err := s.host.commit(ctx, &b); err != nil {
		return err
	}
	s.host.scopesMu.Lock()
	defer s.host.scopesMu.Unlock()
	delete(s.host.scopes, sc.name)
	return nil
}

func (k *smoke) count(t *abi.Trace) {
	if t != nil {
		k.calls += len(t.IO)
	}
}

func (f *smokeFact) scope(run string) abi.MemoryScope {
	return abi.MemoryScope{RunID: run, PersonaID: f.persona}
}

func (f *smokeFact) event(run, now string) *abi.MemoryEvent {
	answer := "Noted."
	return &abi.MemoryEvent{EventID: run + "_" + f.persona, RunID: run, UserID: f.persona, SessionID: "mh_smoke_1",
		TurnID: "1", Timestamp: now,
		Messages: []abi.Message{{Role: abi.RoleUser, Content: &f.text}, {Role: abi.RoleAssistant, Content: &answer}}}
}

// smokeRecord is what the store holds about smoke tests that passed.
type smokeRecord struct {
	Since string `json:"since"`
}

// smokeKey identifies what a verdict applies to: this module, configuration, and version of the backend.
func smokeKey(p *Provider, health *abi.BackendHealth) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q", p.name, p.module.SHA256, p.configHash(), p.originKey,
		health.BackendVersion))
	return sum[:]
}

// smokeVerdict returns since when the smoke tests of a key count as passed; empty if they do not.
func (h *Host) smokeVerdict(ctx context.Context, key []byte) (since string, err error) {
	stored, err := h.store.Record(ctx, tableSmokes, key)
	if err != nil {
		return "", stateError(err)
	}
	var r smokeRecord
	if stored == nil || json.Unmarshal(stored, &r) != nil {
		return "", nil
	}
	return r.Since, nil
}

func (h *Host) keepSmokeVerdict(ctx context.Context, key []byte) error {
	data, err := json.Marshal(smokeRecord{Since: h.stamp()})
	if err != nil {
		return err
	}
	var b state.Batch
	b.PutRecord(tableSmokes, key, data)
	return h.commit(ctx, &b)
}
