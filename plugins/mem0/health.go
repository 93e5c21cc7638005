package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// health checks whether mem0 answers, and whether it accepts the key. With deep_health it also searches. mem0 does not
// report its version.
func health(c *sdk.Call, _ *abi.Empty) (*abi.BackendHealth, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	h := &abi.BackendHealth{Status: abi.HealthOK, BackendName: s.config.Provider, ConsistencyModel: "immediate",
		NativeMemoryTypes: []string{"memory"}, Isolation: "filtered", PetObservability: "partial"}
	b, err := open(c)
	if err != nil {
		return h, unavailable(h, err)
	}
	h.NativeIngestModes, h.NativeQueryModes = b.surface.ingestModes(), b.surface.queryModes()
	if err := b.checkFeatures(); err != nil {
		return h, unavailable(h, err)
	}
	calls := []string{"setup_status", "providers"}
	if b.platform() {
		h.ConsistencyModel = "async_derived"
		calls = []string{"platform_ping"}
	}
	for _, route := range calls {
		if _, err := b.ask(request{route: route}); err != nil {
			return h, unavailable(h, err)
		}
	}
	if s.deepHealth {
		if err := b.trySearch(); err != nil {
			h.Status = abi.HealthDegraded
			h.Warnings = append(h.Warnings, "search_failed: "+abi.AsError(err).Message)
		}
	}
	return h, nil
}

// unavailable returns the reason instead of an error, since health answers. A configuration error is still an error.
func unavailable(h *abi.BackendHealth, err error) error {
	e, what := abi.AsError(err), "unreachable: "
	switch e.Code {
	case abi.CodeInternal, abi.CodeInvalidArgument:
		return err
	case abi.CodeUnauthenticated, abi.CodeDenied:
		what = "credentials: "
	case abi.CodeUnsupported:
		what = "not_offered: "
	}
	if what += e.Message; e.Hint != "" {
		what += "; " + e.Hint
	}
	h.Status, h.Warnings = abi.HealthUnavailable, append(h.Warnings, what)
	return nil
}

// trySearch searches with the ids of the empty scope, in which nothing is ever stored, to check embedder and vector
// store.
func (b *backend) trySearch() error {
	_, err := b.send(request{route: b.route("search"), body: wire.Object{"query", "health", "top_k", 1,
		"filters", b.conditions(nil, "")}.JSON()})
	return err
}
