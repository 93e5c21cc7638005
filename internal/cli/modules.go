package cli

import (
	"errors"
	"fmt"
	"io/fs"
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
	"github.com/memhost/memhost/internal/registry"
)

// BuiltinModule is a module that this program carries.
type BuiltinModule struct {
	// Name is the module's own, as in its manifest.
	Name string
	Wasm []byte
}

// sourceBuiltin is how a manifest of a run names the origin of a built-in module.
const sourceBuiltin = "builtin"

// maxModuleFile bounds a module file that is read, in bytes; the host has its own limit, which is lower.
const maxModuleFile = 64 << 20

// module is a module's bytes, where they came from, and its manifest.
type module struct {
	name   string
	source string
	wasm   []byte
	info   *host.Module
	// signer is the ID of the key, or the identity, that a line of modules.trust wants and that has signed the module;
	// "" without one.
	signer string
}

func (m *module) serves(provider string) *abi.ProviderDecl {
	for i := range m.info.Manifest.Providers {
		if m.info.Manifest.Providers[i].Name == provider {
			return &m.info.Manifest.Providers[i]
		}
	}
	return nil
}

// builtins inspects all built-in modules. One that cannot be read is a defect of the build, not the user's mistake: it
// is left out, and TestBuiltinModules checks that there is no such module.
func (a *app) builtins() []*module {
	a.inspectOnce.Do(func() { a.inspected = inspectAll(a.Modules()) })
	return a.inspected
}

func inspectAll(modules []BuiltinModule) []*module {
	var list []*module
	for _, b := range modules {
		if info, err := host.Inspect(b.Wasm, host.Limits{}, engines()...); err == nil {
			list = append(list, &module{name: info.Manifest.Name, source: sourceBuiltin, wasm: b.Wasm, info: info})
		}
	}
	return list
}

// knownProviders lists what can be chosen without naming a module.
func (a *app) knownProviders() []config.Provider {
	var list []config.Provider
	for _, m := range a.builtins() {
		list = append(list, providersIn(m)...)
	}
	return list
}

func providersIn(m *module) []config.Provider {
	var list []config.Provider
	for _, p := range m.info.Manifest.Providers {
		list = append(list, config.Provider{Name: p.Name, Kind: p.Kind})
	}
	return list
}

// providersOf lists the providers of the module that memory.plugin names.
func (a *app) providersOf(plugin string, file bool) ([]config.Provider, error) {
	m, err := a.openModule(plugin, file)
	if err != nil {
		e := *abi.AsError(err)
		e.Message = strings.TrimPrefix(e.Message, plugin+": ") // the caller names it
		return nil, &e
	}
	return providersIn(m), nil
}

// openModule reads a module file, fetches a module from a registry, or finds a built-in module by its name or by
// that of a provider.
func (a *app) openModule(plugin string, file bool) (*module, error) {
	if file {
		return readModule(plugin)
	}
	if registry.IsReference(plugin) {
		return a.pullModule(plugin)
	}
	all := a.builtins()
	if i := slices.IndexFunc(all, func(m *module) bool { return m.name == plugin }); i >= 0 {
		return all[i], nil
	}
	if i := slices.IndexFunc(all, func(m *module) bool { return m.serves(plugin) != nil }); i >= 0 {
		return all[i], nil
	}
	var names []string
	for _, m := range all {
		names = append(names, m.name)
	}
	e := abi.NewError(abi.CodeInvalidArgument, "no built-in module is called "+quote(plugin))
	if near := abi.Nearest(plugin, names); near != "" {
		return nil, e.WithHint("did you mean " + near + "? A file is named with a slash or ending in .wasm: ./" +
			plugin)
	}
	return nil, e.WithHint("`memhost providers` lists them; a file is named with a slash or ending in .wasm: ./" +
		plugin)
}

// engines are those that this program has beside the host's own.
func engines() []host.Engine { return []host.Engine{extism.Engine()} }

// lookOnly are limits for inspecting a module's bytes. The host's own limits, which an operator may raise, apply when
// it is loaded.
func lookOnly() host.Limits { return host.Limits{MemoryBytes: 4 << 30, ModuleBytes: maxModuleFile} }

// readModule reads and inspects a module file.
func readModule(path string) (*module, error) {
	wasm, err := readFile(path, maxModuleFile)
	if err != nil {
		return nil, err
	}
	return inspected(wasm, path)
}

// inspected is a module from a file or a registry, which source names.
func inspected(wasm []byte, source string) (*module, error) {
	info, err := host.Inspect(wasm, lookOnly(), engines()...)
	if err != nil {
		e := *abi.AsError(err)
		e.Message = source + ": " + e.Message
		return nil, &e
	}
	return &module{name: info.Manifest.Name, source: source, wasm: wasm, info: info}, nil
}

// readFile reads a regular file of at most limit bytes.
func readFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, abi.NewError(abi.CodeInvalidArgument, path+": is no regular file")
	}
	if info.Size() > limit {
		return nil, abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("%s: has %d bytes, more than the %d that are read", path, info.Size(), limit))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	return text, nil
}

// fileError says what is wrong with a file that the command line names.
func fileError(path string, err error) error {
	var bare *fs.PathError
	reason := err.Error()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reason = "does not exist"
	case errors.As(err, &bare):
		reason = bare.Err.Error()
	}
	return abi.WrapError(abi.CodeInvalidArgument, path+": "+reason, err)
}

// resolve finds the module of the chosen provider, and holds it against modules.trust. One that passes is pinned by the
// lock file from then on.
func (a *app) resolve(c *config.Config) (*module, error) {
	m, err := a.find(c)
	if err != nil {
		return nil, err
	}
	if err := a.checkTrust(c, m, false); err != nil {
		return nil, err
	}
	return m, a.lockModule(m)
}

func (a *app) find(c *config.Config) (*module, error) {
	if path, ok := c.PluginFile(); ok {
		m, err := readModule(path)
		if m != nil {
			m.source = c.Memory.Plugin
		}
		return m, err
	}
	if c.Memory.Plugin != "" {
		return a.openModule(c.Memory.Plugin, false)
	}
	name, _, _ := c.Block()
	return a.openModule(name, false)
}

// resolveChecked is resolve, and checks the native block against the module's schema before anything starts. It returns
// the module also with an error about the block.
func (a *app) resolveChecked(c *config.Config) (*module, error) {
	m, err := a.resolve(c)
	if err != nil {
		return nil, err
	}
	name, word, block := c.Block()
	if _, err = m.info.Check(name, word, block); err != nil {
		e := *abi.AsError(err)
		if e.Hint == "" {
			e.Hint = fmt.Sprintf("the block is memory.%ss.%s; `memhost inspect %s` lists its keys", word, name,
				m.source)
			if m.source == sourceBuiltin {
				e.Hint = fmt.Sprintf("the block is memory.%ss.%s; `memhost init --provider %s --output -` shows its "+
					"keys", word, name, name)
			}
		}
		return m, &e
	}
	return m, nil
}

// checkBlock checks a native block against the schema of the module that will serve it.
func (a *app) checkBlock(c *config.Config, block abi.Raw) error {
	m, err := a.find(c)
	if err != nil {
		return nil // told when the module is loaded
	}
	name, word, _ := c.Block()
	_, err = m.info.Check(name, word, block)
	return err
}

// stepOf is the step of the start that an error of resolveChecked belongs to.
func stepOf(m *module) string {
	if m == nil {
		return "module"
	}
	return "configure"
}

// providerConfig joins a configuration with a module.
func providerConfig(c *config.Config, m *module) host.ProviderConfig {
	name, word, block := c.Block()
	p := host.ProviderConfig{Name: name, Word: word, Module: m.wasm, Source: m.source, Signer: m.signer, Block: block,
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

// servedConfig is providerConfig for a provider that will serve: its scope is made ready and it is tried out first.
func servedConfig(c *config.Config, m *module) host.ProviderConfig {
	p := providerConfig(c, m)
	p.Smoke, p.SmokeWait = c.Memory.Smoke, milliseconds(c.Memory.SmokeWaitMS)
	if c.Source("memory.scope.run_id").Kind != config.KindDefault ||
		c.Source("memory.scope.persona_id").Kind != config.KindDefault {
		scope := c.Scope()
		p.Scope = &scope
	}
	return p
}

// warnOfConfig prints likely mistakes in the configuration.
func warnOfConfig(c *config.Config, m *module, s *steps) {
	p := providerConfig(c, m)
	for _, warning := range p.Warnings() {
		s.notef("%s", warning)
	}
}

// warnOpenSecrets warns about files with credentials that every user of this machine can read. It is no error, since
// that may be intended (a container's mounts).
func (a *app) warnOpenSecrets(c *config.Config, s *steps) {
	if runtime.GOOS == "windows" { // where the mode bits mean nothing
		return
	}
	const othersRead = 0o004
	for _, name := range slices.Sorted(maps.Keys(c.Secrets)) {
		file := c.Secrets[name].File
		if info, err := os.Stat(file); file != "" && err == nil && info.Mode().Perm()&othersRead != 0 {
			s.notef("secrets.%s: every user of this machine can read %s; chmod 600 ends that", name, file)
		}
	}
}

func quote(s string) string { return strconv.Quote(s) }
