package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/cli/tracelog"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/doors/mcpdoor"
	"github.com/memhost/memhost/internal/doors/page"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/wire"
	"github.com/memhost/memhost/internal/state"
)

// servedSlot is a slot that this process serves.
type servedSlot struct {
	url    string
	dir    string
	host   *host.Host
	slot   *host.Slot
	within time.Duration // for calls under way when it ends
	log    hclog.Logger

	trace    *tracelog.Log // nil: none
	spans    *spans        // nil: none
	manifest *manifestFile // nil: not begun yet
	page     *page.Page    // nil: none

	stop   context.CancelFunc
	ended  chan error
	forced bool // the process ends: nothing is waited for any more
	// endBy is when calls under way are cut off, once a signal has come.
	endBy time.Time
}

// start takes the data folder and the address, loads the provider and serves. options are those that c was read with: a
// swap reads the configuration of another provider the same way. Callers must send token, unless it is "".
func (a *app) start(ctx context.Context, c *config.Config, options config.Options, token string,
	s *steps) (_ *servedSlot, err error) {
	quiet := hclog.Info
	if s.log == nil {
		quiet = hclog.Warn // the steps say it
	}
	v := &servedSlot{dir: c.Data.Dir, within: time.Duration(c.Server.ShutdownMS) * time.Millisecond,
		log: a.logger(quiet), ended: make(chan error, 1)}
	step := "module"
	defer func() {
		if err != nil {
			s.fail(step)
			v.close()
		}
	}()
	// 1. the module
	m, err := a.resolveChecked(c)
	if err != nil {
		step = stepOf(m)
		return nil, err
	}
	a.warnOpenSecrets(c, s)
	warnOfConfig(c, m, s)
	if err := server.CheckListen(c.Server.Listen, token); err != nil {
		step = "listen"
		return nil, err
	}
	step = "shadow"
	if err := a.checkShadows(c); err != nil {
		return nil, err
	}
	// 2. the data folder
	step = "data"
	metrics, err := server.NewMetrics(nil)
	if err != nil {
		return nil, err
	}
	ho := a.hostOptions(c, v.log)
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
			s.walked(walked, m)
		}
	}
	if v.trace, err = traceInto(&ho, c, v.log); err != nil {
		return nil, err
	}
	if v.trace != nil {
		if err := metrics.TraceLog(v.trace.Counts); err != nil {
			return nil, err
		}
	}
	if v.spans, err = a.spansInto(&ho, c, v.log); err != nil {
		return nil, err
	}
	if v.spans != nil {
		if err := metrics.Spans(v.spans.Counts); err != nil {
			return nil, err
		}
	}
	manifest := newManifestFile(c.Run.Manifest, v.log)
	ho.OnManifest = manifest.onManifest
	if a.cassette != "" {
		ho.Cassette = &host.CassetteOptions{Path: a.cassette}
	}
	if v.host, err = host.New(ctx, ho); err != nil {
		return nil, err
	}
	if err := metrics.Host(v.host.Counts); err != nil {
		return nil, err
	}
	s.pass("data", c.Data.Dir)
	full := noRoom(c.Data.Dir)
	if full != nil {
		s.notef("there is no room in %s (%s): reads are served, and what is to be written is refused until there is",
			c.Data.Dir, full)
	}
	if a.cassette != "" {
		s.pass("cassette", a.cassette+": one instance, one operation at a time, virtual time")
	}
	if v.trace != nil {
		s.pass("trace", c.Trace.File)
	}
	if v.spans != nil {
		s.pass("spans", v.spans.String())
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
	v.url = "http://" + dialable(listener.Addr())
	s.pass("listen", v.url)
	// 4. the provider
	step = "load"
	serve := servedConfig(c, m)
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
	following := &backfiller{app: a, slot: v.slot, running: c, options: options}
	step = "shadow"
	if err = following.shadows(ctx, s); err != nil {
		return nil, err
	}
	if a.cassette == "" {
		following.resume(ctx, s)
	}
	if mode, err := v.slot.Mode(ctx); err == nil && mode.ReadOnly {
		s.notef("the slot is read-only, as it was left; `memhost mode write` ends that")
	}
	// 5. the door
	step = "serve"
	o := server.Options{Slot: v.slot, Archive: v.host.Archive(), Swapper: a.swapper(v.slot, c, options), Backfiller: following,
		Token: token, Eraser: a.eraser(v.slot, c, options),
		Listen: listener.Addr().String(), MaxBody: c.Server.MaxBodyBytes,
		Shutdown: v.within, Logger: v.log, Version: a.version().Version, Metrics: metrics,
		Operations: operations, Tracer: ho.Tracer,
		Modules: func() []wire.Module { return a.listedModules(m) }}
	var views []string
	if c.Server.Runs != "" {
		o.Runs = runsFolder(c.Server.Runs)
		views = append(views, page.ViewRuns)
	}
	if c.Server.Page != page.Off {
		v.page = page.New(c.Server.Page, token != "", views...)
		o.Page = v.page
	}
	if a.mcp == mcpHTTP {
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
	info, err := a.describeSlot(c, m)
	if err != nil {
		return nil, err
	}
	info.Address, info.PID, info.TokenRequired = dialable(listener.Addr()), os.Getpid(), token != ""
	if err = state.WriteSlot(c.Data.Dir, info); err != nil && full == nil {
		return nil, err
	}
	if err != nil {
		s.notef("slot.json cannot be written either: commands find this slot by --server %s only", info.Address)
		err = nil
	}
	var serving context.Context
	serving, v.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() { v.ended <- door.Serve(serving, listener) }()
	s.pass("serve", v.provider(ctx))
	s.started(v.log, c)
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

// walked shows a step of the host that has passed; the last one, the switch to the provider, is shown when the door is
// open.
func (s *steps) walked(step abi.RunStep, m *module) {
	if step.Verdict == "fail" || step.Name == "serve" {
		return
	}
	detail := step.Detail
	if step.Name == "load" {
		detail = fmt.Sprintf("%s %s, %s, sha256 %s, %s", m.name, m.info.Manifest.Version, size(m.info.Bytes),
			m.info.SHA256[:12], sourceText(m.source))
	}
	s.tell(step.Verdict, step.Name, fmt.Sprintf("%s (%.0f ms)", detail, step.MS))
}

func sourceText(source string) string {
	if source == sourceBuiltin {
		return "built in"
	}
	return source
}

// listen opens the address. When it is taken the error says what to do, and names the slot if another one is there.
func (a *app) listen(ctx context.Context, address string) (net.Listener, error) {
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
		within, cancel := context.WithTimeout(ctx, answerWithin)
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
func (v *servedSlot) provider(ctx context.Context) string {
	c, err := v.slot.Capabilities(ctx)
	if err != nil {
		return "nothing"
	}
	return c.Provider
}

// serveUntilSignal serves until a signal, then lets calls under way end. A second signal does not wait for them.
func (v *servedSlot) serveUntilSignal(a *app) error {
	if !a.interrupted { // which a signal at the very end of the start has done
		select {
		case err := <-v.ended: // the listener broke
			v.ended <- nil // for close
			return err
		case <-a.signals():
		}
	}
	v.endBy = time.Now().Add(v.within)
	a.out.note("\nEnding: calls under way have up to %s; a second signal stops at once.", v.within)
	v.stop()
	select {
	case err := <-v.ended:
		v.ended <- nil
		return err
	case <-a.signals():
		v.forced = true
		_ = state.RemoveSlot(v.dir)
		a.out.note("stopped at once")
		return &doneError{exitInterrupted}
	}
}

// closeLeast is what releasing takes at most after calls under way have ended or were cut off, unless there is more of
// server.shutdown_ms left.
const closeLeast = 3 * time.Second

// close ends serving, as far as it has begun, and releases the data folder. It returns in time although a database or a
// backend hangs: what it held is free once the process has ended, and a host's session ends by itself.
func (v *servedSlot) close() {
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
func (v *servedSlot) release(ctx context.Context) {
	if v.stop != nil {
		v.stop()
		select {
		case <-v.ended:
		case <-ctx.Done():
		}
	}
	defer v.spans.close()
	if v.host == nil {
		v.trace.Close()
		return
	}
	if err := state.RemoveSlot(v.dir); err != nil {
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
