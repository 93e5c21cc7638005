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

	wrong := explainNative(abi.NewError(abi.CodeInvalidArgument, "params.limit: want a number"), list, "nodes")
	assert.Equal(t, "nodes takes limit?", abi.AsError(wrong).Hint)
	wrong = explainNative(abi.NewError(abi.CodeUnsupported, "name: no query of that name"), list, "counts")
	assert.Equal(t, "there are nodes, always", abi.AsError(wrong).Hint)
	other := abi.NewError(abi.CodeInvalidArgument, "scope.run_id: missing")
	assert.Empty(t, abi.AsError(explainNative(other, list, "nodes")).Hint)
}
