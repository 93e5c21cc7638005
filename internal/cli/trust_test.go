package cli

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ociserver "github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/registry"
	"github.com/memhost/memhost/internal/signing"
	"github.com/memhost/memhost/internal/testguest"
)

// TestALineOfTrustEndsWithItsDay: a signed module passes until the end of the line's last day, in UTC.
func TestALineOfTrustEndsWithItsDay(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	server := httptest.NewServer(ociserver.New(ociserver.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	private, public, id, err := signing.NewKey(nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "team.pub"), public, 0o600))
	key, err := signing.ReadPrivateKey(private, nil)
	require.NoError(t, err)

	name := registry.Scheme + strings.TrimPrefix(server.URL, "http://") + "/team/echo"
	r, err := registry.ParseReference(name + ":v1")
	require.NoError(t, err)
	client := &registry.Client{}
	pinned, err := client.Push(t.Context(), r, testguest.Echo())
	require.NoError(t, err)
	signature, err := key.Sign(pinned.Digest)
	require.NoError(t, err)
	require.NoError(t, client.Attach(t.Context(), pinned, signing.BundleType, signature, nil))

	c, err := config.Load(config.Options{Dir: dir, Environ: []string{}, Flags: map[string]any{
		"modules.trust": []string{name + " signed by team.pub until 2027-01-31"}}})
	require.NoError(t, err)
	check := func(now time.Time) (*module, error) {
		m, err := inspected(testguest.Echo(), pinned.String())
		require.NoError(t, err)
		a := &app{System: System{Environ: []string{"XDG_CACHE_HOME=" + t.TempDir()},
			Now: func() time.Time { return now }}}
		return m, a.checkTrust(c, m, false)
	}
	midnight := time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)
	m, err := check(midnight.Add(-time.Second))
	require.NoError(t, err)
	assert.Equal(t, id, m.signer)
	m, err = check(midnight)
	require.ErrorContains(t, err, "has ended")
	assert.Equal(t, abi.CodeDenied, abi.CodeOf(err))
	assert.Empty(t, m.signer)
}
