package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/base/address"
	"github.com/memhost/memhost/internal/base/noswitch"
)

// maxManifest bounds the size of a manifest, in bytes.
const maxManifest = 1 << 20

// answerWait is how long a registry may take to start its answer, or pause within it, and how long a credential helper
// may take to answer.
const answerWait = 30 * time.Second

// within bounds the duration of each method of the client, however slowly a registry sends.
const within = 5 * time.Minute

// Client copies modules to and from registries. It uses Docker's credentials: from its config.json and the credential
// helpers named there. Its zero value has no cache and no mirrors.
type Client struct {
	Cache Cache
	// Mirrors lists, for a registry's HOST[:PORT], other registries to ask first, in this order. Modules have the same
	// names on all of them.
	Mirrors map[string][]string
	// Kept is the media type of attached blobs to fetch and cache together with a module.
	Kept string

	wait time.Duration // set by tests; 0 means answerWait
}

func (c *Client) longestWait() time.Duration {
	if c.wait > 0 {
		return c.wait
	}
	return answerWait
}

// Pull returns a module's bytes, and the reference with the digest of its manifest. A reference with a digest is read
// from the cache if possible, without connecting. A tag is always looked up.
//
// Errors: not_found; unauthenticated; denied; unavailable; invalid_argument if it is not a module; backend if the bytes
// are not the requested ones, or a redirect is not followed.
func (c *Client) Pull(ctx context.Context, r Reference) ([]byte, Reference, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if r.Digest != "" {
		if wasm, ok := c.Cached(r); ok {
			return wasm, r, nil
		}
	}
	var failed error
	for _, host := range append(slices.Clone(c.Mirrors[r.Host]), r.Host) {
		wasm, pinned, err := c.pullFrom(ctx, host, r)
		if err == nil {
			return wasm, pinned, nil
		}
		failed = err // the error of the registry itself, which is last
	}
	return nil, r, failed
}

// pullFrom is Pull from one registry or mirror.
func (c *Client) pullFrom(ctx context.Context, host string, r Reference) ([]byte, Reference, error) {
	at := r
	at.Host = host
	repo, err := c.repository(at)
	if err != nil {
		return nil, r, err
	}
	manifest, digest, err := fetchManifest(ctx, repo, at)
	if err != nil {
		return nil, r, err
	}
	pinned := r
	pinned.Digest = digest
	layer, err := layerOf(at, manifest)
	if err != nil {
		return nil, r, err
	}
	wasm, ok := c.Cache.read(string(layer.Digest), maxModule)
	if !ok {
		body, err := repo.Blobs().Fetch(ctx, layer)
		if err != nil {
			return nil, r, explain(at, "pull", err)
		}
		defer body.Close()
		if wasm, err = verified(at, body, layer); err != nil {
			return nil, r, err
		}
	}
	c.Cache.write(string(layer.Digest), wasm)
	if c.Kept != "" { // not an error: a caller that needs attached blobs asks for them, and gets the error then
		// A mirror often has only the module, so an empty list from it proves nothing about the registry.
		if list, err := c.attachedAt(ctx, repo, pinned, c.Kept); err == nil && (len(list) > 0 || host == r.Host) {
			c.Cache.keep(digest, list)
		}
	}
	c.Cache.write(digest, manifest) // last, so that a cached manifest implies a cached module
	return wasm, pinned, nil
}

// Cached is Pull of a reference with a digest, without connecting.
func (c *Client) Cached(r Reference) ([]byte, bool) {
	manifest, ok := c.Cache.read(r.Digest, maxManifest)
	if !ok {
		return nil, false
	}
	layer, err := layerOf(r, manifest)
	if err != nil {
		return nil, false
	}
	return c.Cache.read(string(layer.Digest), maxModule)
}

// Push stores a module under a reference's tag, and returns the reference with the digest of its manifest.
//
// Errors: invalid_argument if the reference has a digest; unauthenticated; denied; unavailable; backend.
func (c *Client) Push(ctx context.Context, r Reference, wasm []byte) (Reference, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if r.Digest != "" {
		return r, abi.NewError(abi.CodeInvalidArgument, r.String()+": a module is pushed to a tag, not to a digest")
	}
	repo, err := c.repository(r)
	if err != nil {
		return r, err
	}
	config, manifest, err := Pack(wasm)
	if err != nil {
		return r, err
	}
	for kind, blob := range map[string][]byte{LayerType: wasm, ConfigType: config} {
		d := content.NewDescriptorFromBytes(kind, blob)
		there, err := repo.Blobs().Exists(ctx, d)
		if err != nil {
			return r, explain(r, "push", err)
		}
		if there {
			continue
		}
		if err := repo.Blobs().Push(ctx, d, bytes.NewReader(blob)); err != nil {
			return r, explain(r, "push", err)
		}
	}
	d := content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, manifest)
	if err := repo.Manifests().PushReference(ctx, d, bytes.NewReader(manifest), r.Tag); err != nil {
		return r, explain(r, "push", err)
	}
	r.Digest = string(d.Digest)
	return r, nil
}

// fetchManifest returns the manifest that r names, and its digest, which must be r's if r has one.
func fetchManifest(ctx context.Context, repo *remote.Repository, r Reference) ([]byte, string, error) {
	named := r.Digest
	if named == "" {
		named = r.Tag
	}
	d, body, err := repo.Manifests().FetchReference(ctx, named)
	if err != nil {
		return nil, "", explain(r, "pull", err)
	}
	defer body.Close()
	if d.Size > maxManifest {
		return nil, "", abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("%s: its manifest has %d bytes, more than the %d that are read", r, d.Size, maxManifest))
	}
	if !isDigest(string(d.Digest)) {
		return nil, "", abi.NewError(abi.CodeBackend, fmt.Sprintf("%s: the registry names its manifest %s, want sha256",
			r, d.Digest)).WithHint(other)
	}
	manifest, err := verified(r, body, d)
	if err != nil {
		return nil, "", err
	}
	if r.Digest != "" && string(d.Digest) != r.Digest {
		return nil, "", abi.NewError(abi.CodeBackend, fmt.Sprintf("%s: the registry sent the manifest %s", r, d.Digest)).
			WithHint(other)
	}
	return manifest, string(d.Digest), nil
}

// repository returns a client for one name in the registry.
func (c *Client) repository(r Reference) (*remote.Repository, error) {
	repo, err := remote.NewRepository(r.Host + "/" + r.Name)
	if err != nil {
		return nil, abi.WrapError(abi.CodeInvalidArgument, r.String()+": is no reference: "+err.Error(), err)
	}
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, abi.WrapError(abi.CodeInvalidArgument, "cannot read Docker's config.json: "+err.Error(), err)
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.DialContext = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second,
		ControlContext: address.Refuse}).DialContext
	base.ResponseHeaderTimeout = c.longestWait()
	repo.PlainHTTP = r.loopback()
	repo.SkipReferrersGC = true // many registries do not allow deleting the old list of referrers after it was replaced
	// With nil BlockedRealmPrefixes, a token server on another host is rejected if it is loopback, link-local or a
	// cloud's metadata service.
	repo.Client = &auth.Client{
		Client: &http.Client{
			Transport: &retry.Transport{Base: &stallTransport{noswitch.Transport{Base: base}, c.longestWait()},
				Policy: func() retry.Policy { return retries }},
			CheckRedirect: checkRedirect,
		},
		Header:     http.Header{"User-Agent": {"memhost"}},
		Credential: c.credential(credentials.Credential(store)),
		Cache:      auth.NewCache(),
	}
	return repo, nil
}

var retries = &retry.GenericPolicy{Retryable: worthAnother, Backoff: retry.DefaultBackoff,
	MinWait: 200 * time.Millisecond, MaxWait: 2 * time.Second, MaxRetry: 3}

// worthAnother decides about retries. It does not retry after a timeout: a registry that hangs would be waited for four
// times.
func worthAnother(answer *http.Response, err error) (bool, error) {
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return false, nil
	}
	return retry.DefaultPredicate(answer, err)
}

const maxRedirects = 5

var blobPath = regexp.MustCompile(`^/v2/.+/blobs/sha256:[0-9a-f]{64}$`)

// checkRedirect allows a registry to redirect downloads of blobs to another host, for registries that keep blobs in an
// object store. The blob is verified against its digest, and credentials are not sent there. Manifests and uploads are
// not redirected, HTTPS is never redirected to HTTP, and the other host must not be one that the registry could only
// reach through this machine: the rejected addresses are those that oras rejects for token servers.
func checkRedirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > maxRedirects:
		return &redirectError{first.URL, next.URL, fmt.Sprintf("more than %d redirects", maxRedirects)}
	case first.URL.Scheme == "https" && next.URL.Scheme != "https":
		return &redirectError{first.URL, next.URL, "from HTTPS to another scheme"}
	case next.URL.Host == first.URL.Host:
		return nil
	case first.Method != http.MethodGet && first.Method != http.MethodHead || !blobPath.MatchString(first.URL.Path):
		return &redirectError{first.URL, next.URL, "only blobs may come from another host"}
	case strings.EqualFold(next.URL.Hostname(), first.URL.Hostname()):
		return nil
	}
	return checkRedirectAddress(next, first.URL)
}

// checkRedirectAddress rejects a host with an address of this machine or network link, or of a cloud's metadata
// service. It accepts a name that cannot be resolved here, because a proxy may resolve it.
func checkRedirectAddress(next *http.Request, from *url.URL) error {
	host := next.URL.Hostname()
	addresses := []netip.Addr{}
	if a, err := netip.ParseAddr(host); err == nil {
		addresses = append(addresses, a)
	} else if addresses, err = net.DefaultResolver.LookupNetIP(next.Context(), "ip", host); err != nil {
		return nil
	}
	for _, a := range addresses {
		refused := address.Refuse(next.Context(), "", netip.AddrPortFrom(a, 0).String(), nil) != nil
		plain := a.Unmap().WithZone("")
		for _, prefix := range auth.DefaultBlockedRealmPrefixes() {
			refused = refused || prefix.Contains(plain)
		}
		if refused {
			return &redirectError{from, next.URL, fmt.Sprintf("%s is loopback, link-local or a metadata service", a)}
		}
	}
	return nil
}

// redirectError means that a redirect was not followed.
type redirectError struct {
	from, to *url.URL
	why      string
}

func (e *redirectError) Error() string {
	return fmt.Sprintf("%s redirects to %s://%s: %s", e.from.Host, e.to.Scheme, e.to.Host, e.why)
}
