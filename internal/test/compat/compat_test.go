package compat_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/cassette"
	"github.com/memhost/memhost/host/extism"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/testcache"
)

// each runs a test for every set-up of every release that has a module for it.
func each(t *testing.T, test func(t *testing.T, r release, u providerSetup, wasm []byte)) {
	for _, r := range releases(t) {
		t.Run(r.String(), func(t *testing.T) {
			for _, u := range setUps(t) {
				if wasm := r.module(t, u.module); wasm != nil {
					t.Run(u.name, func(t *testing.T) {
						t.Parallel()
						test(t, r, u, wasm)
					})
				}
			}
		})
	}
}

// TestAllOfAReleaseIsTested: each module and each data folder belongs to a set-up, those of a release to come too.
func TestAllOfAReleaseIsTested(t *testing.T) {
	modules, lives := map[string]bool{}, map[string]bool{}
	for _, u := range setUps(t) {
		modules[u.module], lives[u.name] = true, true
	}
	for name := range today(t) {
		assert.True(t, modules[name], "module %s", name)
	}
	for _, r := range releases(t) {
		for name := range r.files(t, "modules", ".wasm.gz") {
			assert.True(t, modules[name], "%s: module %s", r, name)
		}
		for name := range r.files(t, "lives", ".tar.gz") {
			assert.True(t, lives[name], "%s: data folder %s", r, name)
		}
	}
}

func TestOldModulesAndManifestsAreRead(t *testing.T) {
	for _, r := range releases(t) {
		for name, path := range r.files(t, "modules", ".wasm.gz") {
			t.Run(r.String()+"/"+name, func(t *testing.T) {
				t.Parallel()
				wasm := unzipped(t, path)
				inspected, err := host.Inspect(wasm, host.Limits{}, extism.Engine())
				require.NoError(t, err)
				h, err := host.New(t.Context(), options(t.TempDir(), newBackend(providerSetup{}, time.Now())))
				require.NoError(t, err)
				defer func() { require.NoError(t, h.Close(context.Background())) }()
				loaded, err := h.Load(t.Context(), wasm)
				require.NoError(t, err)
				text, err := os.ReadFile(r.path("manifests", name+".json"))
				require.NoError(t, err)
				manifest, _, err := host.ParseManifest(text)
				require.NoError(t, err)
				for _, m := range []*abi.ModuleManifest{inspected.Manifest, loaded.Manifest} {
					assert.JSONEq(t, string(abi.Marshal(manifest)), string(abi.Marshal(m)))
				}
			})
		}
	}
}

func TestOldModulesPassTheKit(t *testing.T) {
	each(t, func(t *testing.T, _ release, u providerSetup, wasm []byte) {
		if !slices.Contains([]string{"full_history", "mem0", "notes_extism"}, u.name) {
			brief.Skip(t)
		}
		target := u.kit
		url := backendURL
		if u.backend != nil {
			server := httptest.NewServer(u.backend(time.Now))
			t.Cleanup(server.Close)
			url = server.URL
		}
		target.Provider = u.config(wasm, url)
		options := conformance.Options{CacheDir: testcache.Dir()}
		if u.name == "notes_assemblyscript" {
			// Clause 16 came later, and this module takes time that grows with the square of a turn's words.
			options.Clauses = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
		}
		conformance.TestWith(t, target, options)
	})
}

func TestOldCassettesReplay(t *testing.T) {
	for _, r := range releases(t) {
		for name, path := range r.files(t, "cassettes", ".cassette.gz") {
			t.Run(r.String()+"/"+name, func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(t.TempDir(), name+".cassette")
				require.NoError(t, os.WriteFile(file, unzipped(t, path), 0o600))
				report, err := host.Replay(t.Context(),
					host.ReplayOptions{Path: file, CacheDir: testcache.Dir(), Engines: []host.Engine{extism.Engine()},
						Module: func(recorded cassette.Load) ([]byte, error) {
							return r.module(t, recorded.Module.Name), nil
						}})
				require.NoError(t, err)
				assert.Nil(t, report.Difference, "has the contract gained members or warnings? then raise "+
					"cassette.Revision")
				assert.Positive(t, report.Calls)
			})
		}
	}
}

// TestOldFoldersOpen opens each data folder with the module of then, with that of today, and with one after the other.
func TestOldFoldersOpen(t *testing.T) {
	now := today(t)
	each(t, func(t *testing.T, r release, u providerSetup, wasm []byte) {
		built := now[u.module]
		for name, modules := range map[string][][]byte{"then": {wasm}, "today": {built},
			"then and today": {wasm, built}} {
			t.Run(name, func(t *testing.T) {
				if len(modules) == 1 {
					brief.Skip(t)
				}
				dir := t.TempDir()
				told := r.life(t, u.name, dir)
				if told == nil {
					t.Skip("the release has no data folder of it")
				}
				v := newVisit(t, u, told, dir, modules)
				v.findsWhatWasRecorded()
				v.keepsTheScopeReadOnly()
				v.knowsDuplicates()
				v.goesOn()
			})
		}
	})
}

// TestOldRunManifestsAreVerified: what a run manifest says of module and configuration is the same today.
func TestOldRunManifestsAreVerified(t *testing.T) {
	each(t, func(t *testing.T, r release, u providerSetup, wasm []byte) {
		told := r.life(t, u.name, t.TempDir())
		if told == nil {
			t.Skip("the release has no run manifest of it")
		}
		manifest, err := report.ParseRunManifest(told.Manifest)
		require.NoError(t, err)
		module, err := host.Inspect(wasm, host.Limits{}, extism.Engine())
		require.NoError(t, err)
		u.block = string(told.Block)
		config := u.config(wasm, backendURL)
		differences, err := host.VerifyManifest(manifest, module, &config)
		require.NoError(t, err)
		for _, d := range differences {
			// A module reports its capabilities without its configuration, so some that need a key may be missing.
			assert.Equal(t, "capabilities.capabilities", d.Field)
		}
	})
}

// TestAFieldThatAnOldCassetteLacksIsNoDifference takes a field out of the answers of a cassette, as if it had been
// added to the contract since.
func TestAFieldThatAnOldCassetteLacksIsNoDifference(t *testing.T) {
	r := releases(t)[0]
	in, err := cassette.NewReader("full_history", bytes.NewReader(unzipped(t,
		r.path("cassettes", "full_history.cassette.gz"))))
	require.NoError(t, err)
	var operations []*cassette.Operation
	for {
		o, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		o.Answer = regexp.MustCompile(`,"tokenizer":"[^"]*"`).ReplaceAll(o.Answer, nil)
		operations = append(operations, o)
	}
	replay := func(revision int64) *host.ReplayReport {
		file := filepath.Join(t.TempDir(), "cassette")
		var text bytes.Buffer
		in.Header.Revision = revision
		w, err := cassette.NewWriter(&text, in.Header)
		require.NoError(t, err)
		for _, o := range operations {
			require.NoError(t, w.Add(o))
		}
		require.NoError(t, w.End())
		require.NoError(t, os.WriteFile(file, text.Bytes(), 0o600))
		report, err := host.Replay(t.Context(), host.ReplayOptions{Path: file, CacheDir: testcache.Dir(),
			Module: func(cassette.Load) ([]byte, error) { return r.module(t, "full_history"), nil }})
		require.NoError(t, err)
		return report
	}
	older := replay(cassette.Revision - 1)
	assert.Nil(t, older.Difference)
	assert.True(t, older.Older)
	assert.EqualValues(t, len(operations), older.Operations)
	present := replay(cassette.Revision)
	require.NotNil(t, present.Difference)
	assert.Equal(t, "record_event", present.Difference.Name)
}
