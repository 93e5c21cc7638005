package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/configuration/schema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// write puts files into a new folder and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func TestTheEmbeddedDefault(t *testing.T) {
	c, err := config.Load(config.Options{Dir: t.TempDir(), Environ: []string{"XDG_DATA_HOME=/xdg"}})
	require.NoError(t, err)
	name, word, block := c.Block()
	assert.Equal(t, []string{"recall", config.WordBackend, "{}"}, []string{name, word, string(block)})
	assert.Equal(t, abi.MemoryScope{RunID: "default", PersonaID: "default"}, c.Scope())
	assert.Equal(t, config.Memory{Archive: true, Profile: "best", Scope: config.Scope{RunID: "default", PersonaID: "default"},
		Scopes: "any", Tokenizer: "bytes4", Smoke: "auto", SmokeWaitMS: 30000, TestSessions: []string{},
		LookupExisting: true, RetryEmpty: "never", Shadows: []string{}, ShadowPercent: 20, ShadowFrom: "archive"}, c.Memory)
	assert.Equal(t, config.Server{Listen: "127.0.0.1:7077", MaxBodyBytes: 16777216, ShutdownMS: 10000, Page: "on"},
		c.Server)
	assert.Equal(t, config.Data{Dir: filepath.Join("/xdg", "memhost"), Durability: "power",
		StateBytesPerScope: 1 << 30, ShadowRetentionMS: 1209600000}, c.Data)
	assert.Equal(t, config.Log{Level: "info", Format: "text"}, c.Log)
	assert.Equal(t, config.Limits{MemoryBytes: 134217728, Pool: 4, CallsInFlight: 256, ResponseBytes: 16777216,
		RequestBytes: 16777216, StateWriteBytes: 33554432, QueueBytes: 67108864, DeadlineMS: 30000,
		ModeWaitMS: 10000}, c.Limits)
	assert.Empty(t, c.Secrets)
	assert.Empty(t, c.File)
	_, isFile := c.PluginFile()
	assert.False(t, isFile)
}

func TestTheZeroOptionsReadTheProcess(t *testing.T) {
	t.Chdir(write(t, map[string]string{"memhost.yaml": "log: {level: debug}"}))
	t.Setenv("MEMHOST_LOG__FORMAT", "json")
	t.Setenv("SLOT_KEY", "first")
	t.Setenv("MEMHOST_SECRETS__K__ENV", "SLOT_KEY")
	t.Setenv("MEMHOST_SECRETS__K__ORIGIN", "http://h")
	c, err := config.Load(config.Options{})
	require.NoError(t, err)
	assert.Equal(t, config.Log{Level: "debug", Format: "json"}, c.Log)
	assert.NotEmpty(t, c.Data.Dir)
	t.Setenv("SLOT_KEY", "second")
	value, err := c.Secrets["k"].Resolve()
	require.NoError(t, err)
	assert.Equal(t, "second", value, "secrets are read when they are needed")
}

func TestSource(t *testing.T) {
	dir := write(t, map[string]string{
		"memhost.yaml": "memory:\n  condition: static_profile\n  conditions:\n    static_profile:\n      list: [1, " +
			"{a: 2}]\n      a b: {c: 1}\n      profiles: {file: p.json}\n",
		"p.json": `{"x": {"y": 1}}`,
	})
	c, err := config.Load(config.Options{Dir: dir, Environ: []string{"MEMHOST_LOG__LEVEL=warn"},
		Flags: map[string]any{"listen": "127.0.0.1:1"}})
	require.NoError(t, err)
	for path, want := range map[string]string{
		"memory.condition":                              "file memhost.yaml:2",
		"memory.namespace":                              "default",
		"log.level":                                     "env MEMHOST_LOG__LEVEL",
		"server.listen":                                 "flag --listen",
		"memory.conditions.static_profile.list":         "file memhost.yaml:5",
		"memory.conditions.static_profile.list[1].a":    "file memhost.yaml:5",
		`memory.conditions.static_profile."a b".c`:      "file memhost.yaml:6",
		"memory.conditions.static_profile.profiles.x.y": "file p.json",
		"memory.conditions.static_profile.no_such_key":  "default",
		"nothing":  "default",
		"data.dir": "default",
		"memory.conditions.static_profile.profiles.anything": "file p.json",
	} {
		assert.Equal(t, want, c.Source(path).String(), path)
	}
	assert.Contains(t, c.Paths(), "memory.conditions.static_profile.profiles.x.y")
	assert.Equal(t, config.Origin{Kind: config.KindEnv, Name: "MEMHOST_LOG__LEVEL"}, c.Source("log.level"))
	for _, path := range c.Paths() {
		assert.NotEmpty(t, c.Source(path).Kind, path)
	}
}

func TestBlanked(t *testing.T) {
	dir := write(t, map[string]string{"memhost.yaml": `
memory:
  backend: mem0
  backends: {mem0: {url: "http://me:hunter2@h", api_key: {secret: key}, token: hunter2, n: 1, f: 0.5}, honcho: {password: hunter2}}
secrets: {key: {env: KEY, origin: "http://h"}}
`})
	c, err := config.Load(config.Options{Dir: dir, Environ: []string{"KEY=hunter2"}})
	require.NoError(t, err)
	blanked := c.Blanked()
	assert.Equal(t, map[string]any{"mem0": map[string]any{"url": "http://***@h",
		"api_key": map[string]any{"secret": "key"}, "token": "***", "n": int64(1), "f": 0.5}},
		blanked["memory"].(map[string]any)["backends"])
	assert.Equal(t, map[string]any{"key": map[string]any{"env": "KEY", "origin": "http://h"}}, blanked["secrets"])
	assert.Equal(t, int64(4), blanked["limits"].(map[string]any)["pool"])
	assert.NotContains(t, string(c.YAML(true)), "hunter2")
	// What Blanked returns is a copy.
	blanked["limits"].(map[string]any)["pool"] = int64(9)
	assert.Equal(t, int64(4), c.Blanked()["limits"].(map[string]any)["pool"])
}

func TestSecretResolve(t *testing.T) {
	dir := write(t, map[string]string{
		"conf/slot.yaml": `
secrets:
  env: {env: PLAIN, origin: "http://h"}
  newline: {env: NEWLINE, origin: "http://h"}
  unset: {env: UNSET, origin: "http://h"}
  empty: {env: EMPTY, origin: "http://h"}
  broken: {env: BROKEN, origin: "http://h"}
  file: {file: ../pass.txt, origin: "http://h"}
  missing: {file: none.txt, origin: "http://h"}
  binary: {file: ../binary, origin: "http://h"}
`,
		"pass.txt": "hunter2 \r\n",
		"binary":   "hunter2\xff",
	})
	c, err := config.Load(config.Options{Dir: dir, File: "conf/slot.yaml",
		Environ: []string{"PLAIN=hunter2", "NEWLINE=hunter2\n\n", "EMPTY=\n", "BROKEN=hunter2\r\nX-Evil: 1"}})
	require.NoError(t, err)
	for name, want := range map[string]string{"env": "hunter2", "file": "hunter2 "} {
		got, err := c.Secrets[name].Resolve()
		require.NoError(t, err)
		assert.Equal(t, want, got, name)
	}
	for name, want := range map[string]string{
		"newline": "secret newline: environment variable NEWLINE holds a line break or another control character, or " +
			"is not UTF-8",
		"unset": "secret unset: environment variable UNSET is not set: export it before memhost starts",
		"empty": "secret empty: environment variable EMPTY is empty",
		"broken": "secret broken: environment variable BROKEN holds a line break or another control character, or " +
			"is not UTF-8",
		"missing": "secret missing: cannot read file " + filepath.Join(dir, "conf/none.txt") + ": it does not exist",
		"binary": "secret binary: file " + filepath.Join(dir, "binary") +
			" holds a line break or another control character, or is not UTF-8",
	} {
		_, err := c.Secrets[name].Resolve()
		require.ErrorIs(t, err, &abi.Error{Code: abi.CodeInvalidArgument})
		assert.Equal(t, want, abi.AsError(err).Message)
		assert.NotContains(t, err.Error(), "hunter2")
	}
}

func TestLimitsOnFiles(t *testing.T) {
	const limit = 4 << 20
	block := "memory: {condition: static_profile, conditions: {static_profile: {a: {file: big.txt}}}}"
	c, err := config.Load(config.Options{Environ: []string{},
		Dir: write(t, map[string]string{"memhost.yaml": block, "big.txt": strings.Repeat("x", limit)})})
	require.NoError(t, err)
	_, _, raw := c.Block()
	assert.Len(t, raw, limit+len(`{"a":""}`))

	_, err = config.Load(config.Options{Environ: []string{},
		Dir: write(t, map[string]string{"memhost.yaml": block, "big.txt": strings.Repeat("x", limit+1)})})
	assert.EqualError(t, err, "invalid_argument: memhost.yaml:1: memory.conditions.static_profile.a: cannot read "+
		"file big.txt: it is larger than 4194304 bytes")

	five := "memory: {condition: static_profile, conditions: {static_profile: {a: [" +
		strings.Repeat("{file: big.txt}, ", 5) + "]}}}"
	_, err = config.Load(config.Options{Environ: []string{},
		Dir: write(t, map[string]string{"memhost.yaml": five, "big.txt": strings.Repeat("x", limit)})})
	assert.ErrorContains(t, err, "memory.conditions.static_profile.a[4]: with file big.txt the files of this block "+
		"come to more than 16 MiB")

	_, err = config.Load(config.Options{Environ: []string{},
		Dir: write(t, map[string]string{"memhost.yaml": "# " + strings.Repeat("x", limit)})})
	assert.ErrorContains(t, err, "cannot read memhost.yaml: it is larger than 4194304 bytes")
}

func TestBytesThatAreNoText(t *testing.T) {
	for text, want := range map[string]string{
		"log:\n  level: \"\xff\"": "memhost.yaml:2: not valid UTF-8: save the file in that encoding",
		"log: {level: a\x00}":     "memhost.yaml:1: holds a zero byte",
		"\ufefflog: {level: b}":   `memhost.yaml:1: log.level: found "b", want one of debug, info, warn, error`,
	} {
		_, err := config.Load(config.Options{Environ: []string{},
			Dir: write(t, map[string]string{"memhost.yaml": text})})
		assert.EqualError(t, err, "invalid_argument: "+want)
	}
	_, err := config.Load(config.Options{Dir: t.TempDir(), Environ: []string{"MEMHOST_MEMORY__NAMESPACE=\xff"}})
	assert.ErrorContains(t, err, "MEMHOST_MEMORY__NAMESPACE: memory.namespace: is not valid UTF-8 text, or holds a "+
		"zero byte")
}

func TestOnlySomeOfManyMistakesAreListed(t *testing.T) {
	text := strings.Builder{}
	for i := range 50 {
		text.WriteString("key" + strings.Repeat("x", i) + ": 1\n")
	}
	_, err := config.Load(config.Options{Environ: []string{},
		Dir: write(t, map[string]string{"memhost.yaml": text.String()})})
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	assert.Len(t, lines, 21)
	assert.Equal(t, "... and 30 more", lines[20])
}

func TestKeysAreDescribed(t *testing.T) {
	flags := config.FlagKeys()
	env := map[string]bool{}
	for _, k := range config.Keys() {
		assert.NotEmpty(t, k.Doc, k.Path)
		assert.NotEmpty(t, k.Wants, k.Path)
		assert.False(t, env[k.Env], k.Env)
		env[k.Env] = true
		if k.Flag != "" {
			assert.Equal(t, k.Path, flags[k.Flag])
			delete(flags, k.Flag)
		}
	}
	assert.Empty(t, flags)
	assert.True(t, env["MEMHOST_MEMORY__SCOPE__RUN_ID"])
	assert.True(t, env["MEMHOST_MEMORY__BACKENDS__NAME__KEY"])
}

func manifest() *abi.ModuleManifest {
	return &abi.ModuleManifest{
		Manifest: 1, Name: "mem0", Version: "0.1.0", ABI: abi.ABIMemhost,
		Description: "memory items extracted by an LLM, in vectors.", Homepage: "https://example.com/mem0",
		Providers: []abi.ProviderDecl{{Name: "mem0", Kind: abi.KindArchitecture},
			{Name: "simple_rag", Kind: abi.KindControl, Preset: abi.Raw(`{"infer":false}`)}},
		ConfigSchema: abi.Raw(`{"type":"object","additionalProperties":false,"required":["url","llm","api_key"],"properties":{
			"url":{"type":"string","format":"uri","title":"Address","description":"Where the server listens.","examples":["http://127.0.0.1:8000"]},
			"api_key":{"type":"object","description":"The admin key.","properties":{"secret":{"type":"string"}},"required":["secret"],"additionalProperties":false},
			"infer":{"type":"boolean","default":true,"description":"Whether the server's LLM extracts facts; without it each message is stored as it is, which makes this a control, and a cheap one at that."},
			"top_k":{"type":"integer","minimum":1,"maximum":1000,"default":10},
			"threshold":{"type":["number","null"],"minimum":0,"maximum":1},
			"custom_instructions":{"type":"string","description":"Text for the extraction."},
			"search":{"type":"object","properties":{"explain":{"type":"boolean","default":false}}},
			"llm":{"type":"object","description":"The model.","required":["model"],"properties":{"model":{"type":"string","examples":["small: 1"]},"mode":{"enum":["fast","fine"]}}},
			"old":{"type":"string","deprecated":true}}}`),
		Origins: []abi.OriginDecl{{Name: "api", From: "/url", Protocol: "http"}},
		Secrets: []abi.SecretDecl{{Name: "api_key", From: "/api_key", Headers: []string{"x-api-key"}, Origin: "api"}},
	}
}

func TestStarter(t *testing.T) {
	for _, provider := range []string{"mem0", "simple_rag"} {
		got := config.Starter(provider, manifest())
		file := filepath.Join("testdata", "starter", provider+".yaml")
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, got, 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got))

		// It loads, and its block fits the schema.
		c, err := config.Load(config.Options{Environ: []string{},
			Dir: write(t, map[string]string{"memhost.yaml": string(got)}), Known: known()})
		require.NoError(t, err)
		name, _, block := c.Block()
		assert.Equal(t, provider, name)
		s, err := schema.Compile(manifest().ConfigSchema)
		require.NoError(t, err)
		_, err = s.Apply(nil, block)
		assert.NoError(t, err)

		// So do the parts that are comments.
		var all []string
		for line := range strings.Lines(string(got)) {
			text := strings.TrimLeft(line, " ")
			if rest, ok := strings.CutPrefix(text, "# "); ok &&
				(strings.Contains(rest, ": ") || strings.HasSuffix(rest, ":\n")) &&
				!strings.ContainsAny(rest[:1], "(`ABCDEFGHIJKLMNOPQRSTUVWXYZ") && !strings.HasPrefix(rest, "memhost") && !strings.HasPrefix(rest, "yaml-language-server") {
				line = strings.Repeat(" ", len(line)-len(text)) + rest
			}
			all = append(all, line)
		}
		_, err = config.Load(config.Options{Environ: []string{},
			Dir: write(t, map[string]string{"memhost.yaml": strings.Join(all, "")}), Known: known()})
		assert.NoError(t, err, strings.Join(all, ""))
	}
}

func TestStarterWithoutAManifest(t *testing.T) {
	for _, m := range []*abi.ModuleManifest{nil, {}, {ConfigSchema: abi.Raw(`{"type":"what"}`)}} {
		got := config.Starter("zep", m)
		c, err := config.Load(config.Options{Environ: []string{},
			Dir: write(t, map[string]string{"memhost.yaml": string(got)})})
		require.NoError(t, err, string(got))
		name, word, block := c.Block()
		assert.Equal(t, []string{"zep", config.WordBackend, "{}"}, []string{name, word, string(block)})
	}
}

// TestAModuleThatCannotBeHadNowIsNoMistake: a service is started again after the one, and not after the other.
func TestAModuleThatCannotBeHadNowIsNoMistake(t *testing.T) {
	for code, want := range map[abi.Code]abi.Code{abi.CodeUnavailable: abi.CodeUnavailable,
		abi.CodeNotFound: abi.CodeInvalidArgument} {
		named := []string{"MEMHOST_MEMORY__PLUGIN=oci://127.0.0.1:1/mem"}
		_, err := config.Load(config.Options{Environ: named, Dir: t.TempDir(),
			Module: func(string, bool) ([]config.Provider, error) { return nil, abi.NewError(code, "no answer") }})
		require.ErrorContains(t, err, "memory.plugin: cannot use oci://127.0.0.1:1/mem: no answer")
		assert.Equal(t, want, abi.CodeOf(err))
		assert.Equal(t, want == abi.CodeUnavailable, abi.AsError(err).Retryable)
	}
}

// TestFoldersKeepTheDefaultsThatTheyBeganWith: the default of a new folder is recall. A folder that an earlier version
// began, and a slot whose hosts share a database, keep full_history.
func TestFoldersKeepTheDefaultsThatTheyBeganWith(t *testing.T) {
	for _, c := range []struct {
		name, state, defaults, manifest, file, want, word, kind string
		archive                                                 bool
	}{
		{name: "new", want: "recall", word: "backend", kind: config.KindDefault, archive: true},
		{name: "begun before", state: "x", want: "full_history", word: "condition", kind: config.KindDefault},
		{name: "begun since", state: "x", defaults: `{"provider":"recall"}`, want: "recall", word: "backend", kind: config.KindDefault},
		{name: "begun with an archive", state: "x", defaults: `{"provider":"recall","archive":true}`, want: "recall", word: "backend",
			kind: config.KindDefault, archive: true},
		{name: "new, and no archive wanted", file: "memory: {backend: recall, archive: false}", want: "recall", word: "backend",
			kind: config.KindFile},
		{name: "begun before, and an archive wanted", state: "x", file: "memory: {condition: bm25, archive: true}", want: "bm25",
			word: "condition", kind: config.KindFile, archive: true},
		{name: "served by full_history", state: "x", defaults: `{"provider":"recall"}`, manifest: `{"provider":"full_history"}`,
			want: "full_history", word: "condition", kind: config.KindDefault},
		{name: "damaged", state: "x", defaults: `{"prov`, want: "full_history", word: "condition", kind: config.KindDefault},
		{name: "chosen", state: "x", file: "memory: {condition: bm25}", want: "bm25", word: "condition", kind: config.KindFile},
		{name: "a database", file: "store: {postgres: {url: 'postgres://u@h/d'}}", want: "full_history", word: "condition",
			kind: config.KindDefault},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			data := filepath.Join(dir, "data")
			for name, text := range map[string]string{"data/state.db": c.state, "data/defaults.json": c.defaults,
				"data/manifest.json": c.manifest, "memhost.yaml": c.file} {
				if text != "" {
					require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
					require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
				}
			}
			got, err := config.Load(config.Options{Dir: dir, Environ: []string{}, Flags: map[string]any{"data": data}})
			require.NoError(t, err)
			name, word, _ := got.Block()
			assert.Equal(t, []string{c.want, c.word}, []string{name, word})
			assert.Equal(t, c.kind, got.Source("memory."+word).Kind)
			assert.Equal(t, c.state == "" && c.defaults == "", config.NewDefaults(got) != nil)
			assert.Equal(t, c.archive, got.Memory.Archive)
			if text := config.NewDefaults(got); text != nil {
				assert.Equal(t, c.archive, strings.Contains(string(text), `"archive":true`), "the folder keeps what it begins with")
			}
		})
	}
}
