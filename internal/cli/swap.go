package cli

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/registry"
)

// SwapConfig makes a provider's configuration from a request. Everything but provider, module and block comes from the
// running configuration.
func (a *App) SwapConfig(running *config.Config, options config.Options, r server.SwapRequest) (host.ProviderConfig,
	error) {
	name, word := r.Condition, config.WordCondition
	if r.Backend != "" {
		name, word = r.Backend, config.WordBackend
	}
	m, err := a.SwapModule(running, name, r.Plugin)
	if err != nil {
		return host.ProviderConfig{}, err
	}
	if err := checkWord(m, name, word); err != nil {
		return host.ProviderConfig{}, err
	}
	c := running
	if len(r.Config) == 0 {
		if c, err = Reread(options, word, name); err != nil {
			return host.ProviderConfig{}, err
		}
	}
	p := ServedConfig(c, m)
	p.Name, p.Word = name, word
	if len(r.Config) > 0 {
		p.Block = r.Config
	}
	return p, nil
}

// checkWord rejects a control that is called a backend, and vice versa. The host rejects a name that the module does
// not serve.
func checkWord(m *Module, name, word string) error {
	decl := m.Serves(name)
	if decl == nil {
		return nil
	}
	want := config.WordBackend
	if decl.Kind == abi.KindControl {
		want = config.WordCondition
	}
	if word == want {
		return nil
	}
	return abi.NewError(abi.CodeInvalidArgument, word+": "+name+" is of kind "+string(decl.Kind)).WithHint(
		"name it as " + want + ": " + name)
}

// Reread reads the configuration as if it chose another provider, to get that provider's block.
func Reread(o config.Options, word, name string) (*config.Config, error) {
	o.Flags = maps.Clone(o.Flags)
	if o.Flags == nil {
		o.Flags = map[string]any{}
	}
	// The command line's own choice of provider does not apply here, however it is spelled.
	for _, choice := range []string{"backend", "condition", "memory.backend", "memory.condition"} {
		delete(o.Flags, choice)
	}
	o.Flags[word] = name
	o.Known, o.Module = nil, nil // the module is already known
	return config.Load(o)
}

// SwapModule is findSwapped, and checks the module against modules.trust of the running configuration. Only cached
// signatures are used: a request must not make this process open connections.
func (a *App) SwapModule(running *config.Config, name, plugin string) (*Module, error) {
	m, err := a.findSwapped(running, name, plugin)
	if err != nil {
		return nil, err
	}
	if err := a.CheckTrust(running, m, true); err != nil {
		return nil, err
	}
	return m, nil
}

// findSwapped finds the module of a swap: the one that the request names, or the built-in one that serves the provider,
// or the running one.
func (a *App) findSwapped(running *config.Config, name, plugin string) (*Module, error) {
	switch {
	case plugin == "":
	case IsFile(plugin):
		return swapFile(plugin)
	case registry.IsReference(plugin):
		return a.swapCached(plugin)
	default:
		return a.OpenModule(plugin, false)
	}
	all := a.Builtins()
	if i := slices.IndexFunc(all, func(m *Module) bool { return m.Serves(name) != nil }); i >= 0 {
		return all[i], nil
	}
	if running.Memory.Plugin != "" {
		if m, err := a.Resolve(running); err == nil && m.Serves(name) != nil {
			return m, nil
		}
	}
	return a.OpenModule(name, false) // its error lists what there is
}

// swapFile reads a module file that a request names. The request may come from anyone who reaches the port, with fewer
// rights than this process. So every unusable file gets the same answer, whether it exists or not, and the answer never
// repeats its content.
func swapFile(path string) (*Module, error) {
	if !filepath.IsAbs(path) {
		return nil, abi.NewError(abi.CodeInvalidArgument,
			"plugin: want the name of a built-in module or the absolute path of a wasm file")
	}
	wasm, err := ReadFile(path, MaxModuleFile)
	if err != nil || !bytes.HasPrefix(wasm, []byte("\x00asm")) {
		return nil, abi.NewError(abi.CodeInvalidArgument, "plugin: no wasm file that the slot can read is at that path")
	}
	info, err := host.Inspect(wasm, LookOnly(), Engines()...)
	if err != nil {
		return nil, err
	}
	return &Module{Name: info.Manifest.Name, Source: path, Wasm: wasm, Info: info}, nil
}

// swapCached finds a module that a request names by digest. It must be in the cache: a request must not make this
// process connect to addresses of its choice.
func (a *App) swapCached(plugin string) (*Module, error) {
	r, err := registry.ParseReference(plugin)
	if err != nil {
		return nil, err
	}
	if r.Digest == "" {
		return nil, abi.NewError(abi.CodeInvalidArgument, "plugin: "+plugin+" has no digest").
			WithHint("`memhost pull " + plugin + "` prints it: oci://...@sha256:...")
	}
	client, err := a.RegistryClient()
	if err != nil {
		return nil, err
	}
	wasm, ok := client.Cached(r)
	if !ok {
		return nil, abi.NewError(abi.CodeNotFound, "plugin: "+plugin+" is not in the slot's cache of modules").
			WithHint("run `memhost pull " + plugin + "` on the slot's computer, as the user that it runs as")
	}
	return Inspected(wasm, plugin)
}
