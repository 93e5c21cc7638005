package mcpdoor

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

// The provider's own queries and mutations as tools. Their names begin with the provider's, so that none is taken for
// one of the door's: ledger_memory_memory_search is another tool than memory_search.

// lookNative lists the tools that the provider behind the slot declares and Options.NativeTools allows. After a swap
// they are another provider's.
func (d *Door) lookNative(ctx context.Context) error {
	return d.options.Slot(ctx, func(ctx context.Context, c host.Contract) error {
		now, err := c.Capabilities(ctx)
		if err != nil {
			return err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if reflect.DeepEqual(*now, d.nativeOf) {
			return nil
		}
		d.nativeOf = *now
		tools := d.nativeTools(now)
		var names []string
		for _, t := range tools {
			names = append(names, t.name)
		}
		gone := slices.DeleteFunc(slices.Clone(d.native), func(n string) bool { return slices.Contains(names, n) })
		d.server.RemoveTools(gone...)
		for _, t := range tools {
			d.server.AddTool(t.definition(state{}), d.handler(t))
		}
		d.native = names
		return nil
	})
}

// nativeTools are the tools for what a provider declares. A mutation that has the name of a query gets _change behind
// its name.
func (d *Door) nativeTools(c *abi.Capabilities) (tools []tool) {
	queries := map[string]bool{}
	for _, q := range c.NativeQueries {
		if queries[q.Name] = true; d.allowsNative(q.Name) {
			t := nativeTool(c.Provider, q, abi.OpNativeQuery)
			t.readOnly, t.idempotent = true, true
			t.run = func(ctx context.Context, a arguments) (*mcp.CallToolResult, error) { return d.query(ctx, q.Name, a) }
			tools = append(tools, t)
		}
	}
	for _, m := range c.NativeMutations {
		if !d.allowsNative(m.Name) {
			continue
		}
		t := nativeTool(c.Provider, m, abi.OpNativeMutation)
		if queries[m.Name] {
			t.name += "_change"
		}
		t.destructive = true // for all that the door knows
		t.run = func(ctx context.Context, a arguments) (*mcp.CallToolResult, error) { return d.mutate(ctx, m.Name, a) }
		tools = append(tools, t)
	}
	return tools
}

func (d *Door) allowsNative(name string) bool {
	return slices.Contains(d.options.NativeTools, name) || slices.Contains(d.options.NativeTools, "*")
}

func nativeTool(provider string, n abi.NativeDecl, operation string) tool {
	t := tool{name: provider + "_" + n.Name, operation: operation, title: provider + ": " + n.Name, about: n.About}
	t.fields, t.required = n.ParamNames()
	properties := map[string]any{}
	for _, name := range t.fields {
		properties[name] = map[string]any{} // of any type: the provider checks it
	}
	schema := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(t.required) > 0 {
		schema["required"] = t.required
	}
	text, _ := json.Marshal(schema) // of strings and maps alone
	t.schema = string(text)
	t.answer = `{"type":"object","required":["message"],"properties":{"message":{"type":"string","description":"The answer in words"}}}`
	return t
}

func (a arguments) params() map[string]abi.Raw {
	params := map[string]abi.Raw{}
	for name, value := range a {
		params[name] = abi.Raw(value)
	}
	return params
}

func (d *Door) query(ctx context.Context, name string, a arguments) (*mcp.CallToolResult, error) {
	var r *abi.NativeQueryResult
	err := d.options.Slot(ctx, func(ctx context.Context, c host.Contract) (err error) {
		r, err = c.NativeQuery(ctx, &abi.NativeQuery{Scope: d.options.Scope, Name: name, Params: a.params()})
		return err
	})
	if err != nil {
		return nil, err
	}
	text := clip(string(r.Result))
	fields := map[string]any{"name": r.Name}
	if len(text) == len(r.Result) { // what was cut is no JSON
		fields["result"] = json.RawMessage(r.Result)
	}
	return answered(text, fields), nil
}

func (d *Door) mutate(ctx context.Context, name string, a arguments) (*mcp.CallToolResult, error) {
	var r *abi.MutationReceipt
	var sent error
	err := d.options.Slot(ctx, func(ctx context.Context, c host.Contract) (err error) {
		if sent != nil { // twice could change twice
			return sent
		}
		defer func() { sent = err }()
		r, err = c.NativeMutation(ctx, &abi.NativeMutation{Scope: d.options.Scope, Name: name, Params: a.params(),
			Reason: "asked for by an MCP client"})
		return err
	})
	if err != nil {
		return nil, err
	}
	d.note(func(s *state) { s.skipped = r.Status == string(abi.StatusSkippedReadOnly) && !s.readOnly })
	fields := map[string]any{"status": r.Status, "native_ids": nonNil(r.NativeIDs)}
	if r.Trace != nil {
		fields["warnings"] = nonNil(r.Trace.Warnings)
		if len(r.Trace.Details) > 0 {
			fields["details"] = r.Trace.Details
		}
	}
	text := r.Status
	if r.Status == string(abi.StatusSkippedReadOnly) {
		text += ": this memory is read-only, nothing has changed"
	}
	return answered(text, fields), nil
}
