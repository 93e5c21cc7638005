package compat_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/engine/wasmbin"
	"github.com/memhost/memhost/plugins"
)

var write = flag.String("write", "", "write what the program of today makes into testdata/`release`, a new folder")

// lifeFile is what is known of a data folder, in the archive of that folder: a life as JSON.
const lifeFile = "life.json"

// release is a folder of testdata.
type release string

func releases(t testing.TB) (list []release) {
	t.Helper()
	folders, err := filepath.Glob("testdata/*/modules")
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, f := range folders {
		list = append(list, release(filepath.Dir(f)))
	}
	return list
}

func (r release) String() string { return filepath.Base(string(r)) }

func (r release) path(elements ...string) string {
	return filepath.Join(append([]string{string(r)}, elements...)...)
}

// files lists the files of a folder whose names end as given, by their names without that end.
func (r release) files(t testing.TB, folder, end string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(r.path(folder, "*"+end))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	byName := map[string]string{}
	for _, p := range paths {
		byName[strings.TrimSuffix(filepath.Base(p), end)] = p
	}
	return byName
}

// module reads a module; nil if the release has none of that name.
func (r release) module(t testing.TB, name string) []byte {
	t.Helper()
	path := r.path("modules", name+".wasm.gz")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return unzipped(t, path)
}

// life unpacks a data folder into dir, and reads the list of its contents. Nil if the release has none of that name.
func (r release) life(t testing.TB, name, dir string) *expectedContents {
	t.Helper()
	path := r.path("lives", name+".tar.gz")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	told := new(expectedContents)
	archive := tar.NewReader(bytes.NewReader(unzipped(t, path)))
	for {
		file, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return told
		}
		require.NoError(t, err)
		content, err := io.ReadAll(archive)
		require.NoError(t, err)
		if file.Name == lifeFile {
			require.NoError(t, json.Unmarshal(content, told))
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(file.Name, "data/")))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, content, 0o600))
	}
}

func unzipped(t testing.TB, path string) []byte {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	z, err := gzip.NewReader(file)
	require.NoError(t, err)
	content, err := io.ReadAll(z)
	require.NoError(t, err)
	return content
}

func zip(t testing.TB, path string, content []byte) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	require.NoError(t, err)
	_, err = z.Write(content)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, os.WriteFile(path, packed.Bytes(), 0o644))
}

func decode[T any, P interface {
	*T
	abi.Decodable
}](t testing.TB, text []byte) *T {
	t.Helper()
	v := P(new(T))
	require.NoError(t, abi.Unmarshal(text, v))
	return v
}

// today are the modules as they are built now, by name: those of the program, and the examples for Extism.
func today(t testing.TB) map[string][]byte {
	t.Helper()
	byName := map[string][]byte{}
	for _, m := range plugins.Builtin() {
		byName[m.Name] = m.Wasm
	}
	for _, name := range []string{"notes_extism", "notes_assemblyscript"} {
		wasm, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "plugins", name, name+".wasm"))
		require.NoError(t, err)
		byName[name] = wasm
	}
	return byName
}

// TestWrite adds a release: go test ./internal/test/compat -run TestWrite -write 2026-11
func TestWrite(t *testing.T) {
	if *write == "" {
		t.Skip("writes into testdata: give it -write RELEASE")
	}
	r := release(filepath.Join("testdata", *write))
	require.NoDirExists(t, string(r), "a release is written once and never changed")
	for name, wasm := range today(t) {
		zip(t, r.path("modules", name+".wasm.gz"), wasm)
		manifest, found, err := wasmbin.Custom(wasm, abi.ManifestSection)
		require.NoError(t, err)
		require.True(t, found)
		var pretty bytes.Buffer
		require.NoError(t, json.Indent(&pretty, manifest, "", "  "))
		require.NoError(t, os.MkdirAll(r.path("manifests"), 0o755))
		require.NoError(t, os.WriteFile(r.path("manifests", name+".json"), pretty.Bytes(), 0o644))
	}
	golden, err := filepath.Glob(filepath.Join("..", "..", "..", "plugins", "testdata", "*.cassette"))
	require.NoError(t, err)
	for _, path := range golden {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		zip(t, r.path("cassettes", "plugins_"+filepath.Base(path)+".gz"), text)
	}
	for _, u := range setUps(t) {
		t.Run(u.name, func(t *testing.T) { r.writeLife(t, u, today(t)[u.module]) })
	}
}

// writeLife runs a slot through a fixed series of calls, and packs its data folder with the expected answers. The
// cassette is stored next to the others.
func (r release) writeLife(t *testing.T, u providerSetup, wasm []byte) {
	dir, cassette := t.TempDir(), filepath.Join(t.TempDir(), "cassette")
	told := live(t, u, wasm, dir, cassette)
	text, err := os.ReadFile(cassette)
	require.NoError(t, err)
	zip(t, r.path("cassettes", u.name+".cassette.gz"), text)

	var packed bytes.Buffer
	archive := tar.NewWriter(&packed)
	add := func(name string, content []byte) error {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err := archive.Write(content)
		return err
	}
	pretty, err := json.MarshalIndent(told, "", " ")
	require.NoError(t, err)
	require.NoError(t, add(lifeFile, pretty))
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
		if err != nil {
			return err
		}
		return add("data/"+path, content)
	}))
	require.NoError(t, archive.Close())
	zip(t, r.path("lives", u.name+".tar.gz"), packed.Bytes())
}
