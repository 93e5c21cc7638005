package extism

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/guest"
	"github.com/memhost/memhost/internal/engine/wasmbin"
)

// Claims implements guest.Engine: every usable module imports from Extism, because otherwise it has no input and
// output.
func (engine) Claims(parsed *wasmbin.Module) bool {
	return slices.ContainsFunc(parsed.Imports,
		func(i wasmbin.Import) bool { return i.Module == extismEnv || i.Module == extismUser })
}

// Check implements guest.Engine.
func (e engine) Check(m *guest.Module, parsed *wasmbin.Module) error {
	_, marked := parsed.Export(abi.Marker)
	switch claimed := e.Claims(parsed); {
	case claimed && marked:
		return guest.BadModule(m.Name(), "imports from %s and exports %s: it cannot be for both engines", extismEnv,
			abi.Marker).
			WithHint("with package sdk, build it with the tag extism and serve its operations with package sdk/extism")
	case !claimed:
		return guest.BadModule(m.Name(), "says abi %q in its manifest, but imports nothing from %s", abi.ABIExtism,
			extismEnv)
	case m.Manifest.ABI != abi.ABIExtism:
		return guest.BadModule(m.Name(), "imports from %s, but its manifest says abi %q, want %q", extismEnv,
			m.Manifest.ABI, abi.ABIExtism)
	}
	if err := m.CheckOperations(parsed, wasmbin.FuncType{Results: []wasmbin.ValueType{wasmbin.I32}}); err != nil {
		return err
	}
	return checkImports(m, parsed)
}

func checkImports(m *guest.Module, parsed *wasmbin.Module) error {
	env := map[string]wasmbin.FuncType{}
	for name, f := range envFunctions() {
		env[name] = wasmbin.FuncType{Params: f.params, Results: f.results}
	}
	known := map[string]map[string]wasmbin.FuncType{extismEnv: env, extismUser: userTypes()}
	var off []string
	for _, i := range parsed.Imports {
		types, extisms := known[i.Module]
		switch {
		case i.Module == abi.WASIModule:
			if err := m.CheckWASI(i); err != nil {
				return err
			}
			continue
		case i.Module == "env" && i.Name == "abort":
			return guest.BadModule(m.Name(), "imports env.abort, which AssemblyScript calls where an assertion fails").
				WithHint("give the compiler a function of your own: asc --use abort=assembly/index/abort")
		case !extisms && i.Kind == wasmbin.KindFunc:
			return guest.BadModule(m.Name(), "imports %s.%s; a plugin for Extism may import from %s, %s and %s only",
				i.Module, i.Name, extismEnv, extismUser, abi.WASIModule)
		}
		if err := m.CheckImport(i, types); err != nil {
			return err
		}
		switch {
		case i.Module == extismUser:
			m.AddPower(i.Name)
		case slices.Contains(offHere(), i.Name) && !slices.Contains(off, i.Name):
			off = append(off, i.Name)
		}
	}
	if len(off) > 0 {
		slices.Sort(off)
		m.Warnings = append(m.Warnings, fmt.Sprintf(
			"extism_off: the module imports %s of %s, switched off here: "+
				"an operation that calls one ends with the error denied",
			strings.Join(off, ", "), extismEnv))
	}
	return nil
}
