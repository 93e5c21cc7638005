package main

import (
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// inventory counts the dataset's documents, with a digest over them and whether each is processed: equal inventories
// before and after prove that nothing was written between.
func inventory(c *sdk.Call, _ *abi.Empty) (*abi.Inventory, error) {
	var lines []string
	whole, status := true, ""
	dataset, err := datasetOf(c)
	if err != nil {
		return nil, err
	}
	if dataset != "" {
		if status, err = statusOf(c, dataset); err != nil {
			return nil, err
		}
		completed, err := completeDocuments(c, dataset)
		if err != nil {
			return nil, err
		}
		whole, err = eachDocument(c, dataset, func(one document) {
			state := " waits\n"
			if completed[one.name] {
				state = " completed\n"
			}
			lines = append(lines, one.id+" "+one.location+state)
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(lines)
	var digest sdk.Digest
	for _, line := range lines {
		digest.Add(line)
	}
	return &abi.Inventory{Kinds: []abi.InventoryKind{{Kind: "document", Count: int64(len(lines)), Digest: digest.Hex()}},
		Complete: whole, Quiescent: status != runStarted}, nil
}
