package serving

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/cli/moving"
	"github.com/memhost/memhost/internal/cli/tracelog"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/doors/mcpdoor"
	"github.com/memhost/memhost/internal/doors/page"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/wire"
	"github.com/memhost/memhost/internal/state"
)

// ServedSlot is a slot that this process serves.
type ServedSlot struct {
	URL    string
	Dir    string
	host   *host.Host
	slot   *host.Slot
	within time.Duration // for calls under way when it ends
	log    hclog.Logger

	trace    *tracelog.Log // nil: none
	spans    *cli.Spans    // nil: none
	manifest *manifestFile // nil: not begun yet
	page     *page.Page    // nil: none

	stop   context.CancelFunc
	ended  chan error
	forced bool // the process ends: nothing is waited for any more
	// endBy is when calls under way are cut off, once a signal has come.
	endBy time.Time
}

// Start takes the data folder and the address, loads the provider and serves. options are those that c was read with: a
// swap reads the configuration of another provider the same way. Callers must send token, unless it is "".
func Start(ctx context.Context, k *cli.App, c *config.Config, options config.Options, token string,
	s *cli.Steps) (_ *ServedSlot, err error) {
	a := &commands{k}
	quiet := hclog.Info
	if s.Log == nil {
		quiet = hclog.Warn // the steps say it
	}
	v := &ServedSlot{Dir: c.Data.Dir, within: time.Duration(c.Server.ShutdownMS) * time.Millisecond,
		log: a.Logger(quiet), ended: make(chan error, 1)}
	step := "module"
	defer func() {
		if err != nil {
			s.Fail(step)
			v.Close()
		}
	}()
	// 1. the module
	m, err := a.ResolveChecked(c)
	if err != nil {
		step = cli.StepOf(m)
		return nil, err
	}
	a.WarnOpenSecrets(c, s)
	cli.WarnOfConfig(c, m, s)
	if err := server.CheckListen(c.Server.Listen, token); err != nil {
		step = "listen"
		return nil, err
	}
	step = "shadow"
	if err := moving.CheckShadows(k, c); err != nil {
		return nil, err
	}
	// 2. the data folder
	step = "data"
	metrics, err := server.NewMetrics(nil)
	if err != nil {
		return nil, err
	}
	ho := a.HostOptions(c, v.log)
	operations := server.NewOperations()
	ho.Observe = func(x host.Observation) {
		metrics.Observe(x)
		operations.Observe(x)
	}
	starting := true // swaps later on are the log's
	ho.OnStep = func(walked abi.RunStep) {
		operations.Step(walked)
		if starting {
			step = walked.Name
			s.Walked(walked, m)
		}
	}
	if v.trace, err = cli.TraceInto(&ho, c, v.log); err != nil {
		return nil, err
	}
	if v.trace != nil {
		if err := metrics.TraceLog(v.trace.Counts); err != nil {
			return nil, err
		}
	}
	if v.spans, err = a.SpansInto(&ho, c, v.log); err != nil {
		return nil, err
	}
	if v.spans != nil {
		if err := metrics.Spans(v.spans.Counts); err != nil {
			return nil, err
		}
	}
	manifest := newManifestFile(c.Run.Manifest, v.log)
	ho.OnManifest = manifest.onManifest
	if a.Cassette != "" {
		ho.Cassette = &host.CassetteOptions{Path: a.Cassette}
	}
	if v.host, err = host.New(ctx, ho); err != nil {
		return nil, err
	}
	if err := metrics.Host(v.host.Counts); err != nil {
		return nil, err
	}
	s.Pass("data", c.Data.Dir)
	full := noRoom(c.Data.Dir)
	if full != nil {
		s.Notef("there is no room in %s (%s): reads are served, and what is to be written is refused until there is",
			c.Data.Dir, full)
	}
	if a.Cassette != "" {
		s.Pass("cassette", a.Cassette+": one instance, one operation at a time, virtual time")
	}
	if v.trace != nil {
		s.Pass("trace", c.Trace.File)
	}
	if v.spans != nil {
		s.Pass("spans", v.spans.String())
	}
	// 3. the address, before what may take long
	step = "listen"
	listener, err := a.listen(ctx, c.Server.Listen)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = listener.Close()
		}
	}()
	v.URL = "http://" + dialable(listener.Addr())
	s.Pass("listen", v.URL)
	// 4. the provider
	step = "load"
	serve := cli.ServedConfig(c, m)
	if full != nil { // nothing can be tried out, or made ready beforehand
		serve.Smoke, serve.Scope = host.SmokeNever, nil
	}
	if v.slot, err = v.host.Open(ctx, serve); err != nil {
		return nil, err
	}
	starting = false
	if err = metrics.Followers(v.slot.FollowerCounts); err != nil {
		return nil, err
	}
	step = "manifest"
	if err = manifest.start(v.slot, full != nil); err != nil {
		return nil, err
	}
	v.manifest = manifest
	following := moving.NewBackfiller(k, v.slot, c, options)
	step = "shadow"
	if err = following.Shadows(ctx, s); err != nil {
		return nil, err
	}
	if a.Cassette == "" {
		following.Resume(ctx, s)
	}
	if mode, err := v.slot.Mode(ctx); err == nil && mode.ReadOnly {
		s.Notef("the slot is read-only, as it was left; `memhost mode write` ends that")
	}
	// 5. the door
	step = "serve"
	o := server.Options{Slot: v.slot, Archive: v.host.Archive(), Swapper: a.swapper(v.slot, c, options), Backfiller: following,
		Token: token, Eraser: a.Eraser(v.slot, c, options),
		Listen: listener.Addr().String(), MaxBody: c.Server.MaxBodyBytes,
		Shutdown: v.within, Logger: v.log, Version: a.Version().Version, Metrics: metrics,
		Operations: operations, Tracer: ho.Tracer,
		Modules: func() []wire.Module { return a.ListedModules(m) }}
	var views []string
	if c.Server.Runs != "" {
		o.Runs = runsFolder(c.Server.Runs)
		views = append(views, page.ViewRuns)
	}
	if c.Server.Page != page.Off {
		v.page = page.New(c.Server.Page, token != "", views...)
		o.Page = v.page
	}
	if a.MCP == cli.MCPHTTP {
		mcp, err := a.mcpDoor(c, mcpdoor.Of(v.slot), ho.Tracer, v.log)
		if err != nil {
			return nil, err
		}
		o.Mounts = map[string]http.Handler{mcpPath: mcp.Handler(c.Server.MaxBodyBytes)}
	}
	if c.Memory.Scopes == "configured" {
		scope := c.Scope()
		o.Scopes.Only = &scope
	}
	door, err := server.New(o)
	if err != nil {
		return nil, err
	}
	info, err := a.DescribeSlot(c, m)
	if err != nil {
		return nil, err
	}
	info.Address, info.PID, info.TokenRequired = dialable(listener.Addr()), os.Getpid(), token != ""
	if err = state.WriteSlot(c.Data.Dir, info); err != nil && full == nil {
		return nil, err
	}
	if err != nil {
		s.Notef("slot.json cannot be written either: commands find this slot by --server %s only", info.Address)
		err = nil
	}
	var serving context.Context
	serving, v.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() { v.ended <- door.Serve(serving, listener) }()
	s.Pass("serve", v.provider(ctx))
	s.Started(v.log, c)
	return v, nil
}

// roomWanted is how many bytes a data folder must have free for a slot to start as usual.
const roomWanted = 128 << 10

// noRoom tries to write into a data folder that is there. It returns the system's error when the disk, or the user's
// quota, is full.
func noRoom(dir string) error {
	probe, err := os.CreateTemp(dir, "room.*.tmp")
	if err == nil {
		_, err = probe.Write(make([]byte, roomWanted))
		if closed := probe.Close(); err == nil {
			err = closed
		}
		_ = os.Remove(probe.Name())
	}
	var bare syscall.Errno
	if errors.As(err, &bare) && slices.Contains(fullDisk(), bare) {
		return bare
	}
	return nil // any other error shows at the first write
}

// listen opens the address. When it is taken the error says what to do, and names the slot if another one is there.
func (a *commands) listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err == nil {
		return l, nil
	}
	var op *net.OpError
	reason := err.Error()
	if errors.As(err, &op) {
		reason = op.Err.Error()
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		return nil, abi.WrapError(abi.CodeInvalidArgument, "server.listen: cannot listen on "+address+": "+reason,
			err).WithHint("choose another address: --listen 127.0.0.1:0 takes a free port")
	}
	e := abi.WrapError(abi.CodeUnavailable, address+" is taken",
		err).WithReason("address_taken").WithHint("--listen 127.0.0.1:0 takes a free port")
	if c, err := client.New(address, ""); err == nil {
		defer c.Close()
		within, cancel := context.WithTimeout(ctx, cli.AnswerWithin)
		defer cancel()
		if _, err := c.Healthz(within); err == nil {
			e.Message += " by another memhost slot, on another data folder"
			e.Hint += "; or talk to that slot: --server " + address
		}
	}
	return nil, e // retryable: the address may become free
}

// dialable is a listener's address as a client on this computer can use it.
func dialable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	local := net.IPv4(127, 0, 0, 1)
	if tcp.IP.To4() == nil {
		local = net.IPv6loopback
	}
	return (&net.TCPAddr{IP: local, Port: tcp.Port}).String()
}

// provider is the name of the serving provider.
func (v *ServedSlot) provider(ctx context.Context) string {
	c, err := v.slot.Capabilities(ctx)
	if err != nil {
		return "nothing"
	}
	return c.Provider
}

// ServeUntilSignal serves until a signal, then lets calls under way end. A second signal does not wait for them.
func (v *ServedSlot) ServeUntilSignal(a *cli.App) error {
	if !a.Interrupted { // which a signal at the very end of the start has done
		select {
		case err := <-v.ended: // the listener broke
			v.ended <- nil // for close
			return err
		case <-a.Signals():
		}
	}
	v.endBy = time.Now().Add(v.within)
	a.Out.Note("\nEnding: calls under way have up to %s; a second signal stops at once.", v.within)
	v.stop()
	select {
	case err := <-v.ended:
		v.ended <- nil
		return err
	case <-a.Signals():
		v.forced = true
		_ = state.RemoveSlot(v.Dir)
		a.Out.Note("stopped at once")
		return cli.Done(cli.ExitInterrupted)
	}
}

// closeLeast is what releasing takes at most after calls under way have ended or were cut off, unless there is more of
// server.shutdown_ms left.
const closeLeast = 3 * time.Second

// Close ends serving, as far as it has begun, and releases the data folder. It returns in time although a database or a
// backend hangs: what it held is free once the process has ended, and a host's session ends by itself.
func (v *ServedSlot) Close() {
	if v.forced {
		return
	}
	left := max(v.within, time.Second)
	if !v.endBy.IsZero() {
		left = max(time.Until(v.endBy), closeLeast)
	}
	ctx, cancel := context.WithTimeout(context.Background(), left)
	defer cancel()
	released := make(chan struct{})
	go func() {
		defer close(released)
		v.release(ctx)
	}()
	select {
	case <-released:
	case <-ctx.Done():
		v.log.Warn("the store or a provider does not answer: the process ends without waiting for it")
	}
}

// release is close without a bound.
func (v *ServedSlot) release(ctx context.Context) {
	if v.stop != nil {
		v.stop()
		select {
		case <-v.ended:
		case <-ctx.Done():
		}
	}
	defer v.spans.Close()
	if v.host == nil {
		v.trace.Close()
		return
	}
	if err := state.RemoveSlot(v.Dir); err != nil {
		v.log.Warn("removing slot.json", "error", err)
	}
	if v.manifest != nil {
		v.manifest.close()
	}
	defer v.trace.Close()
	if v.slot != nil {
		if err := v.slot.Close(ctx); err != nil {
			v.log.Warn("closing the slot", "error", err)
		}
	}
	if err := v.host.Close(ctx); err != nil {
		v.log.Warn("closing the data folder", "error", err)
	}
}
