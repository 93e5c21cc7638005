package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// resetScope removes the generation's cube: all nodes are marked with a record id, then those with it are removed. It
// decides by looking, never by the answers: the server says success and failure without regard to what it did. The
// next generation is another cube, so what a late background task still writes is never seen.
func resetScope(b *backend, _ *abi.Empty) (*abi.ResetReceipt, error) {
	out := &abi.ResetReceipt{Status: abi.ResetDone, Removed: map[string]*int64{},
		Trace: b.trace("POST /product/delete_memory_by_record_id")}
	groups, _, err := b.list(listing{cube: b.cube, page: 1, size: 1})
	if err != nil {
		return nil, err
	}
	waiting := b.waiting()
	gone, err := b.gone()
	// Twice: a background task may have written between the mark and the look.
	for try := 0; try < 2 && err == nil && !gone; try++ {
		if err = b.remove(b.cube); err == nil {
			gone, err = b.gone()
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
	// Without an answer nothing is known to wait; the reset itself does not depend on it.
	all, _ := b.known()
	for _, status := range all {
		if underWay(status) {
			n++
		}
	}
	return n
}

// gone looks whether the cube holds nothing any more. exist sees soft-deleted nodes too; postgres has no exist, so
// the list decides there.
func (b *backend) gone() (bool, error) {
	there, err := b.exists(b.cube)
	if err == nil || b.graphStore != "postgres" {
		return !there, err
	}
	n, err := b.count(filter{})
	return n == 0, err
}

// remove marks and removes a cube's nodes. Where the store has no such thing (500 on postgres) the nodes are deleted
// by their user; that answers "Failed to delete memories" although it did (memory_handler.py:
// handle_delete_memories), so only the look afterwards counts.
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
