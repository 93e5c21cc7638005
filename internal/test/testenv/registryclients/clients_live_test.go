//go:build live

package registryclients_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/signing"
	"github.com/memhost/memhost/internal/test/sigstore"
)

// programs are the clients and the registry, by name, as they are published.
var programs = map[string]string{
	"crane":    "github.com/google/go-containerregistry/cmd/crane@v0.21.0",
	"oras":     "oras.land/oras/cmd/oras@v1.3.6",
	"registry": "github.com/distribution/distribution/v3/cmd/registry@v3.0.0",
	"cosign":   "github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3",
}

// program builds one of programs, unless an earlier run did; cosign takes several minutes.
func program(t *testing.T, name string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	module := programs[name]
	dir := filepath.Join(cache, "memhost", "registry-clients", module[strings.LastIndex(module, "@")+1:])
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	build := exec.Command("go", "install", "-trimpath", "-ldflags=-w", module)
	build.Dir = t.TempDir() // outside of every module
	build.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// shell runs programs in one folder, with a home of its own and no way off this machine.
type shell struct {
	t       *testing.T
	dir     string
	memhost string
	host    string // the registry's HOST:PORT
}

func newShell(t *testing.T) *shell {
	s := &shell{t: t, dir: t.TempDir()}
	s.memhost = filepath.Join(s.dir, "memhost")
	out, err := exec.Command("go", "build", "-trimpath", "-o", s.memhost, "../../../../cmd/memhost").CombinedOutput()
	require.NoError(t, err, "%s", out)
	s.serve()
	return s
}

// try runs a program and gives what it printed. more are environment variables.
func (s *shell) try(path string, args []string, more ...string) (string, error) {
	cmd := exec.Command(path, args...)
	cmd.Dir = s.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "XDG_CACHE_HOME=" + s.dir + "/cache",
		"DOCKER_CONFIG=" + s.dir + "/docker", "COSIGN_PASSWORD=secret", "HTTPS_PROXY=http://127.0.0.1:1",
		"HTTP_PROXY=http://127.0.0.1:1"}, more...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *shell) run(path string, args ...string) string {
	s.t.Helper()
	out, err := s.try(path, args)
	require.NoError(s.t, err, "%s %s: %s", filepath.Base(path), strings.Join(args, " "), out)
	return out
}

// serve starts the registry on a free port, with its files in the shell's folder.
func (s *shell) serve() {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s.t, err)
	s.host = free.Addr().String()
	require.NoError(s.t, free.Close())
	config := filepath.Join(s.dir, "registry.yml")
	require.NoError(s.t, os.WriteFile(config, fmt.Appendf(nil, "version: 0.1\nlog: {level: error}\n"+
		"storage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %s}\n", s.dir+"/registry", s.host), 0o600))
	cmd := exec.Command(program(s.t, "registry"), "serve", config)
	require.NoError(s.t, cmd.Start())
	s.t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	require.Eventually(s.t, func() bool {
		answer, err := http.Get("http://" + s.host + "/v2/")
		if err != nil {
			return false
		}
		return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond)
}

// module is any module that the program has.
func module(t *testing.T) string {
	path, err := filepath.Abs("../../../../plugins/conditions/no_memory/no_memory.wasm")
	require.NoError(t, err)
	return path
}

func TestLive_registry_clients_read_what_we_pushed(t *testing.T) {
	s := newShell(t)
	crane, oras, name := program(t, "crane"), program(t, "oras"), s.host+"/team/mem"
	_, digest, ok := strings.Cut(strings.TrimSpace(s.run(s.memhost, "push", module(t), "oci://"+name+":ours")), "@")
	require.True(t, ok)

	assert.Equal(t, digest, strings.TrimSpace(s.run(crane, "digest", "--insecure", name+":ours")))
	s.run(oras, "pull", "--plain-http", "--output", "pulled", name+":ours")
	s.run(oras, "cp", "--from-plain-http", "--to-plain-http", name+":ours", s.host+"/copy/mem:ours")
	assert.Contains(t, s.run(s.memhost, "pull", "oci://"+s.host+"/copy/mem:ours"), digest)
	s.run(crane, "copy", "--insecure", name+":ours", s.host+"/craned/mem:ours")
	assert.Contains(t, s.run(s.memhost, "pull", "oci://"+s.host+"/craned/mem:ours"), digest)
}

func TestLive_registry_what_clients_pushed_is_read(t *testing.T) {
	s := newShell(t)
	oras, name := program(t, "oras"), s.host+"/team/mem"
	wasm, err := os.ReadFile(module(t))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "mem.wasm"), wasm, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "config.json"), []byte("{}"), 0o600))
	s.run(oras, "push", "--plain-http", name+":theirs", "--config", "config.json:application/vnd.wasm.config.v0+json",
		"mem.wasm:application/wasm")
	s.run(s.memhost, "pull", "oci://"+name+":theirs", "-o", "back.wasm")
	back, err := os.ReadFile(filepath.Join(s.dir, "back.wasm"))
	require.NoError(t, err)
	assert.Equal(t, wasm, back)
}

func TestLive_registry_cosign_and_memhost_accept_each_others_signatures(t *testing.T) {
	s := newShell(t)
	cosign, name := program(t, "cosign"), s.host+"/team/mem"
	_, digest, _ := strings.Cut(strings.TrimSpace(s.run(s.memhost, "push", module(t), "oci://"+name+":v1")), "@")
	s.run(cosign, "generate-key-pair", "--output-key-prefix", "theirs")
	s.run(s.memhost, "sign", "new-key", "ours")
	verify := func(key string) error {
		out, err := s.try(cosign, []string{"verify", "--key", key, "--insecure-ignore-tlog",
			"--allow-http-registry", name + "@" + digest})
		t.Log(out)
		return err
	}
	trusts := func(line string) error {
		out, err := s.try(s.memhost, []string{"run", "--plugin", "oci://" + name + ":v1", "--dry-run"},
			"MEMHOST_MODULES__TRUST="+line)
		t.Log(out)
		return err
	}
	require.Error(t, verify("ours.pub"))
	require.Error(t, trusts("oci://"+name+" signed by ours.pub"))

	s.run(s.memhost, "sign", "oci://"+name+":v1", "--key", "ours.key")
	require.NoError(t, verify("ours.pub"))
	require.Error(t, verify("theirs.pub"))
	require.Error(t, trusts("oci://"+name+" signed by theirs.pub"))

	s.run(cosign, "sign", "--key", "theirs.key", "--use-signing-config=false", "--tlog-upload=false",
		"--allow-http-registry", "--yes", name+"@"+digest)
	require.NoError(t, trusts("oci://"+name+" signed by theirs.pub"))
	require.NoError(t, trusts("oci://"+name+" signed by ours.pub"))
	require.NoError(t, verify("theirs.pub"))
	s.run(s.memhost, "sign", "oci://"+name+":v1", "--key", "theirs.key") // a key that cosign made
	s.run(cosign, "sign", "--key", "ours.key", "--use-signing-config=false", "--tlog-upload=false",
		"--allow-http-registry", "--yes", name+"@"+digest) // and one that memhost made
}

// TestLive_registry_cosign_checks_a_signed_report: it is an attestation, and no signature.
func TestLive_registry_cosign_checks_a_signed_report(t *testing.T) {
	s := newShell(t)
	cosign, name := program(t, "cosign"), s.host+"/team/mem"
	report := s.run(s.memhost, "conformance", "--condition", "no_memory", "--clause", "1", "--json")
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "report.json"), []byte(report), 0o600))
	_, digest, _ := strings.Cut(strings.TrimSpace(s.run(s.memhost, "push", "no_memory", "oci://"+name+":v1")), "@")
	s.run(s.memhost, "sign", "new-key", "ours")
	s.run(s.memhost, "sign", "new-key", "other")
	s.run(s.memhost, "sign", "oci://"+name+":v1", "--key", "ours.key", "--report", "report.json")
	verify := []string{"verify-attestation", "--insecure-ignore-tlog", "--allow-http-registry", "--type",
		"https://github.com/memhost/memhost/conformance/v1", name + "@" + digest, "--key"}
	s.run(cosign, append(verify, "ours.pub")...)
	_, err := s.try(cosign, append(verify, "other.pub"))
	require.Error(t, err)
	s.run(cosign, "verify", "--key", "ours.pub", "--insecure-ignore-tlog", "--allow-http-registry", name+"@"+digest)
}

// TestLive_registry_cosign_and_memhost_agree_on_keyless_signatures: signatures that Sigstore's services would make are
// accepted by cosign (which has sigstore-go in it), too, and what memhost refuses is refused.
func TestLive_registry_cosign_and_memhost_agree_on_keyless_signatures(t *testing.T) {
	const workflow, actions = "https://github.com/team/mem/.github/workflows/release.yml@refs/tags/v1", "https://a.example"
	s := newShell(t)
	cosign, services := program(t, "cosign"), sigstore.New(t)
	digest := "sha256:" + strings.Repeat("0a", 32)
	root := filepath.Join(s.dir, "root.json")
	require.NoError(t, os.WriteFile(root, services.Root(), 0o600))
	trusted, err := signing.ReadRoot(services.Root())
	require.NoError(t, err)
	bundle := filepath.Join(s.dir, "bundle.json")
	cosigns := func(text []byte) error {
		require.NoError(t, os.WriteFile(bundle, text, 0o600))
		out, err := s.try(cosign, []string{"verify-blob-attestation", "--bundle", bundle, "--trusted-root", root,
			"--type", "https://sigstore.dev/cosign/sign/v1", "--digest", strings.TrimPrefix(digest, "sha256:"),
			"--digestAlg", "sha256", "--certificate-identity", workflow, "--certificate-oidc-issuer", actions})
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	wanted := signing.Keyless{Root: trusted, Identity: signing.Identity{Name: workflow, Issuer: actions}}
	hold := func(what string, text []byte, accepted bool) {
		t.Helper()
		_, ours := wanted.Verify(text, signing.Signature, digest)
		theirs := cosigns(text)
		if accepted {
			require.NoError(t, ours, what)
			require.NoError(t, theirs, what)
			return
		}
		require.Error(t, ours, what)
		require.Error(t, theirs, what)
		t.Logf("%s: memhost: %v", what, ours)
	}
	for _, version2 := range []bool{false, true} {
		sign := sigstore.Signature{Digest: digest, Name: workflow, Issuer: actions, Version2: version2}
		text := services.Sign(sign)
		hold("as it is", text, true)
		late := sign
		late.Seen = sigstore.Made.Add(time.Hour)
		hold("seen when the certificate had ended", services.Sign(late), false)
		other := sign
		other.Name += "2"
		hold("by another identity", services.Sign(other), false)
		hold("by other services", sigstore.New(t).Sign(sign), false)
		other = sign
		other.Digest = "sha256:" + strings.Repeat("0b", 32)
		hold("of another digest", services.Sign(other), false)
		mixed(t, text, services.Sign(sign), func(what string, changed []byte) {
			if version2 { // cosign reads some members from others that say the same
				_, ours := wanted.Verify(changed, signing.Signature, digest)
				require.Error(t, ours, what)
				return
			}
			hold(what, changed, false)
		})
	}
}

// mixed gives the first bundle with each member of the second in turn in its place.
func mixed(t *testing.T, one, two []byte, visit func(what string, changed []byte)) {
	var a, b map[string]any
	require.NoError(t, json.Unmarshal(one, &a))
	require.NoError(t, json.Unmarshal(two, &b))
	whole := a
	var walk func(at string, a, b map[string]any)
	walk = func(at string, a, b map[string]any) {
		for key, was := range a {
			if list, ok := was.([]any); ok && len(list) == 1 {
				if in, ok := list[0].(map[string]any); ok {
					walk(at+key+".", in, b[key].([]any)[0].(map[string]any))
					continue
				}
			}
			if in, ok := was.(map[string]any); ok {
				walk(at+key+".", in, b[key].(map[string]any))
				continue
			}
			if reflect.DeepEqual(was, b[key]) {
				continue
			}
			a[key] = b[key]
			text, err := json.Marshal(whole)
			require.NoError(t, err)
			visit(at+key, text)
			a[key] = was
		}
	}
	walk("", a, b)
}
