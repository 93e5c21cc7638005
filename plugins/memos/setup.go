package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// setupScope makes nothing: a cube exists when its first memory does, and the server's registry of cubes is asked by nobody. It looks whether the cube
// is fresh and, once for the life of an instance, whether the server keeps cubes apart.
//
// Errors: isolation_breach when it does not; unavailable when the store does not answer.
func setupScope(c *sdk.Call, _ *abi.Empty) (*abi.SetupReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	cube := s.cubeOf(c)
	out := &abi.SetupReceipt{NativeScope: map[string]string{"cube_id": cube, "user_id": cube}, Trace: s.trace("POST /product/exist_mem_cube_id")}
	existed, err := s.exists(c, cube)
	if err != nil && s.graphStore == "postgres" {
		var groups []group
		groups, _, err = s.list(c, listing{cube: cube, page: 1, size: 1})
		existed = total(groups) > 0
	}
	if err != nil {
		return nil, err
	}
	v := s.verified
	if v == nil {
		if v, err = s.probe(c, !c.ReadOnly); err != nil {
			return nil, err
		}
	}
	if v.leak != nil {
		return nil, v.leak
	}
	out.Ready, out.Existed = true, &existed
	out.Warnings = append(out.Warnings, v.warnings...)
	return out, nil
}
