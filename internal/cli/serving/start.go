package serving

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/cli/moving"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/importing"
	"github.com/memhost/memhost/internal/doors/mcpdoor"
	"github.com/memhost/memhost/internal/doors/page"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/wire"
	"github.com/memhost/memhost/internal/memoryfiles"
	"github.com/memhost/memhost/internal/state"
)

// Start locks the data folder, opens the address, loads the provider and serves. options are those that c was read
// with: a swap reads the configuration of another provider the same way. Callers must send token, unless it is "".
func Start(ctx context.Context, k *cli.App, c *config.Config, options config.Options, token string,
	s *cli.Steps) (*ServedSlot, error) {
	b := newStart(k, c, options, token, s)
	for _, step := range b.steps() {
		b.at = step.name
		if err := step.do(ctx); err != nil {
			s.Fail(b.at)
			b.undo()
			return nil, err
		}
	}
	return b.slot, nil
}

// start is a slot's start in progress. Each step uses the results of the steps before it.
type start struct {
	*commands
	config  *config.Config
	options config.Options
	token   string
	shown   *cli.Steps
	slot    *ServedSlot
	// at is the current step of the host or of this start: the one that an error belongs to.
	at string

	module     *cli.Module
	metrics    *server.Metrics
	operations *server.Operations
	host       host.Options
	manifest   *manifestFile
	full       error // the data folder has no room left
	listener   net.Listener
	loaded     bool // after this, steps of the host belong to swaps and go to the log
	following  server.Backfiller
}

// newStart prepares a start without doing any step.
func newStart(k *cli.App, c *config.Config, options config.Options, token string, s *cli.Steps) *start {
	quiet := hclog.Info
	if s.Log == nil {
		quiet = hclog.Warn // the printed steps report it
	}
	log := k.Logger(quiet)
	if k.Cassette != "" && c.Source("memory.archive").Kind == config.KindDefault {
		c.Memory.Archive = false // the cassette itself holds every event
	}
	return &start{commands: &commands{k}, config: c, options: options, token: token, shown: s,
		operations: server.NewOperations(), manifest: newManifestFile(c.Run.Manifest, log),
		slot: &ServedSlot{Dir: c.Data.Dir, within: time.Duration(c.Server.ShutdownMS) * time.Millisecond, log: log,
			ended: make(chan error, 1)}}
}

// steps returns the steps of the start in order. The address is opened before anything that may take long.
func (b *start) steps() []startStep {
	return []startStep{{"module", b.checkModule}, {"listen", b.checkAddress}, {"shadow", b.checkShadows},
		{"data", b.prepareHost}, {"data", b.openDataFolder}, {"listen", b.listenAt}, {"load", b.loadProvider},
		{"manifest", b.keepManifest}, {"shadow", b.follow}, {"serve", b.openDoor}}
}

// startStep is a step of the start. name is how it is shown when it fails.
type startStep struct {
	name string
	do   func(ctx context.Context) error
}

// undo releases what the steps acquired.
func (b *start) undo() {
	if b.listener != nil {
		_ = b.listener.Close()
	}
	b.slot.Close()
}

// checkModule finds the provider's module and checks its block.
func (b *start) checkModule(context.Context) (err error) {
	if b.module, err = b.ResolveChecked(b.config); err != nil {
		b.at = cli.StepOf(b.module)
		return err
	}
	b.WarnOpenSecrets(b.config, b.shown)
	cli.WarnOfConfig(b.config, b.module, b.shown)
	return nil
}

// checkAddress rejects an address that requires a token if there is none.
func (b *start) checkAddress(context.Context) error {
	return server.CheckListen(b.config.Server.Listen, b.token)
}

// checkShadows finds the modules of the shadows.
func (b *start) checkShadows(context.Context) error { return moving.CheckShadows(b.App, b.config) }

// prepareHost makes the host's options, with everything that observes the host: metrics, the log of the run, spans, the
// manifest.
func (b *start) prepareHost(context.Context) (err error) {
	if b.metrics, err = server.NewMetrics(nil); err != nil {
		return err
	}
	b.host = b.HostOptions(b.config, b.slot.log)
	if guest := guestMemory(b.host.Limits.MemoryBytes, groupMemory(os.ReadFile)); guest != b.host.Limits.MemoryBytes {
		b.shown.Notef("this container's memory leaves a module %d MiB; limits.memory_bytes sets another bound", guest>>20)
		b.host.Limits.MemoryBytes = guest
		b.host.Limits.HighWaterBytes = guest / 2 // an instance that grew beyond this would soon be full of garbage
	}
	b.host.Observe = func(x host.Observation) {
		b.metrics.Observe(x)
		if x.Origin != host.OriginFiles { // no caller asked for it
			b.operations.Observe(x)
		}
	}
	b.host.OnStep = func(walked report.RunStep) {
		b.operations.Step(walked)
		if !b.loaded {
			b.at = walked.Name
			b.shown.Walked(walked, b.module)
		}
	}
	if b.slot.trace, err = cli.TraceInto(&b.host, b.config, b.slot.log); err != nil {
		return err
	}
	if b.slot.trace != nil {
		if err := b.metrics.TraceLog(b.slot.trace.Counts); err != nil {
			return err
		}
	}
	if b.slot.spans, err = b.SpansInto(&b.host, b.config, b.slot.log); err != nil {
		return err
	}
	if b.slot.spans != nil {
		if err := b.metrics.Spans(b.slot.spans.Counts); err != nil {
			return err
		}
	}
	b.host.OnManifest = b.manifest.onManifest
	if b.Cassette != "" {
		b.host.Cassette = &host.CassetteOptions{Path: b.Cassette}
	}
	b.slot.copies = b.CopiesInto(&b.host, b.config, b.slot.log)
	return nil
}

// openDataFolder locks the data folder.
func (b *start) openDataFolder(ctx context.Context) (err error) {
	if _, err := cli.BeginFolder(b.config); err != nil {
		return err
	}
	if b.slot.host, err = host.New(ctx, b.host); err != nil {
		return err
	}
	if err := errors.Join(b.metrics.Host(b.slot.host.Counts), b.metrics.Store(b.slot.host.StoreState)); err != nil {
		return err
	}
	b.shown.Pass("data", b.slot.Dir)
	if b.config.Memory.Archive {
		b.shown.Pass("archive", cli.ArchiveNote(b.config))
	}
	if b.full = noRoom(b.slot.Dir); b.full != nil {
		b.shown.Notef("there is no room in %s (%s): reads are served, and what is to be written is refused until there is",
			b.slot.Dir, b.full)
	}
	if b.Cassette != "" {
		b.shown.Pass("cassette", b.Cassette+": one instance, one operation at a time, virtual time")
	}
	if b.slot.trace != nil {
		b.shown.Pass("trace", b.config.Trace.File)
	}
	if b.slot.spans != nil {
		b.shown.Pass("spans", b.slot.spans.String())
	}
	return nil
}

// listenAt opens the address.
func (b *start) listenAt(ctx context.Context) (err error) {
	if b.listener, err = b.listen(ctx, b.config.Server.Listen); err != nil {
		return err
	}
	b.slot.URL = "http://" + dialable(b.listener.Addr())
	b.shown.Pass("listen", b.slot.URL)
	return nil
}

// loadProvider loads the provider and tries it out.
func (b *start) loadProvider(ctx context.Context) (err error) {
	serve := cli.ServedConfig(b.config, b.module)
	if b.full != nil { // nothing can be tried out or set up
		serve.Smoke, serve.Scope = host.SmokeNever, nil
	}
	if b.slot.slot, err = b.slot.host.Open(ctx, serve); err != nil {
		return err
	}
	b.loaded = true
	if err := b.copyFiles(ctx); err != nil {
		return err
	}
	return b.metrics.Followers(b.slot.slot.FollowerCounts)
}

// copyFiles starts copying memories as files, if that is configured.
func (b *start) copyFiles(ctx context.Context) error {
	if err := b.slot.copies.Start(ctx, b.slot.slot, true); err != nil && b.full == nil {
		return err
	}
	switch dir := filepath.Join(b.slot.Dir, memoryfiles.LiveFolder); {
	case !b.config.Data.Files && b.slot.copies != nil:
		b.shown.Notef("%s has copies of memories from the time when data.files was on; they are not kept up to date. Remove "+
			"the folder if nobody needs them", dir)
	case b.config.Data.Files && b.Cassette != "":
		b.shown.Notef("while a cassette is recorded, no files are copied to %s", dir)
	case b.config.Data.Files && !b.slot.copies.Offered(ctx):
		b.shown.Notef("data.files: %s keeps no files that could be copied", b.slot.provider(ctx))
	case b.config.Data.Files:
		b.shown.Pass("files", dir)
	}
	return nil
}

// keepManifest writes the run manifest and keeps it up to date from now on.
func (b *start) keepManifest(context.Context) error {
	if err := b.manifest.start(b.slot.slot, b.full != nil); err != nil {
		return err
	}
	b.slot.manifest = b.manifest
	return nil
}

// follow starts shadows and continues an interrupted backfill.
func (b *start) follow(ctx context.Context) error {
	following := moving.NewBackfiller(b.App, b.slot.slot, b.config, b.options)
	b.following = following
	if err := following.Shadows(ctx, b.shown); err != nil {
		return err
	}
	if b.Cassette == "" {
		following.Resume(ctx, b.shown)
	}
	if mode, err := b.slot.slot.Mode(ctx); err == nil && mode.ReadOnly {
		b.shown.Notef("the slot is read-only, as it was left; `memhost mode write` ends that")
	}
	return nil
}

// openDoor publishes the slot's address for other commands, and serves.
func (b *start) openDoor(ctx context.Context) error {
	o, err := b.doorOptions()
	if err != nil {
		return err
	}
	door, err := server.New(o)
	if err != nil {
		return err
	}
	if err := b.writeSlot(); err != nil {
		return err
	}
	var serving context.Context
	serving, b.slot.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() { b.slot.ended <- door.Serve(serving, b.listener) }()
	b.shown.Pass("serve", b.slot.provider(ctx))
	b.shown.Started(b.slot.log, b.config)
	return nil
}

// doorOptions returns the options of the HTTP door, with the page and MCP if they are configured.
func (b *start) doorOptions() (server.Options, error) {
	c, slot := b.config, b.slot.slot
	o := server.Options{Slot: slot, Archive: b.slot.host.Archive(), Swapper: b.swapper(slot, c, b.options),
		Backup: func(ctx context.Context, w io.Writer) error {
			return b.slot.host.Backup(ctx, w, config.DefaultsFile)
		},
		Backfiller: b.following, Token: b.token, Eraser: b.Eraser(slot, c, b.options),
		Listen: b.listener.Addr().String(), PublicURL: c.Server.PublicURL, MaxBody: c.Server.MaxBodyBytes,
		CallMemory: callMemory(c.Limits.CallMemoryBytes, processMemory()),
		Shutdown:   callsWithin(b.slot.within), Logger: b.slot.log, Version: b.Version().Version, Metrics: b.metrics,
		Operations: b.operations, Tracer: b.host.Tracer,
		Compare: (&comparer{commands: b.commands, config: c, slot: slot, archive: b.slot.host.Archive(),
			maxEvents: mostCompared}).Compare,
		Modules: func() []wire.Module { return b.ListedModules(b.module) }}
	importer, err := importing.New(b.slot.Dir, slot)
	if err != nil {
		return o, err
	}
	o.Importer = importer
	var views []string
	if c.Server.Runs != "" {
		o.Runs = runsFolder(c.Server.Runs)
		views = append(views, page.ViewRuns)
	}
	if c.Server.Page != page.Off {
		b.slot.page = page.New(c.Server.Page, b.token != "", views...)
		if at, ok := b.listener.Addr().(*net.TCPAddr); !c.Server.PageTexts && (c.Server.PublicURL != "" || !ok || !at.IP.IsLoopback()) {
			b.slot.page.HideTexts()
		}
		o.Page = b.slot.page
	}
	if b.MCP == cli.MCPHTTP {
		mcp, err := b.mcpDoor(c, mcpdoor.Of(slot), b.host.Tracer, b.slot.log)
		if err != nil {
			return o, err
		}
		o.Mounts = map[string]http.Handler{mcpPath: mcp.Handler(c.Server.MaxBodyBytes)}
	}
	scope := c.Scope()
	if c.Memory.Scopes == "configured" {
		o.Scopes.Only = &scope
	} else {
		o.DefaultScope = &scope
	}
	return o, nil
}

// writeSlot writes slot.json, by which commands find the slot. It may be missing in a full data folder.
func (b *start) writeSlot() error {
	info, err := b.DescribeSlot(b.config, b.module)
	if err != nil {
		return err
	}
	info.Address, info.PID, info.TokenRequired = dialable(b.listener.Addr()), os.Getpid(), b.token != ""
	err = state.WriteSlot(b.slot.Dir, info)
	if err != nil && b.full != nil {
		b.shown.Notef("slot.json cannot be written either: commands find this slot by --server %s only", info.Address)
		return nil
	}
	return err
}
