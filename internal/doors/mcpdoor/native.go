package mcpdoor

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/declared"
)

// The provider's own queries and mutations as tools. Their names start with the provider's name, so that they cannot be
// confused with the door's own tools: ledger_memory_memory_search is not memory_search.

// lookNative lists the tools that the slot's provider declares and Options.NativeTools allows. After a swap they are
// those of the new provider.
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
		removed := slices.DeleteFunc(slices.Clone(d.native), func(n string) bool { return slices.Contains(names, n) })
		d.server.RemoveTools(removed...)
		for _, t := range tools {
			d.server.AddTool(t.definition(state{}), d.handler(t))
		}
		d.native = names
		return nil
	})
}

// nativeTools makes the tools for a provider's declarations. A query and a mutation of the same name become one tool,
// which runs the mutation if the arguments don't match the query. Without a schema they cannot be told apart, so the
// mutation becomes a tool with the suffix _change.
func (d *Door) nativeTools(c *report.Capabilities) (tools []tool) {
	mutations := map[string]*abi.NativeDecl{}
	for i := range c.NativeMutations {
		mutations[c.NativeMutations[i].Name] = &c.NativeMutations[i]
	}
	for i := range c.NativeQueries {
		q := &c.NativeQueries[i]
		if !d.allowsNative(q.Name) {
			continue
		}
		m := mutations[q.Name]
		if m != nil && len(m.Schema) > 0 && len(q.Schema) > 0 {
			tools = append(tools, d.eitherTool(c.Provider, q, m))
			delete(mutations, q.Name)
			continue
		}
		t := nativeTool(c.Provider, q, abi.OpNativeQuery)
		t.readOnly, t.idempotent = true, true
		t.run = func(ctx context.Context, a arguments) (*mcp.CallToolResult, error) { return d.query(ctx, q.Name, a) }
		tools = append(tools, t)
		if m != nil {
			tools = append(tools, d.changeTool(c.Provider, m, "_change"))
			delete(mutations, q.Name)
		}
	}
	for i := range c.NativeMutations {
		if m := &c.NativeMutations[i]; mutations[m.Name] != nil && d.allowsNative(m.Name) {
			tools = append(tools, d.changeTool(c.Provider, m, ""))
		}
	}
	return tools
}

func (d *Door) allowsNative(name string) bool {
	return slices.Contains(d.options.NativeTools, name) || slices.Contains(d.options.NativeTools, "*")
}

func nativeTool(provider string, n *abi.NativeDecl, operation string) tool {
	t := tool{name: provider + "_" + n.Name, operation: operation, title: provider + ": " + n.Name,
		about: declared.About(provider, n)}
	t.fields, t.required = n.ParamNames()
	t.schema = schemaText(declared.Schema(n))
	t.answer = `{"type":"object","required":["message"],"properties":{"message":{"type":"string","description":"The answer in words"}}}`
	return t
}

func schemaText(schema map[string]any) string {
	text, _ := json.Marshal(schema) // it was decoded from JSON
	return string(text)
}

func (d *Door) changeTool(provider string, m *abi.NativeDecl, ending string) tool {
	t := nativeTool(provider, m, abi.OpNativeMutation)
	t.name += ending
	t.destructive = true // for all that the door knows
	t.run = func(ctx context.Context, a arguments) (*mcp.CallToolResult, error) { return d.mutate(ctx, m.Name, a) }
	return t
}

// eitherTool makes the tool for a query and a mutation of the same name. It takes the parameters of both.
func (d *Door) eitherTool(provider string, q, m *abi.NativeDecl) tool {
	t := d.changeTool(provider, m, "")
	t.about = "Changes nothing where its arguments are those of this query. " + declared.About(provider, q) +
		" With other arguments it is a change. " + t.about
	schema, other := declared.Schema(m), declared.Schema(q)
	properties := schema["properties"].(map[string]any)
	for name, property := range other["properties"].(map[string]any) {
		if _, is := properties[name]; !is {
			properties[name] = property
			t.fields = append(t.fields, name)
		}
	}
	_, needs := q.ParamNames()
	t.required = slices.DeleteFunc(t.required, func(name string) bool { return !slices.Contains(needs, name) })
	delete(schema, "required")
	if len(t.required) > 0 {
		schema["required"] = t.required
	}
	t.schema = schemaText(schema)
	t.run = func(ctx context.Context, a arguments) (*mcp.CallToolResult, error) {
		answer, err := d.query(ctx, q.Name, a)
		if err != nil && abi.AsError(err).Reason == host.ReasonParams {
			return d.mutate(ctx, m.Name, a)
		}
		return answer, err
	}
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
	if len(text) == len(r.Result) { // a text that was cut is not JSON
		fields["result"] = json.RawMessage(r.Result)
	}
	return textResult(text, fields), nil
}

func (d *Door) mutate(ctx context.Context, name string, a arguments) (*mcp.CallToolResult, error) {
	var r *abi.MutationReceipt
	var sent error
	err := d.options.Slot(ctx, func(ctx context.Context, c host.Contract) (err error) {
		if sent != nil { // a second try could change something twice
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
	return textResult(text, fields), nil
}
