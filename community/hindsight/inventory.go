package main

import (
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// inventory counts the bank's documents and the memories drawn from them, with a digest over the documents: equal
// inventories before and after prove that nothing was written between.
func inventory(c *sdk.Call, _ *abi.Empty) (*abi.Inventory, error) {
	busy, err := waiting(c)
	if err != nil {
		return nil, err
	}
	var lines []string
	units := int64(0)
	whole, err := eachDocument(c, func(one document) {
		units += one.units
		lines = append(lines, one.id+" "+one.hash+" "+sdk.Itoa(one.units)+"\n")
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(lines)
	var digest sdk.Digest
	for _, line := range lines {
		digest.Add(line)
	}
	return &abi.Inventory{Kinds: []abi.InventoryKind{{Kind: "document", Count: int64(len(lines)), Digest: digest.Hex()},
		{Kind: "memory", Count: units}}, Complete: whole, Quiescent: !busy}, nil
}
