package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// resetScope deletes the dataset of the scope's generation, with its graph; the host starts the next generation, which
// has another dataset. A dataset that is not there has been deleted already.
func resetScope(c *sdk.Call, _ *abi.Empty) (*abi.ResetReceipt, error) {
	dataset, err := findDataset(c)
	if err != nil {
		return nil, err
	}
	documents := int64(0)
	receipt := &abi.ResetReceipt{Status: abi.ResetDone, Removed: map[string]*int64{"document": &documents}}
	if dataset == "" {
		return receipt, nil
	}
	whole, err := eachDocument(c, dataset, func(document) { documents++ })
	if err != nil {
		return nil, err
	}
	if !whole {
		receipt.Removed["document"] = nil
	}
	_, err = ask(c, request{route: "dataset_delete", dataset: dataset})
	return receipt, err
}
