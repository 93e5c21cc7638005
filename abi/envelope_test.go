package abi

import (
	"bytes"
	"testing"

	"github.com/memhost/memhost/abi/jsontext"
	"github.com/stretchr/testify/require"
)

func TestOpenEnvelope(t *testing.T) {
	data := Marshal(&Envelope{Op: OpRetrieve, Scope: MemoryScope{RunID: "r", PersonaID: "p"}, Now: "2026-03-01T09:30:00Z",
		Resume: &Resume{Markers: []string{"m"}, Missing: []string{}}, Body: Raw(`{"query":"q"}`)})
	var copied Envelope
	require.NoError(t, Unmarshal(data, &copied))
	opened, err := OpenEnvelope(data)
	require.NoError(t, err)
	require.Equal(t, &copied, opened)

	_ = append(opened.Body, '!')
	require.Equal(t, byte('}'), data[len(data)-1], "what is appended to the body does not go into data")
	body := opened.Body
	clear(data)
	require.Equal(t, make(Raw, len(body)), body, "the body is a part of data")
	opened.Body = copied.Body
	require.Equal(t, &copied, opened, "the rest is a copy")
	require.Equal(t, Raw(`{"query":"q"}`), copied.Body)
}

func TestOpenEnvelopeReadsAsUnmarshalDoes(t *testing.T) {
	deepest := `{"a":` + nested(MaxDepth-2) + `}`
	for in, want := range map[string]string{
		`{"new":1,"body":null}`:              ``,
		`{"body": ` + deepest + ` }`:         ``,
		`{"op":"retrieve"}`:                  ``,
		`{"body":{"query":"q"}} `:            ``,
		`{"scope":{"run_id":1},"body":null}`: `invalid_argument: scope.run_id: want a string, got a number`,
		`{"body":`:                           `invalid_argument: not JSON: unexpected end of input at byte 8`,
		`{"body":}`:                          `invalid_argument: not JSON: unexpected '}' at byte 8`,
		`{"op":{"body":{}`:                   `invalid_argument: not JSON: unexpected end of input at byte 16`,
	} {
		var copied Envelope
		err := Unmarshal([]byte(in), &copied)
		opened, viewErr := OpenEnvelope([]byte(in))
		require.Equal(t, err, viewErr, in)
		if want != "" {
			require.EqualError(t, err, want)
			require.Nil(t, opened)
			continue
		}
		require.NoError(t, err)
		opened.Body = bytes.TrimSpace(opened.Body)
		require.Equal(t, &copied, opened)
	}
}

func TestWhatIsWrongInABodyIsFoundWhenItIsRead(t *testing.T) {
	for in, want := range map[string]string{
		`{"body":{"a"}}`:                      `invalid_argument: not JSON: unexpected '}' at byte 4`,
		`{"body":{}}}`:                        `invalid_argument: not JSON: more after the end of the value at byte 2`,
		`{"body":{},"op":"retrieve"}`:         `invalid_argument: not JSON: more after the end of the value at byte 2`,
		`{"body":` + nested(MaxDepth+1) + `}`: `invalid_argument: nested too deep at byte 64, want at most 64 levels, in a free value 56`,
	} {
		opened, err := OpenEnvelope([]byte(in))
		require.NoError(t, err, in)
		require.EqualError(t, Unmarshal(opened.Body, new(Empty)), want, in)
	}
}

func TestDecodeByItselfReportsTheContractsErrors(t *testing.T) {
	var x MemoryEvent
	err := x.Decode(jsontext.DecodeStr(`{"messages":[{"rol":1}]}`), Strict)
	require.EqualError(t, err, `messages[0].rol: unknown field, did you mean "role"?`)
	require.Equal(t, NewError(CodeInvalidArgument, err.Error()), AsError(err))
}

// half reads nothing.
type half struct{}

func (half) Decode(*jsontext.Decoder, Mode) error { return nil }

func TestADecodeThatReadsNothingIsNoticed(t *testing.T) {
	require.EqualError(t, Unmarshal([]byte(`{}`), half{}), "internal: Decode did not read the whole value")
}
