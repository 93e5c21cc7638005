package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// bolt runs a statement of the menu, with the group as $gid and further parameters, and calls each with every column of
// every row. A truncated answer is an error, because missing rows must not look absent.
func (v *scopedCall) bolt(route string, params []field, each func(i int, d *wirejson.Decoder) error) error {
	head, rows, err := v.Bolt(route, v.params(params...))
	if err != nil {
		return err
	}
	if head.More {
		return abi.NewError(abi.CodeTooLarge, route+": the graph has more rows than the host takes").
			WithHint("raise limits.bolt_rows, or ask for less")
	}
	return sdk.EachRow(rows, func(row []byte) error {
		err := sdk.EachColumn(row, each)
		if err != nil {
			return unusable(route, err.Error(), row)
		}
		return nil
	})
}

// params returns a statement's parameters, the group first.
func (v *scopedCall) params(more ...field) abi.Raw {
	return object(append([]field{{"gid", sdk.Text(v.group)}}, more...)...)
}

// columns reads the columns of a row by their index, as readInto does.
func columns(to ...any) func(i int, d *wirejson.Decoder) error {
	return func(i int, d *wirejson.Decoder) error {
		if i >= len(to) || to[i] == nil {
			return d.Skip()
		}
		return readInto(d, to[i])
	}
}

// boltAlive checks the connection to Neo4j, if one is configured.
func (v *scopedCall) boltAlive() error {
	if !v.hasBolt {
		return nil
	}
	_, err := v.boltNumber("bolt_alive")
	return err
}

// boltNumber returns the single number that a statement returns.
func (v *scopedCall) boltNumber(route string) (n int64, err error) {
	err = v.bolt(route, nil, columns(&n))
	return n, err
}

// storedTurn is what the graph holds under an episode's name. Names are not unique: more than one copy means that an
// event was stored twice.
type storedTurn struct {
	copies int64
	uuids  []string
	// facts counts the entries of their entity_edges; set on core only.
	facts int64
}

// namesAtOnce is the maximum number of names per look-up.
const namesAtOnce = 500

// boltNamed looks episodes up by name. It finds them all, whatever their event time.
func (v *scopedCall) boltNamed(names []string) (map[string]storedTurn, error) {
	found := make(map[string]storedTurn, len(names))
	for len(names) > 0 {
		n := min(namesAtOnce, len(names))
		name, at := "", storedTurn{}
		row := columns(&name, &at.copies, func(d *wirejson.Decoder) (err error) {
			at.uuids, err = texts(d)
			found[name] = at
			return err
		})
		err := v.bolt("bolt_episodes_named", []field{{"names", textList(names[:n]...)}}, row)
		if err != nil {
			return nil, err
		}
		names = names[n:]
	}
	return found, nil
}

// boltIngest returns when the newest episode of all groups was started, in Unix ms, which shows whether the ingest
// worker is alive. It reveals no content.
func (v *scopedCall) boltIngest() (newest int64, err error) {
	err = v.bolt("bolt_ingest", nil, columns(nil, &newest))
	return newest, err
}

// boltOwned reports whether everything with a UUID belongs to the group, and exists: the servers delete by UUID in any
// group, and a UUID is not unique in the store.
func (v *scopedCall) boltOwned(route, uuid string) (bool, error) {
	rows, mine := 0, true
	err := v.bolt(route, []field{{"uuid", sdk.Text(uuid)}}, func(i int, d *wirejson.Decoder) error {
		if i != 0 {
			return d.Skip()
		}
		ours, err := d.Bool()
		rows, mine = rows+1, mine && ours
		return err
	})
	return rows > 0 && mine, err
}

// listPage is the number of rows per statement that lists a kind.
const listPage = 1000

// boltInventory counts and hashes one kind, page by page in the order of its ids.
func (v *scopedCall) boltInventory(route, kind string) (abi.InventoryKind, error) {
	k := abi.InventoryKind{Kind: kind}
	var digest sdk.Digest
	after := ""
	for {
		head, rows, err := v.Bolt(route, v.params(field{"after", sdk.Text(after)},
			field{"limit", sdk.Number(listPage)}))
		if err != nil {
			return k, err
		}
		err = sdk.EachRow(rows, func(row []byte) error {
			k.Count++
			digest.AddBytes(row)
			digest.Add("\n")
			return sdk.EachColumn(row, columns(&after))
		})
		switch {
		case err != nil:
			return k, unusable(route, err.Error(), rows)
		case head.More:
			return k, abi.NewError(abi.CodeTooLarge, route+": the host cut a page of "+sdk.Itoa(listPage)+" rows").
				WithHint("raise the limit of rows")
		case head.Rows < listPage:
			k.Digest = digest.Hex()
			return k, nil
		}
		after = strings.Clone(after)
		v.Reuse(rows)
	}
}

// boltKinds counts and hashes all kinds, and looks for an episode by name unless the name is empty.
func (v *scopedCall) boltKinds(name string, answer *abi.Inventory) (map[string]storedTurn, error) {
	for _, kind := range [...][2]string{{"bolt_list_episodes", "episode"}, {"bolt_list_entities", "entity"},
		{"bolt_list_facts", "fact"},
		{"bolt_list_other", "community or saga"}} {
		k, err := v.boltInventory(kind[0], kind[1])
		if err != nil {
			return nil, err
		}
		answer.Kinds = append(answer.Kinds, k)
	}
	if name == "" {
		return nil, nil
	}
	return v.boltNamed([]string{name})
}

// deletesAtOnce is how many statements of a reset run in one call, of 1000 nodes each. The host calls again for the
// rest.
const deletesAtOnce = 16

// removedKey is the key of the scope's state that counts what a reset has removed so far, as {kind: count}.
const removedKey = "removed"

// boltClear deletes the group's nodes with their relationships, and checks that none is left; clean is false if there
// is more to do.
func (v *scopedCall) boltClear(receipt *abi.ResetReceipt) (clean bool, err error) {
	removed, err := v.readRemoved()
	if err != nil {
		return false, err
	}
	left, counts := deletesAtOnce, []field(nil)
	for _, label := range [...][2]string{{"episodic", "episode"}, {"entity", "entity"}, {"community", "community"},
		{"saga", "saga"}} {
		for more := true; more && left > 0; left-- {
			gone, err := v.boltNumber("bolt_delete_" + label[0])
			if err != nil {
				return false, err
			}
			removed[label[1]] += gone
			more = gone > 0
		}
		receipt.Removed[label[1]] = sdk.Ptr(removed[label[1]])
		counts = append(counts, field{label[1], sdk.Number(removed[label[1]])})
	}
	receipt.Removed["fact"] = nil // removed with their entities, uncounted
	err = v.Put(removedKey, object(counts...), sdk.AnyVersion)
	if err != nil || left <= 0 {
		return false, err
	}
	remaining, err := v.boltNumber("bolt_remaining")
	return remaining == 0, err
}

// readRemoved reads what earlier calls of a reset have removed.
func (v *scopedCall) readRemoved() (map[string]int64, error) {
	removed := map[string]int64{}
	value, version, err := v.Get(removedKey)
	if err != nil || version == 0 {
		return removed, err
	}
	err = wirejson.DecodeBytes(value).Obj(func(d *wirejson.Decoder, key string) (err error) {
		removed[strings.Clone(key)], err = d.Int64()
		return err
	})
	return removed, err
}

// needBolt returns the error for a capability that needs access to Neo4j.
func (v *scopedCall) needBolt(what string) error {
	if v.hasBolt {
		return nil
	}
	return abi.NewError(abi.CodeUnsupported,
		what+" needs a look into the graph, which the "+v.name+" surface does not give").
		WithReason("no_bolt").WithHint("configure bolt, bolt_user and bolt_password")
}
