package host

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/budget"
	"github.com/memhost/memhost/host/internal/egress"
	"github.com/memhost/memhost/host/internal/guest"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/configuration/schema"
	"github.com/memhost/memhost/internal/text/tokens"
)

// Provider is a module loaded with one configuration. Its bounded pool of instances shares nothing with other
// providers.
type Provider struct {
	host   *Host
	module *Module
	name   string
	word   string
	decl   *abi.ProviderDecl
	kind   abi.ConditionKind // with this configuration: the declared kind, or that of a kind_when rule
	note   string
	config ProviderConfig
	block  abi.Raw // effective: the operator's block on top of preset and defaults
	limits Limits
	logger hclog.Logger
	tokens tokens.Counter

	network     *egress.Network
	originKey   string // URLs of the origins: part of every scope's key
	guestConfig []byte
	plugin      *guest.Plugin
	pool        *guest.Pool

	testSessions *regexp.Regexp

	// background is the work that the manifest declares; polling checks outstanding events.
	background, polling backgroundWork

	// items converts a token budget to a number of items.
	items budget.Items
	// lacks has the capabilities that are missing with this configuration, each with what it requires.
	lacks map[string]string
	// queries and mutations are the native ones that are declared and available with this configuration.
	queries, mutations natives
	setUp              sync.Map // scopeKey -> generation that this provider has set up
	// consistency is the consistency model that its health reported when it was loaded.
	consistency string
	// backendName is the backend's name in its health answer. The element around a context may name it instead of the
	// provider.
	backendName string
	// served is the fact under which it serves among hosts that share the store (clusterserving.go). It is set before
	// the provider serves.
	served   []byte
	inFlight atomic.Int64
	retired  atomic.Bool
	drained  chan struct{}
	drain    sync.Once // closes drained
}

// configure combines a loaded module with a configuration.
func (h *Host) configure(module *Module, config ProviderConfig) (*Provider, error) {
	decl, word, block, err := module.choose(config.Name, config.Word, config.Block)
	if err != nil {
		return nil, err
	}
	p := &Provider{host: h, module: module, name: decl.Name, word: word, decl: decl, config: config, block: block,
		limits: h.limits,
		logger: h.logger.Named(decl.Name), drained: make(chan struct{}),
		testSessions: sessionPattern(config.TestSessions)}
	switch p.config.Profile = cmp.Or(config.Profile, abi.ProfileBest); p.config.Profile {
	case abi.ProfileBest, abi.ProfileSourceDesign:
	default:
		return nil, abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("memory.profile: found %q, want source-design or best", config.Profile))
	}
	if p.config.Frame, err = frameOf(config.Frame, p.config.Profile); err != nil {
		return nil, err
	}
	if p.tokens, err = h.counter(config.Tokenizer); err != nil {
		return nil, abi.WrapError(abi.CodeInvalidArgument, "memory.tokenizer: "+err.Error(), err)
	}
	if p.lacks, err = lacking(module.Manifest.Requires, block); err != nil {
		return nil, err
	}
	if p.queries, err = nativesOf(module.Manifest.NativeQueries, block); err != nil {
		return nil, err
	}
	if p.mutations, err = nativesOf(module.Manifest.NativeMutations, block); err != nil {
		return nil, err
	}
	p.items.ByBudget = p.config.Profile == abi.ProfileBest
	if p.items.Limit, p.items.Set, err = itemLimit(module.Manifest.Limits, block); err != nil {
		return nil, err
	}
	if p.kind, p.note, err = kindOf(decl, block); err != nil {
		return nil, err
	}
	p.network, err = egress.Open(egress.Config{Provider: p.name, Manifest: module.Manifest, Block: p.block,
		Secrets:   secretsOf(config),
		BodyBytes: h.limits.BodyBytes, Rows: h.limits.Rows, Now: h.now})
	if err != nil {
		return nil, inBlock(decl.Name, err)
	}
	p.originKey = p.network.Key()
	for _, warning := range module.Manifest.Warnings() {
		p.logger.Warn(warning, "module", module.Manifest.Name)
	}
	guestConfig := abi.GuestConfig{Provider: p.name, Kind: p.kind, Namespace: config.Namespace,
		Tokenizer: p.tokens.Name(), Config: p.block, Secrets: p.network.Secrets()}
	if p.config.Profile != abi.ProfileBest { // absent means best
		guestConfig.Profile = p.config.Profile
	}
	if p.config.Frame != abi.FrameFull { // absent means full
		guestConfig.Frame = p.config.Frame
	}
	p.guestConfig = abi.Marshal(&guestConfig)
	p.plugin = &guest.Plugin{Name: p.name, MemoryBytes: h.limits.MemoryBytes, RequestBytes: h.limits.RequestBytes, ResponseBytes: h.limits.ResponseBytes,
		HighWaterBytes: h.limits.HighWaterBytes,
		Size:           h.limits.Pool, CallsInFlight: h.limits.CallsInFlight, StartDeadline: h.limits.StartDeadline,
		Redact: p.network.Redactor().Error, Starting: p.starting}
	starter, err := h.starter(p)
	p.pool = guest.NewPool(p.plugin, starter)
	return p, err
}

// frameOf returns the frame of a configuration: the given one, or else that of its profile.
//
// Errors: invalid_argument.
func frameOf(frame abi.Frame, profile abi.Profile) (abi.Frame, error) {
	switch frame {
	case abi.FrameFull, abi.FrameCompact, abi.FrameMinimal:
		return frame, nil
	case "":
		if profile == abi.ProfileSourceDesign {
			return abi.FrameFull, nil
		}
		return abi.FrameCompact, nil
	}
	return "", abi.NewError(abi.CodeInvalidArgument,
		fmt.Sprintf("memory.frame: found %q, want full, compact or minimal", frame))
}

// starting is the call during which an instance starts: it has no scope, and may only read.
func (p *Provider) starting() *guest.Call {
	o := &operation{provider: p}
	o.Op = abi.InitExport
	o.guard()
	return &o.Call
}

// secretsOf converts the operator's secrets to the form that the network policy uses.
func secretsOf(config ProviderConfig) map[string]egress.Secret {
	secrets := make(map[string]egress.Secret, len(config.Secrets))
	for name, s := range config.Secrets {
		secrets[name] = egress.Secret(s)
	}
	return secrets
}

// counter returns the token counter with a name. All providers share it, because an exact counter has a cache.
func (h *Host) counter(name string) (tokens.Counter, error) {
	h.countersMu.Lock()
	defer h.countersMu.Unlock()
	if c, ok := h.counters[name]; ok {
		return c, nil
	}
	c, err := tokens.New(name)
	if err == nil {
		h.counters[name] = c
	}
	return c, err
}

// deadline is how long an operation may take.
func (p *Provider) deadline(op string) time.Duration {
	if ms, ok := p.module.Manifest.DeadlinesMS[op]; ok {
		return time.Duration(ms) * time.Millisecond
	}
	return p.limits.Deadline
}

// hold counts one more caller. It returns false if the provider has been retired.
func (p *Provider) hold() bool {
	p.inFlight.Add(1)
	if p.retired.Load() {
		p.release()
		return false
	}
	return true
}

func (p *Provider) release() {
	if p.inFlight.Add(-1) == 0 && p.retired.Load() {
		p.drain.Do(func() { close(p.drained) })
	}
}

// retire rejects new callers; drained is closed once the last caller has left.
func (p *Provider) retire() {
	p.inFlight.Add(1)
	p.retired.Store(true)
	p.release()
}

// close waits until the provider has drained or ctx ends, and then frees its instances and compiled code.
func (p *Provider) close(ctx context.Context) error {
	p.retire()
	select {
	case <-p.drained:
	case <-ctx.Done():
		return abi.WrapError(abi.CodeTimeout, fmt.Sprintf("provider %s still had %d calls in flight", p.name,
			p.inFlight.Load()), context.Cause(ctx))
	}
	p.pool.Close()
	p.network.Close(ctx)
	return p.host.machine.Release(ctx, p.module.program)
}

// has reports whether the provider has an operation: the module exports it, and the configuration has what it requires.
func (p *Provider) has(op string) bool {
	_, lacks := p.lacks[op]
	return p.module.has(op) && !lacks
}

// unsupported is the error of an operation that the provider does not have.
func (p *Provider) unsupported(op string) *abi.Error {
	return abi.NewError(abi.CodeUnsupported, "provider "+p.name+" has no "+op).WithHint(cmp.Or(p.lacks[op],
		"its capabilities are what /v1/capabilities and `memhost inspect` list"))
}

// capabilities lists what the module exports beyond the required operations, and the native modes that its health
// reported.
func (p *Provider) capabilities(health *abi.BackendHealth) report.Capabilities {
	c := report.Capabilities{Provider: p.name, ConditionKind: p.kind,
		Operations: append(abi.RequiredOperations(), abi.OpSetMode), Capabilities: []string{}}
	for _, op := range abi.OptionalOperations() {
		if p.has(op) {
			c.Capabilities = append(c.Capabilities, op)
		}
	}
	slices.Sort(c.Operations)
	c.NativeMemoryTypes, c.NativeIngestModes, c.NativeQueryModes = health.NativeMemoryTypes, health.NativeIngestModes,
		health.NativeQueryModes
	if p.has(abi.OpNativeQuery) {
		c.NativeQueries = p.queries.decls
	}
	if p.has(abi.OpNativeMutation) {
		c.NativeMutations = p.mutations.decls
	}
	return c
}

// shownConfig is the effective block with secrets blanked; configHash is its hash in the run manifest.
func (p *Provider) shownConfig() abi.Raw { return schema.BlankRaw(p.block) }

func (p *Provider) configHash() string {
	return configHash(p.shownConfig(), p.config.Profile, p.config.Frame)
}

// configHash is report.RunManifest.ConfigHash. With the profile best and the frame full it covers the config alone, so
// that hashes of releases without profiles and frames stay valid.
func configHash(config abi.Raw, profile abi.Profile, frame abi.Frame) string {
	more := ""
	if frame != "" && frame != abi.FrameFull {
		more += fmt.Sprintf(`,"frame":%q`, frame)
	}
	if profile != "" && profile != abi.ProfileBest {
		more += fmt.Sprintf(`,"profile":%q`, profile)
	}
	if more == "" {
		return schema.Hash(config)
	}
	return schema.Hash(abi.Raw(fmt.Sprintf(`{"config":%s%s}`, config, more)))
}
