package host

import (
	"context"
	"fmt"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/measure"
	"github.com/tetratelabs/wazero"
)

func init() { measure.Use, measure.Of = useWay, providerOf }

// neverInterrupt is the baseline of every way to stop a guest: none.
type neverInterrupt struct{ contextCheck }

func (neverInterrupt) name() string                                          { return "wazero, never interrupted" }
func (neverInterrupt) configure(c wazero.RuntimeConfig) wazero.RuntimeConfig { return c }

// useWay opens the engine of a host again, with another way of interruption.
func useWay(ctx context.Context, host any, way measure.Way) error {
	h, ok := host.(*Host)
	if !ok {
		return fmt.Errorf("measure: %T is no host", host)
	}
	ways := map[measure.Way]interruption{measure.Metered: metered{keepRewritten(h.options.CacheDir)}, measure.ContextCheck: contextCheck{}, measure.Uninterrupted: neverInterrupt{}}
	if ways[way] == nil {
		return fmt.Errorf("measure: no way to stop a guest is called %q", way)
	}
	if err := h.engine.runtime.Close(ctx); err != nil {
		return err
	}
	if err := h.cache.Close(ctx); err != nil {
		return err
	}
	return h.openEngine(ctx, ways[way])
}

// measured is the inside of a provider for benchmarks.
type measured struct{ provider *Provider }

var _ measure.Provider = measured{}

func providerOf(slot any) measure.Provider {
	s, ok := slot.(*Slot)
	if !ok {
		return nil
	}
	return measured{s.current.Load().provider}
}

func (m measured) Enter(ctx context.Context, op string, body []byte) error {
	c := &call{op: op}
	return m.provider.enter(ctx, c, &abi.Envelope{Op: op, Body: body}, new(abi.Empty))
}

func (m measured) Start(ctx context.Context) error {
	pool := m.provider.pool
	pool.seats <- struct{}{}
	in, err := pool.instantiate(ctx)
	if err != nil {
		<-pool.seats
		return err
	}
	pool.give(in, true)
	return nil
}
