package main

import (
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// setupScope proves that the way to the graph works. It creates nothing: a group exists only through its data.
func setupScope(c *sdk.Call, _ *abi.Empty) (*abi.SetupReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	gid, err := s.groupOf(c)
	if err != nil {
		return nil, err
	}
	receipt := &abi.SetupReceipt{Ready: true, NativeScope: map[string]string{"group_id": gid},
		Trace: &abi.Trace{BackendName: s.config.Provider, Details: abi.Members[abi.Raw]{{Name: "surface", Value: sdk.Text(s.surface())}}}}
	switch {
	case s.core:
		err = s.coreSetup(c, gid, receipt)
	case s.mcp:
		err = s.mcpStatus(c)
	default:
		var some []item
		some, err = s.restEpisodes(c, gid, 1)
		receipt.Existed = sdk.Ptr(len(some) > 0)
		if len(some) == 0 {
			receipt.Existed = nil // an episode of the server's future is not listed
		}
	}
	if err != nil {
		return nil, err
	}
	if s.bolt {
		_, err = boltNumber(c, "bolt_alive", nil)
	}
	return receipt, err
}

// deletesAtOnce is how many statements of a reset run in one call: 1000 nodes each. The host calls again.
const deletesAtOnce = 16

// removedKey is where the scope's state counts what a reset has removed so far.
const removedKey = "removed"

// resetScope removes the group: drain, delete, verify. A turn that is queued still would come back after the delete, so that is waited for, by in_progress; a
// queue that does not drain leaves the reset incomplete, and what it writes later goes into the old generation's group.
func resetScope(c *sdk.Call, _ *abi.Empty) (*abi.ResetReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	gid, err := s.groupOf(c)
	if err != nil {
		return nil, err
	}
	receipt := &abi.ResetReceipt{Status: abi.ResetInProgress, Removed: map[string]*int64{}, OldGeneration: c.Generation, NewGeneration: c.Generation + 1,
		Trace: &abi.Trace{BackendName: s.config.Provider, Details: abi.Members[abi.Raw]{{Name: "group_id", Value: sdk.Text(gid)}}}}
	if s.core { // the gateway works in order: it takes what is queued away, and waits for what runs
		return receipt, s.coreRemove(c, gid, receipt)
	}
	state, err := s.drained(c, gid)
	if err != nil || state == draining {
		receipt.Warnings = append(receipt.Warnings, "draining: turns of the scope are queued still; deleting now would let them come back")
		return receipt, err
	}
	clean, err := s.remove(c, gid, receipt)
	if err != nil || !clean {
		return receipt, err
	}
	receipt.Status = abi.ResetDone
	if state != drained {
		receipt.Status = abi.ResetIncomplete
		receipt.Remains = append(receipt.Remains, "turns that the server may hold in its queue still: "+state+
			". What becomes of them goes into group "+gid+", which the next generation does not use")
	}
	return receipt, nil
}

// What drained answers: nothing is queued, something is, or a reason why nobody can tell.
const (
	drained  = ""
	draining = "draining"
)

// drained tells whether the last turn that the server took is there, or will never be: then so it is with all before it.
func (s *settings) drained(c *sdk.Call, gid string) (string, error) {
	last, has, err := readLast(c)
	if err != nil || !has {
		return drained, err
	}
	seen, err := s.look(c, gid, []marker{last})
	if err != nil {
		return "", err
	}
	if seen.found[last.name].copies > 0 {
		return drained, nil
	}
	removed, err := readRemoved(c)
	if err != nil {
		return "", err
	}
	if removed["episode"] > 0 { // an earlier call of this reset had seen it, and removed it
		return drained, nil
	}
	now := millis(c.Now)
	since := max(last.sentMS, seen.newestMS)
	switch {
	case !s.bolt && !s.mcp && last.eventMS > now:
		return "the last one lies in the server's future, where the REST service does not list it", nil
	case now-since <= s.stallMS:
		return draining, nil
	}
	return "the last one did not arrive within stall_s", nil
}

// remove deletes what the group has and verifies; clean is false when there is more to do.
func (s *settings) remove(c *sdk.Call, gid string, receipt *abi.ResetReceipt) (clean bool, err error) {
	if s.bolt {
		return s.removeByBolt(c, gid, receipt)
	}
	for _, kind := range [...]string{"episode", "entity", "fact"} {
		receipt.Removed[kind] = nil // neither server counts
	}
	if s.mcp {
		err = s.mcpClear(c, gid)
	} else {
		err = s.restDeleteGroup(c, gid)
	}
	if err != nil {
		return false, err
	}
	left, err := s.episodes(c, gid, 1)
	if err != nil || len(left) > 0 {
		return false, err
	}
	var body []byte
	anything := sdk.Text("user")
	route := routeRESTSearch
	if s.mcp {
		route = routeMCPSearch
		body, err = s.mcpSearch(c, gid, anything, nil)
	} else {
		body, err = s.restSearch(c, gid, anything)
	}
	f := new(found)
	if err == nil {
		err = s.read(f, route, body)
	}
	return len(f.facts()) == 0, err
}

// labels of the nodes that carry a group, with what a receipt calls them. Relationships go with their nodes.
var labels = [...][2]string{{"episodic", "episode"}, {"entity", "entity"}, {"community", "community"}, {"saga", "saga"}}

func (s *settings) removeByBolt(c *sdk.Call, gid string, receipt *abi.ResetReceipt) (bool, error) {
	removed, err := readRemoved(c)
	if err != nil {
		return false, err
	}
	left := deletesAtOnce
	for _, l := range labels {
		for more := true; more && left > 0; left-- {
			gone, err := boltNumber(c, "bolt_delete_"+l[0], inGroup(gid).json())
			if err != nil {
				return false, err
			}
			removed[l[1]] += gone
			more = gone > 0
		}
	}
	for _, l := range labels {
		receipt.Removed[l[1]] = sdk.Ptr(removed[l[1]])
	}
	receipt.Removed["fact"] = nil // they go with their entities, uncounted
	if err := keepRemoved(c, removed); err != nil {
		return false, err
	}
	if left <= 0 {
		return false, nil
	}
	remaining, err := boltNumber(c, "bolt_remaining", inGroup(gid).json())
	return remaining == 0, err
}

func readRemoved(c *sdk.Call) (map[string]int64, error) {
	removed := map[string]int64{}
	value, version, err := c.Get(removedKey)
	if err != nil || version == 0 {
		return removed, err
	}
	err = jsontext.DecodeBytes(value).Obj(func(d *jsontext.Decoder, key string) (err error) {
		key = strings.Clone(key)
		removed[key], err = d.Int64()
		return err
	})
	return removed, err
}

func keepRemoved(c *sdk.Call, removed map[string]int64) error {
	var e jsontext.Encoder
	e.ObjStart()
	for _, l := range labels {
		e.FieldStart(l[1])
		e.Int64(removed[l[1]])
	}
	e.ObjEnd()
	return c.Put(removedKey, e.Bytes(), sdk.AnyVersion)
}
