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
	"github.com/memhost/memhost/internal/base/traceparent"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/state"
)

// door is the contract that a verb calls: of a running slot, or of a provider that the command has opened itself.
type door struct {
	host.Contract
	// address is the URL of the running slot, "" where the command has opened the data folder.
	address string
	// child: the slot is that of an MCP child, and ends with its client.
	child bool
	close func()
	// erase erases a person in a data folder that the command has opened; nil at a running slot.
	erase func(context.Context, *abi.PersonaRequest) (*abi.PersonaReceipt, error)
}

const (
	// answerWithin is how long a slot may take to answer the first call.
	answerWithin = 2 * time.Second
	// folderPause and folderTries: how long to wait for a folder that another command uses for a moment.
	folderPause = 100 * time.Millisecond
	folderTries = 30
	closeWithin = 10 * time.Second
)

// connect finds the slot: the one that --server or MEMHOST_SERVER names, the one that serves the data folder, or one
// made here.
func (a *app) connect(ctx context.Context) (*door, error) {
	if server := a.serverNamed(); server != "" {
		return a.dialNamed(ctx, server)
	}
	c, err := a.config()
	if err != nil {
		return nil, err
	}
	var d *door
	err = a.onceFree(ctx, folderTries, func() (err error) {
		if d, err = a.running(ctx, c); d == nil && err == nil {
			d, err = a.openHere(ctx, c)
		}
		return err
	})
	return d, err
}

// onceFree tries something again, so many times, while another command has the data folder for a moment.
func (a *app) onceFree(ctx context.Context, tries int, something func() error) error {
	for try := 0; ; try++ {
		err := something()
		owned := abi.CodeOf(err) == abi.CodeUnavailable && abi.AsError(err).Reason == reasonOwned
		if !owned || try == tries || ctx.Err() != nil {
			return err
		}
		a.Sleep(ctx, folderPause)
	}
}

// serverNamed is the slot that flag or environment name, "" for none.
func (a *app) serverNamed() string {
	if a.flags.server != "" {
		return a.flags.server
	}
	return a.getenv("MEMHOST_SERVER")
}

// reasonOwned is the error reason when another process has the data folder.
const reasonOwned = "folder_owned"

func (a *app) dial(server string) (*door, error) {
	c, err := client.New(server, a.getenv("MEMHOST_TOKEN"))
	if err != nil {
		return nil, err
	}
	c.Door = a.door
	return &door{Contract: c, address: c.Base(), close: c.Close}, nil
}

// running connects to the slot that serves the data folder, where there is one. A slot.json that a killed process left
// behind is ignored.
func (a *app) running(ctx context.Context, c *config.Config) (*door, error) {
	log := a.logger(hclog.Error) // a verb says itself what there is to say
	info, err := state.ReadSlot(c.Data.Dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			log.Debug("no slot to talk to", "error", err)
		}
		return nil, nil
	}
	// Asked without the token, since another program may have the port now.
	probe, err := client.New(info.Address, "")
	if err != nil {
		log.Debug("slot.json names no address", "address", info.Address, "error", err)
		return nil, nil
	}
	defer probe.Close()
	within, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if _, err := probe.Healthz(within); err != nil {
		log.Debug("slot.json is stale, nobody serves there", "address", info.Address, "pid", info.PID, "error", err)
		return nil, nil
	}
	if info.TokenRequired && a.getenv("MEMHOST_TOKEN") == "" {
		return nil, abi.NewError(abi.CodeUnauthenticated,
			"the slot at "+info.Address+" wants a token").WithHint("put it into the environment variable MEMHOST_TOKEN")
	}
	log.Debug("talking to the running slot", "address", info.Address, "pid", info.PID)
	d, err := a.dial(info.Address)
	if err != nil {
		return nil, err
	}
	if err := a.checkSlot(ctx, c, info, d); err != nil {
		d.close()
		return nil, err
	}
	d.child = info.Child
	return d, nil
}

// openHere opens data folder and provider in this process.
func (a *app) openHere(ctx context.Context, c *config.Config) (*door, error) {
	log := a.logger(hclog.Error)
	if err := servedByAnother(c); err != nil {
		return nil, err
	}
	m, err := a.resolveChecked(c)
	if err != nil {
		return nil, err
	}
	options, err := a.configOptions()
	if err != nil {
		return nil, err
	}
	o := a.hostOptions(c, log)
	trace, err := traceInto(&o, c, log)
	if err != nil {
		return nil, err
	}
	spans, err := a.spansInto(&o, c, log)
	if err != nil {
		trace.Close()
		return nil, err
	}
	h, err := host.New(ctx, o)
	if err != nil {
		spans.close()
		trace.Close()
		return nil, err
	}
	slot, err := h.Open(ctx, providerConfig(c, m))
	if err != nil {
		_ = h.Close(context.WithoutCancel(ctx))
		spans.close()
		trace.Close()
		return nil, err
	}
	log.Debug("no slot is running, the data folder was opened", "folder", c.Data.Dir)
	return &door{Contract: slot, erase: a.eraser(slot, c, options), close: func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
		defer cancel()
		if err := errors.Join(slot.Close(ctx), h.Close(ctx)); err != nil {
			log.Warn("closing", "error", err)
		}
		spans.close()
		trace.Close()
	}}, nil
}

// hostOptions are the host's part of the configuration.
func (a *app) hostOptions(c *config.Config, log hclog.Logger) host.Options {
	version := a.version()
	return host.Options{DataDir: c.Data.Dir, CacheDir: a.cacheDir(), Durability: c.Data.Durability, Logger: log,
		OpenStore: a.openStore(c, log),
		Now:       a.Now,
		Version:   version.Version, Commit: version.Commit, Engines: engines(),
		Run: host.RunLabels{Seed: c.Run.Seed, Replicate: c.Run.Replicate, Labels: c.Run.LabelMap()},
		Limits: host.Limits{MemoryBytes: c.Limits.MemoryBytes, Pool: int(c.Limits.Pool),
			CallsInFlight: int(c.Limits.CallsInFlight),
			BodyBytes:     c.Limits.ResponseBytes, ResponseBytes: c.Limits.ResponseBytes,
			RequestBytes:    max(c.Limits.RequestBytes, c.Server.MaxBodyBytes),
			StateWriteBytes: c.Limits.StateWriteBytes, QueueBytes: c.Limits.QueueBytes,
			StateBytes: c.Data.StateBytesPerScope, Deadline: milliseconds(c.Limits.DeadlineMS),
			ModeWait: milliseconds(c.Limits.ModeWaitMS)},
		LedgerRetention: milliseconds(c.Data.LedgerRetentionMS),
		Archive:         c.Memory.Archive, ArchiveRetention: milliseconds(c.Data.ArchiveRetentionMS)}
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// cacheDir is where compiled modules are kept, for all data folders; "" (each has its own) where the user has no cache
// folder that can be written.
func (a *app) cacheDir() string {
	home := a.getenv("XDG_CACHE_HOME")
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

// withDoor runs a verb at the slot.
func (a *app) withDoor(ctx context.Context, verb func(ctx context.Context, d *door) error) error {
	ctx, stop := a.untilInterrupted(ctx)
	defer stop()
	d, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	return verb(traceparent.Accept(ctx, a.getenv(traceparent.Variable)), d)
}

// where names the slot for people.
func (d *door) where() string {
	if d.address == "" {
		return "opened here"
	}
	return strings.TrimPrefix(d.address, "http://")
}

// whose names the provider and the slot for people: "mem0 at 127.0.0.1:7077", "mem0, opened here".
func (d *door) whose(ctx context.Context) string {
	provider := "a provider that cannot be asked"
	if c, err := d.Capabilities(context.WithoutCancel(ctx)); err == nil {
		provider = printable(c.Provider)
	}
	if d.address == "" {
		return provider + ", " + d.where()
	}
	return provider + " at " + d.where()
}
