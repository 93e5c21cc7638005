package serving

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/cli/tracelog"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/doors/page"
	"github.com/memhost/memhost/internal/memoryfiles"
	"github.com/memhost/memhost/internal/state"
)

// ServedSlot is a slot that this process serves.
type ServedSlot struct {
	URL    string
	Dir    string
	host   *host.Host
	slot   *host.Slot
	within time.Duration // for the end
	log    hclog.Logger

	trace    *tracelog.Log     // nil: none
	spans    *cli.Spans        // nil: none
	manifest *manifestFile     // nil: not begun yet
	copies   *memoryfiles.Live // nil: none
	page     *page.Page        // nil: none

	stop   context.CancelFunc
	ended  chan error
	forced bool // the process is being forced to end: don't wait for anything
	// endBy is when calls in progress are cut off, once a signal has arrived.
	endBy time.Time
}

// roomWanted is the free space that a data folder needs for a normal start, in bytes.
const roomWanted = 128 << 10

// noRoom tries to write into an existing data folder. It returns the system's error if the disk, or the user's quota,
// is full.
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
	return nil // the first write reports any other error
}

// listen opens the address. If it is taken the error says what to do, and names the slot if another one is there.
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
			err).WithHint("choose another address: --listen 127.0.0.1:0 takes a free port, and [::1]:0 where there is IPv6 only")
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

// dialable converts a listener's address to one that a client on this computer can use.
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

// ServeUntilSignal serves until a signal, then lets calls in progress finish. A second signal does not wait for them.
func (v *ServedSlot) ServeUntilSignal(a *cli.App) error {
	if !a.Interrupted { // a signal at the very end of the start has already done so
		select {
		case err := <-v.ended: // the listener broke
			v.ended <- nil // for close
			return err
		case <-a.Signals():
		}
	}
	v.endBy = time.Now().Add(v.within)
	a.Out.Note("\nEnding: calls under way have up to %s; a second signal stops at once.", callsWithin(v.within))
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

// callsWithin is the part of server.shutdown_ms for calls in progress. The rest, a quarter but between 1 and 3 seconds,
// is for releasing what the slot holds.
func callsWithin(shutdown time.Duration) time.Duration {
	return max(shutdown-min(max(shutdown/4, releaseLeast), 3*time.Second), time.Millisecond)
}

// releaseLeast is the minimum time for releasing, however short server.shutdown_ms is.
const releaseLeast = time.Second

// Close stops serving, as far as it had started, and releases the data folder. It returns in time even if a database or
// a backend hangs: what they held is free once the process has ended, and a host's session expires by itself.
func (v *ServedSlot) Close() {
	if v.forced {
		return
	}
	left := v.within
	if !v.endBy.IsZero() {
		left = time.Until(v.endBy)
	}
	left = max(left, releaseLeast)
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

// release is Close without a time limit.
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
	v.copies.Close(ctx)
	if v.slot != nil {
		if err := v.slot.Close(ctx); err != nil {
			v.log.Warn("closing the slot", "error", err)
		}
	}
	if err := v.host.Close(ctx); err != nil {
		v.log.Warn("closing the data folder", "error", err)
	}
}
