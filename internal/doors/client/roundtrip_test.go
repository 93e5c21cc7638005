package client_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// journey is a slot with the door and a client in front of it, and what was sent between the two.
type journey struct {
	*client.Client
	answer  any
	err     error
	op      string
	request any
}

func newJourney(t *testing.T) *journey {
	t.Helper()
	j := new(journey)
	slot := &servertest.Slot{Answer: func(_ context.Context, op string, request any) (any, error) {
		j.op, j.request = op, request
		return j.answer, j.err
	}}
	s, err := server.New(server.Options{Slot: slot, Token: "secret",
		Swapper: server.SwapperFunc(func(_ context.Context, q server.SwapRequest) (*report.RunManifest, error) {
			j.op, j.request = wire.OpSwap, &q
			m, _ := j.answer.(*report.RunManifest)
			return m, j.err
		})})
	require.NoError(t, err)
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	j.Client, err = client.New(web.URL, "secret")
	require.NoError(t, err)
	t.Cleanup(j.Close)
	return j
}

// trip checks that a request arrives as it was sent and the answer as it was given, and then the same for an error.
func trip[Q, A any](op string, do func(c host.Contract, ctx context.Context, q *Q) (*A, error)) (string,
	func(t *testing.T, j *journey)) {
	return op, func(t *testing.T, j *journey) {
		rapid.Check(t, func(rt *rapid.T) {
			request := servertest.Random[Q](rt, "request")
			answer := servertest.Random[A](rt, "answer")
			if receipt, ok := any(answer).(*abi.WriteReceipt); ok { // a slot answers for the event that it received
				*receipt = *receiptFor(rt, any(request).(*abi.MemoryEvent).EventID, receipt)
			}
			j.answer, j.err = answer, nil
			got, err := do(j, context.Background(), request)
			require.NoError(rt, err)
			require.Equal(rt, op, j.op)
			if j.request != nil {
				require.Equal(rt, request, j.request)
			}
			require.Equal(rt, answer, got)

			failure := servertest.Random[abi.Error](rt, "error")
			failure.Code = rapid.SampledFrom(abi.Codes()).Draw(rt, "code")
			failure.Operation = op
			j.answer, j.err = nil, failure
			_, err = do(j, context.Background(), request)
			require.Equal(rt, failure, err)
		})
	}
}

// receiptFor is a random receipt as a slot may answer it for an event.
func receiptFor(rt *rapid.T, eventID string, random *abi.WriteReceipt) *abi.WriteReceipt {
	random.EventID = eventID
	random.Status = rapid.SampledFrom([]abi.WriteStatus{abi.StatusCommitted, abi.StatusQueued, abi.StatusPending,
		abi.StatusPartial, abi.StatusUncertain, abi.StatusNotRetained, abi.StatusSkippedReadOnly}).Draw(rt, "status")
	return random
}

// emptyRequest is the request of an operation without one.
type emptyRequest struct{}

func ofNothing[A any](do func(c host.Contract, ctx context.Context) (*A,
	error)) func(host.Contract, context.Context, *emptyRequest) (*A, error) {
	return func(c host.Contract, ctx context.Context, _ *emptyRequest) (*A, error) { return do(c, ctx) }
}

func ofScope[A any](do func(c host.Contract, ctx context.Context, scope abi.MemoryScope) (*A,
	error)) func(host.Contract, context.Context, *abi.MemoryScope) (*A, error) {
	return func(c host.Contract, ctx context.Context, scope *abi.MemoryScope) (*A, error) {
		return do(c, ctx, *scope)
	}
}

func TestWhatCrossesTheDoorIsTheSameOnBothSides(t *testing.T) {
	run := func(op string, test func(t *testing.T, j *journey)) {
		t.Run(op, func(t *testing.T) { test(t, newJourney(t)) })
	}
	run(trip(abi.OpSetupScope, ofScope(host.Contract.SetupScope)))
	run(trip(abi.OpRecordEvent, host.Contract.RecordEvent))
	run(trip(abi.OpRetrieve, host.Contract.Retrieve))
	run(trip(abi.OpFormatContext, host.Contract.FormatContext))
	run(trip(abi.OpResetScope, ofScope(host.Contract.ResetScope)))
	run(trip(abi.OpHealth, ofNothing(host.Contract.Health)))
	run(trip(abi.OpSetMode, host.Contract.SetMode))
	run(trip(wire.OpMode, ofNothing(host.Contract.Mode)))
	run(trip(wire.OpCapabilities, ofNothing(host.Contract.Capabilities)))
	run(trip(wire.OpManifest, ofNothing(host.Contract.Manifest)))
	run(trip(abi.OpReadiness, host.Contract.Readiness))
	run(trip(abi.OpInventory, host.Contract.Inventory))
	run(trip(abi.OpProvenance, host.Contract.Provenance))
	run(trip(abi.OpNativeQuery, host.Contract.NativeQuery))
	run(trip(abi.OpNativeMutation, host.Contract.NativeMutation))
	run(trip(abi.OpApplyFeedback, host.Contract.ApplyFeedback))
}

func TestABatchAnswersEveryEventAtItsPlace(t *testing.T) {
	j := newJourney(t)
	rapid.Check(t, func(rt *rapid.T) {
		request := servertest.Random[abi.EventBatch](rt, "request")
		answer := &abi.BatchReceipts{Receipts: make([]abi.ReceiptOrError, len(request.Events))}
		for i := range answer.Receipts {
			answer.Receipts[i] = *servertest.Random[abi.ReceiptOrError](rt, "receipt")
			id := request.Events[i].EventID
			if e := answer.Receipts[i].Error; e != nil {
				e.Code = rapid.SampledFrom(abi.Codes()).Draw(rt, "code")
				answer.Receipts[i].EventID = id
			} else {
				receiptFor(rt, id, answer.Receipts[i].Receipt)
			}
		}
		j.answer, j.err = answer, nil
		got, err := j.RecordEvents(context.Background(), request)
		require.NoError(rt, err)
		require.Equal(rt, request, j.request)
		require.Equal(rt, answer, got)
	})
}

func TestSwapCrossesTheDoor(t *testing.T) {
	j := newJourney(t)
	rapid.Check(t, func(rt *rapid.T) {
		request := wire.SwapRequest{Plugin: rapid.String().Draw(rt, "plugin")}
		name := rapid.StringN(1, 20, -1).Draw(rt, "name")
		if rapid.Bool().Draw(rt, "backend") {
			request.Backend = name
		} else {
			request.Condition = name
		}
		if rapid.Bool().Draw(rt, "config") {
			request.Config = abi.Raw(`{"url": "http://127.0.0.1:1", "api_key": {"secret": "K"}}`)
		}
		j.answer, j.err = servertest.Random[report.RunManifest](rt, "answer"), nil
		got, err := j.Swap(context.Background(), request)
		require.NoError(rt, err)
		require.Equal(rt, &request, j.request)
		require.Equal(rt, j.answer, got)
	})
	j.answer, j.err = nil, abi.NewError(abi.CodeConflict, "step health: down").WithHint("the slot still serves mem0")
	_, err := j.Swap(context.Background(), wire.SwapRequest{Backend: "honcho"})
	require.ErrorIs(t, err, &abi.Error{Code: abi.CodeConflict})
	require.Equal(t, "the slot still serves mem0", abi.AsError(err).Hint)
	require.Equal(t, wire.OpSwap, abi.AsError(err).Operation)
}
