package host

import (
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/stretchr/testify/require"
)

func TestTheLimitThatCountsIsFoundByTheConfiguration(t *testing.T) {
	limits := []abi.NativeLimit{{Route: "fixed", Native: 10},
		{Route: "facts", TokensPerItem: 40, Pointer: "/infer", Equals: abi.Raw("true"), Configured: "/top_k"},
		{Route: "texts", TokensPerItem: 50, Pointer: "/infer", Equals: abi.Raw("false"), Configured: "/top_k"}}
	for block, want := range map[string]struct {
		route string
		set   bool
	}{`{"infer":true}`: {"facts", false}, `{"infer":false}`: {"texts", false},
		`{"infer":false,"top_k":5}`:   {"texts", true},
		`{"infer":true,"top_k":null}`: {"facts", false}} {
		limit, set, err := itemLimit(limits, abi.Raw(block))
		require.NoError(t, err)
		require.Equal(t, want.route, limit.Route, block)
		require.Equal(t, want.set, set, block)
	}
	limit, _, err := itemLimit(limits, abi.Raw(`{}`))
	require.NoError(t, err)
	require.Nil(t, limit)
}
