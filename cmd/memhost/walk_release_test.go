package main

import (
	"archive/zip"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memhost/memhost/internal/test/brief"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	releaseModule  = "github.com/memhost/memhost"
	releaseVersion = "v0.1.0"
)

// TestWalkWithARelease walks the page's chapter about Go as someone who has a released program and Go, and no checkout.
// The module proxy is a folder that holds memhost's module and nothing else: needing one of the host's dependencies
// would fail.
func TestWalkWithARelease(t *testing.T) {
	brief.Leave(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "new-plugin.md"))
	require.NoError(t, err)
	_, source := goEnvironment(t)
	work := t.TempDir()
	files := releasedFiles(t, source)
	writeProxy(t, filepath.Join(work, "proxy"), source, files)
	modules := filepath.Join(work, "modules")
	sh := newShell(t, map[string]string{
		"GOENV": "off", "GOFLAGS": "-trimpath -modcacherw", "GOMODCACHE": modules, "GOPRIVATE": "", "GONOSUMDB": "",
		"GOPROXY": "file://" + filepath.ToSlash(filepath.Join(work, "proxy")), "GOSUMDB": "off", "GOTOOLCHAIN": "local",
		"PATH": releaseProgram(t, source, files) + string(os.PathListSeparator) + os.Getenv("PATH"),
	})
	for _, s := range walkSections(string(page)) {
		if s.language != "Go" || needsMore(s.language, s.heading) {
			continue
		}
		for _, c := range s.commands {
			c.line = strings.TrimSuffix(c.line, " --memhost $SOURCE")
			sh.run(t, s.heading, c)
		}
	}
	sh.run(t, "what it needed", walkCommand{"cat go.mod", []string{"module example.com/my_memory", "", "go " + "…", "",
		"require " + releaseModule + " " + releaseVersion}})
	sh.run(t, "what it needed", walkCommand{"grep -v '^" + releaseModule + " ' go.sum || true", nil})
	downloaded, err := filepath.Glob(filepath.Join(modules, "cache", "download", "*", "*", "*"))
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(modules, "cache", "download", filepath.FromSlash(releaseModule))}, downloaded)
}

// releasedFiles lists the files that git has of the module in source, without other modules' below it.
func releasedFiles(t *testing.T, source string) []string {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = source
	out, err := list.Output()
	require.NoError(t, err)
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	var others []string // folders of other modules
	for _, name := range names {
		if path.Base(name) == "go.mod" && name != "go.mod" {
			others = append(others, path.Dir(name)+"/")
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		info, err := os.Lstat(filepath.Join(source, name))
		return err != nil || !info.Mode().IsRegular() ||
			slices.ContainsFunc(others, func(dir string) bool { return strings.HasPrefix(name, dir) })
	})
}

// writeProxy makes dir a module proxy with one version of one module.
func writeProxy(t *testing.T, dir, source string, files []string) {
	t.Helper()
	at := filepath.Join(dir, filepath.FromSlash(releaseModule), "@v")
	require.NoError(t, os.MkdirAll(at, 0o755))
	mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	require.NoError(t, err)
	for name, text := range map[string]string{"list": releaseVersion + "\n", releaseVersion + ".mod": string(mod),
		releaseVersion + ".info": `{"Version":"` + releaseVersion + `","Time":"2026-01-01T00:00:00Z"}`} {
		require.NoError(t, os.WriteFile(filepath.Join(at, name), []byte(text), 0o644))
	}
	archive, err := os.Create(filepath.Join(at, releaseVersion+".zip"))
	require.NoError(t, err)
	z := zip.NewWriter(archive)
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(source, name))
		require.NoError(t, err)
		w, err := z.Create(releaseModule + "@" + releaseVersion + "/" + name)
		require.NoError(t, err)
		_, err = w.Write(text)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	require.NoError(t, archive.Close())
}

// releaseProgram builds the program from a tagged repository with these files, as a release is built, and gives its
// folder.
func releaseProgram(t *testing.T, source string, files []string) string {
	t.Helper()
	repository := t.TempDir()
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(source, name))
		require.NoError(t, err)
		to := filepath.Join(repository, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		require.NoError(t, os.WriteFile(to, text, 0o644))
	}
	bin := t.TempDir()
	for _, line := range [][]string{
		{"git", "init", "-q"}, {"git", "add", "--all", "--force"},
		{"git", "-c", "user.name=memhost", "-c", "user.email=memhost@example.com", "-c", "commit.gpgsign=false",
			"commit", "-q", "-m", "release"},
		{"git", "-c", "tag.gpgsign=false", "tag", releaseVersion},
		{"go", "build", "-trimpath", "-buildvcs=true", "-o", filepath.Join(bin, "memhost"), "./cmd/memhost"},
	} {
		cmd := exec.Command(line[0], line[1:]...)
		cmd.Dir = repository
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", line, out)
	}
	return bin
}
