package host

import (
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKindFollowsFromTheConfiguration(t *testing.T) {
	decl := &abi.ProviderDecl{Name: "mem0", Kind: abi.KindArchitecture, Note: "as declared", KindWhen: []abi.KindRule{
		{Pointer: "/infer", Equals: abi.Raw(`false`), Kind: abi.KindControl, Note: "no extraction"},
		{Pointer: "/search/mode", Equals: abi.Raw(`{"a":[1, 2]}`), Kind: abi.KindControl, Note: "second rule"},
	}}
	for block, want := range map[string]string{
		`{}`:                              "architecture: as declared",
		`{"infer":true}`:                  "architecture: as declared",
		`{"infer":"false"}`:               "architecture: as declared",
		`{"infer":null}`:                  "architecture: as declared",
		`{"infer":false}`:                 "control: no extraction",
		`{"search":{"mode":{"a":[1,2]}}}`: "control: second rule",
		`{"search":{"mode":{"a":[2,1]}}}`: "architecture: as declared",
		`{"infer":false,"search":{"mode":{"a":[1,2]}}}`: "control: no extraction",
	} {
		kind, note, err := kindOf(decl, abi.Raw(block))
		require.NoError(t, err)
		assert.Equal(t, want, string(kind)+": "+note, block)
	}
}
