package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// setupScope looks what the server is and proves that its store answers. Nothing needs to be created for a scope, but the first touch of a fresh server
// creates its table, and parallel first writes race for it: the look makes it.
func setupScope(c *sdk.Call, _ *abi.Empty) (*abi.SetupReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	s.surface = nil // another server may stand there now
	b, err := open(c)
	if err == nil {
		err = b.offered()
	}
	if err != nil {
		return nil, err
	}
	r := &abi.SetupReceipt{Ready: true, NativeScope: map[string]string{"user_id": b.ids.user, "run_id": b.ids.run},
		Trace: &abi.Trace{BackendName: s.config.Provider, Details: abi.Members[abi.Raw]{{Name: "api", Value: sdk.Text(b.surface.api)}}}}
	if b.platform() {
		err = b.setupPlatform(r)
	} else {
		err = b.setupOSS(r)
	}
	if err != nil {
		return nil, err
	}
	for _, detail := range b.surface.details {
		r.Trace.Details.Set(detail.Name, sdk.Text(detail.Value))
	}
	if c.ReadOnly {
		return r, nil
	}
	return r, b.surface.keep(c)
}

func (b *backend) setupOSS(r *abi.SetupReceipt) error {
	r.Trace.NativeOperation = "GET /memories"
	if err := b.lookAtStore(); err != nil {
		if code := abi.CodeOf(err); code != abi.CodeDenied && code != abi.CodeNotFound {
			return err
		}
		r.Warnings = append(r.Warnings, "store_unknown: mem0 does not tell its vector store: "+abi.AsError(err).Message)
	}
	if b.surface.store == "pgvector" && !b.exact() {
		r.Warnings = append(r.Warnings, "approximate_search: pgvector filters behind its hnsw index, so that a small scope in a large table can be missed; "+
			"set hnsw: false, or hnsw.iterative_scan in PostgreSQL")
	}
	rows, err := b.list(1)
	r.Existed = sdk.Ptr(len(rows) > 0)
	return err
}

func (b *backend) setupPlatform(r *abi.SetupReceipt) error {
	r.Trace.NativeOperation = "POST /v3/memories/"
	if b.settings.sendAgentID {
		r.Warnings = append(r.Warnings, "agent_id_not_sent: the platform splits the memories of a turn by speaker when user_id and agent_id are both sent")
	}
	if _, err := b.send(request{route: "platform_ping"}); err != nil {
		return err
	}
	rows, _, err := b.listPlatform(1, 1, [2]string{})
	r.Existed = sdk.Ptr(len(rows) > 0)
	return err
}
