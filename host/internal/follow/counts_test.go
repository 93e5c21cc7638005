package follow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
)

func countsOf(t *testing.T, f *Follower) Counts {
	t.Helper()
	c, err := f.Counts(t.Context())
	require.NoError(t, err)
	return c
}

func TestWhatAFollowerCounts(t *testing.T) {
	r := newRoom(t, true)
	later := time.Duration(0)
	r.Now = func() time.Time { return time.Now().Add(later) }
	r.memory.readOnly["ann"] = true
	r.accept(t, "bob", 0, PageEvents)
	r.accept(t, "ann", 0, 5)
	f := r.follower(t, report.RoleShadow)
	later = time.Hour
	c := countsOf(t, f)
	require.EqualValues(t, PageEvents+5, c.Queue)
	require.InDelta(t, time.Hour, c.Lag, float64(time.Minute))
	require.Zero(t, c.Delivered)

	fill(t, f)
	c = countsOf(t, f)
	require.EqualValues(t, 5, c.Queue, "ann's scope is read-only")
	require.InDelta(t, time.Hour, c.Lag, float64(time.Minute), "of ann's first event")
	require.EqualValues(t, PageEvents, c.Delivered)

	r.memory.readOnly["ann"] = false
	fill(t, f)
	require.Equal(t, Counts{Delivered: PageEvents + 5}, countsOf(t, f))
}

func TestEachDeliveryThatFailsIsCounted(t *testing.T) {
	r := newRoom(t, true)
	none := int64(0)
	r.memory.operations = []string{abi.OpFindEvent}
	r.memory.answer = func(_ int, e *abi.MemoryEvent) *abi.ReceiptOrError {
		switch e.EventID {
		case "ann-001":
			return &abi.ReceiptOrError{EventID: e.EventID, Error: abi.NewError(abi.CodeInvalidArgument, "never")}
		case "ann-002":
			return &abi.ReceiptOrError{Receipt: &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusUncertain,
				RetryAfterMS: &none}}
		}
		return nil
	}
	r.accept(t, "ann", 0, 4)
	f := r.follower(t, report.RoleShadow)
	fill(t, f)
	require.Equal(t, Counts{Delivered: 2, Failed: 1 + mostTries}, countsOf(t, f), "what is open waits for no delivery")

	r.memory.answer = nil
	f.caughtUp(t.Context())
	require.Equal(t, Counts{Delivered: 4, Failed: 1 + mostTries}, countsOf(t, f))
}
