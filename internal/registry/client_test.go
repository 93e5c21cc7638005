package registry

import (
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	served "github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/brief"
)

var tiny = []byte("\x00asm\x01\x00\x00\x00")

// hostOf serves a handler on this computer and returns its HOST:PORT.
func hostOf(t *testing.T, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func emptyRegistry() http.Handler { return served.New(served.Logger(log.New(io.Discard, "", 0))) }

// newClient has an empty cache and no credentials.
func newClient(t *testing.T) *Client {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	return &Client{Cache: Cache(t.TempDir())}
}

func parsed(t *testing.T, s string) Reference {
	r, err := ParseReference(s)
	require.NoError(t, err)
	return r
}

// pushed is a module in a registry, with its digest.
func pushed(t *testing.T, c *Client, host string) Reference {
	r, err := c.Push(t.Context(), parsed(t, "oci://"+host+"/team/mem:v1"), tiny)
	require.NoError(t, err)
	return r
}

// pullFails pulls without the cache that the push has filled.
func pullFails(t *testing.T, r Reference, code abi.Code, text string) {
	t.Helper()
	_, _, err := newClient(t).Pull(t.Context(), r)
	require.ErrorContains(t, err, text)
	assert.Equal(t, code, abi.AsError(err).Code)
	assert.Contains(t, err.Error(), r.String(), "which module it is about")
}

func TestAModuleIsPushedAndPulled(t *testing.T) {
	host := hostOf(t, emptyRegistry())
	c := newClient(t)
	at := pushed(t, c, host)
	assert.Equal(t, at, pushed(t, c, host), "the same module has the same digest")

	for _, name := range []string{"oci://" + host + "/team/mem:v1", at.String()} {
		wasm, pinned, err := newClient(t).Pull(t.Context(), parsed(t, name))
		require.NoError(t, err)
		assert.Equal(t, tiny, wasm)
		assert.Equal(t, at, pinned)
	}
	_, err := c.Push(t.Context(), at, tiny)
	require.ErrorContains(t, err, "pushed to a tag")
	pullFails(t, parsed(t, "oci://"+host+"/team/mem:v2"), abi.CodeNotFound, "does not have it")
}

func TestAModuleWithADigestNeedsNoRegistryAfterTheFirstTime(t *testing.T) {
	s := httptest.NewServer(emptyRegistry())
	c := newClient(t)
	at := pushed(t, c, strings.TrimPrefix(s.URL, "http://"))
	_, _, err := c.Pull(t.Context(), at)
	require.NoError(t, err)
	s.Close()

	wasm, _, err := c.Pull(t.Context(), at)
	require.NoError(t, err)
	assert.Equal(t, tiny, wasm)
	tag := at
	tag.Digest = ""
	_, _, err = c.Pull(t.Context(), tag)
	assert.Equal(t, abi.CodeUnavailable, abi.AsError(err).Code)
	assert.Contains(t, abi.AsError(err).Hint, "named with its digest")
	pullFails(t, at, abi.CodeUnavailable, "cannot be reached")
	_, err = c.Push(t.Context(), tag, tiny)
	assert.Equal(t, "try again when it answers", abi.AsError(err).Hint)
}

func TestADamagedCacheIsFetchedAnew(t *testing.T) {
	c := newClient(t)
	at := pushed(t, c, hostOf(t, emptyRegistry()))
	_, _, err := c.Pull(t.Context(), at)
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(string(c.Cache), "sha256", "*"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, file := range files {
		require.NoError(t, os.WriteFile(file, []byte("other bytes"), 0o600))
		_, ok := c.Cached(at)
		assert.False(t, ok)
		wasm, _, err := c.Pull(t.Context(), at)
		require.NoError(t, err)
		assert.Equal(t, tiny, wasm)
	}
}

// changed serves a registry in which another handler gives some of the answers.
func changed(t *testing.T, other func(w http.ResponseWriter, r *http.Request) bool) string {
	own := emptyRegistry()
	return hostOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !other(w, r) {
			own.ServeHTTP(w, r)
		}
	}))
}

func TestARegistryThatSendsOtherBytesIsNotBelieved(t *testing.T) {
	for part, lie := range map[string]string{
		"/blobs/":     "\x00asm\x02\x00\x00\x00",
		"/manifests/": `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json"}`,
	} {
		lying := false
		host := changed(t, func(w http.ResponseWriter, r *http.Request) bool {
			if !lying || r.Method != http.MethodGet || !strings.Contains(r.URL.Path, part) {
				return false
			}
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			// It lies about the digest, too.
			w.Header().Set("Docker-Content-Digest", r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
			fmt.Fprint(w, lie)
			return true
		})
		at := pushed(t, newClient(t), host)
		lying = true
		pullFails(t, at, abi.CodeBackend, "")
	}
}

// TestADigestIsSHA256: lock files and modules.trust support no other kind.
func TestADigestIsSHA256(t *testing.T) {
	_, manifest, err := Pack(tiny)
	require.NoError(t, err)
	host := changed(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		w.Header().Set("Docker-Content-Digest", string(digest.SHA512.FromBytes(manifest)))
		_, _ = w.Write(manifest)
		return true
	})
	r := pushed(t, newClient(t), host)
	r.Digest = ""
	pullFails(t, r, abi.CodeBackend, "want sha256")
}

func TestAnotherArtifactIsNoModule(t *testing.T) {
	image := `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":` +
		`"application/vnd.oci.image.config.v1+json","digest":"sha256:` + strings.Repeat("0", 64) + `","size":2},"layers":[]}`
	host := changed(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		fmt.Fprint(w, image)
		return true
	})
	pullFails(t, parsed(t, "oci://"+host+"/an/image:v1"), abi.CodeInvalidArgument, "its config has media type")
}

func TestOnlyBlobsComeFromAnotherHost(t *testing.T) {
	var elsewhere, part string
	host := changed(t, func(w http.ResponseWriter, r *http.Request) bool {
		if elsewhere == "" || r.Method != http.MethodGet || !strings.Contains(r.URL.Path, part) {
			return false
		}
		http.Redirect(w, r, "http://"+elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
		return true
	})
	at := pushed(t, newClient(t), host)
	other := hostOf(t, emptyRegistry())
	pushed(t, newClient(t), other)
	elsewhere, part = other, "/blobs/"
	_, _, err := newClient(t).Pull(t.Context(), at)
	require.NoError(t, err)
	part = "/manifests/"
	pullFails(t, at, abi.CodeBackend, "redirects to http://"+other)
}

// TestCredentialsStayWithTheRegistry: the other host has the same name here, but another port.
func TestCredentialsStayWithTheRegistry(t *testing.T) {
	var seen []string
	other := changed(t, func(_ http.ResponseWriter, r *http.Request) bool {
		seen = append(seen, r.Header.Get("Authorization"))
		return false
	})
	pushed(t, newClient(t), other)
	seen = nil
	host := changed(t, func(w http.ResponseWriter, r *http.Request) bool {
		_, password, _ := r.BasicAuth()
		switch {
		case password != "secret":
			w.Header().Set("WWW-Authenticate", `Basic realm="team"`)
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/"):
			http.Redirect(w, r, "http://"+other+r.URL.Path, http.StatusTemporaryRedirect)
		default:
			return false
		}
		return true
	})
	c := newClient(t)
	require.NoError(t, os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"),
		[]byte(`{"auths":{"`+host+`":{"auth":"YWRhOnNlY3JldA=="}}}`), 0o600)) // ada:secret
	_, _, err := c.Pull(t.Context(), pushed(t, c, host))
	require.NoError(t, err)
	assert.Equal(t, []string{""}, seen)
}

func TestNothingGoesFromHTTPSToHTTP(t *testing.T) {
	blob := "/v2/mem/blobs/sha256:" + strings.Repeat("0", 64)
	request := func(u string) *http.Request {
		parsed, err := url.Parse(u + blob)
		require.NoError(t, err)
		return &http.Request{Method: http.MethodGet, URL: parsed}
	}
	via := []*http.Request{request("https://ghcr.io")}
	assert.NoError(t, checkRedirect(request("https://store.example"), via))
	assert.Error(t, checkRedirect(request("http://store.example"), via))
	assert.Error(t, checkRedirect(request("http://ghcr.io"), via))
	assert.Error(t, checkRedirect(request("https://ghcr.io"), []*http.Request{via[0], via[0], via[0], via[0], via[0],
		via[0]}), "without end")
}

// closed serves a registry that requires user and password.
func closed(t *testing.T) string {
	return changed(t, func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, _ := r.BasicAuth(); user == "ada" && password == "secret" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="team"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
}

func TestARegistryThatFailsMayWorkLater(t *testing.T) {
	brief.Leave(t)
	for status, want := range map[int]abi.Code{http.StatusInternalServerError: abi.CodeUnavailable,
		http.StatusServiceUnavailable: abi.CodeUnavailable, http.StatusTooManyRequests: abi.CodeUnavailable,
		http.StatusBadRequest: abi.CodeBackend} {
		host := hostOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		r, err := ParseReference(Scheme + host + "/team/mem:v1")
		require.NoError(t, err)
		_, _, err = newClient(t).Pull(t.Context(), r)
		assert.Equal(t, want, abi.CodeOf(err), "%d: %v", status, err)
	}
}

func TestCredentialsAreThoseOfDocker(t *testing.T) {
	host := closed(t)
	c := newClient(t)
	r := parsed(t, "oci://"+host+"/team/mem:v1")
	_, err := c.Push(t.Context(), r, tiny)
	assert.Equal(t, abi.CodeUnauthenticated, abi.AsError(err).Code)
	assert.Contains(t, abi.AsError(err).Hint, "docker login "+host)
	pullFails(t, r, abi.CodeUnauthenticated, "wants credentials")

	login := func(config string) {
		require.NoError(t, os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(config), 0o600))
	}
	login(`{"auths":{"` + host + `":{"auth":"YWRhOndyb25n"}}}`) // ada:wrong
	_, err = c.Push(t.Context(), r, tiny)
	assert.Equal(t, abi.CodeUnauthenticated, abi.AsError(err).Code)
	assert.NotContains(t, err.Error(), "wrong", "a password is not shown")

	login(`{"auths":{"` + host + `":{"auth":"YWRhOnNlY3JldA=="}}}`) // ada:secret
	_, err = c.Push(t.Context(), r, tiny)
	require.NoError(t, err)

	login(`{"auths":{"` + host + `":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("lonely-token")) + `"}}}`)
	_, err = c.Push(t.Context(), r, tiny)
	require.ErrorContains(t, err, "its entry in config.json is not base64 of USER:PASSWORD")
	assert.NotContains(t, err.Error(), "lonely", "what it is instead may be a secret")

	login("not JSON")
	_, err = c.Push(t.Context(), r, tiny)
	require.ErrorContains(t, err, "config.json")
}

// withHelper configures a credential helper, a shell script, for a registry in Docker's configuration.
func withHelper(t *testing.T, host, script string) {
	if runtime.GOOS == "windows" {
		t.Skip("the helper of this test is a shell script")
	}
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "docker-credential-ours"), []byte("#!/bin/sh\n"+script+"\n"),
		0o700))
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	require.NoError(t, os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"),
		[]byte(`{"credHelpers":{"`+host+`":"ours"}}`), 0o600))
}

func TestCredentialsComeFromDockersHelper(t *testing.T) {
	host := closed(t)
	c := newClient(t)
	withHelper(t, host, `read -r server; echo '{"ServerURL":"'$server'","Username":"ada","Secret":"secret"}'`)
	pushed(t, c, host)
}

func TestACredentialHelperThatDoesNotWorkIsAnError(t *testing.T) {
	host := closed(t)
	for script, text := range map[string]string{
		"sleep 5 2>/dev/null": "the credential helper does not answer", // sleep holds the output open when sh has exited
		"echo nonsense":       "invalid character",
		"exit 0":              "unexpected end",
		"echo locked; exit 1": "locked",
		"exit 3":              "exit status 3",
	} {
		c := newClient(t)
		c.wait = 200 * time.Millisecond
		withHelper(t, host, script)
		_, _, err := c.Pull(t.Context(), parsed(t, "oci://"+host+"/team/mem:v1"))
		require.ErrorContains(t, err, text, script)
		assert.Equal(t, abi.CodeUnauthenticated, abi.CodeOf(err))
		assert.Contains(t, abi.AsError(err).Hint, "config.json")
	}
}

func TestATokenServerOnAnotherLocalAddressIsNotAsked(t *testing.T) {
	asked := false
	token := hostOf(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	realm := "http://" + strings.Replace(token, "127.0.0.1", "127.0.0.2", 1) + "/token"
	host := changed(t, func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+realm+`",service="ours"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	pullFails(t, parsed(t, "oci://"+host+"/team/mem:v1"), abi.CodeBackend, "bearer realm")
	assert.False(t, asked)
}

func TestMirrorsAreAskedFirst(t *testing.T) {
	mirror, own := hostOf(t, emptyRegistry()), hostOf(t, emptyRegistry())
	inMirror := pushed(t, newClient(t), mirror)
	c := newClient(t)
	c.Mirrors = map[string][]string{own: {"127.0.0.1:1", mirror}}
	r := parsed(t, "oci://"+own+"/team/mem:v1")
	_, pinned, err := c.Pull(t.Context(), r)
	require.NoError(t, err, "the registry itself does not have it, and the first mirror is down")
	assert.Equal(t, own, pinned.Host, "the name stays")
	assert.Equal(t, inMirror.Digest, pinned.Digest)

	r.Tag = "v2"
	_, err = c.Push(t.Context(), r, append([]byte{}, tiny...))
	require.NoError(t, err)
	_, _, err = c.Pull(t.Context(), r)
	require.NoError(t, err, "what no mirror has comes from the registry")
}

func TestAnotherClientReadsOursAndTheReverse(t *testing.T) {
	host := hostOf(t, emptyRegistry())
	c := newClient(t)
	at := pushed(t, c, host)
	repo, err := remote.NewRepository(host + "/team/mem")
	require.NoError(t, err)
	repo.PlainHTTP = true
	copied := memory.New()
	d, err := oras.Copy(t.Context(), repo, "v1", copied, "", oras.DefaultCopyOptions)
	require.NoError(t, err)
	assert.Equal(t, at.Digest, string(d.Digest))

	layer, err := oras.PushBytes(t.Context(), repo, LayerType, tiny)
	require.NoError(t, err)
	config, err := oras.PushBytes(t.Context(), repo, ConfigType, []byte("{}"))
	require.NoError(t, err)
	d, err = oras.PackManifest(t.Context(), repo, oras.PackManifestVersion1_1, "", oras.PackManifestOptions{
		ConfigDescriptor: &config, Layers: []ocispec.Descriptor{layer}})
	require.NoError(t, err)
	require.NoError(t, repo.Tag(t.Context(), d, "theirs"))
	wasm, pinned, err := newClient(t).Pull(t.Context(), parsed(t, "oci://"+host+"/team/mem:theirs"))
	require.NoError(t, err)
	assert.Equal(t, tiny, wasm)
	assert.Equal(t, string(d.Digest), pinned.Digest)
}
