package host

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/cassette"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/base/address"
)

// Open loads a provider and puts it behind a new slot.
//
// Errors: those of the failing step (load, configure, instantiate, health), as invalid_argument, unavailable or
// internal.
func (h *Host) Open(ctx context.Context, config ProviderConfig) (_ *Slot, err error) {
	ctx, end, err := h.beginLoad(ctx, cassette.OpOpen)
	if err != nil {
		return nil, err
	}
	defer func() { end(nil, err) }()
	s := h.newSlot()
	if err := s.loadMode(ctx); err != nil {
		return nil, err
	}
	if err := s.ensureFacts(ctx); err != nil {
		return nil, err
	}
	if err := s.open(ctx, config); err != nil {
		return nil, err
	}
	s.keepServing()
	return s, nil
}

// open loads the first provider of a slot. If another host loads one at the same moment, the slot gets that one.
func (s *Slot) open(ctx context.Context, own ProviderConfig) error {
	s.swapMu.Lock()
	defer s.swapMu.Unlock()
	s.secrets = own.Secrets
	for {
		config, served, err := s.openConfig(ctx, own)
		if err != nil {
			return err
		}
		_, err = s.load(ctx, config, served)
		if e := abi.AsError(err); err != nil && e.Code == abi.CodeConflict && e.Reason == swapConflict {
			continue
		}
		if err == nil && served != nil {
			s.warnOther(own)
		}
		return err
	}
}

// warnOther warns that the slot serves another provider than this host's configuration names.
func (s *Slot) warnOther(own ProviderConfig) {
	p := s.current.Load().provider
	if own.Name != p.name || sha256Of(own.Module) != p.module.SHA256 || !bytes.Equal(own.Block, p.config.Block) {
		s.host.logger.Warn("other hosts serve another provider or configuration than this host's file names: this host "+
			"serves it too, until a swap", "serves", p.name, "configured", own.Name)
	}
}

// Swap replaces the provider. It runs the steps of a swap (identity, configure, load, health, setup_scope,
// capabilities, the smoke tests and the pending gate), and then switches atomically. Running calls end on the old
// provider, which is closed after the last of them; new calls go to the new one. If a step fails, the old provider
// keeps serving, and the error's hint says so.
func (s *Slot) Swap(ctx context.Context, config ProviderConfig) (_ *report.RunManifest, err error) {
	ctx, end, err := s.host.beginLoad(ctx, cassette.OpSwap)
	if err != nil {
		return nil, err
	}
	defer func() { end(nil, err) }()
	s.swapMu.Lock()
	defer s.swapMu.Unlock()
	if config.Secrets == nil {
		config.Secrets = s.secrets
	}
	m, err := s.load(ctx, config, nil)
	if err == nil {
		s.secrets = config.Secrets
	}
	return m, err
}

// load is Swap for a caller that holds swapMu. served is the fact that other hosts have agreed on, or nil to create a
// new one.
func (s *Slot) load(ctx context.Context, config ProviderConfig, served []byte) (_ *report.RunManifest, err error) {
	began := time.Now()
	steps := &stepLog{tell: s.host.options.OnStep}
	before, err := s.served(ctx)
	if err != nil {
		return nil, err
	}
	next, health, err := s.prepare(ctx, config, steps)
	if err == nil {
		if f := s.followers.with(next.followerKey()); f != nil {
			if err := f.promote(ctx, next, health, steps); err != nil {
				return nil, err
			}
			return s.manifestOf(ctx, s.current.Load())
		}
		steps.begin("serve")
		err = s.serveAs(ctx, next, before, served)
	}
	if err != nil {
		e := *abi.AsError(err)
		e.Operation = "swap"
		steps.fail(&e)
		if old := s.current.Load(); old != nil {
			e.Message = fmt.Sprintf("step %s: %s", steps.current, e.Message)
			e.Hint = joinHints(e.Hint, "the slot still serves "+old.provider.name)
		}
		return nil, &e
	}
	return s.manifestOf(ctx, s.serve(ctx, next, health, steps, began))
}

// serveAs agrees with the other hosts that a provider serves, or records that they already have. If the provider must
// not serve, it is closed.
func (s *Slot) serveAs(ctx context.Context, p *Provider, before, served []byte) error {
	if served != nil {
		p.served = served
		return nil
	}
	err := s.agree(ctx, p, before)
	if err != nil {
		_ = p.close(ctx)
	}
	return err
}

// Try runs the steps of a swap without a slot: see Slot.Try.
func (h *Host) Try(ctx context.Context, config ProviderConfig) (*report.RunManifest, error) {
	s := h.newSlot()
	if err := s.loadMode(ctx); err != nil {
		return nil, err
	}
	return s.Try(ctx, config)
}

// Try runs the steps of a swap with a provider but does not let it serve: a dry run. It returns the manifest that a
// swap would produce.
func (s *Slot) Try(ctx context.Context, config ProviderConfig) (*report.RunManifest, error) {
	s.swapMu.Lock()
	defer s.swapMu.Unlock()
	steps := &stepLog{tell: s.host.options.OnStep}
	p, health, err := s.prepare(ctx, config, steps)
	if err != nil {
		steps.fail(err)
		e := *abi.AsError(err)
		e.Operation, e.Message = "swap", fmt.Sprintf("step %s: %s", steps.current, e.Message)
		return nil, &e
	}
	m := s.host.runManifest(p, p.capabilities(health), health, 0, steps.steps)
	return &m, p.close(ctx)
}

// prepare runs the steps before the switch, in order. If a step fails, the provider is closed.
func (s *Slot) prepare(ctx context.Context, config ProviderConfig, steps *stepLog) (p *Provider,
	health *abi.BackendHealth, err error) {
	h := s.host
	steps.begin("identity")
	if err := config.checkIdentity(); err != nil {
		return nil, nil, err
	}
	steps.end(verdictPass, config.identity())
	steps.begin("configure")
	module, err := inspect(config.Module, h.limits, h.options.Engines)
	if err != nil {
		return nil, nil, err
	}
	if _, err := module.Check(config.Name, config.Word, config.Block); err != nil {
		return nil, nil, err
	}
	steps.end(verdictPass, "the block holds against the module's schema")
	steps.begin("load")
	if err := h.compile(ctx, module, config.Module); err != nil {
		return nil, nil, err
	}
	if p, err = h.configureLoaded(ctx, module, config); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = p.close(ctx)
			p = nil
		}
	}()
	if err = p.pool.Warm(ctx); err != nil {
		return p, nil, err
	}
	steps.end(verdictPass, fmt.Sprintf("%s %s, %d bytes, %s, config %s", module.Manifest.Name, module.Manifest.Version,
		module.Bytes, module.Engine, p.configHash()[:12]))
	steps.begin("health")
	if health, err = s.healthToServe(ctx, p); err != nil {
		return p, nil, err
	}
	p.consistency, p.backendName = health.ConsistencyModel, health.BackendName
	steps.end(verdictPass, healthText(health))
	steps.begin("setup_scope")
	if err = s.setUpConfigured(ctx, p, steps); err != nil {
		return p, nil, err
	}
	steps.begin("capabilities")
	steps.end(verdictPass, cmp.Or(strings.Join(p.capabilities(health).Capabilities, ", "),
		"the required operations alone"))
	err = s.tryOut(ctx, p, health, steps)
	return p, health, err
}

// healthToServe runs a provider's health check.
//
// Errors: those of the operation, and cannotServe's if the provider reports itself unavailable.
func (s *Slot) healthToServe(ctx context.Context, p *Provider) (*abi.BackendHealth, error) {
	health, answered, err := s.health(ctx, p)
	if err == nil && health.Status == abi.HealthUnavailable {
		err = cannotServe(p.name, health, answered)
	}
	return health, err
}

// cannotServe explains why a provider whose health is unavailable cannot serve, and whether retrying may help. It does
// not help if credentials are refused, if something else answers at the address, if the address always refuses, or if
// the host name is unknown. answered is the HTTP status of the last native call, 0 if there was no answer.
func cannotServe(name string, health *abi.BackendHealth, answered int64) error {
	warnings := slices.Clone(health.Warnings)
	slices.Reverse(warnings) // warnings about the configuration come first; the last one found is the reason
	why := strings.Join(warnings, "; ")
	e := abi.NewError(abi.CodeUnavailable, fmt.Sprintf("provider %s says that it is unavailable: %s", name, why)).
		WithHint("does what it needs run, and are address and credentials in its block right?")
	if answered > 0 {
		e.Native = &abi.NativeError{Status: &answered}
	}
	switch {
	case answered == 401 || answered == 403:
		e.Code, e.Retryable, e.Hint = abi.CodeUnauthenticated, false,
			"the backend refused the credentials: are they right in the block, and in its secrets?"
	case answered >= 300 && answered < 500 && answered != 408 && answered != 425 && answered != 429:
		e.Code, e.Retryable = abi.CodeBackend, false
		e.Hint = fmt.Sprintf("something answers there, but not as %s does: is its URL right, the path included?", name)
	case strings.Contains(why, "no such host"):
		e.Retryable, e.Hint = false, "no machine has that name: is its URL right?"
	case strings.Contains(why, address.Always):
		e.Retryable, e.Hint = false, "no module may reach that address: give the backend's own"
	}
	return e
}

// identity describes what stays the same while the provider serves.
func (c *ProviderConfig) identity() string {
	text := "provider " + c.Name + ", namespace " + strconv.Quote(c.Namespace)
	if c.Scope != nil {
		text += ", scope " + strconv.Quote(c.Scope.RunID) + " / " + strconv.Quote(c.Scope.PersonaID)
	}
	return text
}

// checkIdentity requires exactly one provider, and a valid scope.
func (c *ProviderConfig) checkIdentity() error {
	if c.Name == "" {
		return abi.NewError(abi.CodeInvalidArgument, "no provider is named: exactly one must be active")
	}
	switch c.Smoke {
	case "", SmokeAuto, SmokeAlways, SmokeNever:
	default:
		return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("smoke: %q is not one of auto, always, never", c.Smoke))
	}
	if c.Scope != nil {
		return c.Scope.Validate()
	}
	return nil
}

func healthText(h *abi.BackendHealth) string {
	text := string(h.Status)
	if h.BackendVersion != "" {
		text += ", version " + h.BackendVersion
	}
	if len(h.Warnings) > 0 {
		text += ": " + strings.Join(h.Warnings, "; ")
	}
	return text
}

// setUpConfigured sets up the configured scope; while it is read-only it only checks.
func (s *Slot) setUpConfigured(ctx context.Context, p *Provider, steps *stepLog) error {
	if p.config.Scope == nil {
		steps.end(verdictSkipped, "each scope is made ready at its first use")
		return nil
	}
	r, err := s.trial(p).SetupScope(ctx, *p.config.Scope)
	if err != nil {
		return err
	}
	natives := make([]string, 0, len(r.NativeScope))
	for name, id := range r.NativeScope {
		natives = append(natives, name+" "+strconv.Quote(id))
	}
	slices.Sort(natives)
	steps.end(verdictPass, strings.Join(append(append([]string{"ready"}, natives...), r.Warnings...), "; "))
	return nil
}

// drain closes a provider that no longer serves, after its last call has ended.
func (s *Slot) drain(p *Provider) {
	p.endBackground()
	began := time.Now()
	s.drains.Add(1)
	go func() {
		defer s.drains.Done()
		if err := p.close(context.Background()); err != nil {
			s.host.logger.Error("closing the old provider", "provider", p.name, "error", err)
			return
		}
		s.host.logger.Info("drained", "provider", p.name, "took_ms", ms(time.Since(began)))
	}()
}

// Close takes the provider out of service and waits until running calls have ended, or ctx ends. From then on the
// slot's operations fail with unavailable.
func (s *Slot) Close(ctx context.Context) error {
	if err := s.followers.close(ctx); err != nil {
		return err
	}
	s.keeping.end()
	s.swapMu.Lock()
	defer s.swapMu.Unlock()
	if v := s.current.Swap(nil); v != nil {
		v.provider.endBackground()
		if err := v.provider.close(ctx); err != nil {
			return err
		}
	}
	s.drains.Wait()
	return nil
}

// runManifest describes what serves from now on.
func (h *Host) runManifest(p *Provider, c report.Capabilities, health *abi.BackendHealth, load int64,
	steps []report.RunStep) report.RunManifest {
	m := report.RunManifest{Manifest: report.RunManifestVersion, Provider: p.name, ConditionKind: p.kind, Note: p.note,
		Module: p.runModule(),
		ABI:    p.module.Manifest.ABI, Engine: p.module.Engine, ConfigHash: p.configHash(), Config: p.shownConfig(),
		Profile:     p.config.Profile,
		Frame:       p.config.Frame,
		Namespace:   p.config.Namespace,
		AgentScoped: p.config.AgentScoped, Tokenizer: p.tokens.Name(), Durability: h.options.Durability,
		Capabilities: c, LoadGeneration: load,
		ServingSince: h.stamp(), Health: *health, Steps: steps}
	m.HostVersion, m.HostCommit = h.version()
	h.describeRun(&m, p)
	if p.word == "condition" {
		m.Condition = p.name
	} else {
		m.Backend = p.name
	}
	return m
}

// runModule identifies the provider's module.
func (p *Provider) runModule() report.RunModule {
	return report.RunModule{Name: p.module.Manifest.Name, Version: p.module.Manifest.Version, SHA256: p.module.SHA256,
		Bytes: p.module.Bytes, Source: p.config.Source, Signer: p.config.Signer}
}

// version returns the program's version: from the options, or else from the Go toolchain.
func (h *Host) version() (version, commit string) {
	if h.options.Version != "" {
		return h.options.Version, h.options.Commit
	}
	return buildVersion()
}

// buildVersion returns what the Go toolchain recorded about this program.
func buildVersion() (version, commit string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown", ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			commit = s.Value
		}
	}
	return info.Main.Version, commit
}

// serve makes a provider that passed the steps of a swap the serving one. The old one drains.
func (s *Slot) serve(ctx context.Context, next *Provider, health *abi.BackendHealth, steps *stepLog,
	began time.Time) *servingProvider {
	v := &servingProvider{provider: next, capabilities: next.capabilities(health)}
	s.loads++
	shared, _ := parseServed(next.served) // nil if one process owns the store
	if shared != nil {
		s.loads = shared.Generation // all hosts report the same generation
	}
	steps.begin("serve")
	old := s.current.Load()
	steps.end(verdictPass, "load generation "+strconv.FormatInt(s.loads, 10))
	v.manifest = s.host.runManifest(next, v.capabilities, health, s.loads, steps.steps)
	if shared != nil {
		v.manifest.ServingSince = shared.Since
	}
	s.current.Store(v)
	if err := s.host.keepProvider(ctx, next); err != nil { // serve anyway: a full disk can still be read
		s.host.logger.Warn("the provider's configuration could not be kept for erasing", "error", err)
	}
	if copies := s.host.options.FileCopies; copies != nil {
		copies.Served()
	}
	s.startBackground(next)
	s.host.logger.Info("serving", "provider", next.name, "kind", next.kind, "module", next.module.SHA256[:12],
		"took_ms", ms(time.Since(began)))
	if old != nil {
		s.drain(old.provider)
	}
	s.manifestChanged(ctx)
	return v
}
