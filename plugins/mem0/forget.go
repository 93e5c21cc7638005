package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// forget deletes memories of the scope one by one. A memory is identified by the labels of the event whose add produced
// it.
//
// Errors: those of failure; isolation_breach.
func forget(b *backend, r *abi.ForgetRequest) (*abi.ForgetReceipt, error) {
	route := b.route("delete")
	out := &abi.ForgetReceipt{Status: abi.ForgetDone, Removed: map[string][]string{"memory": {}},
		DerivedMayRemain: []string{"history: mem0 keeps the texts of deleted memories, readable by memory id",
			"message buffer: mem0 keeps the scope's last 10 messages, and shows them to its extractor"},
		Trace: &abi.Trace{BackendName: b.config.Provider, NativeOperation: route}}
	if b.platform() {
		out.DerivedMayRemain = []string{"history: how long the platform keeps the texts of deleted memories is not documented"}
	}
	rows, whole, err := b.coveredMemories(r)
	if err != nil {
		return nil, err
	}
	for _, m := range rows {
		if b.Remaining() < 2000 {
			out.Status = abi.ForgetInProgress
			break
		}
		_, err := b.send(request{route: route, params: memoryParam(m.id)})
		if err != nil && abi.CodeOf(err) != abi.CodeNotFound {
			return nil, err
		}
		out.Removed["memory"] = append(out.Removed["memory"], m.id)
	}
	if !whole && out.Status == abi.ForgetDone {
		out.Status = abi.ForgetPartial
		out.DerivedMayRemain = append(out.DerivedMayRemain, "memories that mem0 did not list: it lists at most "+
			sdk.Itoa(listMax)+" of a scope, and its index may miss rows; ask again")
	}
	out.Trace.NativeIDs = out.Removed["memory"]
	return out, nil
}

// coveredMemories lists the memories that a request covers. whole: all of them are listed.
func (b *backend) coveredMemories(r *abi.ForgetRequest) (rows []*memory, whole bool, err error) {
	for _, id := range r.NativeIDs {
		m, err := b.ownMemory(id)
		switch {
		case abi.CodeOf(err) == abi.CodeNotFound:
		case err != nil:
			return nil, false, err
		default:
			rows = append(rows, m)
		}
	}
	whole = true
	for _, id := range r.EventIDs {
		found, err := b.findRows(id)
		if err != nil {
			return nil, false, err
		}
		rows, whole = append(rows, found.rows...), whole && found.complete
	}
	if r.SessionID == "" && r.From == "" {
		return rows, whole, nil
	}
	all, whole, err := b.all()
	for _, m := range all {
		if sdk.Forgets(r, m.label(keySession), m.label(keyTime)) {
			rows = append(rows, m)
		}
	}
	return rows, whole, err
}

// all lists the scope's memories, as far as mem0 lists them. whole: these are all.
func (b *backend) all() (rows []*memory, whole bool, err error) {
	switch {
	case b.platform():
		for page := int64(1); page <= inventoryPages; page++ {
			more, count, err := b.listPlatform(page, pageMax)
			rows = append(rows, more...)
			if err != nil || len(more) == 0 || int64(len(rows)) >= count {
				return rows, int64(len(rows)) >= count, err
			}
		}
		return rows, false, nil
	case b.surface.gateway:
		rows, err = b.listFiltered(gatewayMax)
		return rows, len(rows) < gatewayMax, err
	}
	rows, err = b.list(listMax)
	return rows, len(rows) < listMax, err
}
