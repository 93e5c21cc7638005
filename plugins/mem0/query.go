package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
)

// nativeQuery makes one call for each of the two diagnostics that the adapters' design names:
//
//	count                    {count, complete}: how many memories the scope has; at least so many if not complete
//	history  {memory_id}     what happened to one memory, as mem0 tells it
//
// Errors: invalid_argument for params; not_found for an id that is not of this scope; unsupported for another name.
func nativeQuery(b *backend, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	out := &abi.NativeQueryResult{Name: r.Name, Trace: &abi.Trace{BackendName: b.config.Provider}}
	var err error
	switch params := abi.Raw(wire.FromMap(r.Params).JSON()); r.Name {
	case "count":
		if err = only(params); err != nil {
			return nil, err
		}
		out.Result, out.Trace.NativeOperation, err = b.countMemories()
	case "history":
		id := ""
		if err = only(params, "memory_id"); err == nil {
			err = wire.Read(params, "memory_id", &id)
		}
		if err != nil || id == "" {
			return nil, wrong("memory_id: missing, empty or no text")
		}
		if _, err = b.owned(id); err != nil {
			return nil, err
		}
		out.Trace.NativeOperation, out.Trace.NativeIDs = b.route("history"), []string{id}
		out.Result, err = b.send(request{route: b.route("history"), params: memoryParam(id)})
		if err == nil && wire.Check(out.Result) != nil {
			err = unusable(b.route("history"), out.Result, "it is no JSON")
		}
	default:
		err = abi.NewError(abi.CodeUnsupported, "name: mem0 has no native query "+r.Name).
			WithHint("there are count and history")
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// countMemories counts by one listing: the platform says how many there are, the self-hosted server lists 1000 at most.
func (b *backend) countMemories() (result abi.Raw, operation string, err error) {
	var rows []*memory
	var count int64
	complete := true
	switch {
	case b.platform():
		operation = "POST /v3/memories/"
		_, count, err = b.listPlatform(1, 1)
	case b.surface.gateway:
		operation = "POST /memories/list"
		rows, err = b.listFiltered(gatewayMax)
		count, complete = int64(len(rows)), len(rows) < gatewayMax
	default:
		operation = "GET /memories"
		rows, err = b.list(listMax)
		count, complete = int64(len(rows)), len(rows) < listMax
	}
	return wire.Object{"count", count, "complete", complete}.JSON(), operation, err
}
