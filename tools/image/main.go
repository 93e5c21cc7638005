// Command image assembles the container image of a release from a base image and the built programs, without Docker,
// and pushes it.
//
//	go -C tools run ./image -base REGISTRY/NAME[@DIGEST] -dist ../bin/dist -version 0.2.0 -created 2026-11-23T10:00:00Z REGISTRY/NAME:TAG
//
// It is an index of linux/amd64 and linux/arm64. The same base, programs, version and time always produce the same
// digest, which is printed. For registries on loopback it uses plain HTTP; credentials come from Docker.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// user is the user id of the process: unknown to base images, and not root.
	user = 65532
	// data is the only folder that is written. It should be a volume; the root may be read-only.
	data = "/var/lib/memhost"
)

// recipe says what goes into an image.
type recipe struct {
	base    string
	dist    string // GoReleaser's folder
	version string
	created time.Time
}

func main() {
	var r recipe
	var created string
	flag.StringVar(&r.base, "base", "", "the base image, which may be as small as certificates and time zones")
	flag.StringVar(&r.dist, "dist", "../bin/dist", "the folder of make release")
	flag.StringVar(&r.version, "version", "", "what the image's label says")
	flag.StringVar(&created, "created", "", "the commit's time, RFC 3339")
	flag.Parse()
	digest, err := func() (string, error) {
		if flag.NArg() != 1 || r.base == "" {
			return "", errors.New("want -base IMAGE and the name to push to")
		}
		at, err := time.Parse(time.RFC3339, created)
		if err != nil {
			return "", fmt.Errorf("-created: %w", err)
		}
		r.created = at.UTC()
		return push(r, flag.Arg(0))
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	fmt.Println(digest)
}

func push(r recipe, to string) (digest string, err error) {
	target, err := name.ParseReference(to)
	if err != nil {
		return "", err
	}
	base, err := name.ParseReference(r.base)
	if err != nil {
		return "", err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range []string{"amd64", "arm64"} {
		platform := v1.Platform{OS: "linux", Architecture: arch}
		below, err := remote.Image(base, remote.WithPlatform(platform), remote.WithAuthFromKeychain(authn.DefaultKeychain))
		if err != nil {
			return "", err
		}
		image, err := r.assemble(below, platform)
		if err != nil {
			return "", err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{Platform: &platform}})
	}
	if err := remote.WriteIndex(target, index, remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return "", err
	}
	hash, err := index.Digest()
	return target.Context().Name() + "@" + hash.String(), err
}

// assemble adds one layer to the base: the program, its licences, and the folder for data.
func (r recipe) assemble(base v1.Image, platform v1.Platform) (v1.Image, error) {
	layer, err := r.layer(platform.Architecture)
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(mutate.MediaType(base, types.OCIManifestSchema1), layer)
	if err != nil {
		return nil, err
	}
	below, err := base.ConfigFile()
	if err != nil {
		return nil, err
	}
	with, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	with = with.DeepCopy()
	with.OS, with.Architecture, with.Author = platform.OS, platform.Architecture, "memhost"
	with.Created = v1.Time{Time: r.created}
	with.History = append(below.History, v1.History{Created: v1.Time{Time: r.created}, CreatedBy: "tools/image"})
	with.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", user, user),
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + data,
			"XDG_CACHE_HOME=" + data + "/cache", "MEMHOST_SERVER__LISTEN=0.0.0.0:7077"},
		Entrypoint:   []string{"/usr/bin/memhost"},
		Cmd:          []string{"run", "--data", data, "--log-format", "json"},
		WorkingDir:   data,
		Volumes:      map[string]struct{}{data: {}},
		ExposedPorts: map[string]struct{}{"7077/tcp": {}},
		StopSignal:   "SIGTERM",
		Labels: map[string]string{"org.opencontainers.image.title": "memhost",
			"org.opencontainers.image.description": "one memory slot for an agent",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.source":      "https://github.com/memhost/memhost",
			"org.opencontainers.image.version":     r.version},
	}
	return mutate.ConfigFile(image, with)
}

func (r recipe) layer(arch string) (v1.Layer, error) {
	found, err := filepath.Glob(filepath.Join(r.dist, "memhost_linux_"+arch+"_*", "memhost"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("%s has %d programs for linux/%s, want one; make release makes it", r.dist,
			len(found), arch)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := r.write(w, found[0]); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}

func (r recipe) write(w *tar.Writer, program string) error {
	for _, folder := range []string{"usr/", "usr/bin/", "usr/share/", "usr/share/doc/", "usr/share/doc/memhost/", "var/",
		"var/lib/"} {
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755, ModTime: r.created})
		if err != nil {
			return err
		}
	}
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: data[1:] + "/", Mode: 0o700, Uid: user, Gid: user,
		ModTime: r.created})
	if err != nil {
		return err
	}
	for _, f := range []struct {
		from, to string
		mode     int64
	}{
		{program, "usr/bin/memhost", 0o755},
		{filepath.Join(r.dist, "..", "..", "LICENSE"), "usr/share/doc/memhost/copyright", 0o644},
		{filepath.Join(r.dist, "..", "..", "docs", "reference", "licences.md"), "usr/share/doc/memhost/licences.md", 0o644},
	} {
		text, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.to, Mode: f.mode, Size: int64(len(text)), ModTime: r.created}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}
