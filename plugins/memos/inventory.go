package main

import (
	"slices"
	"strings"

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
	kinds := map[string]*ofKind{}
	of := map[string]*ofKind{} // id to the type under which it counts
	for page, more := int64(1), true; more; page++ {
		if page > inventoryPages {
			out.Complete = false
			break
		}
		groups, _, err := s.list(c, listing{cube: s.cubeOf(c), page: page, size: inventorySize})
		if err != nil {
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
		versions := kinds[kind].versions
		slices.Sort(versions)
		var digest sdk.Digest
		for _, v := range versions {
			digest.Add(v)
			digest.Add("\n")
		}
		out.Kinds = append(out.Kinds, abi.InventoryKind{Kind: kind, Count: int64(len(versions)), Digest: digest.Hex()})
	}
	return out, nil
}

// ofKind is what an inventory keeps of the memories of a native type. Nothing in it refers to the page that they came in.
type ofKind struct {
	name     string
	versions []string // each begins with the memory's id and a blank
}

// count adds a memory under its type. Of twins under one id the one that is not WorkingMemory counts.
func count(kinds, of map[string]*ofKind, m *item) {
	version := m.id + " " + sdk.Itoa(m.version) + " " + m.status + " " + m.updatedAt
	if before, twin := of[m.id]; twin {
		if m.kind == "WorkingMemory" || before.name != "WorkingMemory" {
			return
		}
		begin := version[:len(m.id)+1]
		before.versions = slices.DeleteFunc(before.versions, func(v string) bool { return v[:min(len(v), len(begin))] == begin })
		if len(before.versions) == 0 {
			delete(kinds, before.name)
		}
	}
	kind := kinds[m.kind]
	if kind == nil {
		kind = &ofKind{name: strings.Clone(m.kind)}
		kinds[kind.name] = kind
	}
	of[version[:len(m.id)]] = kind
	kind.versions = append(kind.versions, version)
}
