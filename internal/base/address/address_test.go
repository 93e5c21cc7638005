package address

import (
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAddressesThatAreAlwaysRefused(t *testing.T) {
	for at, refused := range map[string]bool{
		"169.254.169.254:80": true, "[fe80::1%eth0]:80": true, "[::ffff:169.254.169.254]:80": true,
		"[fd00:ec2::254]:80": true,
		"168.63.129.16:80":   true, "168.63.129.16:32526": true, "[::ffff:168.63.129.16]:80": true,
		"168.63.129.17:80": false,
		"192.0.0.192:80":   true, "[fd20:ce::254]:80": true, "[ff02::1]:80": true, "[64:ff9b::a9fe:a9fe]:80": true,
		"[2002:a83f:8110::1]:80": true, "[::169.254.169.254]:80": true, "[64:ff9b::7f00:1]:80": false,
		"[2001:db8::1]:80": false, "0.0.0.0:80": true, "[::]:80": true, "224.0.0.1:80": true,
		"100.100.100.200:80": true,
		"127.0.0.1:80":       false, "10.1.2.3:80": false, "[::1]:80": false, "93.184.216.34:443": false,
	} {
		_, err := netip.ParseAddrPort(at)
		require.NoError(t, err, at)
		err = Refuse(context.Background(), "tcp", at, nil)
		assert.Equal(t, refused, err != nil, "%s: %v", at, err)
	}
}
