package cli

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/server/wire"
	"github.com/memhost/memhost/internal/registry"
)

// Settings is the configuration as a hook reads it. An agent waits for its hook, so no registry is asked: if the
// configured module is not in the cache, the provider and its block are left out. Folder and scope are enough to keep
// what is said. The slot is then reached with the whole configuration, for as long as a turn can wait.
func (a *App) Settings() (*config.Config, error) {
	if a.Door != wire.DoorHook || a.Loaded != nil {
		return a.Config()
	}
	o, err := a.ConfigOptions()
	if err != nil {
		return nil, err
	}
	absent := false
	whole := o
	whole.Module = func(plugin string, file bool) ([]config.Provider, error) {
		if absent = !file && registry.IsReference(plugin) && !a.moduleCached(plugin); absent {
			return nil, abi.NewError(abi.CodeUnavailable, "it is not in the cache of modules")
		}
		return a.ProvidersOf(plugin, file)
	}
	c, err := config.Load(whole)
	if absent {
		o.Check = nil // it would inspect the module
		return Reread(o, config.WordCondition, "no_memory")
	}
	if err == nil {
		a.Loaded = c
	}
	return c, err
}

// moduleCached reports whether a module is available without a registry.
func (a *App) moduleCached(name string) bool {
	r, err := a.pinnedReference(name)
	if err != nil {
		return true // it is parsed again later, and the error reported then
	}
	client, err := a.RegistryClient()
	if err != nil {
		return true
	}
	_, ok := client.Cached(r)
	return ok
}
