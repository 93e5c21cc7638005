package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// resetScope removes the generation's cube: it marks all nodes with a record id, then removes those with it. It checks
// the result itself, because the server reports success and failure regardless of what it did. The next generation is
// another cube, so what a late background task writes is never read.
func resetScope(b *backend, _ *abi.Empty) (*abi.ResetReceipt, error) {
	out := &abi.ResetReceipt{Status: abi.ResetDone, Removed: map[string]*int64{},
		Trace: b.trace("POST /product/delete_memory_by_record_id")}
	groups, _, err := b.list(listing{cube: b.cube, page: 1, size: 1})
	if err != nil {
		return nil, err
	}
	waiting := b.waiting()
	gone, err := b.isEmpty()
	// Twice: a background task may have written between the mark and the check.
	for try := 0; try < 2 && err == nil && !gone; try++ {
		if err = b.remove(b.cube); err == nil {
			gone, err = b.isEmpty()
		}
	}
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		if g.total > 0 {
			out.Removed[g.name] = &g.total
		}
	}
	if !gone {
		out.Status = abi.ResetInProgress
		out.Remains = append(out.Remains, "memories of the cube: MemOS still lists some")
	}
	if waiting > 0 {
		out.Remains = append(out.Remains,
			sdk.Itoa(waiting)+" background tasks of MemOS: they cannot be cancelled, and may write into the old cube, "+
				"which no later generation reads")
	}
	if b.async() {
		out.Remains = append(out.Remains, "task status in MemOS's Redis, for 7 days")
	}
	if b.searchMode == searchMixture {
		out.Remains = append(out.Remains, "the search history of mode mixture in MemOS's Redis")
	}
	out.Remains = append(out.Remains, "MemOS's own logs, which hold every prompt and request")
	return out, nil
}

// waiting counts running background tasks, as far as the server reports them.
func (b *backend) waiting() (n int) {
	if !b.async() {
		return 0
	}
	// Without an answer no task is known to wait; the reset itself does not depend on it.
	all, _ := b.taskStatuses()
	for _, status := range all {
		if isUnfinished(status) {
			n++
		}
	}
	return n
}

// isEmpty checks whether the cube is empty. exist also sees soft-deleted nodes; postgres does not have it, so the list
// decides there.
func (b *backend) isEmpty() (bool, error) {
	there, err := b.exists(b.cube)
	if err == nil || b.graphStore != "postgres" {
		return !there, err
	}
	n, err := b.count(filter{})
	return n == 0, err
}

// remove marks and removes a cube's nodes. If the store does not support that (500 on postgres), the nodes are deleted
// by their user, which returns "Failed to delete memories" even after success (memory_handler.py:
// handle_delete_memories), so only the check afterwards counts.
func (b *backend) remove(cube string) error {
	for _, hard := range []bool{false, true} {
		route := "reset_soft"
		if hard {
			route = "reset_hard"
		}
		_, err := b.post(route, wire.Object{"mem_cube_id", cube, "record_id", recordOf(cube), "hard_delete", hard})
		if abi.CodeOf(err) == abi.CodeBackend && abi.AsError(err).Native != nil {
			_, err = b.post("delete_memory", wire.Object{"writable_cube_ids", []string{cube}, "user_id", cube})
			return err
		}
		if err != nil {
			return err
		}
	}
	return nil
}
