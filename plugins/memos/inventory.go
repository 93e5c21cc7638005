package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// inventorySize and inventoryPages bound what an inventory lists.
const inventorySize, inventoryPages = 100, 100

// inventory lists the cube's memories, including archived ones, and counts them by native type. MemOS lists a memory
// that feedback wrote twice under one id, once as WorkingMemory; it counts once, under the other type.
func inventory(b *backend, _ *abi.Empty) (*abi.Inventory, error) {
	out := &abi.Inventory{Kinds: []abi.InventoryKind{}, Complete: true, Quiescent: true,
		Trace: b.trace("POST /product/get_memory")}
	seen := map[string]version{} // by id
	for page, more := int64(1), true; more; page++ {
		if page > inventoryPages {
			out.Complete = false
			break
		}
		groups, a, err := b.list(listing{cube: b.cube, page: page, size: inventorySize})
		if err != nil {
			return nil, err
		}
		more = false
		for _, g := range groups {
			more = more || g.total > page*inventorySize && len(g.items) > 0
			for _, m := range g.items {
				out.Quiescent = out.Quiescent && (!b.async() || !m.raw())
				twin, isTwin := seen[m.id]
				if !isTwin || m.kind != workingMemory && twin.kind == workingMemory {
					seen[strings.Clone(m.id)] = m.asVersion()
				}
			}
		}
		b.Reuse(a.body)
	}
	kinds := map[string][]string{}
	for id, v := range seen {
		kinds[v.kind] = append(kinds[v.kind], id+" "+v.text)
	}
	for _, kind := range abi.SortedKeys(kinds) {
		versions := kinds[kind]
		slices.Sort(versions)
		var digest sdk.Digest
		for _, v := range versions {
			digest.Add(v + "\n")
		}
		out.Kinds = append(out.Kinds, abi.InventoryKind{Kind: kind, Count: int64(len(versions)), Digest: digest.Hex()})
	}
	return out, nil
}

const workingMemory = "WorkingMemory"

// version returns what an inventory keeps of a memory, as a copy, so that the page's memory can be freed.
type version struct{ kind, text string }

func (m *item) asVersion() version {
	return version{strings.Clone(m.kind), sdk.Itoa(int64(m.version)) + " " + m.status + " " + m.updatedAt}
}
