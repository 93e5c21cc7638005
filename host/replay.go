package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/host/cassette"
	"github.com/memhost/memhost/host/internal/tape"
	"github.com/memhost/memhost/host/report"
)

// ReplayOptions say what to replay, and with which module.
type ReplayOptions struct {
	// Path is the cassette. Required.
	Path string
	// Module returns the module to replay against, which may differ from the recorded one. Required.
	Module func(recorded cassette.Load) ([]byte, error)
	// Partial replays a truncated cassette as far as it goes.
	Partial bool
	// Engines run modules of ABIs other than mh1, as in Options.
	Engines []Engine
	// CacheDir keeps compiled modules. Default: a temporary folder of the replay.
	CacheDir string
	// Logger receives the log lines of the host; guests' log lines are compared with the cassette. Default: no log.
	Logger hclog.Logger
}

// Difference is the first place where a replay deviated from its cassette.
type Difference = cassette.Difference

// ReplayReport is the outcome of a replay.
type ReplayReport struct {
	// The numbers of Operations, Entries (into the guest) and Calls (by the guest) that were the same: byte for byte,
	// unless Older is set.
	Operations int64 `json:"operations"`
	Entries    int64 `json:"entries"`
	Calls      int64 `json:"calls"`
	// Older is true for a cassette that predates the contract's last additions; these then count as no difference.
	Older bool `json:"older,omitempty"`
	// Recorded and Replayed describe the two modules.
	Recorded report.RunModule `json:"recorded"`
	Replayed report.RunModule `json:"replayed"`
	// Cut is where the cassette was truncated, if Partial allowed that.
	Cut string `json:"cut,omitempty"`
	// Difference is the first difference; nil if everything was the same.
	Difference *Difference `json:"difference,omitempty"`
}

// Replay runs the operations of a cassette again, against a module and without a backend: every host call of the guest
// gets the recorded answer. All answers must be the same, byte for byte; the replay stops at the first difference and
// reports it. In a cassette that predates the contract's last additions, these are not differences
// (cassette.Header.Same). What the host measured (latencies, sizes) comes from the cassette.
//
// Errors: invalid_argument for a cassette that cannot be read (see package cassette for the reasons), and for a module
// that cannot be loaded or rejects the cassette's configuration. A difference is not an error.
func Replay(ctx context.Context, o ReplayOptions) (*ReplayReport, error) {
	if o.Path == "" || o.Module == nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "host.ReplayOptions: Path and Module are required")
	}
	// Check everything before running anything.
	report := new(ReplayReport)
	whole, err := o.check(report)
	if err != nil {
		return nil, err
	}
	in, r, err := o.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	player, err := newPlayer(ctx, o, r.Header, report)
	if err != nil {
		return nil, err
	}
	defer player.close(ctx)
	for report.Operations < whole && report.Difference == nil {
		operation, err := r.Next()
		if err != nil {
			return nil, err
		}
		if err := player.run(ctx, operation); err != nil {
			return nil, err
		}
		report.Entries, report.Calls, report.Difference = player.tape.Played()
		if report.Difference == nil {
			report.Operations++
		}
	}
	return report, nil
}

func (o *ReplayOptions) open() (*os.File, *cassette.Reader, error) {
	info, err := os.Stat(o.Path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, abi.WrapError(abi.CodeInvalidArgument, "cassette "+o.Path+" does not exist", err).
				WithHint("a slot records one with `memhost run --cassette FILE`")
		}
		return nil, nil, abi.WrapError(abi.CodeInvalidArgument, "cassette: "+err.Error(), err)
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its writer, and no signal ends that
		return nil, nil, abi.NewError(abi.CodeInvalidArgument, "cassette "+o.Path+" is not a regular file").
			WithHint("a cassette is read twice: copy it to a file first")
	}
	in, err := os.Open(o.Path)
	if err != nil {
		return nil, nil, abi.WrapError(abi.CodeInvalidArgument, "cassette: "+err.Error(), err)
	}
	r, err := cassette.NewReader(o.Path, in)
	if err != nil {
		_ = in.Close()
		return nil, nil, err
	}
	return in, r, nil
}

// check reads the whole cassette and counts the operations to replay.
func (o *ReplayOptions) check(report *ReplayReport) (int64, error) {
	in, r, err := o.open()
	if err != nil {
		return 0, err
	}
	defer func() { _ = in.Close() }()
	report.Recorded, report.Older = r.Header.Load.Module, r.Header.Older()
	for {
		switch _, err := r.Next(); {
		case err == nil:
		case errors.Is(err, io.EOF):
			return r.Operations(), nil
		case o.Partial && abi.AsError(err).Reason == cassette.ReasonCut:
			report.Cut = abi.AsError(err).Message
			return r.Operations(), nil
		default:
			return 0, err
		}
	}
}

// player is a host with a slot whose guests get their answers from a cassette.
type player struct {
	options ReplayOptions
	report  *ReplayReport
	tape    *tape.Tape
	host    *Host
	slot    *Slot
	dir     string
	load    cassette.Load
}

func newPlayer(ctx context.Context, o ReplayOptions, header cassette.Header, report *ReplayReport) (_ *player,
	err error) {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	p := &player{options: o, report: report, load: header.Load}
	if p.tape, err = tape.Play(o.Path, header, o.Logger); err != nil {
		return nil, err
	}
	if p.dir, err = os.MkdirTemp("", "memhost-replay"); err != nil {
		return nil, abi.WrapError(abi.CodeUnavailable, "replay: "+err.Error(), err)
	}
	l := header.Load.Limits
	p.host, err = newHost(ctx, Options{DataDir: p.dir, CacheDir: o.CacheDir, Durability: "process", Logger: o.Logger,
		Engines: o.Engines,
		Limits: Limits{MemoryBytes: l.Memory, HighWaterBytes: l.HighWater, RequestBytes: l.Request,
			ResponseBytes: l.Response}}, p.tape)
	if err != nil {
		p.close(ctx)
		return nil, err
	}
	p.slot = p.host.newSlot()
	return p, nil
}

func (p *player) close(ctx context.Context) {
	if p.host != nil {
		_ = p.slot.Close(ctx)
		_ = p.host.Close(ctx)
	}
	_ = os.RemoveAll(p.dir)
}

// run plays one operation.
func (p *player) run(ctx context.Context, o *cassette.Operation) error {
	if err := tape.Restore(ctx, p.host.store, o.Records); err != nil {
		return stateError(err)
	}
	for _, r := range o.Records {
		if r.Table == string(tableForgotten) {
			p.host.forgetful.Store(true)
		}
	}
	p.tape.Open(o)
	switch o.Name {
	case cassette.OpOpen, cassette.OpSwap:
		if len(o.Error) > 0 { // a provider that failed to load had no effect
			return nil
		}
		if o.Load != nil {
			p.load = *o.Load
		}
		ctx = tape.Inside(ctx)
		if err := p.open(ctx); err != nil {
			return err
		}
		return p.enterAll(ctx, o)
	case cassette.OpBackground:
		return p.enterAll(tape.Inside(ctx), o)
	}
	do, ok := replayOperations()[o.Name]
	if !ok {
		return abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("cassette %s: operation %d is %q, which no slot has", p.options.Path, o.N,
				o.Name)).WithReason(cassette.ReasonForm)
	}
	answer, failed := do(ctx, p.slot, o.Request)
	p.tape.Judge(answer, failed)
	return nil
}

// open loads the module to replay against and puts it behind the slot. It skips the steps of a swap: the guest calls
// that they made are replayed after this.
func (p *player) open(ctx context.Context) error {
	h, s, l := p.host, p.slot, p.load
	if s.current.Load() == nil {
		if err := s.loadMode(ctx); err != nil {
			return err
		}
	}
	wasm, err := p.options.Module(l)
	if err != nil {
		return err
	}
	module, err := h.Load(ctx, wasm)
	if err != nil {
		return err
	}
	config := ProviderConfig{Name: l.Provider, Word: l.Word, Module: wasm, Source: l.Module.Source, Block: l.Config,
		Profile: l.Profile, Frame: cmp.Or(l.Frame, abi.FrameFull), Namespace: l.Namespace, AgentScoped: l.AgentScoped,
		TestSessions: l.TestSessions, NoLookup: l.NoLookup, RetryEmpty: l.RetryEmpty, Tokenizer: l.Tokenizer, Scope: l.Scope,
		Secrets: map[string]Secret{}}
	for _, secret := range l.Secrets {
		// This value is never sent, because no request is. It stands in for the secret that the module's manifest
		// requires.
		config.Secrets[secret.Name] = Secret{Origin: secret.Origin,
			Value: func() (string, error) { return "\x00 a secret under replay \x00", nil }}
	}
	next, err := h.configureLoaded(ctx, module, config)
	if err != nil {
		e := *abi.AsError(err)
		e.Message = fmt.Sprintf("module %s %s cannot take the place of %s %s in this cassette: %s",
			module.Manifest.Name, module.Manifest.Version, l.Module.Name, l.Module.Version, e.Message)
		return &e
	}
	if p.report.Replayed.SHA256 == "" { // Recorded is also the first one: a swap may have followed
		p.report.Replayed = next.runModule()
	}
	if err := next.pool.Warm(ctx); err != nil {
		if _, _, difference := p.tape.Played(); difference == nil {
			return err
		}
	}
	old := s.current.Swap(&servingProvider{provider: next})
	if old != nil {
		s.drain(old.provider)
	}
	return nil
}

// enterAll repeats the recorded entries into the guest, for operations whose host part is not replayed.
func (p *player) enterAll(ctx context.Context, o *cassette.Operation) error {
	v := p.slot.current.Load()
	if v == nil {
		return abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("cassette %s: operation %d enters a guest before one was opened", p.options.Path,
				o.N)).WithReason(cassette.ReasonForm)
	}
	for e := p.tape.Next(); e != nil; e = p.tape.Next() {
		envelope := new(abi.Envelope)
		if err := abi.Unmarshal(e.Request, envelope); err != nil {
			return err
		}
		if !v.provider.module.has(e.Op) {
			p.tape.Differ(e, "the module lacks an export that was entered", []byte(e.Op), nil)
			return nil
		}
		// The tape checks the entry, so its outcome does not matter here.
		if scope := v.provider.config.Scope; e.Op == abi.OpSetupScope && scope != nil &&
			sameMemory(envelope.Scope, *scope) {
			// Mark the configured scope as set up in the host, too, so that no later write sets it up again.
			_ = p.slot.setUpConfigured(ctx, v.provider, new(stepLog))
		} else {
			within, entry := p.slot.operationOn(ctx, v.provider, e.Op)
			entry.Powers = entry
			_ = v.provider.enter(within, entry, envelope, new(anyAnswer))
		}
		if p.tape.Next() == e {
			p.tape.Differ(e, "the guest is not entered where it was", e.Request, nil)
		}
	}
	return nil
}

// sameMemory compares scopes without the namespace, which a configuration need not repeat.
func sameMemory(a, b abi.MemoryScope) bool {
	return a.RunID == b.RunID && a.PersonaID == b.PersonaID && a.AgentID == b.AgentID
}

// anyAnswer accepts any JSON and discards it.
type anyAnswer struct{}

// Decode implements abi.Decodable.
func (*anyAnswer) Decode(d *wirejson.Decoder, _ abi.Mode) error { return d.Skip() }

// replayOperations has a function to replay each operation of the contract that a cassette may contain.
func replayOperations() map[string]func(context.Context, *Slot, []byte) (abi.Encodable, error) {
	return map[string]func(context.Context, *Slot, []byte) (abi.Encodable, error){
		abi.OpSetupScope: replay(func(s *Slot, ctx context.Context, r *abi.MemoryScope) (*abi.SetupReceipt, error) {
			return s.SetupScope(ctx, *r)
		}),
		abi.OpRecordEvent:   replay((*Slot).RecordEvent),
		abi.OpRecordEvents:  replay((*Slot).RecordEvents),
		abi.OpRetrieve:      replay((*Slot).Retrieve),
		abi.OpFormatContext: replay((*Slot).FormatContext),
		abi.OpResetScope: replay(func(s *Slot, ctx context.Context, r *abi.MemoryScope) (*abi.ResetReceipt, error) {
			return s.ResetScope(ctx, *r)
		}),
		abi.OpHealth: replay(func(s *Slot, ctx context.Context, _ *abi.Empty) (*abi.BackendHealth,
			error) {
			return s.Health(ctx)
		}),
		abi.OpSetMode:        replay((*Slot).SetMode),
		abi.OpReadiness:      replay((*Slot).Readiness),
		abi.OpInventory:      replay((*Slot).Inventory),
		abi.OpProvenance:     replay((*Slot).Provenance),
		abi.OpNativeQuery:    replay((*Slot).NativeQuery),
		abi.OpNativeMutation: replay((*Slot).NativeMutation),
		abi.OpApplyFeedback:  replay((*Slot).ApplyFeedback),
		abi.OpForget:         replay((*Slot).Forget),
	}
}

// replay turns a method of the contract into an operation from a cassette.
func replay[R, A any, Q requestOf[R], P encodableTo[A]](do func(*Slot, context.Context, Q) (P,
	error)) func(context.Context, *Slot, []byte) (abi.Encodable, error) {
	return func(ctx context.Context, s *Slot, text []byte) (abi.Encodable, error) {
		r := Q(new(R))
		if err := abi.Unmarshal(text, r); err != nil {
			return nil, err
		}
		answer, err := do(s, ctx, r)
		if err != nil {
			return nil, err
		}
		return answer, nil
	}
}

// requestOf is a pointer to a request, encodableTo a pointer to an answer.
type requestOf[T any] interface {
	*T
	abi.Decodable
}

type encodableTo[T any] interface {
	*T
	abi.Encodable
}
