package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/simulate"
	"github.com/memhost/memhost/eval/subject"
	"github.com/memhost/memhost/host"
)

// Options are what a runner needs in addition to the run's folder.
type Options struct {
	// Provider resolves a lab's entry to a host's configuration. It is responsible for adding blocks from the pack
	// (conditions.json).
	Provider func(p *lab.Provider) (host.ProviderConfig, error)
	// Host has options for each cell's host: Version, Commit, Logger, engines. The runner sets DataDir, Run, Durability
	// and Cassette.
	Host   host.Options
	Logger hclog.Logger
	Now    func() time.Time
	// Progress is called after each step of a cell; it must be quick and safe for concurrent use. Optional.
	Progress func(Progress)
	// Local reports whether a provider calls no backend, so that its calls cost nothing; nil means none is local.
	Local func(p *lab.Provider) bool
	// Dir is the base of relative paths in the lab file.
	Dir string
	// Faults is the number of the pack's fatal problems, if it is run in spite of them.
	Faults int
	// Agent answers probes. Optional.
	Agent Agent
	// Seat starts the agent under evaluation for conversations with Simulator. Optional.
	Seat subject.Seat
	// Simulator plays the users; nil: simulate.Scripted.
	Simulator simulate.Simulator

	tapes string // a run whose cassettes are used instead of hosts; see Replay
}

// Progress is the progress of a cell.
type Progress struct {
	Label     string
	Replicate int
	// Done and Total count events and retrievals.
	Done, Total int
	// Note describes the present step, such as "waiting for memory, persona ann, session 3".
	Note string
}

// Agent answers a probe from a context, after the retrieval, while the slot is read-only.
type Agent interface {
	// Answer answers a probe. put stores a text in the run's blobs and returns its hash.
	Answer(ctx context.Context, probe *pack.Probe, contextText string,
		put func([]byte) (string, error)) (*journal.Answer, error)
}

// Begin creates a run's folder for a lab. The folder must be empty or not exist.
func Begin(folder string, l *lab.Lab, packPath string, p *pack.Pack, o Options) (*rundir.Run, error) {
	there, err := os.ReadDir(folder)
	if err == nil && len(there) > 0 {
		return nil, abi.NewError(abi.CodeConflict, folder+" is not empty").
			WithHint("`memhost eval resume " + folder + "` goes on with a run; another --out begins a new one")
	}
	packPath, err = filepath.Abs(packPath)
	if err != nil {
		return nil, unusable(err)
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, unusable(err)
	}
	r := &rundir.Run{Run: rundir.Version, Program: o.Host.Version, Commit: o.Host.Commit, BegunAt: stamp(o.Now()),
		Lab: l, LabSHA256: l.SHA256(p.Manifest.ContentSHA256),
		PackPath: packPath, Dir: dir, Pack: p.Manifest, Faults: o.Faults}
	for replicate := 1; replicate <= l.Replicates; replicate++ {
		for i := range l.Providers {
			label := l.Providers[i].Label
			r.Cells = append(r.Cells, &rundir.Cell{Label: label, Replicate: replicate, State: rundir.Waiting,
				RunID: fmt.Sprintf("eval-%.8s-%s-%d", r.LabSHA256, label, replicate)})
		}
	}
	return r, r.Save(folder)
}

// runner is a run in progress.
type runner struct {
	*rundir.Run
	folder  string
	pack    *pack.Pack
	options Options

	mu sync.Mutex // of Run
}

// Go runs every cell that is not complete. If a cell fails, the others continue, and the first failure is returned at
// the end. Go may be called again after an interruption or a failure, and cells continue where they were.
//
// Errors: invalid_argument if the pack differs from the one with which the run started; the context's; those of cells,
// prefixed with the cell's label.
func Go(ctx context.Context, folder string, r *rundir.Run, p *pack.Pack, o Options) error {
	if p.Manifest.ContentSHA256 != r.Pack.ContentSHA256 {
		return abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("the pack %s has the content %.12s, the run began with %.12s",
				p.Manifest.Name, p.Manifest.ContentSHA256,
				r.Pack.ContentSHA256)).WithHint("resume it with the pack it began with")
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.Simulator == nil {
		o.Simulator = simulate.Scripted{}
	}
	run := &runner{Run: r, folder: folder, pack: p, options: o}
	about := func(s host.Span) {
		s.Text("memhost.eval.name", r.Lab.Name)
		s.Text("memhost.eval.lab_sha256", r.LabSHA256)
		s.Text("memhost.eval.pack_sha256", r.Pack.ContentSHA256)
	}
	return run.spanned(ctx, spanRun, about, run.cells)
}

// cells runs every cell that is not complete, one replicate after the other.
func (r *runner) cells(ctx context.Context) error {
	var failures []error
	for replicate := 1; replicate <= r.Lab.Replicates && ctx.Err() == nil; replicate++ {
		failures = append(failures, r.replicate(ctx, replicate)...)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if len(failures) > 0 {
		return failures[0]
	}
	r.CompleteAt = stamp(r.options.Now())
	return r.save()
}

// replicate runs the cells of one replicate that are not complete, in turns. It returns the errors of those that failed.
func (r *runner) replicate(ctx context.Context, number int) (failures []error) {
	var left []*rundir.Cell
	for _, c := range r.Cells {
		if c.Replicate == number && c.State != rundir.Complete {
			left = append(left, c)
		}
	}
	if len(left) == 0 {
		return nil
	}
	turns := newTurns(left, r.Lab.CellsAtOnce)
	var mu sync.Mutex
	var cells sync.WaitGroup
	for _, c := range turns.cells {
		cells.Go(func() {
			defer c.leave()
			if err := r.cell(ctx, c); err != nil {
				mu.Lock()
				failures = append(failures, err)
				mu.Unlock()
			}
		})
	}
	turns.give(ctx, r.Lab.Seed, len(r.groups()))
	cells.Wait()
	return failures
}

// groups divides the persons into those of one turn.
func (r *runner) groups() [][]pack.Persona {
	return slices.Collect(slices.Chunk(r.Pack.Personas, r.Lab.Concurrency))
}

// cell runs one cell and records its outcome.
func (r *runner) cell(ctx context.Context, c *participant) error {
	alone := c.State == rundir.Waiting && r.Lab.CellsAtOnce == 1 && r.Lab.Concurrency == 1
	start := func() { c.State, c.Error, c.Alone = rundir.Running, nil, alone }
	about := func(s host.Span) {
		s.Text("memhost.eval.label", c.Label)
		s.Number("memhost.eval.replicate", int64(c.Replicate))
	}
	var head string
	err := r.spanned(ctx, spanCell, about, func(ctx context.Context) (err error) {
		head, err = r.walk(ctx, c, start)
		return err
	})
	if err == nil {
		return r.update(func() { c.State, c.Head = rundir.Complete, head })
	}
	if ctx.Err() != nil { // interrupted: the next call of Go continues
		return err
	}
	failed := *abi.AsError(err)
	failed.Message = fmt.Sprintf("cell %s/%d: %s", c.Label, c.Replicate, failed.Message)
	return errors.Join(&failed, r.update(func() { c.State, c.Error = rundir.Failed, &failed }))
}

// update changes run.json.
func (r *runner) update(change func()) error {
	r.mu.Lock()
	change()
	r.mu.Unlock()
	return r.save()
}

func (r *runner) save() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Save(r.folder)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
