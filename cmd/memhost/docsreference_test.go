package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/declared"
)

var update = flag.Bool("update", false, "write the pages of docs/reference")

// TestDocsReference keeps the pages of docs/reference equal to the code that they describe. -update writes them.
func TestDocsReference(t *testing.T) {
	for name, generate := range map[string]func(*testing.T) string{
		"commands.md": commandsPage, "http.md": httpPage, "manifests.md": manifestsPage, "errors.md": errorsPage,
		"providers.md": providersPage, "warnings.md": warningsPage,
	} {
		t.Run(name, func(t *testing.T) {
			want := generate(t)
			path := filepath.Join(repository, "docs", "reference", name)
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
			}
			found, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, want, string(found), "run go test ./cmd/memhost -run DocsReference -update")
		})
	}
}

func generatedFrom(title, source string) string {
	return fmt.Sprintf("# %s\n\nGenerated from %s. `go test ./cmd/memhost -run DocsReference -update` writes this page.\n", title, source)
}

// commandsPage lists the commands with the text and flags of their help.
func commandsPage(*testing.T) string {
	root := cli.New(cli.System{Stdout: io.Discard, Stderr: io.Discard}).Root(features...)
	var b strings.Builder
	b.WriteString(generatedFrom("Commands", "the help texts of the program") + "\n`memhost COMMAND --help` prints the same.\n\n")
	fmt.Fprintf(&b, "## Flags of every command\n\n%s", flagBlock(root.PersistentFlags()))
	describeCommands(&b, root)
	return b.String()
}

func describeCommands(b *strings.Builder, parent *cobra.Command) {
	for _, cmd := range parent.Commands() {
		if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
			continue
		}
		usage := strings.TrimSuffix(cmd.UseLine(), " [flags]")
		fmt.Fprintf(b, "\n## %s\n\n%s.\n", cmd.CommandPath(), cmd.Short)
		text := strings.TrimRight(cmd.Long, "\n")
		if usage != cmd.CommandPath() {
			text = strings.TrimRight(usage+"\n\n"+text, "\n")
		}
		if text != "" {
			fmt.Fprintf(b, "\n```text\n%s\n```\n", text)
		}
		if flags := flagBlock(cmd.LocalNonPersistentFlags()); flags != "" {
			b.WriteString("\n" + flags)
		}
		describeCommands(b, cmd)
	}
}

// flagBlock returns a table of flags, or "" without any.
func flagBlock(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, about := pflag.UnquoteUsage(f)
		fmt.Fprintf(&b, "| `--%s` | %s |\n", strings.TrimSpace(f.Name+" "+value), cell(about))
	})
	if b.Len() == 0 {
		return ""
	}
	return "| flag | |\n|---|---|\n" + b.String()
}

// cell escapes a text for a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(strings.TrimSpace(text))
}

// typeSchema is what the pages show of a JSON Schema.
type typeSchema struct {
	Ref         string                 `json:"$ref"`
	Type        any                    `json:"type"`
	Description string                 `json:"description"`
	Enum        []string               `json:"enum"`
	Required    []string               `json:"required"`
	Items       *typeSchema            `json:"items"`
	Properties  map[string]*typeSchema `json:"properties"`
	// Additional is a schema, or a boolean.
	Additional json.RawMessage `json:"additionalProperties"`
}

// typePages writes the fields of types, a section each.
type typePages struct {
	types map[string]*typeSchema
	done  map[string]bool
}

func (p *typePages) link(s *typeSchema) string {
	if s.Ref == "" {
		return ""
	}
	name := s.Ref[strings.LastIndex(s.Ref, "/")+1:]
	return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
}

func (p *typePages) kind(s *typeSchema) string {
	switch {
	case s.Ref != "":
		return p.link(s)
	case s.Items != nil:
		return "list of " + p.kind(s.Items)
	case s.Type == "object" && len(s.Additional) > 0 && s.Additional[0] == '{':
		var value typeSchema
		if json.Unmarshal(s.Additional, &value) == nil {
			return "map of " + p.kind(&value)
		}
	case s.Type == nil:
		return "any JSON"
	}
	return fmt.Sprint(s.Type)
}

// uses adds the types that s refers to, each after those that refer to it.
func (p *typePages) uses(s *typeSchema, order []string) []string {
	if s == nil {
		return order
	}
	if s.Ref != "" {
		name := s.Ref[strings.LastIndex(s.Ref, "/")+1:]
		if p.done[name] {
			return order
		}
		p.done[name] = true
		return p.uses(p.types[name], append(order, name))
	}
	order = p.uses(s.Items, order)
	var value typeSchema
	if len(s.Additional) > 0 && json.Unmarshal(s.Additional, &value) == nil {
		order = p.uses(&value, order)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		order = p.uses(s.Properties[name], order)
	}
	return order
}

func (p *typePages) section(name string) string {
	s := p.types[name]
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n", name)
	if s.Description != "" {
		fmt.Fprintf(&b, "%s\n\n", cell(s.Description))
	}
	if len(s.Properties) == 0 {
		return b.String()
	}
	b.WriteString("| field | type | |\n|---|---|---|\n")
	// Required fields first, in the order of the type.
	fields := slices.SortedFunc(maps.Keys(s.Properties), func(x, y string) int {
		return cmp.Or(place(s.Required, x)-place(s.Required, y), strings.Compare(x, y))
	})
	for _, field := range fields {
		f := s.Properties[field]
		about := cell(f.Description)
		if len(f.Enum) > 0 {
			about = strings.TrimSpace(about + " One of `" + strings.Join(f.Enum, "`, `") + "`.")
		}
		if slices.Contains(s.Required, field) {
			about = strings.TrimSpace("Required. " + about)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", field, p.kind(f), about)
	}
	return b.String()
}

func place(list []string, name string) int {
	if i := slices.Index(list, name); i >= 0 {
		return i
	}
	return len(list)
}

func readJSON(t *testing.T, into any, path ...string) {
	text, err := os.ReadFile(filepath.Join(append([]string{repository}, path...)...))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, into))
}

// httpPage lists the routes and types of the OpenAPI document.
func httpPage(t *testing.T) string {
	type content map[string]struct {
		Schema typeSchema `json:"schema"`
	}
	type operation struct {
		Summary, Description string
		Tags                 []string
		Parameters           []struct{ Name, Description string }
		RequestBody          struct{ Content content }
		Responses            map[string]struct{ Content content }
	}
	var doc struct {
		Tags       []struct{ Name, Description string }
		Paths      map[string]map[string]operation
		Components struct{ Schemas map[string]*typeSchema }
	}
	readJSON(t, &doc, "internal", "doors", "server", "testdata", "openapi.json")
	p := &typePages{doc.Components.Schemas, map[string]bool{}}
	var order []string
	shown := func(c content) string {
		if len(c) == 0 {
			return ""
		}
		media := slices.Min(slices.Collect(maps.Keys(c)))
		s := c[media].Schema
		if s.Ref == "" {
			return "`" + media + "`"
		}
		order = p.uses(&s, order)
		return p.link(&s)
	}
	var b strings.Builder
	b.WriteString(generatedFrom("HTTP routes and types", "the OpenAPI document") + "\nA running slot serves the document at `/openapi.json`, " +
		"and a page with examples and errors of each route at `/docs`. How to use the routes: [../http.md](../http.md).\n\n## Routes\n")
	for _, tag := range doc.Tags {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| route | body | answer | |\n|---|---|---|---|\n", strings.ToUpper(tag.Name[:1])+tag.Name[1:], tag.Description)
		for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
			for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
				op := doc.Paths[path][method]
				if !slices.Contains(op.Tags, tag.Name) {
					continue
				}
				about := op.Summary + "."
				if op.Description != "" {
					about += " " + op.Description
				}
				for _, param := range op.Parameters {
					about += fmt.Sprintf(" `?%s=`: %s", param.Name, param.Description)
				}
				fmt.Fprintf(&b, "| `%s %s` | %s | %s | %s |\n", strings.ToUpper(method), path, shown(op.RequestBody.Content),
					shown(op.Responses["200"].Content), cell(about))
			}
		}
	}
	b.WriteString("\n## Types\n")
	slices.Sort(order)
	for _, name := range order {
		b.WriteString(p.section(name))
	}
	return b.String()
}

// manifestsPage lists the fields of a module's manifest and of a run manifest.
func manifestsPage(t *testing.T) string {
	var module, run struct {
		Defs map[string]*typeSchema `json:"$defs"`
	}
	readJSON(t, &module, "docs", "schemas", "guest.schema.json")
	readJSON(t, &run, "docs", "schemas", "run-manifest.schema.json")
	var b strings.Builder
	b.WriteString(generatedFrom("Manifests", "[guest.schema.json](../schemas/guest.schema.json) and "+
		"[run-manifest.schema.json](../schemas/run-manifest.schema.json)"))
	done := map[string]bool{}
	for _, part := range []struct {
		title, about, root string
		types              map[string]*typeSchema
	}{
		{"The manifest of a module", "`manifest.json` in a plugin's folder, embedded in the built module. What the fields mean for an " +
			"author: [ABI.md](../../abi/ABI.md). `memhost inspect FILE` prints that of a module.", "ModuleManifest", module.Defs},
		{"The run manifest", "What served and how. `memhost manifest` prints it.", "RunManifest", run.Defs},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", part.title, part.about)
		p := &typePages{part.types, done}
		for _, name := range p.uses(&typeSchema{Ref: "/" + part.root}, nil) {
			b.WriteString(p.section(name))
		}
	}
	return b.String()
}

// condition says with which configuration a native query or mutation is there, or nothing.
func condition(n *abi.NativeDecl) string {
	key := strings.ReplaceAll(strings.TrimPrefix(n.Pointer, "/"), "/", ".")
	switch {
	case key == "":
		return ""
	case len(n.Equals) == 0:
		return " With `" + key + "`."
	}
	return " With `" + key + ": " + strings.Trim(string(n.Equals), `"`) + "`."
}

// keySchema is what the page shows of a configuration schema.
type keySchema struct {
	Title, Description string
	Type               any
	Enum               []any
	Default            any
	Required           []string
	Minimum, Maximum   *json.Number
	Properties         map[string]*keySchema
	Items              *keySchema
}

// providersPage lists what the manifests of the built-in modules declare: configuration keys, queries and mutations.
func providersPage(t *testing.T) string {
	var b strings.Builder
	b.WriteString(generatedFrom("Providers: keys, queries and mutations", "`plugins/*/manifest.json`") +
		"\nThe keys of a provider are in its block, `memory.backends.NAME` or `memory.conditions.NAME`; those with a dot are one " +
		"level deeper. `memhost init --provider NAME` writes a file with all of them.\n\n" +
		"`memhost query NAME` and `memhost mutate NAME` run a provider's own queries and mutations. They take each parameter as a " +
		"flag, or all as `--params JSON`; `?` marks an optional parameter.\n")
	files, err := filepath.Glob(filepath.Join(repository, "plugins", "*", "manifest.json"))
	require.NoError(t, err)
	controls, err := filepath.Glob(filepath.Join(repository, "plugins", "conditions", "*", "manifest.json"))
	require.NoError(t, err)
	for _, file := range append(files, controls...) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var m abi.ModuleManifest
		require.NoError(t, abi.Unmarshal(text, &m))
		var s struct {
			Schema keySchema `json:"config_schema"`
		}
		require.NoError(t, json.Unmarshal(text, &s))
		names := make([]string, len(m.Providers))
		for i, p := range m.Providers {
			names[i] = p.Name
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| key | default | values | |\n|---|---|---|---|\n%s", strings.Join(names, ", "),
			cell(m.Description), keyRows("", &s.Schema))
		if len(m.NativeQueries)+len(m.NativeMutations) == 0 {
			continue
		}
		b.WriteString("\n| | name | parameters | |\n|---|---|---|---|\n")
		for _, kind := range []struct {
			name string
			list []abi.NativeDecl
		}{{"query", m.NativeQueries}, {"mutation", m.NativeMutations}} {
			for _, n := range kind.list {
				params := "none"
				if list := declared.ParamList(&n); list != "" {
					params = "`" + list + "`"
				}
				fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", kind.name, n.Name, params, cell(n.About+condition(&n)))
			}
		}
	}
	return b.String()
}

func keyRows(prefix string, s *keySchema) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		k := s.Properties[name]
		about := k.Description
		if about == "" && k.Title != "" {
			about = k.Title + "."
		}
		usual := ""
		switch {
		case slices.Contains(s.Required, name):
			usual = "required"
		case k.Default != nil:
			text, err := json.Marshal(k.Default)
			if err != nil {
				panic(err)
			}
			usual = "`" + cell(string(text)) + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", prefix+name, usual, cell(keyValues(k)), cell(about))
		if k.Type == "object" && name != "api_key" {
			b.WriteString(keyRows(prefix+name+".", k))
		}
	}
	return b.String()
}

func keyValues(k *keySchema) string {
	if len(k.Enum) > 0 {
		words := make([]string, len(k.Enum))
		for i, v := range k.Enum {
			words[i] = strings.ReplaceAll(fmt.Sprintf("`%v`", v), "<nil>", "null")
		}
		return strings.Join(words, ", ")
	}
	kind := fmt.Sprint(k.Type)
	switch types, isList := k.Type.([]any); {
	case k.Type == nil:
		return ""
	case isList:
		words := make([]string, len(types))
		for i, v := range types {
			words[i] = fmt.Sprint(v)
		}
		kind = strings.Join(words, " or ")
	case k.Items != nil && k.Items.Type != nil:
		kind = fmt.Sprintf("list of %v", k.Items.Type)
	}
	if k.Minimum != nil {
		kind += ", at least " + k.Minimum.String()
	}
	if k.Maximum != nil {
		kind += ", at most " + k.Maximum.String()
	}
	return kind
}
