package main

import (
	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// probeWorkspace is asked where no scope is meant. It is never made: Honcho answers zeros for a workspace that it does not know.
const probeWorkspace = "mh-health-probe"

// health asks whether the process runs, and by a queue status whether database and key work: GET /health touches neither.
//
// Errors: unauthenticated where Honcho refuses the key.
//
// What it cannot see: a deriver that is not running, an LLM or an embedding provider that fails (probe_embeddings asks for the latter).
func health(c *sdk.Call, _ *abi.Empty) (*abi.BackendHealth, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	h := &abi.BackendHealth{Status: abi.HealthOK, BackendName: s.config.Provider, ConsistencyModel: "async_derived",
		NativeMemoryTypes: []string{"message", "conclusion: explicit", "conclusion: deductive", "conclusion: inductive", "conclusion: contradiction", "summary", "peer_card"},
		NativeIngestModes: []string{"messages"}, NativeQueryModes: queryNames(), Isolation: "hard", PetObservability: "partial"}
	workspace := probeWorkspace
	if s.fixed != "" {
		workspace, h.Isolation = s.fixed, "filtered"
		h.Warnings = append(h.Warnings, "fixed_workspace: scopes share a workspace and are kept apart by the ids of peers and sessions only; a reset leaves the peers")
	}
	h.Warnings = append(h.Warnings, "pet_partial: Honcho shows when a conclusion was derived, its level and its session; not which messages it came from, not its validity, "+
		"and of explicit facts not what superseded them: near duplicates are replaced under a new id, exact ones only counted")
	down := func(code string, err error) *abi.BackendHealth {
		h.Status = abi.HealthUnavailable
		h.Warnings = append(h.Warnings, code+": "+abi.AsError(err).Message)
		return h
	}
	if _, err := s.send(c, request{route: "health"}); err != nil {
		return down("backend_down", err), nil
	}
	if _, err := s.queueStatus(c, workspace, ""); err != nil {
		if abi.CodeOf(err) == abi.CodeUnauthenticated {
			return nil, err // the backend is there; the key is what must be changed
		}
		return down("database_down", err), nil
	}
	if s.version == "" {
		s.version = s.readVersion(c)
	}
	h.BackendVersion = s.version
	if s.probeEmbeddings {
		if err := s.probe(c, workspace); err != nil {
			h.Status = abi.HealthDegraded
			h.Warnings = append(h.Warnings, "embeddings_down: "+abi.AsError(err).Message)
		}
	}
	return h, nil
}

// readVersion reads info.version of the server's own description, 100 KB, once for an instance. A server that hides it has none.
func (s *settings) readVersion(c *sdk.Call) (version string) {
	answer, err := s.send(c, request{route: "openapi"})
	if err != nil {
		return ""
	}
	_ = eachField(jsontext.DecodeBytes(answer.body), func(d *jsontext.Decoder, key string) error {
		if key != "info" || d.Next() != jsontext.Object {
			return d.Skip()
		}
		return eachField(d, func(d *jsontext.Decoder, key string) error {
			if key != "version" || d.Next() != jsontext.String {
				return d.Skip()
			}
			return readText(d, &version)
		})
	})
	return version
}

// probe makes Honcho embed a query. Session context hides an outage of the embedding provider behind recency; this route does not.
func (s *settings) probe(c *sdk.Call, workspace string) error {
	_, err := s.send(c, request{route: "conclusions_query", workspace: workspace,
		body: []byte(`{"query":"health","top_k":1,"filters":{"observer_id":"mh-health-probe","observed_id":"mh-health-probe"}}`)})
	return err
}
