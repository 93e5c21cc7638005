package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/host"
)

// Version is the form of run.json.
const Version = 1

// File is the run's own file.
const File = "run.json"

// Run is run.json.
type Run struct {
	Run int `json:"run"` // Version
	// Program and Commit are of the memhost that began the run.
	Program string `json:"program"`
	Commit  string `json:"commit,omitempty"`
	// BegunAt is RFC 3339.
	BegunAt    string        `json:"begun_at"`
	Lab        *lab.Lab      `json:"lab"`
	LabSHA256  string        `json:"lab_sha256"`
	PackPath   string        `json:"pack_path"`
	Pack       pack.Manifest `json:"pack"`
	Cells      []*Cell       `json:"cells"`
	CompleteAt string        `json:"complete_at,omitempty"`
}

// Cell is one provider in one replicate.
type Cell struct {
	Label     string `json:"label"`
	Replicate int    `json:"replicate"` // from 1
	// RunID is the scope's run_id of every persona in the cell.
	RunID string `json:"run_id"`
	// State is waiting, running, complete or failed.
	State string `json:"state"`
	// Alone: it ran while no other cell did, with one persona at a time, from its beginning to its end: its latencies may be compared.
	Alone bool `json:"alone"`
	// Head is the hash of the journal's last line, once the cell is complete.
	Head  string     `json:"head,omitempty"`
	Error *abi.Error `json:"error,omitempty"`
}

// The states of a cell.
const (
	Waiting  = "waiting"
	Running  = "running"
	Complete = "complete"
	Failed   = "failed"
)

// Folder is the cell's folder in the run's.
func (c *Cell) Folder(run string) string {
	return filepath.Join(run, "cells", c.Label, strconv.Itoa(c.Replicate))
}

// Options are what a runner needs besides the run's folder.
type Options struct {
	// Provider resolves a lab's entry to what a host opens. Pack-made blocks (conditions.json) are its caller's to lay under.
	Provider func(p *lab.Provider) (host.ProviderConfig, error)
	// Host completes the options of each cell's host: Version, Commit, Logger, engines. DataDir, Run, Durability and Cassette are the runner's.
	Host   host.Options
	Logger hclog.Logger
	Now    func() time.Time
	// Progress is told after each step of a cell; it must be quick and safe for concurrent use. Nil: nobody.
	Progress func(Progress)
	// Agent answers probes; nil: nobody does.
	Agent Agent
}

// Progress is how far a cell is.
type Progress struct {
	Label     string
	Replicate int
	// Done and Total count events and retrievals.
	Done, Total int
	// Note says what happens now, such as "waiting for memory, persona ann, session 3".
	Note string
}

// Agent answers a probe with a context, after the retrieval behind the wall.
type Agent interface {
	// Answer says something to a probe. put keeps a text in the run's blobs and returns its hash.
	Answer(ctx context.Context, probe *pack.Probe, contextText string, put func([]byte) (string, error)) ([]journal.Answer, error)
}

// Begin makes a run's folder for a lab. The folder must not exist, or be empty.
func Begin(folder string, l *lab.Lab, packPath string, p *pack.Pack, o Options) (*Run, error) {
	there, err := os.ReadDir(folder)
	if err == nil && len(there) > 0 {
		return nil, abi.NewError(abi.CodeConflict, folder+" is not empty").
			WithHint("`memhost eval resume " + folder + "` goes on with a run; another --out begins a new one")
	}
	r := &Run{Run: Version, Program: o.Host.Version, Commit: o.Host.Commit, BegunAt: stamp(o.Now()), Lab: l, LabSHA256: l.SHA256(), PackPath: packPath, Pack: p.Manifest}
	for replicate := 1; replicate <= l.Replicates; replicate++ {
		for i := range l.Providers {
			label := l.Providers[i].Label
			r.Cells = append(r.Cells, &Cell{Label: label, Replicate: replicate, State: Waiting,
				RunID: fmt.Sprintf("eval-%.8s-%s-%d", r.LabSHA256, label, replicate)})
		}
	}
	return r, writeJSON(filepath.Join(folder, File), r)
}

// Open reads a run's folder.
//
// Errors: invalid_argument for what is not a run, or one of another version.
func Open(folder string) (*Run, error) {
	r := new(Run)
	there, err := readJSON(filepath.Join(folder, File), r)
	switch {
	case err != nil:
		return nil, err
	case !there:
		return nil, abi.NewError(abi.CodeInvalidArgument, folder+" is not a run: it has no "+File).WithHint("`memhost eval run` makes one")
	case r.Run != Version:
		return nil, abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("%s is a run of version %d, this program reads version %d", folder, r.Run, Version))
	}
	return r, nil
}

// runner is a run while it goes on.
type runner struct {
	*Run
	folder  string
	pack    *pack.Pack
	options Options

	mu sync.Mutex // of Run
}

// Go runs every cell that is not complete. A cell that fails leaves the others running; the first failure is returned at the end.
// It may be called again, after an interruption or a failure: cells go on where they were.
//
// Errors: invalid_argument when the pack is not the one that the run began with; the context's; those of cells, with the cell's label in front.
func Go(ctx context.Context, folder string, r *Run, p *pack.Pack, o Options) error {
	if p.Manifest.ContentSHA256 != r.Pack.ContentSHA256 {
		return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("the pack %s has the content %.12s, the run began with %.12s",
			p.Manifest.Name, p.Manifest.ContentSHA256, r.Pack.ContentSHA256)).WithHint("resume it with the pack it began with")
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	run := &runner{Run: r, folder: folder, pack: p, options: o}
	var failures []error
	var mu sync.Mutex
	seats := make(chan struct{}, r.Lab.CellsAtOnce)
	var cells sync.WaitGroup
	for _, c := range r.Cells {
		if c.State == Complete {
			continue
		}
		seats <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		cells.Go(func() {
			defer func() { <-seats }()
			if err := run.cell(ctx, c); err != nil {
				mu.Lock()
				failures = append(failures, err)
				mu.Unlock()
			}
		})
	}
	cells.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if len(failures) > 0 {
		return failures[0]
	}
	r.CompleteAt = stamp(o.Now())
	return run.save()
}

// cell runs one cell and notes how it ended.
func (r *runner) cell(ctx context.Context, c *Cell) error {
	alone := c.State == Waiting && r.Lab.CellsAtOnce == 1 && r.Lab.Concurrency == 1
	if err := r.update(func() { c.State, c.Error, c.Alone = Running, nil, alone }); err != nil {
		return err
	}
	head, err := r.walk(ctx, c)
	if err == nil {
		return r.update(func() { c.State, c.Head = Complete, head })
	}
	if ctx.Err() != nil { // interrupted: it goes on with the next call of Go
		return err
	}
	failed := *abi.AsError(err)
	failed.Message = fmt.Sprintf("cell %s/%d: %s", c.Label, c.Replicate, failed.Message)
	return errors.Join(&failed, r.update(func() { c.State, c.Error = Failed, &failed }))
}

// update changes what run.json says.
func (r *runner) update(change func()) error {
	r.mu.Lock()
	change()
	r.mu.Unlock()
	return r.save()
}

func (r *runner) save() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return writeJSON(filepath.Join(r.folder, File), r.Run)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Head is one hash for the whole run: of the lab, the pack and every cell's head, in order. Noted elsewhere, it anchors the run.
func (r *Run) Head() string {
	parts := []string{r.LabSHA256, r.Pack.ContentSHA256}
	for _, c := range r.Cells {
		parts = append(parts, fmt.Sprintf("%s/%d %s", c.Label, c.Replicate, c.Head))
	}
	return digest([]byte(strings.Join(parts, "\n")))
}
