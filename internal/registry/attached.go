package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/memhost/memhost/abi"
)

// A signature or a report is attached to a module by an OCI manifest whose subject is the module's manifest (a
// referrer). A registry without the referrers API has a list of them under the tag sha256-<hex>.

const (
	// maxAttached bounds one attached blob, in bytes.
	maxAttached = 4 << 20
	// maxReferrers bounds how many referrers of a module are listed.
	maxReferrers = 10_000
	// maxRead bounds how many of the referrers are read.
	maxRead = 1_000
	// maxAllAttached bounds the total size of all blobs of one module, in bytes.
	maxAllAttached = 64 << 20
)

// Attach attaches a blob of a media type to the module that r names by digest.
//
// Errors: those of Push; not_found if the registry does not have the module.
func (c *Client) Attach(ctx context.Context, r Reference, kind string, blob []byte, notes map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	repo, err := c.repository(r)
	if err != nil {
		return err
	}
	subject, err := repo.Manifests().Resolve(ctx, r.Digest)
	if err != nil {
		return explain(r, "attach something to", err)
	}
	layer := content.NewDescriptorFromBytes(kind, blob)
	for _, one := range []struct {
		descriptor ocispec.Descriptor
		bytes      []byte
	}{{layer, blob}, {ocispec.DescriptorEmptyJSON, ocispec.DescriptorEmptyJSON.Data}} {
		err := repo.Blobs().Push(ctx, one.descriptor, bytes.NewReader(one.bytes))
		if err != nil && !errors.Is(err, errdef.ErrAlreadyExists) {
			return explain(r, "attach something to", err)
		}
	}
	config := ocispec.DescriptorEmptyJSON
	config.Data = nil
	subject = ocispec.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size}
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, ArtifactType: kind, Config: config,
		Layers: []ocispec.Descriptor{layer}, Subject: &subject, Annotations: notes}
	m.SchemaVersion = 2
	manifest, err := json.Marshal(m)
	if err != nil {
		return err
	}
	d := content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, manifest)
	if err := repo.Manifests().Push(ctx, d, bytes.NewReader(manifest)); err != nil {
		return explain(r, "attach something to", err)
	}
	return nil
}

// Attached returns the blobs of a media type that are attached to the module that r names by digest, from each mirror
// and from the registry. It does not verify their content. Blobs of type Kept are also cached.
//
// Errors: those of Pull, if neither a mirror nor the registry answers.
func (c *Client) Attached(ctx context.Context, r Reference, kind string) ([][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var all [][]byte
	var failed error
	answered, own := false, false
	for _, host := range append(slices.Clone(c.Mirrors[r.Host]), r.Host) {
		at := r
		at.Host = host
		repo, err := c.repository(at)
		if err != nil {
			return nil, err
		}
		list, err := c.attachedAt(ctx, repo, at, kind)
		if err != nil {
			failed = err
			continue
		}
		answered, own = true, host == r.Host
		for _, blob := range list {
			if !slices.ContainsFunc(all, func(b []byte) bool { return bytes.Equal(b, blob) }) {
				all = append(all, blob)
			}
		}
	}
	if !answered {
		return nil, failed
	}
	if kind == c.Kept && (own || len(all) > 0) { // as in pullFrom
		c.Cache.keep(r.Digest, all)
	}
	return all, nil
}

// AttachedBefore returns attached blobs of type Kept from the cache, without connecting.
func (c *Client) AttachedBefore(r Reference) [][]byte { return c.Cache.kept(r.Digest) }

// attachedAt is Attached for one registry. Everyone with write access can attach blobs, so useless ones must not hide a
// signature: it first reads referrers whose listed artifact type is kind, then those without a listed type, then the
// others, which may still have a blob of that kind. If it reaches a limit, it returns what it found.
//
// Errors: those of Pull; too_large if a limit was reached before anything of the kind was found.
func (c *Client) attachedAt(ctx context.Context, repo *remote.Repository, r Reference, kind string) ([][]byte, error) {
	referrers, all, err := referrersOf(ctx, repo, r)
	if err != nil {
		return nil, err
	}
	order := []string{kind, ""}
	slices.SortStableFunc(referrers, func(a, b ocispec.Descriptor) int {
		return cmp.Compare(uint(slices.Index(order, a.ArtifactType)), uint(slices.Index(order, b.ArtifactType)))
	})
	var list [][]byte
	read, size := 0, 0
	for _, d := range referrers {
		if d.MediaType != ocispec.MediaTypeImageManifest || d.Size > maxManifest {
			continue
		}
		if read == maxRead || size > maxAllAttached {
			all = false
			break
		}
		read++
		blob, err := c.attachedBlob(ctx, repo, r, d, kind)
		if abi.CodeOf(err) == abi.CodeNotFound { // deleted, but still in the list
			continue
		}
		if err != nil {
			return nil, err
		}
		if blob != nil {
			list = append(list, blob)
			size += len(blob)
		}
	}
	if !all && len(list) == 0 {
		return nil, abi.NewError(abi.CodeTooLarge, fmt.Sprintf("%s: more than %d things are attached to it, and none of "+
			"those that were read is of the type %s", r, read, kind)).WithHint("delete what is attached and not needed")
	}
	return list, nil
}

// errEnough stops the listing of referrers.
var errEnough = errors.New("enough referrers")

// referrersOf lists the referrers of a module page by page, at most maxReferrers; all is false if there are more.
func referrersOf(ctx context.Context, repo *remote.Repository, r Reference) (list []ocispec.Descriptor, all bool,
	err error) {
	err = repo.Referrers(ctx, ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest,
		Digest: digest.Digest(r.Digest)}, "",
		func(page []ocispec.Descriptor) error {
			list = append(list, page...)
			if len(list) > maxReferrers {
				list = list[:maxReferrers]
				return errEnough
			}
			return nil
		})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, false, explain(r, "find what is attached to", err)
	}
	return list, err == nil, nil
}

// attachedBlob returns the blob of one referrer; nil if it has another media type.
func (c *Client) attachedBlob(
	ctx context.Context, repo *remote.Repository, r Reference, d ocispec.Descriptor, kind string,
) ([]byte, error) {
	body, err := repo.Manifests().Fetch(ctx, d)
	if err != nil {
		return nil, explain(r, "read what is attached to", err)
	}
	defer body.Close()
	text, err := verified(r, body, d)
	if err != nil {
		return nil, err
	}
	var m ocispec.Manifest
	if json.Unmarshal(text, &m) != nil || m.Subject == nil || string(m.Subject.Digest) != r.Digest ||
		len(m.Layers) != 1 || m.Layers[0].MediaType != kind || m.Layers[0].Size > maxAttached ||
		m.Layers[0].Size < 0 || !isDigest(string(m.Layers[0].Digest)) {
		return nil, nil
	}
	layer, err := repo.Blobs().Fetch(ctx, m.Layers[0])
	if err != nil {
		return nil, explain(r, "read what is attached to", err)
	}
	defer layer.Close()
	return verified(r, layer, m.Layers[0])
}
