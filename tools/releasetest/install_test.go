//go:build release

package releasetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	modulePath = "github.com/memhost/memhost"
	version    = "v0.2.0"
	checkout   = "../.."
)

// TestGoInstallFromTheModuleZip installs the program as `go install` does from a proxy: from the zip of what is
// committed, into an empty module cache, without using this checkout. The other modules come from the checkout's cache,
// in the format of a proxy.
func TestGoInstallFromTheModuleZip(t *testing.T) {
	proxy := t.TempDir()
	at := filepath.Join(proxy, filepath.FromSlash(modulePath), "@v")
	require.NoError(t, os.MkdirAll(at, 0o755))
	clone := filepath.Join(t.TempDir(), "clone") // the zip code does not support Git work trees
	cloned, err := exec.Command("git", "clone", "--quiet", "--shared", absolute(t, checkout), clone).CombinedOutput()
	require.NoError(t, err, "%s", cloned)
	packed, err := os.Create(filepath.Join(at, version+".zip"))
	require.NoError(t, err)
	require.NoError(t, zip.CreateFromVCS(packed, module.Version{Path: modulePath, Version: version}, clone, "HEAD", ""))
	require.NoError(t, packed.Close())
	mod, err := exec.Command("git", "-C", checkout, "show", "HEAD:go.mod").Output()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(at, version+".mod"), mod, 0o644))
	info := fmt.Appendf(nil, `{"Version":%q,"Time":%q}`, version, time.Now().UTC().Format(time.RFC3339))
	require.NoError(t, os.WriteFile(filepath.Join(at, version+".info"), info, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(at, "list"), []byte(version+"\n"), 0o644))

	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	require.NoError(t, err)
	others := "file://" + filepath.Join(strings.TrimSpace(string(cache)), "cache", "download")
	bin := t.TempDir()
	install := exec.Command("go", "install", "-trimpath", "-modcacherw", modulePath+"/cmd/memhost@"+version)
	install.Dir = t.TempDir()
	install.Env = append(os.Environ(), "GOPROXY=file://"+proxy+","+others, "GOSUMDB=off", "GOFLAGS=", "GOBIN="+bin,
		"GOMODCACHE="+t.TempDir(), "CGO_ENABLED=0")
	out, err := install.CombinedOutput()
	require.NoError(t, err, "%s", out)

	said, err := exec.Command(filepath.Join(bin, "memhost"), "version").Output()
	require.NoError(t, err)
	assert.Contains(t, string(said), version)
	ran, err := exec.Command(filepath.Join(bin, "memhost"), "run", "--dry-run", "--data", t.TempDir()).CombinedOutput()
	require.NoError(t, err, "%s", ran)
}

func absolute(t *testing.T, path string) string {
	path, err := filepath.Abs(path)
	require.NoError(t, err)
	return path
}
