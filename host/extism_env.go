package host

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	extism "github.com/extism/go-sdk"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/engine/wasmbin"
)

// Modules of the imports of an Extism module. What stands in extismEnv is for the module; at load it is led to extismOurs, which the host serves itself: go-sdk's own
// reach the network by themselves, log by a level of the whole process, and ask a kernel without a deadline, whose books stand in memory that a module can write.
const (
	extismEnv  = "extism:host/env"
	extismUser = "extism:host/user"
	extismOurs = "memhost.extism"
)

// envFunction is one function of extism:host/env as PDKs declare it.
type envFunction struct {
	params, results []wasmbin.ValueType
	run             func(c *call, b *blocks, stack []uint64)
}

// envFunctions are what PDKs import. The rest of go-sdk's module (reset, input_set, ...) is for hosts.
func envFunctions() map[string]envFunction {
	const i32, i64 = wasmbin.I32, wasmbin.I64
	types := func(t ...wasmbin.ValueType) []wasmbin.ValueType { return t }
	logAt := func(level int32) envFunction {
		return envFunction{types(i64), nil, func(c *call, b *blocks, stack []uint64) {
			k := b.block(stack[0])
			hostLog(c, guestMemory{b}, []uint64{uint64(level), k.start, k.size})
		}}
	}
	return map[string]envFunction{
		"alloc":          {types(i64), types(i64), func(_ *call, b *blocks, stack []uint64) { stack[0] = b.alloc(stack[0]) }},
		"free":           {types(i64), nil, func(_ *call, b *blocks, stack []uint64) { b.free(stack[0]) }},
		"length":         {types(i64), types(i64), func(_ *call, b *blocks, stack []uint64) { stack[0] = b.length(stack[0]) }},
		"length_unsafe":  {types(i64), types(i64), func(_ *call, b *blocks, stack []uint64) { stack[0] = b.length(stack[0]) }},
		"load_u8":        {types(i64), types(i32), func(_ *call, b *blocks, stack []uint64) { stack[0] = b.load8(stack[0]) }},
		"load_u64":       {types(i64), types(i64), func(_ *call, b *blocks, stack []uint64) { stack[0] = b.load64(stack[0]) }},
		"store_u8":       {types(i64, i32), nil, func(_ *call, b *blocks, stack []uint64) { b.store8(stack[0], byte(stack[1])) }},
		"store_u64":      {types(i64, i64), nil, func(_ *call, b *blocks, stack []uint64) { b.store64(stack[0], stack[1]) }},
		"input_length":   {nil, types(i64), func(_ *call, b *blocks, stack []uint64) { stack[0] = b.input.size }},
		"input_offset":   {nil, types(i64), func(_ *call, b *blocks, stack []uint64) { stack[0] = b.input.start }},
		"input_load_u8":  {types(i64), types(i32), func(_ *call, b *blocks, stack []uint64) { stack[0] = b.load8(b.inputAt(stack[0], 1)) }},
		"input_load_u64": {types(i64), types(i64), func(_ *call, b *blocks, stack []uint64) { stack[0] = b.load64(b.inputAt(stack[0], 8)) }},
		"output_set": {types(i64, i64), nil, func(_ *call, b *blocks, stack []uint64) {
			b.span(stack[0], stack[1])
			b.output = block{start: stack[0], size: stack[1]}
		}},
		"error_set":  {types(i64), nil, func(_ *call, b *blocks, stack []uint64) { b.failure = b.block(stack[0]) }},
		"config_get": {types(i64), types(i64), func(c *call, b *blocks, stack []uint64) { stack[0] = b.put(c.setting(b.text(stack[0]))) }},
		"log_trace":  logAt(abi.LogDebug), "log_debug": logAt(abi.LogDebug), "log_info": logAt(abi.LogInfo), "log_warn": logAt(abi.LogWarn), "log_error": logAt(abi.LogError),
		"get_log_level":    {nil, types(i32), func(_ *call, _ *blocks, stack []uint64) { stack[0] = uint64(extism.LogLevelDebug.ExtismCompat()) }},
		"http_request":     {types(i64, i64), types(i64), switchedOff("http_request", "send by a route of the manifest: http_send of extism:host/user")},
		"http_status_code": {nil, types(i32), func(_ *call, _ *blocks, stack []uint64) { stack[0] = 0 }},
		"http_headers":     {nil, types(i64), func(_ *call, _ *blocks, stack []uint64) { stack[0] = 0 }},
		"var_get":          {types(i64), types(i64), switchedOff("var_get", "variables last as long as an instance and know no scope; use state: state_get of extism:host/user")},
		"var_set":          {types(i64, i64), nil, switchedOff("var_set", "variables last as long as an instance and know no scope; use state: state_put of extism:host/user")},
	}
}

// quickImport tells the imports that only move some bytes: PDKs call one for every 8 bytes of a text. When it changes, so must rewrittenVersion.
func quickImport(module, name string) bool {
	switch name {
	case "load_u8", "load_u64", "store_u8", "store_u64", "input_load_u8", "input_load_u64", "input_length", "input_offset", "length", "length_unsafe":
		return module == extismOurs
	}
	return false
}

// offHere are the functions that a module may import and not call.
func offHere() []string { return []string{"http_request", "var_get", "var_set"} }

// reasonExtismOff is the reason of the error of a module that calls one of them.
const reasonExtismOff = "extism_off"

func switchedOff(name, hint string) func(*call, *blocks, []uint64) {
	return func(c *call, _ *blocks, _ []uint64) {
		panic(abi.NewError(abi.CodeDenied, fmt.Sprintf("plugin %s called Extism's own %s, which is switched off here", c.provider.name, name)).
			WithReason(reasonExtismOff).WithHint(hint))
	}
}

// setting is a value of the effective block by its name: a string as it is, another value as JSON. A secret is what it is for every guest: its name.
func (c *call) setting(name string) []byte {
	var settings map[string]json.RawMessage
	if json.Unmarshal(c.provider.block, &settings) != nil {
		return nil
	}
	var text string
	if value := settings[name]; json.Unmarshal(value, &text) != nil {
		return value
	}
	return []byte(text)
}

// extismRenames leads a module's imports to what the host serves itself: all of extism:host/env, and of WASI what no plugin has and what would end the instance behind
// go-sdk's back.
func extismRenames(module, name string) (string, string) {
	if module == extismEnv || module == abi.WASIModule && (neverHeld(name) || name == "proc_exit") {
		return extismOurs, name
	}
	return module, name
}

// neverHeld tells the WASI functions that ask for a file or a socket.
func neverHeld(name string) bool {
	return strings.HasPrefix(name, "path_") || strings.HasPrefix(name, "sock_")
}

const wasiNotCapable = 76

// extismFunctions are the host functions of one module, for go-sdk.
func extismFunctions(parsed *wasmbin.Module) []extism.HostFunction {
	var list []extism.HostFunction
	add := func(module, name string, t wasmbin.FuncType, run func(*call, []uint64)) {
		f := extism.NewHostFunctionWithStack(name, func(ctx context.Context, _ *extism.CurrentPlugin, stack []uint64) { run(callOf(ctx), stack) },
			valueTypes(t.Params), valueTypes(t.Results))
		f.SetNamespace(module)
		list = append(list, f)
	}
	env, user := envFunctions(), map[string]*hostFunction{}
	for _, f := range hostFunctions() {
		user[f.name] = &f
	}
	seen := map[[2]string]bool{}
	for _, i := range parsed.Imports {
		if seen[[2]string{i.Module, i.Name}] {
			continue
		}
		seen[[2]string{i.Module, i.Name}] = true
		switch {
		case i.Module == extismEnv:
			run := env[i.Name].run
			add(extismOurs, i.Name, i.Type, func(c *call, stack []uint64) { run(c, c.blocks, stack) })
		case i.Module == extismUser:
			add(extismUser, i.Name, i.Type, user[i.Name].forExtism())
		case i.Module == abi.WASIModule && i.Name == "proc_exit":
			add(extismOurs, i.Name, i.Type, func(_ *call, stack []uint64) {
				panic(abiBreach{fmt.Sprintf("ended itself with exit code %d", uint32(stack[0]))})
			})
		case i.Module == abi.WASIModule && neverHeld(i.Name):
			add(extismOurs, i.Name, i.Type, func(c *call, stack []uint64) {
				if c.blocks.asked == "" {
					c.blocks.asked = i.Name
				}
				stack[0] = wasiNotCapable
			})
		}
	}
	return list
}

// extismType is the type that a host function has in extism:host/user: one pointer in place of each address with its length, and a pull that makes a block.
func (f *hostFunction) extismType() wasmbin.FuncType {
	if f.name == abi.ImportPull {
		return wasmbin.FuncType{Results: []wasmbin.ValueType{wasmbin.I64}}
	}
	t := wasmbin.FuncType{Results: f.results}
	for i := 0; i < len(f.params); i++ {
		if f.isText(i) {
			t.Params = append(t.Params, wasmbin.I64)
			i++
			continue
		}
		t.Params = append(t.Params, f.params[i])
	}
	return t
}

// extismUserTypes are the types of extism:host/user.
func extismUserTypes() map[string]wasmbin.FuncType {
	types := map[string]wasmbin.FuncType{}
	for _, f := range hostFunctions() {
		types[f.name] = f.extismType()
	}
	return types
}

// forExtism runs a host function of mh1 on blocks.
func (f *hostFunction) forExtism() func(c *call, stack []uint64) {
	if f.name == abi.ImportPull {
		return func(c *call, stack []uint64) {
			n := 0
			for _, part := range c.pending {
				n += len(part)
			}
			start := c.blocks.alloc(uint64(n))
			hostPull(c, guestMemory{c.blocks}, []uint64{start, uint64(n)})
			stack[0] = start
		}
	}
	return func(c *call, stack []uint64) {
		var flat [5]uint64
		for i, at := 0, 0; i < len(f.params); i, at = i+1, at+1 {
			if !f.isText(i) {
				flat[i] = stack[at]
				continue
			}
			k := c.blocks.block(stack[at])
			flat[i], flat[i+1] = k.start, k.size
			i++
		}
		f.call(c, guestMemory{c.blocks}, flat[:])
		if len(f.results) > 0 {
			stack[0] = flat[0]
		}
	}
}
