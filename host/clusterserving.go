package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
)

// Hosts that share a store agree on which provider serves (agreed.go). A swap at one host writes this fact, which takes
// effect for all hosts at that moment: an operation whose provider was loaded for another fact starts over after its
// host has loaded the new provider. Secrets are not stored: each host has its own.

// sharedServing is the key of the fact in tableShared: servedRecord as JSON.
const sharedServing = "serving"

// tableModules holds the modules that the fact may name: SHA-256 -> bytes. Old modules are kept for hosts that load
// late.
const tableModules state.Table = "modules"

// servedRecord is what a host needs in order to load the same provider.
type servedRecord struct {
	Generation int64  `json:"generation"` // counts the loads of all hosts, from 1
	Since      string `json:"since"`
	servedConfig
}

// servedConfig is ProviderConfig without its secrets and without the fields that concern a single load.
type servedConfig struct {
	Name                 string      `json:"name"`
	Word                 string      `json:"word,omitempty"`
	SHA256               string      `json:"sha256"`
	Source               string      `json:"source,omitempty"`
	Signer               string      `json:"signer,omitempty"`
	Block                abi.Raw     `json:"block,omitempty"`
	Profile              abi.Profile `json:"profile,omitempty"`
	Frame                abi.Frame   `json:"frame,omitempty"`
	Namespace            string      `json:"namespace,omitempty"`
	AgentScoped          bool        `json:"agent_scoped,omitempty"`
	TestSessions         []string    `json:"test_sessions,omitempty"`
	ReadOnlyTestSessions bool        `json:"read_only_test_sessions,omitempty"`
	Feedback             bool        `json:"feedback,omitempty"`
	NoLookup             bool        `json:"no_lookup,omitempty"`
	RetryEmpty           string      `json:"retry_empty,omitempty"`
	Tokenizer            string      `json:"tokenizer,omitempty"`
}

func servedConfigOf(p *Provider) servedConfig {
	c := &p.config
	return servedConfig{Name: c.Name, Word: c.Word, SHA256: p.module.SHA256, Source: c.Source, Signer: c.Signer,
		Block: c.Block, Profile: c.Profile, Frame: c.Frame, Namespace: c.Namespace, AgentScoped: c.AgentScoped,
		TestSessions: c.TestSessions, ReadOnlyTestSessions: c.ReadOnlyTestSessions, Feedback: c.Feedback,
		NoLookup: c.NoLookup, RetryEmpty: c.RetryEmpty, Tokenizer: c.Tokenizer}
}

func (c *servedConfig) providerConfig(module []byte, secrets map[string]Secret) ProviderConfig {
	return ProviderConfig{Name: c.Name, Word: c.Word, Module: module, Source: c.Source, Signer: c.Signer, Block: c.Block,
		Profile: c.Profile, Frame: c.Frame, Namespace: c.Namespace, AgentScoped: c.AgentScoped,
		TestSessions: c.TestSessions, ReadOnlyTestSessions: c.ReadOnlyTestSessions, Feedback: c.Feedback,
		NoLookup: c.NoLookup, RetryEmpty: c.RetryEmpty, Tokenizer: c.Tokenizer, Secrets: secrets}
}

func servingRef() fleet.Ref { return fleet.Ref{Table: tableShared, Key: []byte(sharedServing)} }

// served reads the fact; nil if one process owns the store, or nothing has served yet.
func (s *Slot) served(ctx context.Context) ([]byte, error) {
	values, err := s.host.fleet.Read(ctx, servingRef())
	if err != nil || values == nil {
		return nil, stateError(err)
	}
	return values[0], nil
}

// agree stores, for all hosts, that a provider serves. before is the fact as it was when the load started.
//
// Errors: conflict if another host has loaded a provider since then.
func (s *Slot) agree(ctx context.Context, p *Provider, before []byte) error {
	if !s.host.fleet.Shared() {
		return nil
	}
	next := servedRecord{Generation: 1, Since: s.host.stamp(), servedConfig: servedConfigOf(p)}
	if before != nil {
		old, err := parseServed(before)
		if err != nil {
			return err
		}
		next.Generation = old.Generation + 1
	}
	text, err := json.Marshal(&next)
	if err != nil {
		return err
	}
	var b state.Batch
	ref := servingRef()
	b.ExpectRecord(ref.Table, ref.Key, before)
	b.PutRecord(ref.Table, ref.Key, text)
	b.PutRecord(tableModules, []byte(next.SHA256), p.config.Module)
	err = s.host.fleet.Commit(context.WithoutCancel(ctx), &b)
	if errors.Is(err, state.ErrConflict) {
		return abi.WrapError(abi.CodeConflict, "another host has loaded a provider at the same time", err).
			WithReason(swapConflict).WithHint("see which one serves (memhost manifest), and swap again if need be")
	}
	if err == nil {
		p.served = text
	}
	return stateError(err)
}

func parseServed(stored []byte) (*servedRecord, error) {
	r := new(servedRecord)
	if err := json.Unmarshal(stored, r); err != nil {
		return nil, abi.WrapError(abi.CodeUnavailable, "state: the record of the provider that serves is damaged", err).
			WithReason("state")
	}
	return r, nil
}

// configOf is the configuration that a stored fact names, with this host's secrets.
func (s *Slot) configOf(ctx context.Context, stored []byte) (ProviderConfig, error) {
	r, err := parseServed(stored)
	if err != nil {
		return ProviderConfig{}, err
	}
	module, err := s.host.store.Record(ctx, tableModules, []byte(r.SHA256))
	if err != nil {
		return ProviderConfig{}, stateError(err)
	}
	if sum := sha256Of(module); sum != r.SHA256 {
		return ProviderConfig{}, abi.NewError(abi.CodeUnavailable, fmt.Sprintf("state: the module %.12s that serves is "+
			"damaged or missing", r.SHA256)).WithReason("state")
	}
	return r.providerConfig(module, s.secrets), nil
}

// swapConflict is the error reason of a swap that lost against another one.
const swapConflict = "swap"

// providerChanged is the reason of errProviderChanged.
const providerChanged = "provider_changed"

// errProviderChanged is the error of an operation whose provider no longer serves.
func errProviderChanged() *abi.Error {
	e := abi.NewError(abi.CodeUnavailable, "another provider serves by now").WithReason(providerChanged)
	e.Retryable = true
	return e
}

func isProviderChanged(err error) bool {
	return err != nil && abi.AsError(err).Reason == providerChanged
}

// loadServing loads the provider that serves, if this host has a different one.
//
// Errors: unavailable (provider_not_loaded) if it cannot be loaded here. This host rejects all operations until it can.
func (s *Slot) loadServing(ctx context.Context) error {
	if !s.host.fleet.Shared() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), servingLoadTimeout)
	defer cancel()
	// Callers check concurrently, so that an unresponsive store does not queue them one behind another.
	if _, another, err := s.lookServing(ctx); !another || err != nil {
		return err
	}
	s.swapMu.Lock()
	defer s.swapMu.Unlock()
	stored, another, err := s.lookServing(ctx)
	if !another || err != nil {
		return err
	}
	config, err := s.configOf(ctx, stored)
	if err == nil {
		_, err = s.load(ctx, config, stored)
	}
	if err == nil {
		return nil
	}
	e := abi.WrapError(abi.CodeUnavailable, "another host swapped the provider, and this one cannot load it: "+
		abi.AsError(err).Message, err).WithReason("provider_not_loaded").
		WithHint("give this host what it lacks (a secret, the backend's address), or swap again")
	e.Retryable = true
	return e
}

// lookServing reads which provider serves, and reports whether this host has a different one.
func (s *Slot) lookServing(ctx context.Context) (stored []byte, another bool, err error) {
	old := s.current.Load()
	stored, err = s.served(ctx)
	another = stored != nil && old != nil && !bytes.Equal(stored, old.provider.served)
	return stored, another, err
}

// How long loading a provider that another host has swapped in may take, and how often a host checks for a swap.
const (
	servingLoadTimeout = time.Minute
	servingLookPause   = time.Second
)

// keepServing loads a newly serving provider even while this host gets no requests.
func (s *Slot) keepServing() {
	if !s.host.fleet.Shared() {
		return
	}
	logged := "" // log an outage once, however long it lasts
	s.keeping = every(servingLookPause, func(ctx context.Context) {
		failure := ""
		if err := s.loadServing(ctx); err != nil {
			failure = err.Error()
		}
		if failure != "" && failure != logged {
			s.host.logger.Warn("what the hosts serve cannot be looked up or loaded; this is not said again", "error",
				failure)
		}
		logged = failure
	})
}

// openConfig is what a new slot loads: its own configuration, or what live hosts already serve.
func (s *Slot) openConfig(ctx context.Context, own ProviderConfig) (config ProviderConfig, served []byte, err error) {
	stored, err := s.served(ctx)
	if err != nil || stored == nil {
		return own, nil, err
	}
	others, err := s.host.fleet.Others(ctx)
	if err != nil || others == 0 {
		return own, nil, stateError(err)
	}
	config, err = s.configOf(ctx, stored)
	return config, stored, err
}

func sha256Of(module []byte) string {
	sum := sha256.Sum256(module)
	return hex.EncodeToString(sum[:])
}
