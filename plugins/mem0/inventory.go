package main

import (
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// inventoryPages is the maximum number of the platform's pages that one inventory reads.
const inventoryPages = 20

// inventory counts the scope's memories and hashes their ids with their times of change. The self-hosted server lists
// at most 1000 rows, the gateway as many as requested.
func inventory(b *backend, _ *abi.Empty) (*abi.Inventory, error) {
	out := &abi.Inventory{Quiescent: true, Trace: &abi.Trace{BackendName: b.config.Provider,
		NativeOperation: "GET /memories"}}
	var rows []*memory
	var versions []string
	var count int64
	var err error
	switch {
	case b.platform():
		out.Trace.NativeOperation = "POST /v3/memories/"
		if versions, count, err = b.allPages(); err == nil {
			out.Complete = count <= int64(len(versions))
			err = b.checkJobs(out)
		}
	case b.surface.gateway:
		rows, err = b.listFiltered(gatewayMax)
		out.Complete = len(rows) < gatewayMax
	default:
		rows, err = b.list(listMax)
		out.Complete = len(rows) < listMax
	}
	if err != nil {
		return nil, err
	}
	versions = addVersions(versions, rows)
	slices.Sort(versions)
	var digest sdk.Digest
	for _, v := range versions {
		digest.Add(v)
	}
	out.Kinds = []abi.InventoryKind{{Kind: "memory", Count: max(count, int64(len(versions))), Digest: digest.Hex()}}
	if !out.Complete {
		out.Trace.Warnings = append(out.Trace.Warnings, "inventory_cut: there are more memories than were listed")
	}
	return out, nil
}

// allPages returns the version of every listed row on the platform, and the platform's count.
func (b *backend) allPages() (versions []string, count int64, err error) {
	for page := int64(1); page <= inventoryPages; page++ {
		rows, total, body, err := b.rows(b.platformPage(page, pageMax))
		if err != nil {
			return nil, 0, err
		}
		versions, count = addVersions(versions, rows), total
		if len(rows) == 0 || int64(len(versions)) >= count {
			break
		}
		b.Reuse(body)
	}
	return versions, count, nil
}

// checkJobs reports whether a job of the scope is in progress.
func (b *backend) checkJobs(out *abi.Inventory) error {
	busy := false
	all, err := b.eachJob(func(s *jobState) (stop bool) {
		busy = !s.succeeded() && !s.failed()
		return busy
	})
	if out.Quiescent = all && !busy; !all && !busy {
		out.Trace.Warnings = append(out.Trace.Warnings, "jobs_unseen: the platform lists more jobs than were read; "+
			"whether one of this scope is under way is not known")
	}
	return err
}

// addVersions adds each row's version, as a copy.
func addVersions(versions []string, rows []*memory) []string {
	for _, m := range rows {
		versions = append(versions, m.id+" "+m.update+" "+sdk.Digest256(m.text)+"\n")
	}
	return versions
}

// pageQuery returns the query for a page of the platform.
func pageQuery(page, size int64) []abi.QueryParam {
	return []abi.QueryParam{{Key: "page", Value: sdk.Itoa(page)}, {Key: "page_size", Value: sdk.Itoa(size)}}
}
