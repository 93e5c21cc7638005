package sdk

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

// FuzzOpen checks that opening an envelope gives what decoding it gives.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(`{"op":"retrieve","scope":{"run_id":"r","persona_id":"p"},"generation":2,"body":{"query":"x \" y"}}`))
	f.Add([]byte(`{"body":{"a":1},"body":2}`))
	f.Add([]byte(`{"b\u006fdy":1,"op":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var whole abi.Envelope
		err := abi.Unmarshal(data, &whole)
		c, err2 := open(data, nil)
		require.Equal(t, err == nil, err2 == nil)
		if err != nil {
			return
		}
		require.NoError(t, err2)
		require.Equal(t, whole.Op, c.Op)
		require.Equal(t, whole.Scope, c.Scope)
		require.Equal(t, string(whole.Body), string(c.body))
	})
}
