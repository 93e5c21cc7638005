package config

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/memhost/memhost/internal/configuration/schema"
)

// design is the JSON Schema of what does not hold of the published design of the adapters, with what takes its place.
//
//go:embed design.schema.json
var design []byte

// designed panics if design.schema.json, which is embedded in the program, is not a schema.
var designed = sync.OnceValue(func() *schema.Schema {
	compiled, err := schema.Compile(design)
	if err != nil {
		panic(err)
	}
	return compiled
})

// keyAlias is a key of the adapters' published design, or of Nanobot's configuration, with its name here.
type keyAlias struct {
	providers []string
	// inside is the object of the block that has the key, empty for the block itself.
	inside, old string
	// now is the key here, empty for a key that is ignored.
	now string
	// values maps each accepted value to the value here. If it is nil, all values are accepted unchanged.
	values map[string]string
	// deprecated is what Nanobot says of a key that it takes and does not use.
	deprecated string
}

var (
	nanobot = []string{"layered_memory", "rolling_summary", "nanobot_file_summary"}
	layered = nanobot[:1]
	memos   = []string{"memos"}
)

var otherNames = []keyAlias{
	{providers: nanobot[1:], old: "max_tokens", now: "max_context_tokens"},
	{providers: nanobot, old: "memoryWindow", now: "memory_window"},
	{providers: layered, inside: "dream", old: "intervalH", now: "interval_h"},
	{providers: layered, inside: "dream", old: "modelOverride", now: "model"},
	{providers: layered, inside: "dream", old: "model_override", now: "model"},
	{providers: layered, inside: "dream", old: "maxBatchSize", now: "max_entries", deprecated: "it works here"},
	{providers: layered, inside: "dream", old: "max_batch_size", now: "max_entries", deprecated: "it works here"},
	{providers: layered, inside: "dream", old: "maxIterations", now: "max_iterations", deprecated: "it works here"},
	{providers: layered, inside: "dream", old: "annotateLineAges", deprecated: "it has no effect here either"},
	{providers: layered, inside: "dream", old: "annotate_line_ages", deprecated: "it has no effect here either"},
	{providers: []string{"graphiti"}, old: "search_config", now: "recipe",
		values: map[string]string{"combined_hybrid": "COMBINED_HYBRID_SEARCH_RRF"}},
	{providers: memos, old: "async_mode", now: "add_mode", values: map[string]string{"async": "async",
		"sync": "sync/fast"}},
	{providers: memos, old: "mode", now: "search_mode", values: map[string]string{"fast": "fast", "fine": "fine",
		"mixture": "mixture"}},
}

// addOtherNames adds the keys that rename understands to the schema of a provider's block.
func addOtherNames(provider string, block map[string]any) {
	for _, n := range otherNames {
		if !slices.Contains(n.providers, provider) {
			continue
		}
		in, _ := block["properties"].(map[string]any)
		if n.inside != "" {
			object, _ := in[n.inside].(map[string]any)
			in, _ = object["properties"].(map[string]any)
		}
		if in == nil {
			continue
		}
		other := map[string]any{"deprecated": true, "description": "It is accepted, and has no effect."}
		if now, known := in[n.now].(map[string]any); known {
			other = maps.Clone(now)
			other["deprecated"], other["description"] = true, "Another name of "+n.now+"."
		}
		if n.values != nil {
			values := []any{}
			for _, v := range slices.Sorted(maps.Keys(n.values)) {
				values = append(values, v)
			}
			other = map[string]any{"enum": values, "description": "Another name of " + n.now + "."}
		}
		if own, both := in[n.old]; both { // the key has a meaning of its own here, too
			other = map[string]any{"anyOf": []any{own, other}}
		}
		in[n.old] = other
	}
}

// rename gives keys of the design and of Nanobot their names here.
func (l *loader) rename(block map[string]any, path []string) map[string]any {
	mode, _ := block["mode"].(string) // as it is before it is renamed
	synchronous := l.config.name == "memos" && block["async_mode"] == "sync"
	for _, n := range otherNames {
		if !slices.Contains(n.providers, l.config.name) {
			continue
		}
		in, at := block, slices.Clip(path)
		if n.inside != "" {
			in, _ = block[n.inside].(map[string]any)
			at = append(at, n.inside)
		}
		value, there := in[n.old]
		if !there {
			continue
		}
		if n.values != nil {
			text, _ := value.(string)
			now, understood := n.values[text]
			if !understood {
				continue // the schema of the block, or of the design, says what is wrong
			}
			value = now
		}
		l.renameOne(n, in, value, at)
	}
	if synchronous && mode != "" {
		// One mode serves both ways there. MemOS refuses an add in mode mixture, and the schema then says so.
		block["add_mode"] = "sync/" + mode
		if mode == "mixture" {
			block["add_mode"] = mode
		}
	}
	return block
}

// renameOne moves the value of a key in an object at path to its name here.
func (l *loader) renameOne(n keyAlias, object map[string]any, value any, path []string) {
	c, old := l.config, append(slices.Clip(path), n.old)
	origin := l.origin(old...)
	if n.now != "" {
		now := append(slices.Clip(path), n.now)
		if _, both := object[n.now]; both {
			l.problems.add(origin, old, "is another name of %s, which is there, too: remove one", n.now)
			delete(object, n.old)
			return
		}
		object[n.now] = value
		c.sources[joinPath(now)] = origin
	}
	delete(object, n.old)
	delete(c.sources, joinPath(old))
	if n.deprecated != "" {
		c.warnings = append(c.warnings, "key_deprecated: "+strings.Join(old, ".")+": Nanobot accepts it and does not use it; "+
			n.deprecated)
	}
}

// Warnings are likely mistakes that are no errors. Each begins with a stable code and a colon.
func (c *Config) Warnings() []string { return slices.Clone(c.warnings) }
