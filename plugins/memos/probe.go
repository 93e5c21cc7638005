package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/wire"
)

// canaryText is the text of the only memory in canary cube a.
const canaryText = "The memhost canary is called Quillfeather and sits in cube a."

// verdict is the result of the isolation probe.
type verdict struct {
	// isolation is filtered or unverified; never hard: a cube is only a property of nodes in one database.
	isolation string
	// leak is the breach, nil for none.
	leak *abi.Error
	// searchBroken: the canary is stored but no search finds it, so the embedder does not work.
	searchBroken bool
	warnings     []string
}

// probe checks whether cube b sees what cube a holds, and searches a as the positive control. mayWrite allows it to
// write the canary first. It also checks the graph database and the embedder.
//
// Errors: those of the server; a leak is not an error here.
func (b *backend) probe(mayWrite bool) (*verdict, error) {
	v := &verdict{isolation: "unverified"}
	err := b.checkIsolation(v, mayWrite)
	if abi.CodeOf(err) == abi.CodeIsolationBreach {
		v.leak, err = abi.AsError(err), nil
	}
	return v, err
}

// checkIsolation is probe that returns a leak as an error.
func (b *backend) checkIsolation(v *verdict, mayWrite bool) error {
	if err := b.emptyCube(); err != nil {
		return err
	}
	if !b.isolationProbe {
		v.warnings = append(v.warnings, "isolation_unverified: isolation_probe is off")
		return nil
	}
	seen, err := b.seesCanary("a")
	if err == nil && !seen && mayWrite {
		seen, err = b.plantCanary(v)
	}
	switch {
	case err != nil:
		return err
	case !seen && v.searchBroken:
		v.warnings = append(v.warnings,
			"embedder: the canary is stored and no search finds it: MemOS's embedder does not work")
		return nil
	case !seen:
		v.warnings = append(v.warnings,
			"isolation_unverified: there is no canary yet; the next set-up that may write puts it there")
		return nil
	}
	if _, err := b.seesCanary("b"); err != nil {
		return err
	}
	v.isolation = "filtered"
	b.verified = v
	return nil
}

// emptyCube lists cube b, which is never written: anything in it belongs to another scope. It also checks that the
// graph database answers.
func (b *backend) emptyCube() error {
	cube := b.canary("b")
	groups, a, err := b.list(listing{cube: cube, page: 1, size: 1})
	if err == nil && total(groups) > 0 {
		return breach("get_memory", a, cube, "another cube")
	}
	return err
}

// seesCanary searches a canary's cube for the canary's memory.
func (b *backend) seesCanary(which string) (bool, error) {
	cube := b.canary(which)
	body := append(wire.Object{"user_id", cube, "readable_cube_ids", []string{cube}, "query", canaryText, "mode",
		searchFast},
		limits{text: 1}.fields(false)...)
	groups, _, err := b.memories("search_fast", append(body, "dedup", "no", "relativity", 0, "internet_search", false),
		cube)
	for _, m := range itemsOf(groups) {
		if strings.Contains(m.memory, canaryText) {
			return true, err
		}
	}
	return false, err
}

// plantCanary writes the canary to cube a. An existing one that cannot be found was stored without a vector, and is
// replaced.
func (b *backend) plantCanary(v *verdict) (bool, error) {
	cube := b.canary("a")
	there, err := b.exists(cube)
	if err == nil && there {
		err = b.remove(cube)
	}
	if err != nil {
		return false, err
	}
	a, err := b.post("add_fast", wire.Object{"user_id", cube, "writable_cube_ids", []string{cube}, "session_id",
		"canary", "async_mode", "sync", "mode", "fast", "messages", []wire.Object{{"role", "user",
			"content", canaryText, "chat_time", "2026-01-01T00:00:00Z", "message_id", "canary#0"}}})
	if err != nil {
		return false, err
	}
	seen, err := b.seesCanary("a")
	if err != nil || seen {
		return seen, err
	}
	groups, _, err := b.list(listing{cube: cube, page: 1, size: 1, textOnly: true})
	if err == nil && total(groups) == 0 {
		err = failure(abi.CodeUnavailable, "add_fast", 200, "MemOS answered 200 to the canary and stored nothing",
			a.body).
			WithReason("not_stored").WithHint("look into the server's log: its graph database refuses writes")
	}
	v.searchBroken = err == nil
	return false, err
}

// exists checks whether any node has the cube's id, including soft-deleted ones.
func (b *backend) exists(cube string) (bool, error) {
	a, err := b.post("exist", wire.Object{"mem_cube_id", cube})
	if err != nil {
		return false, err
	}
	there := wire.At(a.data, cube)
	if wire.Kind(there) != wirejson.Bool {
		return false, unusable("exist", a, "data does not say whether the cube exists")
	}
	return string(there) == "true", nil
}
