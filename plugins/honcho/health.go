package main

import (
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
)

// probeWorkspace is queried when there is no scope. It is never created: Honcho returns zeros for an unknown workspace.
const probeWorkspace = "mh-health-probe"

// health checks whether the process runs and, by a queue status, whether database and key work: GET /health checks
// neither.
//
// Errors: unauthenticated if Honcho rejects the key. It cannot detect a deriver that is not running, or an LLM or
// embedding provider that fails (probe_embeddings checks the latter).
func health(b *backend, _ *abi.Empty) (*abi.BackendHealth, error) {
	h := &abi.BackendHealth{Status: abi.HealthOK, BackendName: b.config.Provider, ConsistencyModel: "async_derived",
		NativeMemoryTypes: []string{"message", "conclusion: explicit", "conclusion: deductive", "conclusion: inductive",
			"conclusion: contradiction", "summary", "peer_card"},
		NativeIngestModes: []string{"messages"}, NativeQueryModes: []string{readContext, readSearch, readChat}, Isolation: "hard",
		PetObservability: "weak"}
	workspace := probeWorkspace
	if b.shared() {
		h.Isolation = "filtered"
		if b.fixed != "" {
			workspace = b.fixed
		}
		h.Warnings = append(h.Warnings, sharedWorkspace)
	}
	switch {
	case slices.Contains(b.supplements, "conclusions"):
		h.PetObservability = "partial"
		h.Warnings = append(h.Warnings, "pet_partial: of a conclusion Honcho shows when it was derived, its level and its "+
			"session; not which messages it came from, not its validity, and of explicit facts not what superseded them: "+
			"near duplicates are replaced under a new id, exact ones only counted")
	default:
		h.Warnings = append(h.Warnings, "pet_weak: a retrieval shows no version and no time of derivation; the "+
			"supplement conclusions shows when each was derived")
	}
	failed := func(status abi.HealthStatus, code string, err error) {
		h.Status, h.Warnings = status, append(h.Warnings, code+": "+abi.AsError(err).Message)
	}
	if _, err := b.send(request{route: "health", noWorkspace: true}); err != nil {
		failed(abi.HealthUnavailable, "backend_down", err)
		return h, nil
	}
	_, err := b.queueStatus(workspace, "", "")
	switch {
	case abi.CodeOf(err) == abi.CodeUnauthenticated:
		return nil, err // the backend is up; the key has to be changed
	case err != nil:
		failed(abi.HealthUnavailable, "database_down", err)
		return h, nil
	}
	if b.version == "" {
		b.version = b.readVersion()
	}
	h.BackendVersion = b.version
	if b.probeEmbeddings {
		// Session context returns recent messages even if the embedding provider is down, which hides the outage; this
		// route does not.
		about := wire.Object{"observer_id", probeWorkspace, "observed_id", probeWorkspace}
		_, err := b.send(request{route: "conclusions_query", workspace: workspace,
			body: wire.Object{"query", "health", "top_k", 1, "filters", about}.JSON()})
		if err != nil {
			failed(abi.HealthDegraded, "embeddings_down", err)
		}
	}
	return h, nil
}

// readVersion reads info.version of the server's OpenAPI document, 100 KB, once per instance. If the server hides it,
// the version is empty.
func (b *backend) readVersion() string {
	answer, err := b.send(request{route: "openapi", noWorkspace: true})
	if err != nil {
		return ""
	}
	return wire.Text(wire.At(answer.body, "info", "version"))
}
