package registry

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"

	served "github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

const kind = "application/vnd.example.note"

// registries returns one registry with the referrers API and one with tags instead.
func registries() map[string]http.Handler {
	return map[string]http.Handler{"tags": emptyRegistry(),
		"API": served.New(served.Logger(log.New(io.Discard, "", 0)), served.WithReferrersSupport(true))}
}

func TestWhatIsAttachedIsFound(t *testing.T) {
	for name, handler := range registries() {
		t.Run(name, func(t *testing.T) {
			host := hostOf(t, handler)
			c := newClient(t)
			c.Kept = kind
			at := pushed(t, c, host)
			list, err := c.Attached(t.Context(), at, kind)
			require.NoError(t, err)
			assert.Empty(t, list)
			for _, text := range []string{"one", "two"} {
				require.NoError(t, c.Attach(t.Context(), at, kind, []byte(text), map[string]string{"n": text}))
			}
			require.NoError(t, c.Attach(t.Context(), at, "application/other", []byte("three"), nil))
			list, err = c.Attached(t.Context(), at, kind)
			require.NoError(t, err)
			assert.ElementsMatch(t, [][]byte{[]byte("one"), []byte("two")}, list)
			assert.ElementsMatch(t, list, c.AttachedBefore(at))
			other, err := c.Attached(t.Context(), at, "application/other")
			require.NoError(t, err)
			assert.Equal(t, [][]byte{[]byte("three")}, other)
			assert.Len(t, c.AttachedBefore(at), 2, "only one type is kept")

			fresh := newClient(t)
			fresh.Kept = kind
			_, _, err = fresh.Pull(t.Context(), parsed(t, "oci://"+host+"/team/mem:v1"))
			require.NoError(t, err)
			assert.Len(t, fresh.AttachedBefore(at), 2, "a pull keeps it")
		})
	}
}

func TestNothingIsAttachedToWhatIsNotThere(t *testing.T) {
	host := hostOf(t, emptyRegistry())
	absent := parsed(t, "oci://"+host+"/team/mem@sha256:"+strings.Repeat("0", 64))
	err := newClient(t).Attach(t.Context(), absent, kind, []byte("one"), nil)
	assert.Equal(t, abi.CodeNotFound, abi.CodeOf(err))
}

func TestAMirrorsAttachmentsAddToTheRegistrys(t *testing.T) {
	c := newClient(t)
	registry, mirror := hostOf(t, emptyRegistry()), hostOf(t, emptyRegistry())
	at := pushed(t, c, registry)
	mirrored := pushed(t, c, mirror)
	require.Equal(t, at.Digest, mirrored.Digest)
	require.NoError(t, c.Attach(t.Context(), at, kind, []byte("one"), nil))
	require.NoError(t, c.Attach(t.Context(), mirrored, kind, []byte("one"), map[string]string{"another": "manifest"}))
	require.NoError(t, c.Attach(t.Context(), mirrored, kind, []byte("two"), nil))
	c.Mirrors = map[string][]string{registry: {mirror}}
	list, err := c.Attached(t.Context(), at, kind)
	require.NoError(t, err)
	assert.ElementsMatch(t, [][]byte{[]byte("one"), []byte("two")}, list)

	c.Mirrors = map[string][]string{registry: {"127.0.0.1:1"}}
	list, err = c.Attached(t.Context(), at, kind)
	require.NoError(t, err, "one that answers is enough")
	assert.Len(t, list, 1)
}

func TestWhatWasDeletedHidesNothing(t *testing.T) {
	host := hostOf(t, emptyRegistry())
	c := newClient(t)
	at := pushed(t, c, host)
	for _, text := range []string{"one", "two"} {
		require.NoError(t, c.Attach(t.Context(), at, kind, []byte(text), nil))
	}
	url := "http://" + host + "/v2/team/mem/manifests/"
	answer, err := http.Get(url + strings.Replace(at.Digest, ":", "-", 1))
	require.NoError(t, err)
	var list ocispec.Index
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&list))
	require.NoError(t, answer.Body.Close())
	request, err := http.NewRequest(http.MethodDelete, url+string(list.Manifests[0].Digest), nil)
	require.NoError(t, err)
	answer, err = http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())

	found, err := c.Attached(t.Context(), at, kind)
	require.NoError(t, err)
	assert.Equal(t, [][]byte{[]byte("two")}, found)
}

func TestAMirrorWithoutAttachmentsTakesNoneAway(t *testing.T) {
	c := newClient(t)
	c.Kept = kind
	registry, mirror := hostOf(t, emptyRegistry()), hostOf(t, emptyRegistry())
	at := pushed(t, c, registry)
	pushed(t, c, mirror)
	require.NoError(t, c.Attach(t.Context(), at, kind, []byte("one"), nil))
	tag := at
	tag.Digest = ""
	for _, mirrors := range [][]string{nil, {mirror}} {
		c.Mirrors = map[string][]string{registry: mirrors}
		_, _, err := c.Pull(t.Context(), tag)
		require.NoError(t, err)
		assert.Equal(t, [][]byte{[]byte("one")}, c.AttachedBefore(at))
	}
	at.Host = "127.0.0.1:1" // which is down
	c.Cache.keep(at.Digest, [][]byte{[]byte("one")})
	c.Mirrors = map[string][]string{at.Host: {mirror}}
	list, err := c.Attached(t.Context(), at, kind)
	require.NoError(t, err)
	assert.Empty(t, list)
	assert.Equal(t, [][]byte{[]byte("one")}, c.AttachedBefore(at))
}

func TestALyingRegistryOfAttachmentsIsAnError(t *testing.T) {
	lie := false
	host := changed(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !lie || r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		w.Header().Set("Content-Length", "3")
		_, _ = io.WriteString(w, "two")
		return true
	})
	c := newClient(t)
	at := pushed(t, c, host)
	require.NoError(t, c.Attach(t.Context(), at, kind, []byte("one"), nil))
	lie = true
	_, err := c.Attached(t.Context(), at, kind)
	require.ErrorContains(t, err, "the registry sent other bytes")
}

func TestARegistryThatDeletesNothingTakesTwoSignatures(t *testing.T) {
	host := changed(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete {
			return false
		}
		w.WriteHeader(http.StatusMethodNotAllowed)
		return true
	})
	c := newClient(t)
	at := pushed(t, c, host)
	for _, text := range []string{"one", "two"} {
		require.NoError(t, c.Attach(t.Context(), at, kind, []byte(text), nil))
	}
	list, err := c.Attached(t.Context(), at, kind)
	require.NoError(t, err)
	assert.Len(t, list, 2)
}
