package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// group counts what a group holds.
type group struct {
	counts [len(groupKinds)]int64
	// queued and running count jobs.
	queued, running int64
}

// fields maps the gateway's names to the counts.
func (g *group) fields() (f fields) {
	for i := range groupKinds {
		f = append(f, fields{{groupKinds[i][0], &g.counts[i]}}...)
	}
	return f
}

func (g *group) total() (n int64) {
	for _, c := range g.counts {
		n += c
	}
	return n
}

// groupNow counts what the group holds: GET /v1/groups/{group}.
func (s *core) groupNow(v *scopedCall) (*group, error) {
	const route = "core_group"
	body, err := s.gateway(v, v.toGroup(route, "", ""), nil)
	if err != nil {
		return nil, err
	}
	g := new(group)
	return g, answer(route, body, fields{{"counts", g.fields()},
		{"jobs", fields{{"queued", &g.queued}, {"running", &g.running}}}}, "counts")
}

// reset deletes a group with everything in it. The gateway removes the group's queued jobs first and waits for a
// running one.
func (s *core) reset(v *scopedCall, receipt *abi.ResetReceipt) error {
	const route = "core_delete_group"
	body, err := s.gateway(v, v.toGroup(route, "", ""), nil)
	if err != nil {
		return err
	}
	var g group
	err = answer(route, body, fields{{"removed", g.fields()}}, "removed")
	if err != nil {
		return err
	}
	for i := range groupKinds {
		receipt.Removed[groupKinds[i][1]] = sdk.Ptr(g.counts[i])
	}
	left, err := s.groupNow(v)
	if err != nil {
		return err
	}
	busy := left.queued + left.running
	if left.total()+busy == 0 {
		receipt.Status = abi.ResetDone
		return nil
	}
	receipt.Warnings = append(receipt.Warnings,
		"draining: the group has "+sdk.Itoa(left.total())+" nodes and facts and "+sdk.Itoa(busy)+" jobs still")
	return nil
}

func (s *core) holds(v *scopedCall, _ marker) (bool, error) {
	g, err := s.groupNow(v)
	if err != nil {
		return false, err
	}
	return g.total()+g.queued+g.running > 0, nil
}

// inventory counts and hashes everything in a group, page by page: every id with what can change about it (whether a
// fact is closed, an entity's summary). Communities and sagas are only counted, because the gateway does not list
// communities.
func (s *core) inventory(v *scopedCall, answer *abi.Inventory) error {
	answer.Complete, answer.Trace.NativeOperation = true, "lists of the group"
	for i, kind := range [...]struct {
		route string
		page  int
	}{{"core_list_episodes", 100}, {"core_list_nodes", 500}, {"core_list_edges", 500}} {
		k, err := s.count(v, kind.route, groupKinds[i][0], groupKinds[i][1], kind.page)
		if err != nil {
			return err
		}
		answer.Kinds = append(answer.Kinds, k)
	}
	g, err := s.groupNow(v)
	if err != nil {
		return err
	}
	answer.Quiescent = g.queued+g.running == 0
	for i := len(answer.Kinds); i < len(groupKinds); i++ {
		answer.Kinds = append(answer.Kinds, abi.InventoryKind{Kind: groupKinds[i][1], Count: g.counts[i]})
	}
	return nil
}

// count counts and hashes a list.
func (s *core) count(v *scopedCall, route, key, kind string, page int) (abi.InventoryKind, error) {
	k := abi.InventoryKind{Kind: kind}
	var digest sdk.Digest
	err := s.pages(v, route, key, page, func(x *item) {
		k.Count++
		x.digest(&digest)
	})
	k.Digest = digest.Hex()
	return k, err
}

// pages iterates over a list page by page, and over a page item by item. A group has any number of pages, and memory is
// freed only at the operation's end, or by Reuse. An item is valid until each returns.
func (s *core) pages(v *scopedCall, route, key string, page int, each func(x *item)) error {
	for cursor, more := "", true; more; {
		request := v.toGroup(route, "", "")
		request.Query = []abi.QueryParam{{Key: "limit", Value: sdk.Itoa(page)}}
		if cursor != "" {
			request.Query = append(request.Query, abi.QueryParam{Key: "cursor", Value: cursor})
		}
		body, err := s.gateway(v, request, nil)
		if err != nil {
			return err
		}
		next, breach := "", error(nil)
		err = answer(route, body, fields{{"next_cursor", &next}, {key, func(d *wirejson.Decoder) error {
			return d.Arr(func(d *wirejson.Decoder) error {
				var x item
				err := d.Obj(x.readField)
				if breach == nil && x.group != v.group {
					breach = foreignItemError(route, x.group)
				}
				if err == nil && breach == nil {
					each(&x)
				}
				return err
			})
		}}}, key)
		switch {
		case err == nil && breach != nil:
			err = breach
		case err == nil && next != "" && next == cursor:
			err = unusable(route, "a page that comes again and again", body)
		}
		if err != nil {
			return err
		}
		cursor, more = strings.Clone(next), next != ""
		v.Reuse(body)
	}
	return nil
}

// digest adds an item's id and its changeable part.
func (x *item) digest(d *sdk.Digest) {
	for _, part := range [...]string{x.uuid, "\n", x.name, "\n", x.text, "\n", x.invalidAt.text, " ", x.expiredAt.text,
		"\n"} {
		d.Add(part)
	}
	for _, uuids := range [...][]string{x.episodes, x.facts} {
		for _, uuid := range uuids {
			d.Add(uuid)
			d.Add("\n")
		}
	}
}
