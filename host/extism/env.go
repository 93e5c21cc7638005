package extism

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/extism/go-sdk"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/guest"
	"github.com/memhost/memhost/internal/engine/wasmbin"
)

// Import modules of an Extism module. Imports from extismEnv are redirected at load to extismOurs, which the host
// serves itself. go-sdk's own functions would access the network directly, log at a process-wide level, and keep the
// kernel's bookkeeping in memory that a module can write, without a deadline.
const (
	extismEnv  = "extism:host/env"
	extismUser = "extism:host/user"
	extismOurs = "memhost.extism"
)

// envFunction is one function of extism:host/env as PDKs declare it.
type envFunction struct {
	params, results []wasmbin.ValueType
	run             func(c *guest.Call, b *blocks, stack []uint64)
}

// envFunctions are the functions that PDKs import. The rest of go-sdk's module (reset, input_set, ...) is for hosts.
func envFunctions() map[string]envFunction {
	const i32, i64 = wasmbin.I32, wasmbin.I64
	types := func(t ...wasmbin.ValueType) []wasmbin.ValueType { return t }
	logAt := func(level int32) envFunction {
		return envFunction{types(i64), nil, func(c *guest.Call, b *blocks, stack []uint64) {
			k := b.block(stack[0])
			c.Powers.Log(level, b.data[k.start:k.start+k.size])
		}}
	}
	ofBlocks := func(params, results []wasmbin.ValueType, run func(b *blocks, stack []uint64)) envFunction {
		return envFunction{params, results, func(_ *guest.Call, b *blocks, stack []uint64) { run(b, stack) }}
	}
	value := func(result wasmbin.ValueType, read func(b *blocks, at uint64) uint64) envFunction {
		return ofBlocks(types(i64), types(result), func(b *blocks, stack []uint64) { stack[0] = read(b, stack[0]) })
	}
	zero := func(result wasmbin.ValueType) envFunction {
		return ofBlocks(nil, types(result), func(_ *blocks, stack []uint64) { stack[0] = 0 })
	}
	const (
		noHTTP = "send by a route of the manifest: http_send of extism:host/user"
		noVars = "variables last as long as an instance and know no scope; use state: state_%s of extism:host/user"
	)
	return map[string]envFunction{
		"alloc":          value(i64, (*blocks).alloc),
		"free":           ofBlocks(types(i64), nil, func(b *blocks, stack []uint64) { b.free(stack[0]) }),
		"length":         value(i64, (*blocks).length),
		"length_unsafe":  value(i64, (*blocks).length),
		"load_u8":        value(i32, (*blocks).load8),
		"load_u64":       value(i64, (*blocks).load64),
		"store_u8":       ofBlocks(types(i64, i32), nil, func(b *blocks, at []uint64) { b.store8(at[0], byte(at[1])) }),
		"store_u64":      ofBlocks(types(i64, i64), nil, func(b *blocks, at []uint64) { b.store64(at[0], at[1]) }),
		"input_length":   ofBlocks(nil, types(i64), func(b *blocks, stack []uint64) { stack[0] = b.input.size }),
		"input_offset":   ofBlocks(nil, types(i64), func(b *blocks, stack []uint64) { stack[0] = b.input.start }),
		"input_load_u8":  value(i32, func(b *blocks, at uint64) uint64 { return b.load8(b.inputAt(at, 1)) }),
		"input_load_u64": value(i64, func(b *blocks, at uint64) uint64 { return b.load64(b.inputAt(at, 8)) }),
		"output_set": ofBlocks(types(i64, i64), nil, func(b *blocks, stack []uint64) {
			b.span(stack[0], stack[1])
			b.output = block{start: stack[0], size: stack[1]}
		}),
		"error_set": ofBlocks(types(i64), nil, func(b *blocks, stack []uint64) { b.failure = b.block(stack[0]) }),
		"config_get": {types(i64), types(i64), func(c *guest.Call, b *blocks, stack []uint64) {
			stack[0] = b.put(setting(c, b.text(stack[0])))
		}},
		"log_trace": logAt(abi.LogDebug),
		"log_debug": logAt(abi.LogDebug),
		"log_info":  logAt(abi.LogInfo),
		"log_warn":  logAt(abi.LogWarn),
		"log_error": logAt(abi.LogError),
		"get_log_level": ofBlocks(nil, types(i32), func(_ *blocks, stack []uint64) {
			stack[0] = uint64(sdk.LogLevelDebug.ExtismCompat())
		}),
		"http_request":     {types(i64, i64), types(i64), switchedOff("http_request", noHTTP)},
		"http_status_code": zero(i32),
		"http_headers":     zero(i64),
		"var_get":          {types(i64), types(i64), switchedOff("var_get", fmt.Sprintf(noVars, "get"))},
		"var_set":          {types(i64, i64), nil, switchedOff("var_set", fmt.Sprintf(noVars, "put"))},
	}
}

// Quick implements guest.Engine: PDKs call one of these functions for every 8 bytes of a text. A change of the
// list requires a new version of package guest's rewritten modules.
func (engine) Quick(module, name string) bool {
	switch name {
	case "load_u8", "load_u64", "store_u8", "store_u64", "input_load_u8", "input_load_u64", "input_length",
		"input_offset", "length", "length_unsafe":
		return module == extismOurs
	}
	return false
}

// offHere lists the functions that a module may import but not call.
func offHere() []string { return []string{"http_request", "var_get", "var_set"} }

// reasonExtismOff is the error reason for a module that calls one of them.
const reasonExtismOff = "extism_off"

func switchedOff(name, hint string) func(*guest.Call, *blocks, []uint64) {
	return func(c *guest.Call, _ *blocks, _ []uint64) {
		panic(abi.NewError(abi.CodeDenied, fmt.Sprintf("plugin %s called Extism's own %s, which is switched off here",
			c.Plugin().Name, name)).
			WithReason(reasonExtismOff).WithHint(hint))
	}
}

// setting returns a value of the effective block by name: a string verbatim, any other value as JSON. As for every
// guest, a secret appears as its name.
func setting(c *guest.Call, name string) []byte {
	var config struct{ Config map[string]json.RawMessage }
	if json.Unmarshal(c.Powers.Config(), &config) != nil {
		return nil
	}
	value := config.Config[name]
	var text string
	if json.Unmarshal(value, &text) != nil {
		return value
	}
	return []byte(text)
}

// renames redirects a module's imports to functions that the host serves: all of extism:host/env, and those WASI
// functions that no plugin may use or that would end the instance without go-sdk noticing.
func renames(module, name string) (string, string) {
	if module == extismEnv || module == abi.WASIModule && (neverHeld(name) || name == "proc_exit") {
		return extismOurs, name
	}
	return module, name
}

// neverHeld reports whether a WASI function needs a file or a socket.
func neverHeld(name string) bool {
	return strings.HasPrefix(name, "path_") || strings.HasPrefix(name, "sock_")
}

const wasiNotCapable = 76

// functionsOf returns the host functions of one adapted module, for go-sdk.
func functionsOf(parsed *wasmbin.Module) []sdk.HostFunction {
	var list []sdk.HostFunction
	env, user := envFunctions(), map[string]*guest.Import{}
	for _, i := range guest.Imports() {
		user[i.Name] = i
	}
	seen := map[[2]string]bool{}
	for _, i := range parsed.Imports {
		if seen[[2]string{i.Module, i.Name}] {
			continue
		}
		seen[[2]string{i.Module, i.Name}] = true
		run := onBlocks(user[i.Name])
		switch {
		case i.Module == extismUser && i.Name == abi.ImportPull:
			run = pull
		case i.Module == extismUser:
		case i.Module == extismOurs && i.Name == "proc_exit":
			run = func(_ *guest.Call, _ *blocks, stack []uint64) {
				panic(guest.Breach(fmt.Sprintf("ended itself with exit code %d", uint32(stack[0]))))
			}
		case i.Module == extismOurs && neverHeld(i.Name):
			run = func(_ *guest.Call, b *blocks, stack []uint64) {
				if b.asked == "" {
					b.asked = i.Name
				}
				stack[0] = wasiNotCapable
			}
		case i.Module == extismOurs:
			run = env[i.Name].run
		default:
			continue
		}
		f := sdk.NewHostFunctionWithStack(i.Name, func(ctx context.Context, _ *sdk.CurrentPlugin, stack []uint64) {
			c := guest.CallOf(ctx)
			b, _ := c.Memory.(*blocks)
			run(c, b, stack)
		}, guest.ValueTypes(i.Type.Params), guest.ValueTypes(i.Type.Results))
		f.SetNamespace(i.Module)
		list = append(list, f)
	}
	return list
}

// userTypes are the types of extism:host/user: like mh1's, but with one pointer instead of each address and length, and
// a pull that allocates a block.
func userTypes() map[string]wasmbin.FuncType {
	types := map[string]wasmbin.FuncType{abi.ImportPull: {Results: []wasmbin.ValueType{wasmbin.I64}}}
	for _, i := range guest.Imports() {
		types[i.Name] = i.Type(wasmbin.I64)
	}
	return types
}

// pull puts everything that is pending into a block.
func pull(c *guest.Call, b *blocks, stack []uint64) {
	n := c.Pending()
	stack[0] = b.alloc(uint64(n))
	c.Pull(b.span(stack[0], uint64(n)))
}

// onBlocks adapts a host call of mh1 to texts that are in blocks.
func onBlocks(i *guest.Import) func(*guest.Call, *blocks, []uint64) {
	return func(c *guest.Call, b *blocks, stack []uint64) {
		var texts [2][]byte
		var numbers [1]int64
		text := 0
		for at, p := range i.Params {
			switch p {
			case guest.Text:
				k := b.block(stack[at])
				texts[text] = b.data[k.start : k.start+k.size]
				text++
			case guest.I32:
				numbers[0] = int64(int32(stack[at]))
			case guest.I64:
				numbers[0] = int64(stack[at])
			}
		}
		result := c.Do(i, texts, numbers)
		if !i.AnswersNothing() {
			stack[0] = result
		}
	}
}
