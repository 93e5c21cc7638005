package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// Every connection to a backend is made here or, for Bolt, watched here: an address is checked at the moment of
// dialling, after its name was resolved, so that a name cannot change its meaning after a check.

const dialTimeout = 10 * time.Second

// metadata lists the addresses of cloud metadata services outside the link-local ranges.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),   // Amazon
	netip.MustParseAddr("fd20:ce::254"),    // Google
	netip.MustParseAddr("168.63.129.16"),   // Azure, its platform's channel into every machine
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("192.0.0.192"),     // Oracle
}

// carriers are the ranges of IPv6 addresses that stand for an IPv4 address, with the byte at which it begins: NAT64
// (RFC 6052), 6to4 (RFC 3056) and the retired IPv4-compatible form (RFC 4291). A gateway may deliver there.
var carriers = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
	{netip.MustParsePrefix("::/96"), 12},
}

// AlwaysRefused says of which kind an address is that no plugin may reach, whatever name led there.
const AlwaysRefused = "the address is link-local, a metadata service, multicast or unspecified, " +
	"which are always refused"

var errAddress = errors.New(AlwaysRefused)

// refuseAddress checks an address and port, as net.Dialer.ControlContext.
//
// Errors: errAddress, wrapped with the address.
func refuseAddress(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	ip := at.Addr().Unmap().WithZone("")
	refused := isRefused(ip)
	for _, c := range carriers {
		if bytes := ip.As16(); c.prefix.Contains(ip) && ip != netip.IPv6Loopback() {
			refused = refused || isRefused(netip.AddrFrom4([4]byte(bytes[c.at:])))
		}
	}
	if refused {
		return fmt.Errorf("%s: %w", address, errAddress)
	}
	return nil
}

func isRefused(ip netip.Addr) bool {
	return ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || slices.Contains(metadata, ip)
}

// newTransport makes the connections of an http origin. It follows no redirect, uses no proxy of the environment and
// adds no header of its own.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second, ControlContext: refuseAddress}
	return &http.Transport{DialContext: dialer.DialContext, Proxy: nil, DisableCompression: true, MaxIdleConns: 64,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: dialTimeout,
		ExpectContinueTimeout: time.Second, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true}
}

// dialWatch checks every address that is dialled under its context. Neo4j's driver takes no dialler of ours, but it
// dials by package net, which reports each connection that it starts, with the resolved address, to a trace in the
// context: the configured host and each one that a routing table names. A refused address ends the context, and with it
// the connection, before a byte is sent on it.
type dialWatch struct {
	cancel  context.CancelFunc
	refused atomic.Pointer[error]
}

func watchDials(ctx context.Context) (context.Context, *dialWatch) {
	w := new(dialWatch)
	ctx, w.cancel = context.WithCancel(ctx)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{ConnectStart: func(_, address string) {
		if err := refuseAddress(ctx, "", address, nil); err != nil {
			w.refused.Store(&err)
			w.cancel()
		}
	}}), w
}

func (w *dialWatch) stop() { w.cancel() }

// explain replaces the error of a call by the refusal that caused it.
func (w *dialWatch) explain(err error) error {
	if refused := w.refused.Load(); refused != nil && err != nil {
		return &unsentError{*refused}
	}
	return err
}

// neverLeft reports whether a call failed before it had a connection.
func neverLeft(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
