package main

import (
	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// resetScope removes the generation's cube: all nodes are marked with a record id, then those with it are removed. It decides by looking, never by the answers:
// the server says success and failure without regard to what it did. The next generation is another cube, so what a late background task still writes is never seen.
func resetScope(c *sdk.Call, _ *abi.Empty) (*abi.ResetReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	cube := s.cubeOf(c)
	out := &abi.ResetReceipt{Status: abi.ResetDone, Removed: map[string]*int64{}, Trace: s.trace("POST /product/delete_memory_by_record_id")}
	groups, _, err := s.list(c, listing{cube: cube, page: 1, size: 1})
	if err != nil {
		return nil, err
	}
	waiting := s.waiting(c)
	gone, err := s.gone(c, cube)
	if err == nil && !gone {
		// Twice: a background task may have written between the mark and the look.
		for try := 0; try < 2 && err == nil && !gone; try++ {
			if err = s.remove(c, cube); err == nil {
				gone, err = s.gone(c, cube)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	for i := range groups {
		if n := groups[i].total; n > 0 {
			out.Removed[groups[i].name] = sdk.Ptr(n)
		}
	}
	if !gone {
		out.Status = abi.ResetInProgress
		out.Remains = append(out.Remains, "memories of the cube: MemOS still lists some")
	}
	if waiting > 0 {
		out.Remains = append(out.Remains, sdk.Itoa(waiting)+" background tasks of MemOS: they cannot be cancelled, and may write into the old cube, which no later generation reads")
	}
	if s.async() {
		out.Remains = append(out.Remains, "task status in MemOS's Redis, for 7 days")
	}
	if s.searchMode == searchMixture {
		out.Remains = append(out.Remains, "the search history of mode mixture in MemOS's Redis")
	}
	out.Remains = append(out.Remains, "MemOS's own logs, which hold every prompt and request")
	return out, nil
}

// waiting counts background tasks under way, as far as the server tells.
func (s *settings) waiting(c *sdk.Call) int {
	if !s.async() {
		return 0
	}
	// Without an answer nothing is known to wait; the reset itself does not depend on it.
	all, _ := s.known(c)
	n := 0
	for _, status := range all {
		if status == "waiting" || status == "in_progress" {
			n++
		}
	}
	return n
}

// gone looks whether the cube holds nothing any more. exist sees soft-deleted nodes too; postgres has no exist, so the list decides there.
func (s *settings) gone(c *sdk.Call, cube string) (bool, error) {
	there, err := s.exists(c, cube)
	if err == nil || s.graphStore != "postgres" {
		return !there, err
	}
	groups, _, err := s.list(c, listing{cube: cube, page: 1, size: 1})
	return total(groups) == 0, err
}

// remove marks and removes a cube's nodes. Where the store has no such thing (500 on postgres) the nodes are deleted by their user; that answers "Failed to
// delete memories" although it did (memory_handler.py: handle_delete_memories), so only the look afterwards counts.
func (s *settings) remove(c *sdk.Call, cube string) error {
	for _, hard := range []bool{false, true} {
		route := "reset_soft"
		if hard {
			route = "reset_hard"
		}
		_, err := s.post(c, route, object(func(e *jsontext.Encoder) {
			putText(e, "mem_cube_id", cube)
			putText(e, "record_id", recordOf(cube))
			putBool(e, "hard_delete", hard)
		}))
		if err == nil {
			continue
		}
		if abi.CodeOf(err) != abi.CodeBackend || abi.AsError(err).Native == nil {
			return err
		}
		_, err = s.post(c, "delete_memory", object(func(e *jsontext.Encoder) {
			putTexts(e, "writable_cube_ids", cube)
			putText(e, "user_id", cube)
		}))
		return err
	}
	return nil
}
