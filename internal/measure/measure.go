// Package measure is how the benchmarks reach what package host offers to nobody else: its ways to stop a guest, a single entry into a guest, the start of an
// instance. Package host fills it in; nothing else is to import it but internal/bench.
package measure

import "context"

// Way is how a guest that does not return is stopped.
type Way string

// The ways: memhost's own, wazero's own, and none, which is what either could reach at best.
const (
	Metered       Way = "metered"
	ContextCheck  Way = "wazero's check"
	Uninterrupted Way = "uninterrupted"
)

// Provider is the inside of what serves in a slot.
type Provider interface {
	// Enter is one call: checkout of an instance, deadline, request in, answer out. body becomes the envelope's; the answer is read and not looked at.
	Enter(ctx context.Context, op string, body []byte) error
	// Start starts an instance beside the pool's and throws it away.
	Start(ctx context.Context) error
}

var (
	// Use makes a *host.Host that has loaded nothing stop its guests in another way.
	Use func(ctx context.Context, host any, way Way) error
	// Of is the provider that serves in a *host.Slot.
	Of func(slot any) Provider
)
