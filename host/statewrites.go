package host

import (
	"fmt"
	"sync/atomic"

	"github.com/memhost/memhost/abi"
)

// stateWritesInFlight bounds the state writes of all operations of a host that wait for their commits, in bytes. One
// operation may always hold as much as Limits.StateWriteBytes.
const stateWritesInFlight = 128 << 20

// roomForWrite reserves room for one more write of the operation.
//
// Errors: too_large when the operation would hold more than Limits.StateWriteBytes; rate_limited when all operations of
// the host would hold more than stateWritesInFlight.
func (o *operation) roomForWrite(name string, value []byte, put bool) error {
	limit, bytes := o.provider.limits.StateWriteBytes, o.state.WriteBytesWith(name, value, put)
	if bytes > limit {
		return abi.NewError(abi.CodeTooLarge,
			fmt.Sprintf("the operation would write %d bytes of state, the limit is %d", bytes, limit)).
			WithReason("state_writes").WithHint("record less at once, or raise limits.state_write_bytes")
	}
	more := bytes - o.reservedWrites
	inFlight := o.slot.stateWrites()
	if inFlight.Add(more) > max(stateWritesInFlight, limit) && more > 0 {
		inFlight.Add(-more)
		return abi.NewError(abi.CodeRateLimited, fmt.Sprintf("operations under way hold %d bytes of state writes, "+
			"and at most %d may wait for their commits", inFlight.Load(), stateWritesInFlight)).
			WithReason("state_writes_in_flight").WithHint("try again when other operations have ended")
	}
	o.reservedWrites = bytes
	return nil
}

// releaseWrites frees that room when the writes are committed or dropped.
func (o *operation) releaseWrites() {
	o.slot.stateWrites().Add(-o.reservedWrites)
	o.reservedWrites = 0
}

// stateWrites is what the slot's operations under way have written, together with those of the host's other slots; a
// follower's alone, so that it takes no room of the serving provider's.
func (s *Slot) stateWrites() *atomic.Int64 {
	if s.following != nil {
		return &s.following.stateWrites
	}
	return &s.host.stateWrites
}
