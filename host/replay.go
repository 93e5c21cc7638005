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
)

// ReplayOptions say what is replayed.
type ReplayOptions struct {
	// Path is the cassette. Required.
	Path string
	// Module gives the module that is to answer instead of the one that was recorded; it may be another one. Required.
	Module func(recorded cassette.Load) ([]byte, error)
	// Partial replays a cassette that was cut off, as far as it goes.
	Partial bool
	// Engines run modules of other ABIs than mh1, as in Options.
	Engines []Engine
	// CacheDir is where compiled modules are kept. Default: a folder that goes with the replay.
	CacheDir string
	// Logger receives the log lines of the host; what guests log is compared with the cassette. Default: none.
	Logger hclog.Logger
}

// Difference is the first place where a replay left its cassette.
type Difference = cassette.Difference

// ReplayReport is the outcome of a replay.
type ReplayReport struct {
	// Operations, Entries (into the guest) and Calls (by the guest) were the same, byte for byte where Older is not
	// set.
	Operations int64 `json:"operations"`
	Entries    int64 `json:"entries"`
	Calls      int64 `json:"calls"`
	// Older is true for a cassette from before the contract's last additions, which then count as no difference.
	Older bool `json:"older,omitempty"`
	// Recorded and Replayed are the modules.
	Recorded abi.RunModule `json:"recorded"`
	Replayed abi.RunModule `json:"replayed"`
	// Cut is where the cassette was cut off, if Partial allowed that.
	Cut string `json:"cut,omitempty"`
	// Difference is the first one; nil where everything was the same.
	Difference *Difference `json:"difference,omitempty"`
}

// Replay runs the operations of a cassette again, against a module and without any backend: every host call of the
// guest is answered as it was then. Every answer must be the same, byte for byte; the first that is not ends the replay
// and is reported. In a cassette from before the contract's last additions, these are no difference
// (cassette.Header.Same). What the host measured (latencies, sizes) comes from the cassette.
//
// Errors: invalid_argument for a cassette that cannot be read (see package cassette for the reasons) and for a module
// that cannot be loaded or does not take the cassette's configuration. A difference is no error.
func Replay(ctx context.Context, o ReplayOptions) (*ReplayReport, error) {
	if o.Path == "" || o.Module == nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "host.ReplayOptions: Path and Module are required")
	}
	// Everything is checked before anything is run.
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
	if !info.Mode().IsRegular() { // opening a pipe waits for its writer, and no signal ends that
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

// check reads the whole cassette and counts the operations to be played.
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
		if len(o.Error) > 0 { // another provider that did not get through: nothing came of it
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
	do, ok := replayed()[o.Name]
	if !ok {
		return abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("cassette %s: operation %d is %q, which no slot has", p.options.Path, o.N,
				o.Name)).WithReason(cassette.ReasonForm)
	}
	answer, failed := do(ctx, p.slot, o.Request)
	p.tape.Judge(answer, failed)
	return nil
}

// open loads the module that is to answer and puts it behind the slot. The swap flow is not walked: what it asked the
// guest is played after this.
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
		// Never sent: no request is. It takes the place of what the module's manifest asks for.
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
	if p.report.Replayed.SHA256 == "" { // Recorded is the first, too: a swap may have followed
		p.report.Replayed = next.runModule()
	}
	if err := next.pool.Warm(ctx); err != nil {
		if _, _, difference := p.tape.Played(); difference == nil {
			return err
		}
	}
	old := s.current.Swap(&serving{provider: next})
	if old != nil {
		s.drain(old.provider)
	}
	return nil
}

// enterAll enters the guest as it was entered then, for operations whose host's part is not played.
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
		// The tape judges the entry, so its outcome does not count here.
		if scope := v.provider.config.Scope; e.Op == abi.OpSetupScope && scope != nil &&
			sameMemory(envelope.Scope, *scope) {
			// The configured scope is set up for the host, too, so that no later write does it again.
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

// sameMemory compares scopes but for the namespace, which a configuration need not repeat.
func sameMemory(a, b abi.MemoryScope) bool {
	return a.RunID == b.RunID && a.PersonaID == b.PersonaID && a.AgentID == b.AgentID
}

// anyAnswer reads any JSON and keeps nothing.
type anyAnswer struct{}

// Decode implements abi.Decodable.
func (*anyAnswer) Decode(d *wirejson.Decoder, _ abi.Mode) error { return d.Skip() }

// replayed are the operations of the contract that a cassette may hold.
func replayed() map[string]func(context.Context, *Slot, []byte) (abi.Encodable, error) {
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

// replay makes one method of the contract an operation from a cassette.
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

// requestOf is a pointer to a request, encodableTo one to an answer.
type requestOf[T any] interface {
	*T
	abi.Decodable
}

type encodableTo[T any] interface {
	*T
	abi.Encodable
}
