package cli

import "github.com/memhost/memhost/plugins"

// BuiltinModules are the modules that this program carries.
func BuiltinModules() []BuiltinModule {
	var list []BuiltinModule
	for _, m := range plugins.Builtin() {
		list = append(list, BuiltinModule{Name: m.Name, Wasm: m.Wasm})
	}
	return list
}
