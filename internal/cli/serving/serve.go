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

// callsWithin is how much of server.shutdown_ms calls under way have. The rest, a quarter, but from 1 to 3 seconds, is for
// releasing what the slot holds.
func callsWithin(shutdown time.Duration) time.Duration {
	return max(shutdown-min(max(shutdown/4, releaseLeast), 3*time.Second), time.Millisecond)
}

// releaseLeast is how long releasing may take, however short server.shutdown_ms is.
const releaseLeast = time.Second

// Close ends serving, as far as it has begun, and releases the data folder. It returns in time although a database or a
// backend hangs: what it held is free once the process has ended, and a host's session ends by itself.
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
