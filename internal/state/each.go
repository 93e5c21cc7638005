package state

import (
	"context"
	"errors"

	"github.com/memhost/memhost/abi"
)

// EachRecord visits the records of a table whose key begins with prefix, in ascending byte order, until visit returns
// an error. It reads page by page, and may or may not visit records that are written while it runs.
//
// Errors: those of the store, converted to the contract's, and that of visit.
func EachRecord(ctx context.Context, store Store, table Table, prefix []byte, visit func(KeyValue) error) error {
	for after := []byte(nil); ; {
		records, err := store.Records(ctx, table, prefix, after, DefaultLimit)
		if err != nil {
			return ContractError(err)
		}
		for _, r := range records {
			if err := visit(r); err != nil {
				return err
			}
			after = r.Key
		}
		if len(records) < DefaultLimit {
			return nil
		}
	}
}

// ContractError converts a store's error to the contract's; most store errors know theirs. Nil stays nil.
func ContractError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		return abi.WrapError(abi.CodeTimeout, "state: the call ended first", err)
	}
	return abi.AsError(err)
}
