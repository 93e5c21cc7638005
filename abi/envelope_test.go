package abi

import (
	"testing"

	"github.com/memhost/memhost/abi/wirejson"
	"github.com/stretchr/testify/require"
)

func TestTheBodyOfAnEnvelopeIsReadWhereverItIs(t *testing.T) {
	for _, in := range []string{`{"op":"retrieve","body":{"query":"q"}}`, `{"body": {"query":"q"} ,"op":"retrieve"}`} {
		var e Envelope
		require.NoError(t, Unmarshal([]byte(in), &e), in)
		require.Equal(t, Envelope{Op: OpRetrieve, Body: Raw(`{"query":"q"}`)}, e)
	}
	var deep Envelope
	require.NoError(t, Unmarshal([]byte(`{"body":`+nested(MaxDepth-1)+`}`), &deep),
		"as deep as the document around it may be")
}

func TestDecodeByItselfReportsTheContractsErrors(t *testing.T) {
	var x MemoryEvent
	err := x.Decode(wirejson.DecodeStr(`{"messages":[{"rol":1}]}`), Strict)
	require.EqualError(t, err, `messages[0].rol: unknown field, did you mean "role"?`)
	require.Equal(t, NewError(CodeInvalidArgument, err.Error()), AsError(err))
}

// nullDecoder reads nothing.
type nullDecoder struct{}

func (nullDecoder) Decode(*wirejson.Decoder, Mode) error { return nil }

func TestADecodeThatReadsNothingIsNoticed(t *testing.T) {
	require.EqualError(t, Unmarshal([]byte(`{}`), nullDecoder{}), "internal: Decode did not read the whole value")
}
