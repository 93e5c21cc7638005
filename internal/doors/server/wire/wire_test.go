package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// same checks that a value survives encoding and decoding, and that encoding/json reads its fields from the same text.
func same[T any, P interface {
	*T
	abi.Encodable
	abi.Decodable
}](t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v := servertest.Random[T](rt, "value")
		text := abi.Marshal(P(v))
		got, std := new(T), new(T)
		require.NoError(rt, abi.UnmarshalStrict(text, P(got)))
		require.Equal(rt, v, got)
		require.NoError(rt, json.Unmarshal(text, std))
		require.Equal(rt, v, std)
	})
}

// written checks for an answer, which the door only encodes, that encoding/json reads its fields from its text.
func written[T any, P interface {
	*T
	abi.Encodable
}](t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v, std := servertest.Random[T](rt, "value"), new(T)
		require.NoError(rt, json.Unmarshal(abi.Marshal(P(v)), std))
		require.Equal(rt, v, std)
	})
}

func TestTheCodecsAgreeWithTheirTags(t *testing.T) {
	t.Run("SwapRequest", same[wire.SwapRequest])
	t.Run("Liveness", same[wire.Liveness])
	t.Run("EventListRequest", same[wire.EventListRequest])
	t.Run("ScopeListRequest", same[wire.ScopeListRequest])
	t.Run("ScopeList", same[wire.ScopeList])
	t.Run("OperationLine", written[wire.OperationLine])
	t.Run("EventList", same[wire.EventList])
	t.Run("RunReportRequest", same[wire.RunReportRequest])
	t.Run("RunReport", written[wire.RunReport])
	t.Run("RunList", written[wire.RunList])
	t.Run("CompareRequest", same[wire.CompareRequest])
	t.Run("Comparison", written[wire.Comparison])
	t.Run("ImportCheck", written[wire.ImportCheck])
	t.Run("ImportConfirm", same[wire.ImportConfirm])
	t.Run("ImportProgress", written[wire.ImportProgress])
}

func TestAnswersMayHaveMoreFieldsThanRequests(t *testing.T) {
	const text = `{"service":"memhost","status":null,"status":"ok","uptime":{"s":[1]}}`
	var live wire.Liveness
	require.NoError(t, abi.Unmarshal([]byte(text), &live))
	require.Equal(t, wire.Liveness{Service: "memhost", Status: "ok"}, live)
	err := abi.UnmarshalStrict([]byte(`{"stats":"ok"}`), &live)
	require.ErrorIs(t, err, &abi.Error{Code: abi.CodeInvalidArgument})
	require.ErrorContains(t, err, `stats: unknown field, did you mean "status"?`)
	require.ErrorContains(t, abi.UnmarshalStrict([]byte(`{"a b\n":"ok"}`), &live), `["a b\n"]: unknown field`)
}

func TestAProblemIsAnErrorWithFourMoreFields(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := servertest.Random[abi.Error](rt, "error")
		e.Code = rapid.SampledFrom(abi.Codes()).Draw(rt, "code")
		text := wire.EncodeProblem(e, wire.Status(e))
		require.Equal(rt, e, wire.DecodeProblem(text))
		var p wire.Problem
		require.NoError(rt, json.Unmarshal(text, &p))
		require.Equal(rt, wire.Problem{Type: wire.ProblemType(e.Code), Title: wire.Title(e.Code),
			Status: int64(wire.Status(e)), Detail: e.Message, Error: *e}, p)
	})
	titles := map[string]bool{}
	for _, code := range abi.Codes() {
		titles[wire.Title(code)] = true
	}
	require.Len(t, titles, len(abi.Codes()))
	for _, text := range []string{"", "{}", "[]", `{"code":7}`, `{"code":""}`, "<html>"} {
		require.Nil(t, wire.DecodeProblem([]byte(text)), text)
	}
}

func TestTheIDOfAnEventThatDoesNotDecode(t *testing.T) {
	for text, want := range map[string]string{`{"x":1,"event_id":"é\n"}`: "é\n", `{"event_id":7}`: "", `{}`: "",
		`[]`: "", `null`: "", `{"a":{"event_id":"no"}}`: ""} {
		require.Equal(t, want, wire.EventIDOf(abi.Raw(text)), text)
	}
}
