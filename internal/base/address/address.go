// Package address lists the network addresses that are never dialled.
package address

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// metadata lists the addresses of cloud metadata services outside the link-local ranges.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),   // Amazon
	netip.MustParseAddr("fd20:ce::254"),    // Google
	netip.MustParseAddr("168.63.129.16"),   // Azure, its platform's channel to every machine
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("192.0.0.192"),     // Oracle
}

// carriers are the ranges of IPv6 addresses that embed an IPv4 address, with the byte offset of that address: NAT64
// (RFC 6052), 6to4 (RFC 3056) and the deprecated IPv4-compatible form (RFC 4291). A gateway may deliver there.
var carriers = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
	{netip.MustParsePrefix("::/96"), 12},
}

// Always describes the addresses that this program never dials, whatever name they came from.
const Always = "the address is link-local, a metadata service, multicast or unspecified, " +
	"which are always refused"

// ErrRefused is the error for such an address.
var ErrRefused = errors.New(Always)

// Refuse checks an address and port. It is a net.Dialer.ControlContext, which is called at the moment of dialling,
// after the name was resolved, so that the name cannot resolve differently after the check.
//
// Errors: ErrRefused, wrapped with the address.
func Refuse(_ context.Context, _, address string, _ syscall.RawConn) error {
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
		return fmt.Errorf("%s: %w", address, ErrRefused)
	}
	return nil
}

func isRefused(ip netip.Addr) bool {
	return ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || slices.Contains(metadata, ip)
}
