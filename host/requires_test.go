package host

import (
	"os"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestACapabilityCanRequireSomethingOfTheConfiguration(t *testing.T) {
	requires := []abi.RequireDecl{
		{Export: abi.OpProvenance, Pointer: "/bolt", Because: "configure bolt"},
		{Export: abi.OpProvenance, Pointer: "/surface", Equals: abi.Raw(`"mcp"`), Because: "or use mcp"},
		{Export: abi.OpInventory, Pointer: "/bolt", Because: "an inventory needs bolt"},
	}
	for block, want := range map[string]map[string]string{
		`{}`: {abi.OpProvenance: "configure bolt; or use mcp",
			abi.OpInventory: "an inventory needs bolt"},
		`{"bolt":null,"surface":"rest"}`: {abi.OpProvenance: "configure bolt; or use mcp",
			abi.OpInventory: "an inventory needs bolt"},
		`{"surface":"mcp"}`:                {abi.OpInventory: "an inventory needs bolt"},
		`{"bolt":"bolt://127.0.0.1:7687"}`: {},
	} {
		lacks, err := lacking(requires, abi.Raw(block))
		require.NoError(t, err)
		assert.Equal(t, want, lacks, block)
	}
	p := &Provider{name: "graphiti", module: &Module{Exports: []string{abi.OpProvenance}},
		lacks: map[string]string{abi.OpProvenance: "configure bolt"}}
	assert.False(t, p.has(abi.OpProvenance))
	assert.Equal(t, "configure bolt", p.unsupported(abi.OpProvenance).Hint)
	assert.Equal(t, abi.CodeUnsupported, p.unsupported(abi.OpProvenance).Code)
}

func TestFeedbackIsACapabilityOnlyWhereItIsConfigured(t *testing.T) {
	for module, blocks := range map[string]map[string]bool{
		"memos": {`{"feedback_enabled":false}`: false, `{"feedback_enabled":true}`: true},
		"mem0":  {`{"feedback":"off"}`: false, `{"feedback":"negative"}`: true, `{"feedback":"very_negative"}`: true},
	} {
		text, err := os.ReadFile("../plugins/" + module + "/manifest.json")
		require.NoError(t, err)
		manifest, _, err := ParseManifest(text)
		require.NoError(t, err)
		for block, want := range blocks {
			lacks, err := lacking(manifest.Requires, abi.Raw(block))
			require.NoError(t, err)
			assert.Equal(t, want, lacks[abi.OpApplyFeedback] == "", "%s %s", module, block)
		}
	}
}

func TestNativeDeclarationsFollowTheConfiguration(t *testing.T) {
	list, err := offered([]abi.NativeDecl{
		{Name: "nodes", Params: "query", Pointer: "/surface", Equals: abi.Raw(`"mcp"`)},
		{Name: "nodes", Params: "limit?", Pointer: "/surface", Equals: abi.Raw(`"core"`)},
		{Name: "counts", Pointer: "/bolt"}, {Name: "always"}, {Name: "always", Params: "never"},
	}, abi.Raw(`{"surface":"core","bolt":null}`))
	require.NoError(t, err)
	assert.Equal(t, []abi.NativeDecl{{Name: "nodes", Params: "limit?"}, {Name: "always"}}, list)

	n := natives{decls: list}
	wrong := n.explain(abi.NewError(abi.CodeInvalidArgument, "params.limit: want a number"), "nodes")
	assert.Equal(t, "nodes takes limit?", abi.AsError(wrong).Hint)
	wrong = n.explain(abi.NewError(abi.CodeUnsupported, "name: no query of that name"), "counts")
	assert.Equal(t, "there are nodes, always", abi.AsError(wrong).Hint)
	other := abi.NewError(abi.CodeInvalidArgument, "scope.run_id: missing")
	assert.Empty(t, abi.AsError(n.explain(other, "nodes")).Hint)
}

func TestNativeParametersAreHeldToTheDeclaredSchema(t *testing.T) {
	n, err := nativesOf([]abi.NativeDecl{
		{Name: "log", Schema: abi.Raw(`{"type":"object","additionalProperties":false,"required":["branch"],
			"properties":{"branch":{"type":"string"},"limit":{"type":"integer","minimum":1,"default":10}}}`)},
		{Name: "older", Params: "limit"},
	}, abi.Raw(`{}`))
	require.NoError(t, err)
	for name, right := range map[string]map[string]abi.Raw{
		"log": {"branch": abi.Raw(`"main"`), "limit": abi.Raw(`3`)}, "older": {"limit": abi.Raw(`"x"`)},
		"undeclared": {"a": abi.Raw(`1`)}} {
		require.NoError(t, n.check(name, right), name)
	}
	require.NoError(t, n.check("log", map[string]abi.Raw{"branch": abi.Raw(`"main"`), "limit": abi.Raw(`null`)}))
	for want, wrong := range map[string]map[string]abi.Raw{
		`params.limit: found the string "3", want an integer`: {"branch": abi.Raw(`"main"`), "limit": abi.Raw(`"3"`)},
		`params.limit: found the number 0, want`:              {"branch": abi.Raw(`"main"`), "limit": abi.Raw(`0`)},
		`params.branch: `:                                     {},
		"params.brunch: ":                                     {"branch": abi.Raw(`"main"`), "brunch": abi.Raw(`"main"`)},
		"params.branch: found the number 7, want a string":    {"branch": abi.Raw(`7`)}} {
		err := n.check("log", wrong)
		require.Error(t, err, want)
		assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
		assert.Contains(t, err.Error(), want)
		assert.Contains(t, abi.AsError(err).Hint, "log takes branch, limit?")
		assert.Equal(t, ReasonParams, abi.AsError(err).Reason)
	}
}
