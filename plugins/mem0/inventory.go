package main

import (
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// inventoryPages is how many pages of the platform one inventory reads.
const inventoryPages = 20

// inventory counts the scope's memories and hashes their ids with their times of change. The self-hosted server lists 1000 rows and no more, the gateway what it is asked for.
func inventory(c *sdk.Call, _ *abi.Empty) (*abi.Inventory, error) {
	b, err := open(c)
	if err != nil {
		return nil, err
	}
	versions, count, err := b.all()
	if err != nil {
		return nil, err
	}
	slices.Sort(versions)
	var digest sdk.Digest
	for _, v := range versions {
		digest.Add(v)
	}
	out := &abi.Inventory{Kinds: []abi.InventoryKind{{Kind: "memory", Count: max(count, int64(len(versions))), Digest: digest.Hex()}}, Quiescent: !b.platform(),
		Trace: &abi.Trace{BackendName: b.settings.config.Provider, NativeOperation: "GET /memories"}}
	out.Complete = len(versions) < b.most()
	busy := false
	if b.platform() {
		out.Trace.NativeOperation = "POST /v3/memories/"
		out.Complete = count <= int64(len(versions))
		out.Quiescent, err = b.eachJob(func(s *jobState) (stop bool) {
			busy = busy || !s.succeeded() && !s.failed()
			return busy
		})
		if err != nil {
			return nil, err
		}
		if out.Quiescent = out.Quiescent && !busy; !out.Quiescent && !busy {
			out.Trace.Warnings = append(out.Trace.Warnings, "jobs_unseen: the platform lists more jobs than were read; whether one of this scope is under way is not known")
		}
	}
	if !out.Complete {
		out.Trace.Warnings = append(out.Trace.Warnings, "inventory_cut: there are more memories than were listed")
	}
	return out, nil
}

// most is how many rows all can tell of on a self-hosted server.
func (b *backend) most() int {
	if b.surface.gateway {
		return gatewayMax
	}
	return listMax
}

// all is the version of every row of the scope, as far as it can be listed, and the platform's count.
func (b *backend) all() (versions []string, count int64, err error) {
	var rows []*memory
	switch {
	case b.surface.gateway:
		rows, err = b.listFiltered(nil, gatewayMax)
		return addVersions(nil, rows), 0, err
	case !b.platform():
		rows, err = b.list(listMax)
		return addVersions(nil, rows), 0, err
	}
	for page := int64(1); page <= inventoryPages; page++ {
		body, err := b.platformPage(page, pageMax, [2]string{})
		if err != nil {
			return nil, 0, err
		}
		if rows, count, err = b.readResults("platform_list", body); err != nil {
			return nil, 0, err
		}
		versions = addVersions(versions, rows)
		if len(rows) == 0 || int64(len(versions)) >= count {
			break
		}
		b.Reuse(body)
	}
	return versions, count, nil
}

// addVersions adds what tells each row's version. It refers to no row.
func addVersions(versions []string, rows []*memory) []string {
	for _, m := range rows {
		versions = append(versions, m.id+" "+m.update+" "+sdk.Digest256(m.text)+"\n")
	}
	return versions
}

// pageQuery asks the platform for a page.
func pageQuery(page, size int64) []abi.QueryParam {
	return []abi.QueryParam{{Key: "page", Value: string(sdk.Number(page))}, {Key: "page_size", Value: string(sdk.Number(size))}}
}
