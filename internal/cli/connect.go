package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/base/traceparent"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/state"
)

// Door is the contract as a command calls it: of a running slot, or of a provider that the command opened itself.
type Door struct {
	host.Contract
	// Address is the URL of the running slot, "" if the command opened the data folder.
	Address string
	// Child is true for the slot of an MCP child, which ends with its client.
	Child bool
	Close func()
	// Erase erases a person in a data folder that the command opened; nil for a running slot.
	Erase func(context.Context, *report.PersonaRequest) (*report.PersonaReceipt, error)
}

const (
	// AnswerWithin is how long a slot may take to answer the first call.
	AnswerWithin = 2 * time.Second
	// FolderTries is how often a command tries to open a folder that another command holds briefly.
	FolderTries = 30
	// folderPause is the pause between two tries.
	folderPause = 100 * time.Millisecond
	closeWithin = 10 * time.Second
)

// Connect finds the slot that --server or MEMHOST_SERVER names, or the one that serves the data folder, or opens the
// folder in this process.
func (a *App) Connect(ctx context.Context) (*Door, error) {
	if server := a.ServerNamed(); server != "" {
		return a.DialNamed(ctx, server)
	}
	c, err := a.Config()
	if err != nil {
		return nil, err
	}
	var d *Door
	err = a.OnceFree(ctx, FolderTries, func() (err error) {
		if d, err = a.Running(ctx, c); d == nil && err == nil {
			d, err = a.openHere(ctx, c)
		}
		return err
	})
	return d, err
}

// OnceFree retries something up to tries times while another command holds the data folder briefly.
func (a *App) OnceFree(ctx context.Context, tries int, something func() error) error {
	for try := 0; ; try++ {
		err := something()
		owned := abi.CodeOf(err) == abi.CodeUnavailable && abi.AsError(err).Reason == ReasonOwned
		if !owned || try == tries || ctx.Err() != nil {
			return err
		}
		a.Sleep(ctx, folderPause)
	}
}

// ServerNamed returns the slot that flag or environment names, "" for none.
func (a *App) ServerNamed() string {
	if a.Flags.Server != "" {
		return a.Flags.Server
	}
	return a.Getenv("MEMHOST_SERVER")
}

// ReasonOwned is the error reason when another process has the data folder.
const ReasonOwned = "folder_owned"

// Dial makes a door to the slot at a URL or HOST:PORT. It sends nothing yet.
func (a *App) Dial(server string) (*Door, error) {
	c, err := client.New(server, a.Getenv("MEMHOST_TOKEN"))
	if err != nil {
		return nil, err
	}
	c.Door = a.Door
	return &Door{Contract: c, Address: c.Base(), Close: c.Close}, nil
}

// Running connects to the slot that serves the data folder, if there is one. A slot.json that a killed process left
// behind is ignored.
func (a *App) Running(ctx context.Context, c *config.Config) (*Door, error) {
	log := a.Logger(hclog.Error) // the command itself reports what is worth reporting
	info, err := state.ReadSlot(c.Data.Dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			log.Debug("no slot to talk to", "error", err)
		}
		return nil, nil
	}
	// Without the token, because another program may have the port now.
	probe, err := client.New(info.Address, "")
	if err != nil {
		log.Debug("slot.json names no address", "address", info.Address, "error", err)
		return nil, nil
	}
	defer probe.Close()
	within, cancel := context.WithTimeout(ctx, AnswerWithin)
	defer cancel()
	if _, err := probe.Healthz(within); err != nil {
		log.Debug("slot.json is stale, nobody serves there", "address", info.Address, "pid", info.PID, "error", err)
		return nil, nil
	}
	if info.TokenRequired && a.Getenv("MEMHOST_TOKEN") == "" {
		return nil, abi.NewError(abi.CodeUnauthenticated,
			"the slot at "+info.Address+" wants a token").WithHint("put it into the environment variable MEMHOST_TOKEN")
	}
	log.Debug("talking to the running slot", "address", info.Address, "pid", info.PID)
	d, err := a.Dial(info.Address)
	if err != nil {
		return nil, err
	}
	if err := a.checkSlot(ctx, c, info, d); err != nil {
		d.Close()
		return nil, err
	}
	d.Child = info.Child
	return d, nil
}

// openHere opens the data folder and the provider in this process.
func (a *App) openHere(ctx context.Context, c *config.Config) (*Door, error) {
	log := a.Logger(hclog.Error)
	if err := servedByAnother(c); err != nil {
		return nil, err
	}
	c, removeFolder, err := a.folderFor(c)
	if err != nil {
		return nil, err
	}
	opened := false
	defer func() {
		if !opened {
			removeFolder()
		}
	}()
	m, err := a.ResolveChecked(c)
	if err != nil {
		return nil, err
	}
	options, err := a.ConfigOptions()
	if err != nil {
		return nil, err
	}
	o := a.HostOptions(c, log)
	o.KeepFormat = a.MCP != MCPStdio // memhost run does that
	trace, err := TraceInto(&o, c, log)
	if err != nil {
		return nil, err
	}
	copies := a.CopiesInto(&o, c, log)
	spans, err := a.SpansInto(&o, c, log)
	if err != nil {
		trace.Close()
		return nil, err
	}
	began, err := BeginFolder(c)
	if err != nil {
		spans.Close()
		trace.Close()
		return nil, err
	}
	if began && c.Memory.Archive && a.Door == "" && a.Begins {
		a.Out.Note("  a new data folder: %s", ArchiveNote(c))
	}
	h, err := host.New(ctx, o)
	if err != nil {
		spans.Close()
		trace.Close()
		return nil, err
	}
	slot, err := h.Open(ctx, ProviderConfig(c, m))
	if err != nil {
		_ = h.Close(context.WithoutCancel(ctx))
		spans.Close()
		trace.Close()
		return nil, err
	}
	if err := copies.Start(ctx, slot, false); err != nil {
		_ = errors.Join(slot.Close(context.WithoutCancel(ctx)), h.Close(context.WithoutCancel(ctx)))
		spans.Close()
		trace.Close()
		return nil, err
	}
	log.Debug("no slot is running, the data folder was opened", "folder", c.Data.Dir)
	opened = true
	return &Door{Contract: slot, Erase: a.Eraser(slot, c, options), Close: func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
		defer cancel()
		copies.Close(ctx)
		for _, warning := range copies.Warnings() {
			a.Out.Note("%s", warning)
		}
		if err := errors.Join(slot.Close(ctx), h.Close(ctx)); err != nil {
			log.Warn("closing", "error", err)
		}
		spans.Close()
		trace.Close()
		removeFolder()
	}}, nil
}

// folderFor is the configuration with which a command opens its data folder. A command that only reads or removes does
// not create a folder: its name is probably mistyped. If the configuration chooses a provider, which may keep its
// memory elsewhere, the command gets a temporary folder, which remove removes.
//
// Errors: invalid_argument for a missing folder if no provider is chosen.
func (a *App) folderFor(c *config.Config) (_ *config.Config, remove func(), err error) {
	remove = func() {}
	if a.Begins || a.Door != "" {
		return c, remove, nil
	}
	missing := a.CheckBegun(c)
	if missing == nil {
		return c, remove, nil
	}
	if _, word, _ := c.Block(); c.Source("memory."+word).Kind == config.KindDefault {
		return nil, nil, missing
	}
	dir, err := os.MkdirTemp("", "memhost-read-")
	if err != nil {
		return nil, nil, FileError(os.TempDir(), err)
	}
	temporary := *c
	temporary.Data.Dir, temporary.Data.Files, temporary.Memory.Archive = dir, false, false
	return &temporary, func() { _ = os.RemoveAll(dir) }, nil
}

// CheckBegun rejects a data folder in which nothing was recorded yet. With a database it does not look.
func (a *App) CheckBegun(c *config.Config) error {
	if c.Store.Postgres.URL != "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(c.Data.Dir, state.DataFile)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return abi.NewError(abi.CodeInvalidArgument, "nothing was recorded in the data folder "+c.Data.Dir+
		" yet, and no slot serves it").WithHint("look at its name; `memhost record` and `memhost run` begin a new one")
}

// HostOptions returns the host's part of the configuration.
func (a *App) HostOptions(c *config.Config, log hclog.Logger) host.Options {
	version := a.Version()
	return host.Options{DataDir: c.Data.Dir, CacheDir: a.CacheDir(), Durability: c.Data.Durability, Logger: log,
		OpenStore: a.openStore(c, log),
		Now:       a.Now,
		Version:   version.Version, Commit: version.Commit, Engines: Engines(),
		Run: host.RunLabels{Seed: c.Run.Seed, Replicate: c.Run.Replicate, Labels: c.Run.LabelMap()},
		Limits: host.Limits{MemoryBytes: c.Limits.MemoryBytes, Pool: int(c.Limits.Pool),
			CallsInFlight: int(c.Limits.CallsInFlight),
			BodyBytes:     c.Limits.ResponseBytes, ResponseBytes: c.Limits.ResponseBytes,
			RequestBytes:    max(c.Limits.RequestBytes, c.Server.MaxBodyBytes),
			StateWriteBytes: c.Limits.StateWriteBytes, QueueBytes: c.Limits.QueueBytes,
			StateBytes: c.Data.StateBytesPerScope, Deadline: Milliseconds(c.Limits.DeadlineMS),
			ModeWait: Milliseconds(c.Limits.ModeWaitMS)},
		LedgerRetention: Milliseconds(c.Data.LedgerRetentionMS),
		Archive:         c.Memory.Archive, ArchiveRetention: Milliseconds(c.Data.ArchiveRetentionMS)}
}

// Milliseconds converts a number of the configuration to a duration.
func Milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// CacheDir is the folder for compiled modules, shared by all data folders; "" (each data folder has its own) if the
// user has no writable cache folder.
func (a *App) CacheDir() string {
	home := a.Getenv("XDG_CACHE_HOME")
	if !filepath.IsAbs(home) {
		var err error
		if home, err = os.UserCacheDir(); err != nil {
			return ""
		}
	}
	dir := filepath.Join(home, "memhost", "modules")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ""
	}
	probe, err := os.CreateTemp(dir, "probe.*.tmp")
	if err != nil {
		return ""
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name())
	return dir
}

// WithDoor runs a command's function with the door to the slot.
func (a *App) WithDoor(ctx context.Context, verb func(ctx context.Context, d *Door) error) error {
	ctx, stop := a.UntilInterrupted(ctx)
	defer stop()
	d, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	return verb(traceparent.Accept(ctx, a.Getenv(traceparent.Variable)), d)
}

// Where names the slot for people.
func (d *Door) Where() string {
	if d.Address == "" {
		return "opened here"
	}
	return strings.TrimPrefix(d.Address, "http://")
}

// Owner names the provider and the slot for people: "mem0 at 127.0.0.1:7077" or "mem0, opened here".
func (d *Door) Owner(ctx context.Context) string {
	provider := "a provider that cannot be asked"
	if c, err := d.Capabilities(context.WithoutCancel(ctx)); err == nil {
		provider = Printable(c.Provider)
	}
	if d.Address == "" {
		return provider + ", " + d.Where()
	}
	return provider + " at " + d.Where()
}
