package host

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/wall"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/base/gate"
)

// Slot is a memory slot: the contract, with exactly one provider behind it at any time.
type Slot struct {
	host    *Host
	current atomic.Pointer[servingProvider]
	swapMu  sync.Mutex // one swap at a time
	loads   int64
	wall    *wall.Wall
	// settingMode is held by the SetMode that is running.
	settingMode sync.Mutex
	drains      sync.WaitGroup
	// secrets are those of the configuration that this host loaded last; keeping runs keepServing.
	secrets map[string]Secret
	keeping backgroundWork
	// gate is closed while a follower replaces the serving provider (follower.go).
	gate gate.Gate
	// lastCall is the start of the last operation, in ns since 1970: followers give way to callers.
	lastCall atomic.Int64

	// followers receive what is recorded; nil for the slot of a trial or a follower. following is set in the slot of a
	// follower; nil for any other.
	followers *followers
	following *followerUse
}

// newSlot creates a slot with followers, but without a provider and a wall.
func (h *Host) newSlot() *Slot {
	s := &Slot{host: h}
	s.followers = &followers{slot: s}
	return s
}

var _ Contract = (*Slot)(nil)

// servingProvider is a provider that serves, with what was found out while loading it.
type servingProvider struct {
	provider     *Provider
	capabilities report.Capabilities
	manifest     report.RunManifest
}

// followerUse marks the slot of a follower, whose operations must not be reported as an agent's.
type followerUse struct {
	origin string
	// cause is the traceparent header of the request that started it; "" if there is none.
	cause string
	// stateWrites counts the bytes that its operations have written and not committed, separately from the host's.
	stateWrites atomic.Int64
}

// Observation describes one finished operation, for metrics.
type Observation struct {
	Provider, Operation string
	// Origin is what the caller set with WithOrigin; otherwise empty.
	Origin string
	// Code is empty on success.
	Code                     abi.Code
	Latency, Backend, Plugin time.Duration
	IO                       []abi.IO
	// Skipped counts the events or other changes that were skipped because the session is a test session, or the slot
	// or scope is read-only.
	Skipped int
}

// take returns the serving provider, which stays open until the caller calls release.
func (s *Slot) take(op string) (*servingProvider, error) {
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

// manifestChanged calls OnManifest.
func (s *Slot) manifestChanged(context.Context) {
	if tell := s.host.options.OnManifest; tell != nil {
		tell()
	}
}
