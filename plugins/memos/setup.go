package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
)

// setupScope creates nothing, because a cube exists as soon as it has a memory, and the server itself never uses its
// registry of cubes. It checks whether the cube is empty and, once in the life of an instance, whether the server
// isolates cubes from each other.
//
// Errors: isolation_breach if it does not isolate them; unavailable if the store does not answer.
func setupScope(b *backend, _ *abi.Empty) (*abi.SetupReceipt, error) {
	out := &abi.SetupReceipt{NativeScope: map[string]string{"cube_id": b.cube, "user_id": b.cube},
		Trace: b.trace("POST /product/exist_mem_cube_id")}
	existed, err := b.exists(b.cube)
	if err != nil && b.graphStore == "postgres" {
		var n int64
		n, err = b.count(filter{})
		existed = n > 0
	}
	if err != nil {
		return nil, err
	}
	v := b.verified
	if v == nil {
		if v, err = b.probe(!b.ReadOnly); err != nil {
			return nil, err
		}
	}
	if v.leak != nil {
		return nil, v.leak
	}
	out.Ready, out.Existed, out.Warnings = true, &existed, v.warnings
	if len(b.readable) > 0 {
		out.NativeScope["readable_cubes"] = strings.Join(b.readable, ",")
		out.Warnings = append(slices.Clip(out.Warnings), b.sharing())
	}
	return out, nil
}

// sharing returns the warning about readable_cubes, which share memory on purpose.
func (s *settings) sharing() string {
	return "cubes_shared: readable_cubes lets every scope read " + strings.Join(s.readable, ", ") + ", too"
}
