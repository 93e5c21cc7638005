package registrycmd

import (
	"encoding/json"
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
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/registry"
	"github.com/memhost/memhost/internal/signing"
	"github.com/memhost/memhost/internal/test/sigstore"
	"github.com/memhost/memhost/internal/test/testguest"
)

// TestALineOfTrustEndsWithItsDay: a signed module is accepted until the end of the line's last day, in UTC.
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
	signature, err := key.Sign(signing.Signature, pinned.Digest, json.RawMessage("{}"))
	require.NoError(t, err)
	require.NoError(t, client.Attach(t.Context(), pinned, signing.BundleType, signature, nil))

	c, err := config.Load(config.Options{Dir: dir, Environ: []string{}, Flags: map[string]any{
		"modules.trust": []string{name + " signed by team.pub until 2027-01-31"}}})
	require.NoError(t, err)
	check := func(now time.Time) (*cli.Module, error) {
		m, err := cli.Inspected(testguest.Echo(), pinned.String())
		require.NoError(t, err)
		a := cli.New(cli.System{Environ: []string{"XDG_CACHE_HOME=" + t.TempDir()},
			Now: func() time.Time { return now }})
		return m, a.CheckTrust(c, m, false)
	}
	midnight := time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)
	m, err := check(midnight.Add(-time.Second))
	require.NoError(t, err)
	assert.Equal(t, id, m.Signer)
	m, err = check(midnight)
	require.ErrorContains(t, err, "has ended")
	assert.Equal(t, abi.CodeDenied, abi.CodeOf(err))
	assert.Empty(t, m.Signer)
}

// TestAKeylessSignatureIsTrusted: it is verified with the trusted root that the configuration names, and with no
// connection other than the registry's.
func TestAKeylessSignatureIsTrusted(t *testing.T) {
	const workflow, actions = "https://github.com/team/echo/.github/workflows/release.yml@refs/tags/", "https://a.example"
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	server := httptest.NewServer(ociserver.New(ociserver.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	services := sigstore.New(t)
	for name, text := range map[string][]byte{"root.json": services.Root(), "other.json": sigstore.New(t).Root(),
		"broken.json": []byte("{}")} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	name := registry.Scheme + strings.TrimPrefix(server.URL, "http://") + "/team/echo"
	r, err := registry.ParseReference(name + ":v1")
	require.NoError(t, err)
	client := &registry.Client{}
	pinned, err := client.Push(t.Context(), r, testguest.Echo())
	require.NoError(t, err)
	bundle := services.Sign(sigstore.Signature{Digest: pinned.Digest, Name: workflow + "v1", Issuer: actions})
	require.NoError(t, client.Attach(t.Context(), pinned, signing.BundleType, bundle, nil))

	check := func(root, identity, issuer string) (*cli.Module, *signature, error) {
		c, err := config.Load(config.Options{Dir: dir, Environ: []string{}, Flags: map[string]any{
			"modules.sigstore_root": root,
			"modules.trust":         []string{name + " signed by " + identity + " issued by " + issuer}}})
		require.NoError(t, err)
		m, err := cli.Inspected(testguest.Echo(), pinned.String())
		require.NoError(t, err)
		a := cli.New(cli.System{Environ: []string{"XDG_CACHE_HOME=" + t.TempDir()}, Now: time.Now})
		shown := checked(bundle, signing.Signature, pinned, c.Trust(), c.Modules.SigstoreRoot, time.Now())
		return m, &shown, a.CheckTrust(c, m, false)
	}
	m, shown, err := check("root.json", workflow+"*", actions)
	require.NoError(t, err)
	assert.Equal(t, workflow+"v1 issued by "+actions, m.Signer)
	assert.Equal(t, m.Signer, shown.Signer)
	assert.NotEmpty(t, shown.Trust)

	_, shown, err = check("root.json", workflow+"v2", actions)
	require.ErrorContains(t, err, "it is signed by "+workflow+"v1 issued by "+actions+", not by "+workflow+"v2 issued by")
	assert.Equal(t, abi.CodeDenied, abi.CodeOf(err))
	assert.Empty(t, shown.Trust+shown.Problem)
	_, _, err = check("root.json", workflow+"*", "https://b.example")
	require.ErrorContains(t, err, "not by "+workflow+"* issued by https://b.example")
	_, shown, err = check("other.json", workflow+"*", actions)
	require.ErrorContains(t, err, "cannot be used: it is in a transparency log that the trusted root does not have")
	assert.Contains(t, shown.Problem, "that the trusted root does not have")
	_, _, err = check("broken.json", workflow+"*", actions)
	require.ErrorContains(t, err, "broken.json: is not a trusted root that can be used")
	_, _, err = check("absent.json", workflow+"*", actions)
	require.ErrorContains(t, err, "absent.json: does not exist")
}
