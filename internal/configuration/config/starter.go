package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/schema"
	"go.yaml.in/yaml/v3"
)

// Starter writes a first configuration for a provider of a module: required keys with an example or a gap to fill,
// everything else as a comment with its meaning and default. With a nil manifest, when the module is not available, the
// block is empty.
func Starter(provider string, manifest *abi.ModuleManifest) []byte {
	s := starter{provider: provider, word: WordBackend, manifest: manifest}
	if manifest == nil {
		s.manifest = &abi.ModuleManifest{}
	}
	for _, p := range s.manifest.Providers {
		if p.Name == provider {
			s.word = Provider{p.Name, p.Kind}.word()
		}
	}
	if compiled, err := schema.Compile(s.manifest.ConfigSchema); err == nil {
		s.fields = compiled.Fields()
	}
	s.write()
	return s.out.Bytes()
}

type starter struct {
	provider, word string
	manifest       *abi.ModuleManifest
	fields         []schema.Field
	out            bytes.Buffer
}

// line writes one line, indented by two spaces per level.
func (s *starter) line(level int, format string, args ...any) {
	s.out.WriteString(strings.TrimRight(strings.Repeat("  ", level)+fmt.Sprintf(format, args...), " ") + "\n")
}

// comment writes text as comment lines of moderate length.
func (s *starter) comment(level int, text string) {
	const width = 96
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			s.line(level, "# %s", line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	if line != "" {
		s.line(level, "# %s", line)
	}
}

func (s *starter) write() {
	about := "memhost with " + s.provider
	if s.manifest.Description != "" {
		about += ": " + s.manifest.Description
	}
	s.comment(0, about)
	if s.manifest.Homepage != "" {
		s.comment(0, s.manifest.Homepage)
	}
	s.comment(0, "Lines that begin with # are optional and show the default. `memhost config --origins` prints what "+
		"is in effect.")
	s.line(0, "# An editor completes and checks this file after `memhost config schema > memhost.schema.json`:")
	s.line(0, "# yaml-language-server: $schema=./memhost.schema.json")
	s.line(0, "")
	s.line(0, "memory:")
	s.line(1, "%s: %s", s.word, inline(s.provider))
	s.line(1, "scope:")
	for _, k := range keys() {
		if name, ok := strings.CutPrefix(k.path, "memory.scope."); ok && k.def != nil {
			s.comment(2, k.plainDoc())
			s.line(2, "%s: %s", name, inline(k.def))
		}
	}
	// Unlike all other keys of memory, this one cannot take effect later for events already recorded.
	s.comment(1, "Keeps every recorded event word for word in the data folder, so that another memory can be filled with "+
		"them later (`memhost swap NAME --backfill`). What was recorded while it was off is not in it. A new data folder "+
		"begins with it on, unless the store is a database.")
	s.line(1, "# archive: true")
	s.block()
	s.secrets()
	s.rest()
	s.telemetry()
}

func (s *starter) block() {
	required := slices.ContainsFunc(s.fields, func(f schema.Field) bool { return f.Required })
	end := ""
	if !required {
		end = " {}"
	}
	s.line(1, "%ss:", s.word)
	s.line(2, "%s:%s", inline(s.provider), end)
	for _, f := range s.fields {
		s.field(f, 3, required)
	}
}

// field writes one key. live is false inside a block that is commented out as a whole.
func (s *starter) field(f schema.Field, level int, live bool) {
	if f.Deprecated && !f.Required {
		return
	}
	about := strings.TrimSpace(f.Title)
	if f.Description != "" {
		if about != "" && !strings.HasSuffix(about, ".") {
			about += "."
		}
		about += " " + f.Description
	}
	wants := f.Wants
	if f.Required {
		wants = strings.TrimPrefix(wants+", required", ", ")
	}
	if wants != "" {
		if about = strings.TrimSpace(about); about != "" && !strings.HasSuffix(about, ".") {
			about += "."
		}
		about += " (" + wants + ")"
	}
	s.comment(level, about)
	live = live && f.Required
	mark := ""
	if !live {
		mark = "# "
	}
	key := inline(f.Name)
	switch {
	case f.Secret:
		s.line(level, "%s%s: {secret: %s}", mark, key, inline(s.secretName(f)))
	case f.Default != nil:
		s.line(level, "%s%s: %s", mark, key, jsonInline(f.Default))
	case f.Example != nil:
		s.line(level, "%s%s: %s", mark, key, jsonInline(f.Example))
	case len(f.Fields) > 0:
		if !live {
			s.line(level, "%s%s: {}", mark, key)
			return
		}
		s.line(level, "%s:", key)
		for _, sub := range f.Fields {
			s.field(sub, level+1, live)
		}
	case live:
		s.line(level, "%s: # to fill in", key)
	default:
		s.line(level, "%s%s:", mark, key)
	}
}

func (s *starter) secretName(f schema.Field) string {
	for _, d := range s.manifest.Secrets {
		if d.From == "/"+f.Name {
			return s.provider + "_" + d.Name
		}
	}
	return s.provider + "_" + f.Name
}

func (s *starter) secrets() {
	if len(s.manifest.Secrets) == 0 {
		return
	}
	s.line(0, "")
	s.comment(0, "Where credentials come from, and the one origin to which each may go. The values stay outside this "+
		"file.")
	mark := "# "
	if slices.ContainsFunc(s.fields, func(f schema.Field) bool { return f.Secret && f.Required }) {
		mark = ""
	}
	s.line(0, "%ssecrets:", mark)
	for _, d := range s.manifest.Secrets {
		name := s.provider + "_" + d.Name
		s.line(0, "%s  %s: {env: %s, origin: %s}", mark, inline(name),
			strings.ToUpper(strings.ReplaceAll(name, "-", "_")), inline(s.origin(d.Origin)))
	}
}

// origin is the address of a manifest's origin in the starter's block.
func (s *starter) origin(name string) string {
	for _, o := range s.manifest.Origins {
		if o.Name != name {
			continue
		}
		for _, f := range s.fields {
			if "/"+f.Name != o.From {
				continue
			}
			for _, raw := range []abi.Raw{f.Default, f.Example} {
				var text string
				if json.Unmarshal(raw, &text) == nil && badOrigin(text) == "" {
					return text
				}
			}
		}
		if o.Protocol == "bolt" {
			return "bolt://127.0.0.1:7687"
		}
	}
	return "http://127.0.0.1:8000"
}

// rest lists the host's own keys that are changed most often.
func (s *starter) rest() {
	for _, group := range []string{"server.", "data.", "log."} {
		s.line(0, "")
		mark := "# "
		if group == "data." {
			mark = ""
			s.comment(0, "A data folder of its own, so that this slot and its commands meet no other memory.")
		}
		s.line(0, "%s%s:", mark, strings.TrimSuffix(group, "."))
		for _, k := range keys() {
			name, ok := strings.CutPrefix(k.path, group)
			switch {
			case !ok:
			case k.path == "data.dir":
				s.line(0, "  dir: %s # %s (%s)", StarterData, k.plainDoc(), k.wants)
			default:
				s.line(0, "#   %s: %s # %s (%s)", name, inline(k.def), k.plainDoc(), k.wants)
			}
		}
	}
}

// telemetry shows how to send spans. None of its keys has a default to print.
func (s *starter) telemetry() {
	s.line(0, "")
	s.comment(0, "Spans of every operation, for an OpenTelemetry collector. Without an endpoint none are made.")
	s.line(0, "# telemetry:")
	s.line(0, "#   otlp: {endpoint: \"http://127.0.0.1:4318\"}")
}

// StarterData is the data folder in a starter, next to its file.
const StarterData = "memhost-data"

// inline writes a value as YAML on one line.
func inline(v any) string {
	y := yamlValue(v)
	if y.Style&yaml.LiteralStyle != 0 {
		y.Style = yaml.DoubleQuotedStyle
	}
	return strings.TrimSuffix(string(yamlText(y)), "\n")
}

func jsonInline(raw abi.Raw) string {
	v, err := schema.Decode(raw, nil)
	if err != nil {
		return string(raw)
	}
	return inline(v)
}
