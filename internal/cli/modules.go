package cli

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/extism"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/server/wire"
	"github.com/memhost/memhost/internal/registry"
)

// BuiltinModule is a module that this program carries.
type BuiltinModule struct {
	// Name is the module's own, as in its manifest.
	Name string
	Wasm []byte
}

// SourceBuiltin is the source of a built-in module in a run manifest.
const SourceBuiltin = "builtin"

// Module is a module's bytes, where they came from, and its manifest.
type Module struct {
	Name   string
	Source string
	Wasm   []byte
	Info   *host.Module
	// Signer is the ID of the key, or the identity, that signed the module as a line of modules.trust requires; ""
	// without one.
	Signer string
}

// Serves returns the module's declaration of a provider, nil if the module does not serve it.
func (m *Module) Serves(provider string) *abi.ProviderDecl {
	for i := range m.Info.Manifest.Providers {
		if m.Info.Manifest.Providers[i].Name == provider {
			return &m.Info.Manifest.Providers[i]
		}
	}
	return nil
}

// Builtins inspects all built-in modules. One that cannot be read is a defect of the build and not the user's mistake:
// it is left out, and TestBuiltinModules checks that there is none.
func (a *App) Builtins() []*Module {
	a.inspectOnce.Do(func() { a.inspected = inspectAll(a.Modules()) })
	return a.inspected
}

func inspectAll(modules []BuiltinModule) []*Module {
	var list []*Module
	for _, b := range modules {
		if info, err := host.Inspect(b.Wasm, host.Limits{}, Engines()...); err == nil {
			list = append(list, &Module{Name: info.Manifest.Name, Source: SourceBuiltin, Wasm: b.Wasm, Info: info})
		}
	}
	return list
}

// KnownProviders lists the providers that can be chosen without naming a module.
func (a *App) KnownProviders() []config.Provider {
	var list []config.Provider
	for _, m := range a.Builtins() {
		list = append(list, ProvidersIn(m)...)
	}
	return list
}

// ProvidersIn lists the providers of a module.
func ProvidersIn(m *Module) []config.Provider {
	var list []config.Provider
	for _, p := range m.Info.Manifest.Providers {
		list = append(list, config.Provider{Name: p.Name, Kind: p.Kind})
	}
	return list
}

// ProvidersOf lists the providers of the module that memory.plugin names.
func (a *App) ProvidersOf(plugin string, file bool) ([]config.Provider, error) {
	m, err := a.OpenModule(plugin, file)
	if err != nil {
		e := *abi.AsError(err)
		e.Message = strings.TrimPrefix(e.Message, plugin+": ") // the caller adds the name
		return nil, &e
	}
	return ProvidersIn(m), nil
}

// OpenModule reads a module file, fetches a module from a registry, or finds a built-in module by its name or by that
// of a provider.
func (a *App) OpenModule(plugin string, file bool) (*Module, error) {
	if file {
		return readModule(plugin)
	}
	if registry.IsReference(plugin) {
		return a.pullModule(plugin)
	}
	all := a.Builtins()
	if i := slices.IndexFunc(all, func(m *Module) bool { return m.Name == plugin }); i >= 0 {
		return all[i], nil
	}
	if i := slices.IndexFunc(all, func(m *Module) bool { return m.Serves(plugin) != nil }); i >= 0 {
		return all[i], nil
	}
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	e := abi.NewError(abi.CodeInvalidArgument, "no built-in module is called "+Quote(plugin))
	if near := abi.Nearest(plugin, names); near != "" {
		return nil, e.WithHint("did you mean " + near + "? A file is named with a slash or ending in .wasm: ./" +
			plugin)
	}
	return nil, e.WithHint("`memhost providers` lists them; a file is named with a slash or ending in .wasm: ./" +
		plugin)
}

// Engines returns the engines that this program has besides the host's own.
func Engines() []host.Engine { return []host.Engine{extism.Engine()} }

// LookOnly returns limits for inspecting a module's bytes. When the module is loaded, the host's limits apply, which an
// operator may raise.
func LookOnly() host.Limits { return host.Limits{MemoryBytes: 4 << 30, ModuleBytes: MaxModuleFile} }

// readModule reads and inspects a module file.
func readModule(path string) (*Module, error) {
	wasm, err := ReadFile(path, MaxModuleFile)
	if err != nil {
		return nil, err
	}
	return Inspected(wasm, path)
}

// Inspected inspects a module from a file or a registry, which source names.
func Inspected(wasm []byte, source string) (*Module, error) {
	info, err := host.Inspect(wasm, LookOnly(), Engines()...)
	if err != nil {
		e := *abi.AsError(err)
		e.Message = source + ": " + e.Message
		return nil, &e
	}
	return &Module{Name: info.Manifest.Name, Source: source, Wasm: wasm, Info: info}, nil
}

// Resolve finds the module of the chosen provider and checks it against modules.trust. A module that passes is pinned
// by the lock file from then on.
func (a *App) Resolve(c *config.Config) (*Module, error) {
	m, err := a.find(c)
	if err != nil {
		return nil, err
	}
	if err := a.CheckTrust(c, m, false); err != nil {
		return nil, err
	}
	return m, a.lockModule(m)
}

func (a *App) find(c *config.Config) (*Module, error) {
	if path, ok := c.PluginFile(); ok {
		m, err := readModule(path)
		if m != nil {
			m.Source = c.Memory.Plugin
		}
		return m, err
	}
	if c.Memory.Plugin != "" {
		return a.OpenModule(c.Memory.Plugin, false)
	}
	name, _, _ := c.Block()
	return a.OpenModule(name, false)
}

// ResolveChecked is Resolve, and checks the native block against the module's schema before anything starts. It returns
// the module even with an error about the block.
func (a *App) ResolveChecked(c *config.Config) (*Module, error) {
	m, err := a.Resolve(c)
	if err != nil {
		return nil, err
	}
	name, word, block := c.Block()
	if _, err = m.Info.Check(name, word, block); err != nil {
		e := *abi.AsError(err)
		if e.Hint == "" {
			e.Hint = fmt.Sprintf("the block is memory.%ss.%s; `memhost inspect %s` lists its keys", word, name,
				m.Source)
			if m.Source == SourceBuiltin {
				e.Hint = fmt.Sprintf("the block is memory.%ss.%s; `memhost init --provider %s --output -` shows its "+
					"keys", word, name, name)
			}
		}
		return m, &e
	}
	return m, nil
}

// checkBlock checks a native block against the schema of the module that will serve it.
func (a *App) checkBlock(c *config.Config, block abi.Raw) error {
	m, err := a.find(c)
	if err != nil {
		return nil // reported when the module is loaded
	}
	name, word, _ := c.Block()
	_, err = m.Info.Check(name, word, block)
	return err
}

// Natives returns the native queries and mutations that the configured module declares.
func (a *App) Natives(c *config.Config) (queries, mutations []abi.NativeDecl, err error) {
	m, err := a.find(c)
	if err != nil {
		return nil, nil, err
	}
	return m.Info.Natives(c.Block())
}

// StepOf returns the step of the start that an error of ResolveChecked belongs to.
func StepOf(m *Module) string {
	if m == nil {
		return "module"
	}
	return "configure"
}

// ProviderConfig combines a configuration with a module.
func ProviderConfig(c *config.Config, m *Module) host.ProviderConfig {
	name, word, block := c.Block()
	p := host.ProviderConfig{Name: name, Word: word, Module: m.Wasm, Source: m.Source, Signer: m.Signer, Block: block,
		Namespace:   c.Memory.Namespace,
		Profile:     abi.Profile(c.Memory.Profile),
		Frame:       abi.Frame(c.Memory.Frame),
		AgentScoped: c.Memory.AgentScoped, Tokenizer: c.Memory.Tokenizer, Feedback: c.Memory.Feedback,
		Secrets: map[string]host.Secret{}}
	p.ReadOnlyTestSessions = c.Memory.ReadOnlyTestSessions
	p.NoLookup, p.RetryEmpty = !c.Memory.LookupExisting, c.Memory.RetryEmpty
	if p.ReadOnlyTestSessions {
		p.TestSessions = c.Memory.TestSessions
	}
	for name, s := range c.Secrets {
		p.Secrets[name] = host.Secret{Value: s.Resolve, Origin: s.Origin}
	}
	return p
}

// ServedConfig is ProviderConfig for a provider that will serve: its scope is set up and it is tried out first.
func ServedConfig(c *config.Config, m *Module) host.ProviderConfig {
	p := ProviderConfig(c, m)
	p.Smoke, p.SmokeWait = c.Memory.Smoke, Milliseconds(c.Memory.SmokeWaitMS)
	if c.Source("memory.scope.run_id").Kind != config.KindDefault ||
		c.Source("memory.scope.persona_id").Kind != config.KindDefault {
		scope := c.Scope()
		p.Scope = &scope
	}
	return p
}

// WarnOfConfig prints likely mistakes in the configuration.
func WarnOfConfig(c *config.Config, m *Module, s *Steps) {
	p := ProviderConfig(c, m)
	for _, warning := range append(c.Warnings(), p.Warnings()...) {
		s.Notef("%s", warning)
	}
}

// WarnOpenSecrets warns about files with credentials that every user of this machine can read. It is not an error,
// because that may be intended (a container's mounts).
func (a *App) WarnOpenSecrets(c *config.Config, s *Steps) {
	if runtime.GOOS == "windows" { // mode bits mean nothing there
		return
	}
	const othersRead = 0o004
	for _, name := range slices.Sorted(maps.Keys(c.Secrets)) {
		file := c.Secrets[name].File
		if info, err := os.Stat(file); file != "" && err == nil && info.Mode().Perm()&othersRead != 0 {
			s.Notef("secrets.%s: every user of this machine can read %s; chmod 600 ends that", name, file)
		}
	}
}

// Quote quotes a text of the user for a message.
func Quote(s string) string { return strconv.Quote(s) }

// SourceText describes a module's source for people.
func SourceText(source string) string {
	if source == SourceBuiltin {
		return "built in"
	}
	return source
}

// Powers groups the host functions that a module imports by what they let it do besides computing. config, deadline and
// pull give it no power.
func Powers(imports []string) []string {
	list := []string{}
	for _, p := range []struct {
		name      string
		functions []string
	}{{"http", []string{abi.ImportHTTPSend}}, {"bolt", []string{abi.ImportBoltRun}},
		{"state", []string{abi.ImportStateGet, abi.ImportStatePut, abi.ImportStateDelete, abi.ImportStateList,
			abi.ImportStateAppend, abi.ImportStateRead}},
		{"tokens", []string{abi.ImportTokensCount, abi.ImportTokensFit}}, {"log", []string{abi.ImportLog}}} {
		if slices.ContainsFunc(p.functions, func(f string) bool { return slices.Contains(imports, f) }) {
			list = append(list, p.name)
		}
	}
	return list
}

// Optional returns the exports that are capabilities.
func Optional(exports []string) []string {
	list := []string{}
	for _, op := range abi.OptionalOperations() {
		if slices.Contains(exports, op) {
			list = append(list, op)
		}
	}
	return list
}

// ListedModules returns the built-in modules, and the module that the slot started with if it is not one of them.
func (a *App) ListedModules(started *Module) []wire.Module {
	all := a.Builtins()
	if started.Source != SourceBuiltin {
		all = append(slices.Clone(all), started)
	}
	var list []wire.Module
	for _, m := range all {
		f := m.Info.Manifest
		engine, warnings := host.EngineOf(m.Info, m.Wasm)
		list = append(list, wire.Module{Name: f.Name, Version: f.Version, SHA256: m.Info.SHA256, Bytes: m.Info.Bytes,
			Engine: engine, Powers: Powers(m.Info.Powers), Operations: m.Info.Exports,
			Capabilities: Optional(m.Info.Exports), Warnings: append(slices.Clone(warnings), f.Warnings()...),
			Manifest: abi.Marshal(f)})
	}
	return list
}
