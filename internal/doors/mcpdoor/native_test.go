package mcpdoor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
)

// toolNames are the tools that a client is shown.
func toolNames(t *testing.T, c *mcp.ClientSession) (names []string) {
	t.Helper()
	list, err := c.ListTools(t.Context(), nil)
	require.NoError(t, err)
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

func TestAProvidersOwnToolsAreThereWhereTheOperatorNamesThem(t *testing.T) {
	s := newSlot()
	s.answers["capabilities"] = &report.Capabilities{Provider: "ledger_memory",
		NativeQueries: []abi.NativeDecl{{Name: "memory_search", Params: "query?, limit?", About: "Searches."},
			{Name: "memory_branch", Params: "action"}, {Name: "fsck"}},
		NativeMutations: []abi.NativeDecl{{Name: "memory_branch", Params: "action, name"}}}
	s.answers[abi.OpNativeQuery] = &abi.NativeQueryResult{Name: "memory_search", Result: abi.Raw(`[{"id":"m1"}]`)}
	s.answers[abi.OpNativeMutation] = &abi.MutationReceipt{Status: "applied", NativeIDs: []string{"c1"},
		Trace: &abi.Trace{Details: map[string]abi.Raw{"branch": abi.Raw(`"b"`)}}}

	assert.NotContains(t, toolNames(t, connect(t, options(s))), "ledger_memory_memory_search")

	o := options(s)
	o.NativeTools = []string{"memory_search", "memory_branch", "not_declared"}
	c := connect(t, o)
	assert.Equal(t, []string{"ledger_memory_memory_branch", "ledger_memory_memory_branch_change",
		"ledger_memory_memory_search", "memory_add", "memory_search", "memory_status"}, toolNames(t, c))

	call := func(name string, arguments map[string]any) *mcp.CallToolResult {
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
		require.NoError(t, err)
		return r
	}
	r := call("ledger_memory_memory_search", map[string]any{"query": "cat", "limit": 3})
	assert.Equal(t, `[{"id":"m1"}]`, r.Content[0].(*mcp.TextContent).Text)
	assert.Equal(t, []any{&abi.NativeQuery{Scope: scope, Name: "memory_search",
		Params: map[string]abi.Raw{"query": abi.Raw(`"cat"`), "limit": abi.Raw(`3`)}}}, s.of(abi.OpNativeQuery))

	r = call("ledger_memory_memory_branch_change", map[string]any{"action": "create", "name": "b"})
	assert.False(t, r.IsError)
	assert.Equal(t, "b", r.StructuredContent.(map[string]any)["details"].(map[string]any)["branch"])

	r = call("ledger_memory_memory_branch_change", map[string]any{"action": "create"})
	assert.True(t, r.IsError)
	assert.Contains(t, r.Content[0].(*mcp.TextContent).Text, "name: missing")
	r = call("ledger_memory_memory_search", map[string]any{"user_id": "bob"})
	assert.Contains(t, r.Content[0].(*mcp.TextContent).Text, "denied")

	// A search is repeated after a broken connection. A change is not, because it could be made twice.
	s.answers[abi.OpNativeQuery] = abi.NewError(abi.CodeUnavailable, "the connection broke")
	s.answers[abi.OpNativeMutation] = s.answers[abi.OpNativeQuery]
	once := o.Slot
	o.Slot = func(ctx context.Context, do func(context.Context, host.Contract) error) error {
		if err := once(ctx, do); err == nil {
			return nil
		}
		return once(ctx, do)
	}
	again := connect(t, o)
	for name, n := range map[string]int{"memory_branch": 2, "memory_branch_change": 1} {
		s.asked = nil
		arguments := map[string]any{"action": "create"}
		if n == 1 {
			arguments["name"] = "b"
		}
		_, err := again.CallTool(t.Context(), &mcp.CallToolParams{Name: "ledger_memory_" + name, Arguments: arguments})
		require.NoError(t, err)
		assert.Len(t, append(s.of(abi.OpNativeMutation), s.of(abi.OpNativeQuery)...), n, name)
	}

	// After a swap the old provider's tools are gone.
	s.answers["capabilities"] = &report.Capabilities{Provider: "mem0", NativeMutations: []abi.NativeDecl{{Name: "update"}}}
	assert.Equal(t, []string{"memory_add", "memory_search", "memory_status"}, toolNames(t, c))
}

// A query and a mutation of one name are one tool if both declare a schema. The host's answer to the query decides
// which of the two a call is.
func TestAQueryAndAMutationOfOneNameAreOneTool(t *testing.T) {
	s := newSlot()
	s.answers["capabilities"] = &report.Capabilities{Provider: "ledger_memory",
		NativeQueries: []abi.NativeDecl{{Name: "tidy", About: "What could\nbe \x1btidied.", Schema: abi.Raw(
			`{"type":"object","properties":{"branch":{"type":"string","description":"One\u202e of them."}}}`)}},
		NativeMutations: []abi.NativeDecl{{Name: "tidy", About: "Tidies.", Schema: abi.Raw(
			`{"type":"object","required":["apply"],"properties":{"apply":{"type":"boolean"},"limit":{"type":"integer","minimum":1}}}`)}}}
	s.answers[abi.OpNativeQuery] = &abi.NativeQueryResult{Name: "tidy", Result: abi.Raw(`{}`)}
	s.answers[abi.OpNativeMutation] = &abi.MutationReceipt{Status: "applied"}
	o := options(s)
	o.NativeTools = []string{"*"}
	c := connect(t, o)
	list, err := c.ListTools(t.Context(), nil)
	require.NoError(t, err)
	var tool *mcp.Tool
	for _, each := range list.Tools {
		if strings.HasPrefix(each.Name, "ledger_memory_") {
			require.Nil(t, tool, "one tool")
			tool = each
		}
	}
	assert.Equal(t, "ledger_memory_tidy", tool.Name)
	assert.Equal(t, map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{
		"branch": map[string]any{"type": "string", "description": "One of them."}, "apply": map[string]any{"type": "boolean"},
		"limit": map[string]any{"type": "integer", "minimum": 1.0}}}, tool.InputSchema)
	assert.Contains(t, tool.Description, `Declared by the module of ledger_memory, which describes it as: "What could be tidied."`)
	assert.True(t, *tool.Annotations.DestructiveHint)

	call := func(arguments map[string]any) {
		_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool.Name, Arguments: arguments})
		require.NoError(t, err)
	}
	call(map[string]any{"branch": "main"})
	assert.Len(t, s.of(abi.OpNativeQuery), 1)
	assert.Empty(t, s.of(abi.OpNativeMutation))
	s.answers[abi.OpNativeQuery] = abi.NewError(abi.CodeInvalidArgument, "params.apply: unknown").WithReason(host.ReasonParams)
	call(map[string]any{"apply": true})
	assert.Len(t, s.of(abi.OpNativeMutation), 1)
	s.answers[abi.OpNativeQuery] = abi.NewError(abi.CodeInvalidArgument, "params.branch: there is none")
	call(map[string]any{"branch": "x"})
	assert.Len(t, s.of(abi.OpNativeMutation), 1, "what the module refuses is no change")
}
