package main

import (
	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// health asks whether mem0 answers, and whether it takes the key. With deep_health it searches too. mem0 does not say its version.
func health(c *sdk.Call, _ *abi.Empty) (*abi.BackendHealth, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	h := &abi.BackendHealth{Status: abi.HealthOK, BackendName: s.config.Provider, ConsistencyModel: "immediate", NativeMemoryTypes: []string{"memory"},
		Isolation: "filtered", PetObservability: "partial"}
	if s.surface != nil && s.surface.gateway {
		s.surface = nil // it may have been configured anew
	}
	b, err := open(c)
	if err != nil {
		return h, unavailable(h, err)
	}
	h.NativeIngestModes, h.NativeQueryModes = b.surface.ingestModes(), b.surface.queryModes()
	if err := b.offered(); err != nil {
		return h, unavailable(h, err)
	}
	calls := []string{"setup_status", "providers"}
	if b.platform() {
		h.ConsistencyModel = "async_derived"
		calls = []string{"platform_ping"}
	}
	for _, route := range calls {
		body, err := b.send(request{route: route})
		if err == nil {
			err = readObject(route, body, func(d *jsontext.Decoder, _ string) error { return d.Skip() })
		}
		if err != nil {
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

// unavailable says why, in place of an error: health answers.
func unavailable(h *abi.BackendHealth, err error) error {
	e := abi.AsError(err)
	h.Status = abi.HealthUnavailable
	switch e.Code {
	case abi.CodeInternal, abi.CodeInvalidArgument:
		return err
	case abi.CodeUnauthenticated, abi.CodeDenied:
		h.Warnings = append(h.Warnings, "credentials: "+e.Message)
	case abi.CodeUnsupported:
		h.Warnings = append(h.Warnings, "not_offered: "+e.Message)
	default:
		h.Warnings = append(h.Warnings, "unreachable: "+e.Message)
	}
	if e.Hint != "" {
		h.Warnings[len(h.Warnings)-1] += "; " + e.Hint
	}
	return nil
}

// trySearch searches in the ids of the empty scope, in which nothing is ever stored: it proves embedder and vector store.
func (b *backend) trySearch() error {
	var j jsontext.Encoder
	j.ObjStart()
	j.FieldStart("query")
	j.Str("health")
	j.FieldStart("top_k")
	j.Int(1)
	j.FieldStart("filters")
	b.writeFilters(&j, nil, "")
	j.ObjEnd()
	_, err := b.send(request{route: b.searchRoute(), body: j.Bytes()})
	return err
}
