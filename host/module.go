package host

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/guest"
	"github.com/memhost/memhost/internal/configuration/schema"
	"github.com/memhost/memhost/internal/text/jsonpointer"
)

// Module is a checked plugin. Its permissions were read from its bytes before any of its code ran.
type Module struct {
	// Manifest is the module's own manifest.
	Manifest *abi.ModuleManifest
	// SHA256 is the hash of the bytes as given, in hex.
	SHA256 string
	// Bytes is the size of the module.
	Bytes int64
	// Engine names the engine that runs and interrupts the module; Warnings are about it. EngineOf returns both before
	// the module is loaded.
	Engine   string
	Warnings []string
	// Powers are the host functions that the module imports; Exports are the operations and capabilities that it
	// offers.
	Powers, Exports []string
	// MemoryPages is its initial linear memory, in pages of 64 KiB.
	MemoryPages uint32
	// Customs has the sizes in bytes of its custom sections, by name.
	Customs map[string]int

	checked *guest.Module
	program guest.Program
}

// Load checks a module and compiles it.
//
// Errors: invalid_argument with what was found and wanted: no wasm or truncated wasm; a missing or unsupported ABI
// marker; an export that is missing or has another type; a forbidden import; a manifest that is missing, malformed or
// inconsistent with the module; more memory than the limit allows.
func (h *Host) Load(ctx context.Context, wasm []byte) (*Module, error) {
	m, err := inspect(wasm, h.limits, h.options.Engines)
	if err != nil {
		return nil, err
	}
	return m, h.compile(ctx, m, wasm)
}

// compile makes an inspected module ready to be instantiated.
func (h *Host) compile(ctx context.Context, m *Module, wasm []byte) (err error) {
	m.program, err = h.machine.Compile(ctx, m.checked, wasm)
	m.Engine, m.Warnings = m.checked.Engine, m.checked.Warnings
	return err
}

// Inspect is Load without compiling: it reports what a module's bytes show. The zero value of limits means the
// defaults; engines are as in Options.
func Inspect(wasm []byte, limits Limits, engines ...Engine) (*Module, error) {
	return inspect(wasm, limits.withDefaults(), engines)
}

func inspect(wasm []byte, limits Limits, engines []Engine) (*Module, error) {
	m, err := guest.Inspect(wasm, guest.Limits{ModuleBytes: limits.ModuleBytes, MemoryBytes: limits.MemoryBytes},
		engines)
	if err != nil {
		return nil, err
	}
	return &Module{Manifest: m.Manifest, SHA256: m.SHA256, Bytes: m.Bytes, Engine: m.Engine, Warnings: m.Warnings,
		Powers: m.Powers, Exports: m.Exports,
		MemoryPages: m.MemoryPages, Customs: m.Customs, checked: m}, nil
}

// EngineOf reports how a module that Inspect accepts will be run, without compiling it, and warns if it will run the
// slow way.
func EngineOf(m *Module, wasm []byte) (name string, warnings []string) {
	return guest.EngineOf(m.checked, wasm)
}

// ParseManifest reads and validates a module's manifest.json, with the JSON Schema in it.
//
// Errors: invalid_argument with the field that is wrong.
func ParseManifest(text []byte) (*abi.ModuleManifest, *schema.Schema, error) {
	return guest.ParseManifest(text)
}

// Check validates a configuration against the module without loading anything. It returns the effective block: the
// given one on top of preset and defaults.
//
// Errors: invalid_argument that names the key and what is wanted there.
func (m *Module) Check(provider, word string, block abi.Raw) (abi.Raw, error) {
	_, _, effective, err := m.choose(provider, word, block)
	return effective, err
}

// has reports whether the module exports an operation.
func (m *Module) has(op string) bool { return slices.Contains(m.Exports, op) }

// choose finds the provider that a configuration names, the word by which it was chosen, and its effective block.
func (m *Module) choose(provider, word string, block abi.Raw) (decl *abi.ProviderDecl, as string, effective abi.Raw,
	err error) {
	if decl, err = m.provider(provider); err != nil {
		return nil, "", nil, err
	}
	if as, err = chosenAs(word, decl); err != nil {
		return nil, "", nil, err
	}
	if effective, err = m.checked.Schema.Apply(decl.Preset, block); err != nil {
		return nil, "", nil, inBlock(decl.Name, err)
	}
	return decl, as, effective, nil
}

// provider finds a provider of the module by name.
func (m *Module) provider(name string) (*abi.ProviderDecl, error) {
	known := make([]string, len(m.Manifest.Providers))
	for i := range m.Manifest.Providers {
		p := &m.Manifest.Providers[i]
		if p.Name == name {
			return p, nil
		}
		known[i] = p.Name
	}
	e := abi.NewError(abi.CodeInvalidArgument,
		fmt.Sprintf("module %s serves no provider %q, it serves %v", m.Manifest.Name, name, known))
	if near := abi.Nearest(name, known); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return nil, e
}

// kindOf is a provider's kind with an effective block: that of the first kind_when rule that the block matches, else
// the declared one.
func kindOf(decl *abi.ProviderDecl, block abi.Raw) (abi.ConditionKind, string, error) {
	for _, rule := range decl.KindWhen {
		met, err := meets(block, rule.Pointer, rule.Equals)
		if met || err != nil {
			return rule.Kind, rule.Note, err
		}
	}
	return decl.Kind, decl.Note, nil
}

// meets reports whether a block has a value at a pointer: the value equals, or any value but null if equals is not
// given.
func meets(block abi.Raw, pointer string, equals abi.Raw) (bool, error) {
	var value, want any
	if err := json.Unmarshal(block, &value); err != nil {
		return false, err
	}
	found, there := jsonpointer.Find(value, pointer)
	if len(equals) == 0 {
		return there && found != nil, nil
	}
	err := json.Unmarshal(equals, &want)
	return there && reflect.DeepEqual(found, want), err
}

// chosenAs checks that a configuration chose a provider by the word for its declared kind: backend or condition.
func chosenAs(word string, decl *abi.ProviderDecl) (string, error) {
	byKind := "backend"
	if decl.Kind == abi.KindControl {
		byKind = "condition"
	}
	switch word {
	case "":
		return byKind, nil
	case "backend", "condition":
		if word == byKind {
			return word, nil
		}
		return "", abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("memory.%s: %s is of kind %s", word, decl.Name, decl.Kind)).
			WithHint(fmt.Sprintf("write memory.%s: %s", byKind, decl.Name))
	default:
		return "", abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("word: %q is neither backend nor condition", word))
	}
}

// inBlock prefixes the path of a config error with the provider's name.
func inBlock(provider string, err error) error {
	e := *abi.AsError(err)
	e.Message = provider + "." + strings.ReplaceAll(e.Message, "\n", "\n"+provider+".")
	return &e
}

// lacking returns the capabilities whose requirements the effective block does not meet, each with what it requires.
// Several requirements of one capability are alternatives.
func lacking(requires []abi.RequireDecl, block abi.Raw) (map[string]string, error) {
	met, because := map[string]bool{}, map[string]string{}
	for _, r := range requires {
		one, err := meets(block, r.Pointer, r.Equals)
		if err != nil {
			return nil, err
		}
		met[r.Export] = met[r.Export] || one
		because[r.Export] = joinHints(because[r.Export], r.Because)
	}
	maps.DeleteFunc(because, func(export, _ string) bool { return met[export] })
	return because, nil
}

// ModelCalls returns the model calls that the manifest declares for a configuration. declared is false if the manifest
// does not mention model calls.
//
// Errors: those of Check.
func (m *Module) ModelCalls(provider, word string, block abi.Raw) (list []abi.ModelCallDecl, declared bool,
	err error) {
	effective, err := m.Check(provider, word, block)
	if err != nil || m.Manifest.ModelCalls == nil {
		return nil, false, err
	}
	list, err = modelCalls(m.Manifest, effective)
	return list, true, err
}

// modelCalls returns the declared model calls that apply under an effective block.
func modelCalls(m *abi.ModuleManifest, effective abi.Raw) (list []abi.ModelCallDecl, err error) {
	for _, c := range m.ModelCalls {
		counts := c.Pointer == ""
		if !counts {
			if counts, err = meets(effective, c.Pointer, c.Equals); err != nil {
				return nil, err
			}
		}
		if counts {
			list = append(list, c)
		}
	}
	return list, nil
}

// Unsourced says why no item of a retrieval names its source events under a configuration: what it shows instead, in the
// manifest's words. It is empty if items do, or if the manifest does not say.
//
// Errors: those of Check.
func (m *Module) Unsourced(provider, word string, block abi.Raw) (about string, err error) {
	effective, err := m.Check(provider, word, block)
	if err != nil {
		return "", err
	}
	for _, u := range m.Manifest.Unsourced {
		counts := true
		for _, setting := range u.When {
			met, err := meets(effective, setting.Pointer, setting.Equals)
			if err != nil {
				return "", err
			}
			counts = counts && met
		}
		if counts {
			return u.About, nil
		}
	}
	return "", nil
}

// ModelCallsText describes how many model calls a number of operations makes: "178 at least: Graphiti asks 2 for each
// event". Without a declared minimum it is the declaration's own words: "the query is embedded, once".
func ModelCallsText(c *abi.ModelCallDecl, operations int64) string {
	if c.Least == 0 {
		return c.About
	}
	return fmt.Sprintf("%d at least: %s", operations*c.Least, c.About)
}

func joinHints(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// itemLimit finds the limit that turns max_tokens into a number of items: the first one with tokens per item that
// applies under an effective block. set reports whether the block itself limits the items.
func itemLimit(limits []abi.NativeLimit, block abi.Raw) (limit *abi.NativeLimit, set bool, err error) {
	for i := range limits {
		l := &limits[i]
		if l.TokensPerItem == 0 {
			continue
		}
		if l.Pointer != "" {
			counts, err := meets(block, l.Pointer, l.Equals)
			if err != nil {
				return nil, false, err
			}
			if !counts {
				continue
			}
		}
		if l.Configured != "" {
			set, err = meets(block, l.Configured, nil)
		}
		return l, set, err
	}
	return nil, false, nil
}
