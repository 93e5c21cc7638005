package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/engine/wasmbin"
)

var typeExtismOperation = wasmbin.FuncType{Results: []wasmbin.ValueType{wasmbin.I32}}

// isExtism tells by its imports whether a module is for Extism: without them it could get no input and give no output.
func isExtism(parsed *wasmbin.Module) bool {
	return slices.ContainsFunc(parsed.Imports, func(i wasmbin.Import) bool { return i.Module == extismEnv || i.Module == extismUser })
}

func (m *Module) checkExtismMarker(parsed *wasmbin.Module) error {
	if _, both := parsed.Export(abi.Marker); both {
		return badModule(m.name(), "imports from %s and exports %s: it cannot be for both engines", extismEnv, abi.Marker).
			WithHint("with package sdk, build it with the tag extism and serve its operations with package sdk/extism")
	}
	if m.Manifest.ABI != abi.ABIExtism {
		return badModule(m.name(), "imports from %s, but its manifest says abi %q, want %q", extismEnv, m.Manifest.ABI, abi.ABIExtism)
	}
	return nil
}

func (m *Module) checkExtismExports(parsed *wasmbin.Module) error {
	operations := append(abi.RequiredOperations(), abi.OptionalOperations()...)
	for _, e := range parsed.Exports {
		if !slices.Contains(operations, e.Name) {
			continue
		}
		if e.Kind != wasmbin.KindFunc {
			return badModule(m.name(), "exports %s as a %s, want a func of type %s", e.Name, e.Kind, typeExtismOperation)
		}
		if !e.Type.Equal(typeExtismOperation) {
			return badModule(m.name(), "exports %s as %s, want %s", e.Name, e.Type, typeExtismOperation)
		}
		m.Exports = append(m.Exports, e.Name)
	}
	for _, name := range abi.RequiredOperations() {
		if !slices.Contains(m.Exports, name) {
			return badModule(m.name(), "lacks the export %s of type %s", name, typeExtismOperation)
		}
	}
	slices.Sort(m.Exports)
	return nil
}

func (m *Module) checkExtismImports(parsed *wasmbin.Module) error {
	env := map[string]wasmbin.FuncType{}
	for name, f := range envFunctions() {
		env[name] = wasmbin.FuncType{Params: f.params, Results: f.results}
	}
	known := map[string]map[string]wasmbin.FuncType{extismEnv: env, extismUser: extismUserTypes()}
	var off []string
	for _, i := range parsed.Imports {
		if i.Kind != wasmbin.KindFunc {
			return badModule(m.name(), "imports the %s %s.%s; only functions may be imported", i.Kind, i.Module, i.Name)
		}
		types, extisms := known[i.Module]
		want, ok := types[i.Name]
		switch {
		case i.Module == abi.WASIModule && !slices.Contains(abi.WASIImports(), i.Name):
			return badModule(m.name(), "imports %s.%s, which a plugin may not have", i.Module, i.Name)
		case i.Module == abi.WASIModule:
			continue
		case i.Module == "env" && i.Name == "abort":
			return badModule(m.name(), "imports env.abort, which AssemblyScript calls where an assertion fails").
				WithHint("give the compiler a function of your own: asc --use abort=assembly/index/abort")
		case !extisms:
			return badModule(m.name(), "imports %s.%s; a plugin for Extism may import from %s, %s and %s only", i.Module, i.Name, extismEnv, extismUser, abi.WASIModule)
		case !ok:
			hint := ""
			if near := abi.Nearest(i.Name, names(types)); near != "" {
				hint = fmt.Sprintf("; did it mean %s?", near)
			}
			return badModule(m.name(), "imports %s.%s, which this host does not have%s", i.Module, i.Name, hint)
		case !i.Type.Equal(want):
			return badModule(m.name(), "imports %s.%s as %s, want %s", i.Module, i.Name, i.Type, want)
		case i.Module == extismUser && !slices.Contains(m.Powers, i.Name):
			m.Powers = append(m.Powers, i.Name)
		case i.Module == extismEnv && slices.Contains(offHere(), i.Name) && !slices.Contains(off, i.Name):
			off = append(off, i.Name)
		}
	}
	slices.Sort(m.Powers)
	if len(off) > 0 {
		slices.Sort(off)
		m.Warnings = append(m.Warnings, fmt.Sprintf("%sthe module imports %s of %s, switched off here: an operation that calls one ends with the error denied",
			warnExtismOff, strings.Join(off, ", "), extismEnv))
	}
	return nil
}

// warnExtismOff says that a module could call what is switched off.
const warnExtismOff = "extism_off: "
