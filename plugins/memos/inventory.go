package main

import (
	"slices"
	"strconv"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// inventorySize and inventoryPages bound what an inventory lists.
const inventorySize, inventoryPages = 100, 100

// inventory lists the cube, archived memories too, and counts by native type. A memory that feedback wrote is there twice under one id and counts once.
func inventory(c *sdk.Call, _ *abi.Empty) (*abi.Inventory, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	out := &abi.Inventory{Kinds: []abi.InventoryKind{}, Complete: true, Quiescent: true, Trace: s.trace("POST /product/get_memory")}
	kinds := map[string][]string{} // native type to "id version" of each memory
	of := map[string]string{}      // id to the type under which it counts
	for page, more := int64(1), true; more; page++ {
		if page > inventoryPages {
			out.Complete = false
			break
		}
		var groups []group
		if groups, _, err = s.list(c, listing{cube: s.cubeOf(c), page: page, size: inventorySize}); err != nil {
			return nil, err
		}
		more = false
		for i := range groups {
			more = more || groups[i].total > page*inventorySize && len(groups[i].items) > 0
			for j := range groups[i].items {
				m := &groups[i].items[j]
				out.Quiescent = out.Quiescent && (!s.async() || !m.raw())
				count(kinds, of, m)
			}
		}
	}
	names := make([]string, 0, len(kinds))
	for kind := range kinds {
		names = append(names, kind)
	}
	slices.Sort(names)
	for _, kind := range names {
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

// count adds a memory under its type. Of twins under one id the one that is not WorkingMemory counts.
func count(kinds map[string][]string, of map[string]string, m *item) {
	version := m.id + " " + strconv.FormatInt(m.version, 10) + " " + m.status + " " + m.updatedAt
	if before, twin := of[m.id]; twin {
		if m.kind == "WorkingMemory" || before != "WorkingMemory" {
			return
		}
		kinds[before] = slices.DeleteFunc(kinds[before], func(v string) bool { return v[:min(len(v), len(m.id)+1)] == m.id+" " })
		if len(kinds[before]) == 0 {
			delete(kinds, before)
		}
	}
	of[m.id] = m.kind
	kinds[m.kind] = append(kinds[m.kind], version)
}
