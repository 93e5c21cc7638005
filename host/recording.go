package host

import (
	"bytes"
	"context"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/cassette"
	"github.com/memhost/memhost/host/internal/guest"
	"github.com/memhost/memhost/host/internal/tape"
	"github.com/memhost/memhost/internal/configuration/schema"
)

// CassetteOptions make a host record what its slot does, for Replay. While it records there is one instance and one
// operation at a time; the guest's clock is virtual and its randomness seeded. A host can record one slot.
type CassetteOptions struct {
	// Path is the file to create; it must not exist. Required.
	Path string
	// Seed seeds all randomness. Default: a random seed.
	Seed []byte
	// Timeless records every measured duration as 0, so that equal runs make equal files: useful for cassettes under
	// version control.
	Timeless bool
}

// recording is the tape around a host. The zero value records nothing.
type recording struct {
	tape *tape.Tape
	// recorded is true while recording or replaying: operations run one at a time, and there is no background work.
	recorded bool
	// slack is added to every deadline of a replay, because it may run on a slower machine than the recording.
	slack time.Duration
	// begin opens an operation at the outer border, and end closes it; begin is nil if nothing is recorded.
	begin func(ctx context.Context, name string, request abi.Encodable) (_ context.Context,
		end func(abi.Encodable, error), _ error)
}

// useTape connects the host to a tape: the given one to replay, or a new one if the options ask for a recording.
func (h *Host) useTape(playing *tape.Tape) (err error) {
	h.tape = playing
	if o := h.options.Cassette; o != nil && playing == nil {
		version, commit := h.version()
		h.tape, err = tape.Record(tape.Options{Path: o.Path, Seed: o.Seed, Timeless: o.Timeless, Now: h.options.Now, Pause: h.options.Pause,
			Version: version, Commit: commit, Logger: h.logger})
	}
	if h.tape == nil || err != nil {
		return err
	}
	if playing != nil {
		h.slack = time.Minute
	}
	h.recorded, h.begin = true, h.tape.Begin
	h.clock, h.store, h.limits.Pool = h.tape, h.tape.Store(h.store), 1
	more := h.options.HealthWarnings
	h.options.HealthWarnings = func() []string {
		warnings := h.tape.Warnings()
		if more != nil {
			warnings = append(warnings, more()...)
		}
		return warnings
	}
	return nil
}

func (h *Host) closeTape() error {
	if h.tape == nil {
		return nil
	}
	return h.tape.Close()
}

// beginLoad records the load of a provider as an operation.
func (h *Host) beginLoad(ctx context.Context, name string) (_ context.Context, end func(abi.Encodable, error),
	err error) {
	if h.begin == nil {
		return ctx, func(abi.Encodable, error) {}, nil
	}
	return h.begin(ctx, name, nil)
}

// starter returns the starter of a provider's instances, and records what is loaded.
//
// Errors: invalid_argument if the block has what looks like a credential. The guest may send it anywhere, so it could
// end up anywhere in a cassette.
func (h *Host) starter(p *Provider) (guest.Starter, error) {
	if h.tape == nil {
		plain := guest.NewStarter(p.plugin, p.module.program, guest.RealSenses())
		if h.options.InterceptGuest != nil {
			return &interceptedStarter{plain, h.options.InterceptGuest}, nil
		}
		return plain, nil
	}
	plain, err := schema.CanonicalJSON(p.block)
	if err == nil && h.options.Cassette != nil && !bytes.Equal(plain, p.shownConfig()) {
		err = abi.NewError(abi.CodeInvalidArgument,
			p.name+": the block holds what looks like a credential, so no cassette can be recorded of it").
			WithHint("put credentials under secrets, and name them in the block: {secret: NAME}")
	}
	if err != nil {
		return nil, err
	}
	h.tape.Load(p.loaded(), p.network.Redactor().Bytes)
	return h.tape.Starter(guest.NewStarter(p.plugin, p.module.program, h.tape)), nil
}

// loaded describes the provider for a cassette.
func (p *Provider) loaded() *cassette.Load {
	l := &cassette.Load{Module: p.runModule(), ABI: p.module.Manifest.ABI, Provider: p.name, Word: p.word,
		ConfigHash: p.configHash(), Config: p.shownConfig(), Profile: p.config.Profile, Frame: p.config.Frame,
		Namespace: p.config.Namespace, AgentScoped: p.config.AgentScoped, TestSessions: p.config.TestSessions,
		NoLookup: p.config.NoLookup, RetryEmpty: p.config.RetryEmpty,
		Tokenizer: p.tokens.Name(), Scope: p.config.Scope,
		Limits: cassette.Limits{Memory: p.limits.MemoryBytes, HighWater: p.limits.HighWaterBytes,
			Request: p.limits.RequestBytes, Response: p.limits.ResponseBytes}}
	for _, name := range abi.SortedKeys(p.config.Secrets) {
		l.Secrets = append(l.Secrets, cassette.Secret{Name: name, Origin: p.config.Secrets[name].Origin})
	}
	return l
}
