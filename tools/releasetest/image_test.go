//go:build release

package releasetest

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheImageRunsAsNobodyOnAReadOnlyRoot: the image is built twice with the same digest, and its files are run as in a
// container: in a separate root that is read-only except for the volume, without a shell, and not as root.
func TestTheImageRunsAsNobodyOnAReadOnlyRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may change the owner of files and the root of a process")
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	base, err := name.ParseReference(host + "/base:1")
	require.NoError(t, err)
	require.NoError(t, remote.Write(base, baseImage(t)))

	assemble := func(tag string) (pinned, digest string) {
		run := exec.Command("go", "run", "../image", "-base", base.String(), "-dist", filepath.Join(checkout, "bin", "dist"),
			"-version", "0.2.0", "-created", "2026-11-23T10:00:00Z", host+"/memhost:"+tag)
		run.Stderr = os.Stderr
		out, err := run.Output()
		require.NoError(t, err)
		pinned = strings.TrimSpace(string(out))
		_, digest, _ = strings.Cut(pinned, "@")
		return pinned, digest
	}
	pinned, first := assemble("one")
	_, second := assemble("two")
	assert.Equal(t, first, second)

	at, err := name.ParseReference(pinned)
	require.NoError(t, err)
	index, err := remote.Index(at)
	require.NoError(t, err)
	list, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, list.Manifests, 2)
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		image, err := remote.Image(at, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		require.NoError(t, err)
		config, err := image.ConfigFile()
		require.NoError(t, err)
		assert.Equal(t, "65532:65532", config.Config.User)
		assert.Equal(t, "linux/"+arch, config.OS+"/"+config.Architecture)
		assert.Equal(t, []string{"/usr/bin/memhost"}, config.Config.Entrypoint)
		assert.Contains(t, config.Config.Volumes, "/var/lib/memhost")
		assert.Len(t, config.History, len(config.RootFS.DiffIDs))
		root := t.TempDir()
		unpack(t, image, root)
		program, err := elf.Open(filepath.Join(root, "usr", "bin", "memhost"))
		require.NoError(t, err)
		assert.Equal(t, machine, program.Machine)
		require.NoError(t, program.Close())
		if arch == runtime.GOARCH {
			runImage(t, root, config)
		}
	}
}

// baseImage has one file and nothing executable.
func baseImage(t *testing.T) v1.Image {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	text := []byte("root:x:0:0::/:/nologin\n")
	require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "etc/", Mode: 0o755}))
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "etc/passwd", Mode: 0o644, Size: int64(len(text))}))
	_, err := w.Write(text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b.Bytes())), nil
	})
	require.NoError(t, err)
	image, err := mutate.AppendLayers(empty.Image, layer)
	require.NoError(t, err)
	return image
}

// runImage runs the entry point of an unpacked image.
func runImage(t *testing.T, root string, config *v1.ConfigFile) {
	volume := filepath.Join(root, "var", "lib", "memhost")
	// The test's folder is only accessible to root.
	for folder := root; folder != os.TempDir(); folder = filepath.Dir(folder) {
		require.NoError(t, os.Chmod(folder, 0o755))
	}
	const script = `set -e
mount --make-rprivate /
mount --bind "$ROOT" "$ROOT"
mount --bind "$ROOT/var/lib/memhost" "$ROOT/var/lib/memhost"
mount -o remount,bind,ro "$ROOT"
exec chroot --userspec="$USERSPEC" "$ROOT" "$@"`
	start := func(more []string, args ...string) *exec.Cmd {
		cmd := exec.Command("unshare", append([]string{"--mount", "sh", "-c", script, "sh",
			config.Config.Entrypoint[0]}, args...)...)
		cmd.Env = append([]string{"ROOT=" + root, "USERSPEC=" + config.Config.User}, append(config.Config.Env, more...)...)
		return cmd
	}
	said, err := start(nil, config.Config.Cmd...).CombinedOutput()
	var failed *exec.ExitError
	require.ErrorAs(t, err, &failed, "%s", said)
	assert.Contains(t, string(said), "MEMHOST_TOKEN", "off loopback it wants a token")

	token := "MEMHOST_TOKEN=" + strings.Repeat("secret", 4)
	slot := start([]string{"MEMHOST_SERVER__LISTEN=127.0.0.1:0", token}, config.Config.Cmd...)
	var errs bytes.Buffer
	slot.Stderr = &errs
	require.NoError(t, slot.Start())
	defer func() { _ = slot.Process.Kill() }()
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(volume, "slot.json"))
		return err == nil
	}, time.Minute, 20*time.Millisecond)
	owner, err := exec.Command("stat", "-c", "%u:%g", filepath.Join(volume, "state.db")).Output()
	require.NoError(t, err)
	assert.Equal(t, "65532:65532\n", string(owner))
	out, err := start([]string{token}, "health", "--data", "/var/lib/memhost").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, slot.Process.Signal(os.Interrupt))
	err = slot.Wait()
	assert.Contains(t, []int{0, 130}, slot.ProcessState.ExitCode(), "%v %s", err, errs.String())
	_, err = os.Stat(filepath.Join(root, "etc", "passwd"))
	require.NoError(t, err, "the base is below")
}

// unpack extracts the files of an image, without links, with their owners.
func unpack(t *testing.T, image v1.Image, root string) {
	files := mutate.Extract(image)
	defer files.Close()
	for r := tar.NewReader(files); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		path := filepath.Join(root, filepath.Clean("/"+h.Name))
		if h.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(path, 0o755))
		} else {
			text, err := io.ReadAll(r)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, text, 0o600))
		}
		require.NoError(t, os.Chown(path, h.Uid, h.Gid))
		require.NoError(t, os.Chmod(path, h.FileInfo().Mode().Perm()))
	}
}
