package registry

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	served "github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"oras.land/oras-go/v2/content"

	"github.com/memhost/memhost/abi"
)

// TestAConnectionThatBreaksIsNoLie: half a module is not a lie of the registry, and may arrive completely next time.
func TestAConnectionThatBreaksIsNoLie(t *testing.T) {
	breaks := false
	host := changed(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !breaks || r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(tiny)))
		_, _ = w.Write(tiny[:3])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	at := pushed(t, newClient(t), host)
	breaks = true
	c := newClient(t)
	_, _, err := c.Pull(t.Context(), at)
	require.ErrorContains(t, err, "broke after 3 of 8 bytes")
	assert.Equal(t, abi.CodeUnavailable, abi.CodeOf(err))
	assert.True(t, abi.AsError(err).Retryable)
	breaks = false
	wasm, _, err := c.Pull(t.Context(), at)
	require.NoError(t, err, "nothing of the half is kept")
	assert.Equal(t, tiny, wasm)
}

func TestARegistryThatHangsIsWaitedForOnce(t *testing.T) {
	var asked atomic.Int32
	hangs := hostOf(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		<-r.Context().Done()
	}))
	c := newClient(t)
	c.wait = 50 * time.Millisecond
	_, _, err := c.Pull(t.Context(), parsed(t, "oci://"+hangs+"/team/mem:v1"))
	require.ErrorContains(t, err, "timeout awaiting response headers")
	assert.Equal(t, abi.CodeUnavailable, abi.CodeOf(err))
	assert.EqualValues(t, 1, asked.Load())
}

// TestAnAnswerThatStopsIsNotWaitedFor: an answer that has started may also stop, in a module, a manifest or a list of
// attachments.
func TestAnAnswerThatStopsIsNotWaitedFor(t *testing.T) {
	stops := ""
	host := changed(t, func(w http.ResponseWriter, r *http.Request) bool {
		if stops == "" || r.Method != http.MethodGet || !strings.Contains(r.URL.Path, stops) {
			return false
		}
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		w.Header().Set("Content-Length", fmt.Sprint(len(tiny)))
		_, _ = w.Write(tiny[:3])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	})
	at := pushed(t, newClient(t), host)
	for _, stops = range []string{"/blobs/", "/manifests/v1"} {
		c := newClient(t)
		c.wait = 50 * time.Millisecond
		_, _, err := c.Pull(t.Context(), parsed(t, "oci://"+host+"/team/mem:v1"))
		require.ErrorContains(t, err, "the registry stopped in the middle of its answer")
		assert.Equal(t, abi.CodeUnavailable, abi.CodeOf(err))
	}
	stops = "/manifests/sha256-" // a list without the referrers API
	c := newClient(t)
	c.wait = 50 * time.Millisecond
	_, err := c.Attached(t.Context(), at, kind)
	require.ErrorContains(t, err, "the registry stopped in the middle of its answer")
	assert.Equal(t, abi.CodeUnavailable, abi.CodeOf(err))
}

func TestAnotherHostGetsOnlyReadersOfBlobs(t *testing.T) {
	request := func(method, u string) *http.Request {
		r, err := http.NewRequest(method, u+"/v2/mem/blobs/sha256:"+strings.Repeat("0", 64), nil)
		require.NoError(t, err)
		return r
	}
	for method, allowed := range map[string]bool{"GET": true, "HEAD": true, "PUT": false, "POST": false,
		"DELETE": false} {
		via := []*http.Request{request(method, "https://ghcr.io")}
		err := checkRedirect(request(method, "https://store.example"), via)
		assert.Equal(t, allowed, err == nil, method)
		require.NoError(t, checkRedirect(request(method, "https://ghcr.io"), via), method)
	}
}

func TestAManifestThatIsTooLongIsNotRead(t *testing.T) {
	host := changed(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		w.Header().Set("Content-Length", fmt.Sprint(maxManifest+1))
		_, _ = io.WriteString(w, strings.Repeat(" ", maxManifest+1))
		return true
	})
	pullFails(t, parsed(t, "oci://"+host+"/team/mem:v1"), abi.CodeInvalidArgument, "more than the 1048576 that are read")
}

// listing is a registry whose list of referrers is set by the test.
func listing(t *testing.T, list func() []ocispec.Descriptor) string {
	own := served.New(served.Logger(log.New(io.Discard, "", 0)), served.WithReferrersSupport(true))
	return hostOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "/referrers/") {
			own.ServeHTTP(w, r)
			return
		}
		index := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: list()}
		index.SchemaVersion = 2
		w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
		_ = json.NewEncoder(w).Encode(index)
	}))
}

// TestWhatIsAttachedToAnotherModuleIsNotTaken: a registry may list anything. A signature or a report only counts for
// the module that its manifest names, and what is too long is not fetched.
func TestWhatIsAttachedToAnotherModuleIsNotTaken(t *testing.T) {
	var listed []ocispec.Descriptor
	host := listing(t, func() []ocispec.Descriptor { return listed })
	c := newClient(t)
	at := pushed(t, c, host)
	repo, err := c.repository(at)
	require.NoError(t, err)
	for _, one := range []struct {
		subject string
		size    int64 // size according to its manifest, more than the real one
	}{{at.Digest, 0}, {"sha256:" + strings.Repeat("0", 64), 0}, {at.Digest, maxAttached}} {
		text := strings.ReplaceAll(one.subject, "sha256:", "note for ")
		layer := content.NewDescriptorFromBytes(kind, []byte(text))
		require.NoError(t, repo.Blobs().Push(t.Context(), layer, strings.NewReader(text)))
		manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":`+
			`"application/vnd.oci.empty.v1+json","digest":%q,"size":%d},"layers":[{"mediaType":%q,"digest":%q,"size":%d}],"subject":{"mediaType":%q,"digest":%q,`+
			`"size":1}}`, ocispec.MediaTypeImageManifest, layer.Digest, layer.Size, kind, layer.Digest, layer.Size+one.size,
			ocispec.MediaTypeImageManifest, one.subject)
		d := content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, []byte(manifest))
		require.NoError(t, repo.Manifests().PushReference(t.Context(), d, strings.NewReader(manifest), d.Digest.String()))
		listed = append(listed, d)
	}
	list, err := c.Attached(t.Context(), at, kind)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, "note for "+strings.TrimPrefix(at.Digest, "sha256:"), string(list[0]))
}

// TestForeignThingsHideNoSignature: whatever others attach, and wherever it is in the list, blobs of the type are
// found.
func TestForeignThingsHideNoSignature(t *testing.T) {
	var listed []ocispec.Descriptor
	host := listing(t, func() []ocispec.Descriptor { return listed })
	c := newClient(t)
	at := pushed(t, c, host)
	repo, err := c.repository(at)
	require.NoError(t, err)
	push := func(blobType, artifactType string, number int) ocispec.Descriptor {
		layer := content.NewDescriptorFromBytes(blobType, []byte(fmt.Sprint(number)))
		require.NoError(t, repo.Blobs().Push(t.Context(), layer, strings.NewReader(fmt.Sprint(number))))
		m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, ArtifactType: artifactType,
			Config: ocispec.DescriptorEmptyJSON, Layers: []ocispec.Descriptor{layer},
			Subject: &ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.Digest(at.Digest), Size: 1}}
		m.SchemaVersion = 2
		text, err := json.Marshal(m)
		require.NoError(t, err)
		d := content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, text)
		require.NoError(t, repo.Manifests().PushReference(t.Context(), d, strings.NewReader(string(text)),
			d.Digest.String()))
		d.ArtifactType = artifactType
		return d
	}
	for i := range 150 {
		listed = append(listed, push("text/plain", []string{"text/plain", ""}[i%2], i))
	}
	listed = append(listed, push(kind, "", 200), push(kind, "text/plain", 201), push(kind, kind, 202))
	for i := range maxReferrers { // none of them exists
		d := content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, []byte(fmt.Sprint("gone ", i)))
		d.ArtifactType = "text/plain"
		listed = append(listed, d)
	}
	list, err := c.Attached(t.Context(), at, kind)
	require.NoError(t, err)
	var found []string
	for _, blob := range list {
		found = append(found, string(blob))
	}
	assert.Equal(t, []string{"202", "200", "201"}, found)
}

func TestTooMuchThatIsAttachedIsAnError(t *testing.T) {
	host := listing(t, func() (list []ocispec.Descriptor) {
		for i := range maxReferrers + 1 {
			list = append(list, content.NewDescriptorFromBytes("text/plain", []byte(fmt.Sprint(i))))
		}
		return list
	})
	c := newClient(t)
	_, err := c.Attached(t.Context(), pushed(t, c, host), kind)
	require.ErrorContains(t, err, "none of those that were read is of the type "+kind)
	assert.Equal(t, abi.CodeTooLarge, abi.CodeOf(err))
}

func TestABlobComesFromNoAddressOfThisMachineOrNetwork(t *testing.T) {
	request := func(host string) *http.Request {
		r, err := http.NewRequest(http.MethodGet, "http://"+host+"/v2/mem/blobs/sha256:"+strings.Repeat("0", 64), nil)
		require.NoError(t, err)
		return r
	}
	for to, allowed := range map[string]bool{"127.0.0.1": false, "127.0.0.1:6379": false, "[::1]:80": false,
		"localhost:9200": false, "169.254.169.254": false, "[fe80::1]": false, "[::ffff:127.0.0.1]": false,
		"0.0.0.0": false, "[fd00:ec2::254]": false, "168.63.129.16": false, "[64:ff9b::a9fe:a9fe]": false,
		"203.0.113.7": true, "10.0.0.5": true, "store.invalid": true} {
		err := checkRedirect(request(to), []*http.Request{request("198.51.100.1:5000")})
		assert.Equal(t, allowed, err == nil, "%s: %v", to, err)
	}
	assert.NoError(t, checkRedirect(request("127.0.0.1:5001"), []*http.Request{request("127.0.0.1:5000")}),
		"a registry on this machine")
}
