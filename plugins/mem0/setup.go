package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// setupScope determines what the server is and checks that its store answers. Nothing needs to be created for a scope,
// but the first access to a new server creates its table, and parallel first writes race for it, so this access creates
// it.
func setupScope(b *backend, _ *abi.Empty) (*abi.SetupReceipt, error) {
	r := &abi.SetupReceipt{Ready: true, NativeScope: map[string]string{"user_id": b.ids.user, "run_id": b.ids.run},
		Trace: &abi.Trace{BackendName: b.config.Provider}}
	setup := b.setupOSS
	if b.platform() {
		setup = b.setupPlatform
	}
	rows, err := setup(r)
	if err != nil {
		return nil, err
	}
	r.Existed = sdk.Ptr(len(rows) > 0)
	r.Trace.Details = append(wire.Object{"api", b.surface.api}, b.surface.details...).Map()
	if b.ReadOnly {
		return r, nil
	}
	return r, b.surface.save(b.Call)
}

// setupOSS returns a memory of the scope, if there is one.
func (b *backend) setupOSS(r *abi.SetupReceipt) ([]*memory, error) {
	r.Trace.NativeOperation = "GET /memories"
	if err := b.detectStore(); err != nil {
		if code := abi.CodeOf(err); code != abi.CodeDenied && code != abi.CodeNotFound {
			return nil, err
		}
		r.Warnings = append(r.Warnings, "store_unknown: mem0 does not tell its vector store: "+abi.AsError(err).Message)
	}
	if b.surface.store == "pgvector" && !b.exact() {
		r.Warnings = append(r.Warnings, "approximate_search: pgvector filters behind its hnsw index, so that a small "+
			"scope in a large table can be missed; set hnsw: false, or hnsw.iterative_scan in PostgreSQL")
	}
	return b.list(1)
}

// setupPlatform returns a memory of the scope, if there is one.
func (b *backend) setupPlatform(r *abi.SetupReceipt) ([]*memory, error) {
	r.Trace.NativeOperation = "POST /v3/memories/"
	if b.sendAgentID {
		r.Warnings = append(r.Warnings, "agent_id_not_sent: the platform splits the memories of a turn by speaker "+
			"when user_id and agent_id are both sent")
	}
	if _, err := b.send(request{route: "platform_ping"}); err != nil {
		return nil, err
	}
	rows, _, err := b.listPlatform(1, 1)
	return rows, err
}
