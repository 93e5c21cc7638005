package main

import (
	"github.com/memhost/memhost/abi/wirejson"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// resetScope deletes the bank of the scope's generation, with its operations; the host starts the next generation, which
// has another bank. A bank that is not there has been deleted already, and Hindsight answers 0.
func resetScope(c *sdk.Call, _ *abi.Empty) (*abi.ResetReceipt, error) {
	answer, err := ask(c, request{route: "bank_delete"})
	if err != nil {
		return nil, err
	}
	deleted := int64(-1)
	err = fields(answer, map[string]func(*wirejson.Decoder) error{
		"deleted_count": func(d *wirejson.Decoder) (err error) { deleted, err = d.Int64(); return err }})
	if err != nil || deleted < 0 {
		return nil, unusable("bank_delete", answer)
	}
	return &abi.ResetReceipt{Status: abi.ResetDone, Removed: map[string]*int64{"memory, entity or document": sdk.Ptr(deleted)}}, nil
}
