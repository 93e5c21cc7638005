package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/cassette"
	"github.com/memhost/memhost/host/report"
)

// cassetteFile is a cell's cassette, in a run with cassettes: true.
const cassetteFile = "cassette.jsonl"

// slot is what a cell needs from a memory: a host's slot, or a cassette that answers like one.
type slot interface {
	RecordEvent(context.Context, *abi.MemoryEvent) (*abi.WriteReceipt, error)
	Retrieve(context.Context, *abi.RetrieveRequest) (*abi.RetrieveResult, error)
	Readiness(context.Context, *abi.ReadinessRequest) (*abi.BackendReadiness, error)
	Inventory(context.Context, *abi.InventoryRequest) (*abi.Inventory, error)
	SetMode(context.Context, *abi.AdapterMode) (*abi.ModeReceipt, error)
	Health(context.Context) (*abi.BackendHealth, error)
	Capabilities(context.Context) (*report.Capabilities, error)
	Manifest(context.Context) (*report.RunManifest, error)
	Close(context.Context) error
}

var (
	_ slot = (*host.Slot)(nil)
	_ slot = (*player)(nil)
)

// Replay creates a new run from one with cassettes, without any backend. Each cassette is first replayed through the
// module, whose answers must be the same, byte for byte; then the cell runs again, with answers from the cassette.
// Models are not called, so the new run has no answers of agents.
//
// Errors: invalid_argument for a run without cassettes, or an incomplete cell; conflict with the first difference, if a
// module answers differently; those of Begin and Go.
func Replay(ctx context.Context, from string, to string, p *pack.Pack, o Options) (*rundir.Run, error) {
	recorded, err := rundir.Open(from)
	if err != nil {
		return nil, err
	}
	if !recorded.Lab.Cassettes {
		return nil, abi.NewError(abi.CodeInvalidArgument,
			from+" has no cassettes").WithHint("a lab file with cassettes: true records them")
	}
	for _, c := range recorded.Cells {
		if c.State != rundir.Complete {
			return nil, abi.NewError(abi.CodeInvalidArgument,
				fmt.Sprintf("cell %s/%d is %s: its cassette is not whole", c.Label, c.Replicate, c.State))
		}
		if err := verifyCassette(ctx, recorded, c, from, o); err != nil {
			return nil, err
		}
	}
	r, err := Begin(to, recorded.Lab, recorded.PackPath, p, o)
	if err != nil {
		return nil, err
	}
	r.Program, r.Commit, r.Faults = recorded.Program, recorded.Commit, recorded.Faults
	o.Agent, o.tapes = nil, from
	return r, Go(ctx, to, r, p, o)
}

// verifyCassette replays a cell's cassette through the module that the lab now names.
func verifyCassette(ctx context.Context, r *rundir.Run, c *rundir.Cell, folder string, o Options) error {
	provider := r.Lab.Find(c.Label)
	config, err := o.Provider(provider)
	if err != nil {
		return err
	}
	report, err := host.Replay(ctx, host.ReplayOptions{Path: filepath.Join(c.Folder(folder), cassetteFile),
		CacheDir: o.Host.CacheDir,
		Engines:  o.Host.Engines, Module: func(cassette.Load) ([]byte, error) { return config.Module, nil }})
	if err != nil {
		return err
	}
	if report.Difference != nil {
		return abi.NewError(abi.CodeConflict, fmt.Sprintf("cell %s/%d: the module answers otherwise than its "+
			"cassette: %s", c.Label, c.Replicate,
			report.Difference)).WithReason("replay")
	}
	return nil
}

// rehearse runs a provider's smoke tests in a separate host, because a cassette contains none, and returns their
// verdicts. It rejects a provider with background work, which a recording host does not run.
func (c *cell) rehearse(ctx context.Context, config host.ProviderConfig) ([]report.SmokeVerdict, error) {
	o := c.options.Host
	dir, err := os.MkdirTemp("", "memhost-eval-smokes-")
	if err != nil {
		return nil, unusable(err)
	}
	defer os.RemoveAll(dir)
	o.DataDir, o.Durability, o.Logger = dir, "process", c.options.Logger
	m, err := host.Inspect(config.Module, o.Limits, o.Engines...)
	if err != nil {
		return nil, err
	}
	if len(m.Manifest.Background) > 0 {
		return nil, abi.NewError(abi.CodeUnsupported,
			fmt.Sprintf("%s works in the background, and a host that records does no such work", config.Name)).
			WithHint("run it without cassettes")
	}
	h, err := host.New(ctx, o)
	if err != nil {
		return nil, err
	}
	config.Smoke = host.SmokeAlways
	s, err := h.Open(ctx, config)
	if err != nil {
		return nil, errors.Join(err, h.Close(context.WithoutCancel(ctx)))
	}
	manifest, err := s.Manifest(ctx)
	closing := context.WithoutCancel(ctx)
	err = errors.Join(err, s.Close(closing), h.Close(closing))
	if err != nil {
		return nil, err
	}
	return manifest.Smokes, nil
}

// player answers a cell's requests from a cassette. Every request must be the recorded one, byte for byte.
type player struct {
	manifest report.RunManifest
	file     *os.File
	reader   *cassette.Reader
}

// openPlayer opens the cassette of a recorded cell, with the manifest that was sealed then.
func openPlayer(folder string, recorded *rundir.Cell) (*player, error) {
	dir := recorded.Folder(folder)
	sealed, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, unusable(err)
	}
	m, err := report.ParseRunManifest(sealed)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, cassetteFile)
	f, err := os.Open(path)
	if err != nil {
		return nil, unusable(err)
	}
	r, err := cassette.NewReader(path, f)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &player{manifest: *m, file: f, reader: r}, nil
}

// play decodes the recorded answer to the next request into answer.
//
// Errors: the recorded one; conflict if the cassette has another request here.
func (p *player) play(name string, request abi.Encodable, answer abi.Decodable) error {
	for {
		o, err := p.reader.Next()
		if errors.Is(err, io.EOF) {
			return abi.NewError(abi.CodeConflict, "the cassette ends before "+name)
		}
		if err != nil {
			return err
		}
		if o.Name == cassette.OpOpen || o.Name == cassette.OpBackground {
			continue
		}
		if o.Name != name || request != nil && !bytes.Equal(o.Request, abi.Marshal(request)) {
			return abi.NewError(abi.CodeConflict, fmt.Sprintf("operation %d of the cassette is another %s: pack, lab "+
				"or program differ from then", o.N, o.Name))
		}
		if len(o.Error) > 0 {
			failed := new(abi.Error)
			if err := abi.Unmarshal(o.Error, failed); err != nil {
				return err
			}
			return failed
		}
		return abi.Unmarshal(o.Answer, answer)
	}
}

func (p *player) RecordEvent(_ context.Context, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	answer := new(abi.WriteReceipt)
	return answer, p.play(abi.OpRecordEvent, e, answer)
}

func (p *player) Retrieve(_ context.Context, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	answer := new(abi.RetrieveResult)
	return answer, p.play(abi.OpRetrieve, r, answer)
}

func (p *player) Readiness(_ context.Context, r *abi.ReadinessRequest) (*abi.BackendReadiness, error) {
	answer := new(abi.BackendReadiness)
	return answer, p.play(abi.OpReadiness, r, answer)
}

func (p *player) Inventory(_ context.Context, r *abi.InventoryRequest) (*abi.Inventory, error) {
	answer := new(abi.Inventory)
	err := p.play(abi.OpInventory, r, answer)
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func (p *player) SetMode(_ context.Context, m *abi.AdapterMode) (*abi.ModeReceipt, error) {
	answer := new(abi.ModeReceipt)
	return answer, p.play(abi.OpSetMode, m, answer)
}

func (p *player) Health(context.Context) (*abi.BackendHealth, error) {
	answer := new(abi.BackendHealth)
	return answer, p.play(abi.OpHealth, nil, answer)
}

func (p *player) Capabilities(context.Context) (*report.Capabilities, error) {
	return &p.manifest.Capabilities, nil
}

func (p *player) Manifest(context.Context) (*report.RunManifest, error) {
	m := p.manifest
	return &m, nil
}

func (p *player) Close(context.Context) error { return p.file.Close() }

// closers are closed at a cell's end, in reverse order.
type closers []func(context.Context) error

func (list closers) Close(ctx context.Context) error {
	var errs []error
	for i := len(list) - 1; i >= 0; i-- {
		errs = append(errs, list[i](ctx))
	}
	return errors.Join(errs...)
}

// find returns the recorded cell with the same label and replicate.
func find(r *rundir.Run, label string, replicate int) *rundir.Cell {
	for _, c := range r.Cells {
		if c.Label == label && c.Replicate == replicate {
			return c
		}
	}
	return nil
}

// openTape makes the cell use a cassette of another run.
func (c *cell) openTape() (closers, error) {
	recorded, err := rundir.Open(c.options.tapes)
	if err != nil {
		return nil, err
	}
	from := find(recorded, c.Label, c.Replicate)
	if from == nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, c.options.tapes+" has no such cell")
	}
	p, err := openPlayer(c.options.tapes, from)
	if err != nil {
		return nil, err
	}
	c.slot = p
	return closers{p.Close}, nil
}
