package serving

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
)

// editorSchema is what `memhost config schema ARGS...` prints, compiled by an independent library.
func editorSchema(t *testing.T, args ...string) *jsonschema.Schema {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := cli.Run(context.Background(), cli.System{Args: append([]string{"config", "schema"}, args...),
		Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		Modules: cli.BuiltinModules, Now: time.Now}, Commands)
	require.Equal(t, cli.ExitOK, code, stderr.String())
	doc, err := jsonschema.UnmarshalJSON(&stdout)
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("schema.json", doc))
	s, err := c.Compile("schema.json")
	require.NoError(t, err)
	return s
}

// asJSON reads YAML as an editor does.
func asJSON(t *testing.T, text string) any {
	t.Helper()
	var v any
	require.NoError(t, yaml.Unmarshal([]byte(text), &v), text)
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	require.NoError(t, err)
	return doc
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

// TestTheEditorSchemaTakesEveryExample: configurations on the pages, and those that `memhost init` writes.
func TestTheEditorSchemaTakesEveryExample(t *testing.T) {
	s := editorSchema(t)
	n := 0
	check := func(from, text string) {
		t.Helper()
		n++
		require.NoError(t, s.Validate(asJSON(t, text)), "%s:\n%s", from, text)
	}
	pages, err := filepath.Glob("../../../docs/*.md")
	require.NoError(t, err)
	backends, err := filepath.Glob("../../../docs/backends/*.md")
	require.NoError(t, err)
	for _, page := range append(append(pages, backends...), "../../../README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			if regexp.MustCompile(`(?m)^(memory|secrets):`).MatchString(m[1]) {
				check(page, m[1])
			}
		}
	}
	require.Greater(t, n, 10, "the pages have examples")
	a := cli.New(cli.System{Modules: cli.BuiltinModules})
	for _, p := range a.KnownProviders() {
		m, err := a.OpenModule(p.Name, false)
		require.NoError(t, err)
		check("the starter of "+p.Name, string(config.Starter(p.Name, m.Info.Manifest)))
	}
	check("nothing", "{}")
	check("nulls", "memory: {backend: , scope: }\nlog:\n")
	check("another name of persona_id", "memory: {scope: {user_id: ann}}")
	check("a module of one's own", "memory: {condition: notes, plugin: ./notes.wasm, conditions: {notes: {anything: "+
		"1}}}")
	check("a whole block in a file", "memory: {condition: static_profile, conditions: {static_profile: {file: "+
		"p.yaml}}}")
	check("a value in a file", "memory: {condition: oracle_ipas, conditions: {oracle_ipas: {entries: {file: e.json}}}}")
	check("what a preset says", "memory: {backend: mem0, backends: {mem0: {url: 'http://127.0.0.1:8000'}}}")
}

func TestTheEditorSchemaRefusesWhatTheConfigurationDoes(t *testing.T) {
	s := editorSchema(t)
	for wrong, text := range map[string]string{
		"a key that there is not":         "memory: {control: full_history}",
		"a block at the top":              "mem0: {url: 'http://127.0.0.1:8000'}",
		"two providers":                   "memory: {condition: full_history, backend: mem0}",
		"a provider that there is not":    "memory: {backend: memzero}",
		"a control as a backend":          "memory: {backend: full_history}",
		"a word that there is not":        "memory: {tokenizer: words}",
		"a number as a text":              "run: {seed: 42}",
		"a text as a number":              "limits: {pool: '4'}",
		"a number beyond the bounds":      "limits: {pool: 0}",
		"an address without a port":       "server: {listen: localhost}",
		"a credential":                    "secrets: {mem0: sk-123}",
		"a secret without an origin":      "secrets: {mem0: {env: KEY}}",
		"a secret of two sources":         "secrets: {mem0: {env: KEY, file: key, origin: 'http://127.0.0.1:1'}}",
		"a key that a block has not":      "memory: {conditions: {full_history: {max_token: 3}}}",
		"a block without what it needs":   "memory: {backends: {mem0: {infer: true}}}",
		"a credential in a block":         "memory: {backends: {mem0: {url: 'http://127.0.0.1:1', api_key: sk-123}}}",
		"a tool that MCP clients have no": "mcp: {allow: [everything]}",
	} {
		require.Error(t, s.Validate(asJSON(t, text)), wrong)
	}
}

func TestTheEditorSchemaOfOneProvider(t *testing.T) {
	s := editorSchema(t, "graphiti")
	require.NoError(t, s.Validate(asJSON(t, "{url: 'http://127.0.0.1:8000', surface: rest, bolt_password: {file: p}}")))
	require.Error(t, s.Validate(asJSON(t, "{url: 'http://127.0.0.1:8000', surface: other}")))
	require.Error(t, s.Validate(asJSON(t, "{surface: rest}")))
	require.NoError(t, editorSchema(t, "simple_rag").Validate(asJSON(t, "{url: 'http://127.0.0.1:8000'}")),
		"infer comes from the preset")
}
