package sdk

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

// FuzzOpen checks that open returns the same as decoding the envelope, whatever the body is.
func FuzzOpen(f *testing.F) {
	f.Add("retrieve", "r", []byte(`{"query":"x \" y"}`))
	f.Add("", "}", []byte(` [1, {"body":2}] `))
	f.Add(`"body":`, "", []byte(`null`))
	f.Fuzz(func(t *testing.T, op, run string, body []byte) {
		if !abi.ValidJSON(body) {
			_, _ = open(body, nil) // never panics
			return
		}
		data := abi.Marshal(&abi.Envelope{Op: op, Scope: abi.MemoryScope{RunID: run}, Body: body})
		var whole abi.Envelope
		err := abi.Unmarshal(data, &whole)
		c, err2 := open(data, nil)
		if err != nil {
			return // the body is too deep for a document around it
		}
		require.NoError(t, err2)
		require.Equal(t, whole.Op, c.Op)
		require.Equal(t, whole.Scope, c.Scope)
		require.Equal(t, string(whole.Body), string(bytes.TrimSpace(c.body)))
	})
}
