package host

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/wall"
	"github.com/memhost/memhost/internal/base/gate"
)

// Slot is a memory slot: the contract, with exactly one provider behind it at any time.
type Slot struct {
	host    *Host
	current atomic.Pointer[serving]
	swapMu  sync.Mutex // one swap at a time
	loads   int64
	wall    *wall.Wall
	// settingMode is held by the one SetMode that runs.
	settingMode sync.Mutex
	drains      sync.WaitGroup
	// secrets are those of the configuration that this host loaded last; keeping is the work of keepServing.
	secrets map[string]Secret
	keeping backgroundWork
	// gate is closed while a follower takes the provider's place (follower.go).
	gate gate.Gate
	// lastCall is when the last operation began, in ns since 1970: followers give way to callers.
	lastCall atomic.Int64

	// followers get what is recorded; nil for the slot of a trial or a follower. following says what the slot of a follower
	// is for; nil for any other.
	followers *followers
	following *followerUse
}

// newSlot makes a slot without a provider and without a wall, which has followers.
func (h *Host) newSlot() *Slot {
	s := &Slot{host: h}
	s.followers = &followers{slot: s}
	return s
}

var _ Contract = (*Slot)(nil)

// serving is a provider that serves, with what its loading found out.
type serving struct {
	provider     *Provider
	capabilities abi.Capabilities
	manifest     abi.RunManifest
}

// followerUse makes a slot that of a follower: nothing that it does is said to be an agent's.
type followerUse struct {
	origin string
	// cause is the header traceparent of the request that began it; "" for none.
	cause string
	// stateWrites is what its operations have written and not committed, in bytes: its own room, not the host's.
	stateWrites atomic.Int64
}

// Observation is one operation as the host saw it: for metrics.
type Observation struct {
	Provider, Operation string
	// Origin is what WithOrigin said of a read or a question; empty where nobody did.
	Origin string
	// Code is empty for success.
	Code                     abi.Code
	Latency, Backend, Plugin time.Duration
	IO                       []abi.IO
	// Skipped is how many events or other changes it left out because it is a test session, or the slot or scope is
	// read-only.
	Skipped int
}

// take takes the serving provider. The caller gives it back by release; it is not closed before.
func (s *Slot) take(op string) (*serving, error) {
	for {
		v := s.current.Load()
		if v == nil {
			e := abi.NewError(abi.CodeUnavailable, "the slot is closed").WithReason("closed")
			e.Operation = op
			return nil, e
		}
		if v.provider.hold() {
			return v, nil
		}
	}
}

// manifestChanged tells OnManifest.
func (s *Slot) manifestChanged(context.Context) {
	if tell := s.host.options.OnManifest; tell != nil {
		tell()
	}
}
