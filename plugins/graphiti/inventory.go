package main

import (
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// inventory counts what the group holds. With Bolt all of it, with a digest over every id and what changes of it: a fact that is closed, an entity's summary.
// Without, the surface lists episodes only, and the inventory says that it is not complete.
func inventory(c *sdk.Call, _ *abi.Empty) (*abi.Inventory, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	gid, err := s.groupOf(c)
	if err != nil {
		return nil, err
	}
	answer := &abi.Inventory{Complete: s.bolt, Trace: &abi.Trace{BackendName: s.config.Provider, NativeOperation: s.method()}}
	if s.core {
		return answer, s.coreInventory(c, gid, answer)
	}
	last, has, err := readLast(c)
	if err != nil {
		return nil, err
	}
	answer.Quiescent = true
	if s.bolt {
		for _, kind := range [...][2]string{{"bolt_list_episodes", "episode"}, {"bolt_list_entities", "entity"}, {"bolt_list_facts", "fact"}, {"bolt_list_other", "community or saga"}} {
			k, err := listed(c, kind[0], kind[1], gid)
			if err != nil {
				return nil, err
			}
			answer.Kinds = append(answer.Kinds, k)
		}
		if has {
			found, err := boltNamed(c, gid, []string{last.name})
			if err != nil {
				return nil, err
			}
			answer.Quiescent = found[last.name].copies > 0
		}
		return answer, nil
	}
	most, err := s.episodesSent(c, nil)
	if err != nil {
		return nil, err
	}
	episodes, err := s.episodes(c, gid, most)
	if err != nil {
		return nil, err
	}
	if has {
		answer.Quiescent = false
	}
	uuids := make([]string, len(episodes))
	for i := range episodes {
		uuids[i] = episodes[i].uuid
		answer.Quiescent = answer.Quiescent || episodes[i].name == last.name
	}
	abi.SortTexts(uuids)
	var digest sdk.Digest
	for _, uuid := range uuids {
		digest.Add(uuid + "\n")
	}
	answer.Kinds = []abi.InventoryKind{{Kind: "episode", Count: int64(len(uuids)), Digest: digest.Hex()}}
	return answer, nil
}

// listPage is how many rows one look at a kind takes.
const listPage = 1000

// listed counts and hashes one kind, page by page in the order of its ids.
func listed(c *sdk.Call, route, kind, gid string) (abi.InventoryKind, error) {
	k := abi.InventoryKind{Kind: kind}
	var digest sdk.Digest
	after := ""
	for {
		head, rows, err := c.Bolt(route, inGroup(gid).text("after", after).number("limit", listPage).json())
		if err != nil {
			return k, err
		}
		if err := sdk.EachRow(rows, func(row []byte) error {
			k.Count++
			digest.AddBytes(row)
			digest.Add("\n")
			return sdk.EachColumn(row, func(i int, d *jsontext.Decoder) (err error) {
				if i != 0 {
					return d.Skip()
				}
				after, err = text(d)
				return err
			})
		}); err != nil {
			return k, unusable(route, err.Error(), rows)
		}
		if head.More {
			return k, abi.NewError(abi.CodeTooLarge, route+": the host cut a page of "+sdk.Itoa(listPage)+" rows").WithHint("raise the limit of rows")
		}
		if head.Rows < listPage {
			k.Digest = digest.Hex()
			return k, nil
		}
		after = strings.Clone(after)
		c.Reuse(rows)
	}
}
