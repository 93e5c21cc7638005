package main

import (
	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// params writes a statement's parameters: the group first, always.
type params struct{ e jsontext.Encoder }

func inGroup(gid string) *params {
	p := new(params)
	p.e.ObjStart()
	return p.text("gid", gid)
}

func (p *params) text(name, value string) *params {
	p.e.FieldStart(name)
	p.e.Str(value)
	return p
}

func (p *params) number(name string, value int64) *params {
	p.e.FieldStart(name)
	p.e.Int64(value)
	return p
}

func (p *params) list(name string, values []string) *params {
	p.e.FieldStart(name)
	p.e.ArrStart()
	for _, v := range values {
		p.e.Str(v)
	}
	p.e.ArrEnd()
	return p
}

func (p *params) json() []byte {
	p.e.ObjEnd()
	return p.e.Bytes()
}

// run runs a statement of the menu and gives every row to each. A cut answer is an error: what is missing must not look absent.
func run(c *sdk.Call, route string, params []byte, each func(i int, d *jsontext.Decoder) error) error {
	head, rows, err := c.Bolt(route, params)
	if err != nil {
		return err
	}
	if head.More {
		return abi.NewError(abi.CodeTooLarge, route+": the graph has more rows than the host takes").WithHint("raise limits.bolt_rows, or ask for less")
	}
	return sdk.EachRow(rows, func(row []byte) error {
		if err := sdk.EachColumn(row, each); err != nil {
			return unusable(route, err.Error(), row)
		}
		return nil
	})
}

// whole reads a count; null is 0.
func whole(d *jsontext.Decoder) (int64, error) {
	if d.Next() == jsontext.Null {
		return 0, d.Null()
	}
	return d.Int64()
}

// named is what the graph has under an episode's name. Names are not unique: copies above one tell of an event that was stored twice.
type named struct {
	copies int64
	uuids  []string
	// facts counts what their entity_edges name; only core tells it.
	facts int64
}

// namesAtOnce bounds one look-up by name.
const namesAtOnce = 500

// boltNamed looks episodes up by name: exact, whatever their event time.
func boltNamed(c *sdk.Call, gid string, names []string) (map[string]named, error) {
	found := make(map[string]named, len(names))
	for len(names) > 0 {
		n := min(namesAtOnce, len(names))
		name, at := "", named{}
		err := run(c, "bolt_episodes_named", inGroup(gid).list("names", names[:n]).json(), func(i int, d *jsontext.Decoder) (err error) {
			switch i {
			case 0:
				name, err = text(d)
			case 1:
				at.copies, err = whole(d)
			case 2:
				at.uuids, err = texts(d)
				found[name] = at
			default:
				err = d.Skip()
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		names = names[n:]
	}
	return found, nil
}

// boltIngest tells when the newest episode of all groups was begun, in Unix ms: whether the ingest worker does anything at all. It reveals no content.
func boltIngest(c *sdk.Call) (newest int64, err error) {
	err = run(c, "bolt_ingest", nil, func(i int, d *jsontext.Decoder) (err error) {
		if i != 1 {
			return d.Skip()
		}
		newest, err = whole(d)
		return err
	})
	return newest, err
}

// boltNumber is the one number that a statement answers.
func boltNumber(c *sdk.Call, route string, params []byte) (n int64, err error) {
	err = run(c, route, params, func(i int, d *jsontext.Decoder) (err error) {
		if i != 0 {
			return d.Skip()
		}
		n, err = whole(d)
		return err
	})
	return n, err
}

// boltOwned tells whether a fact or an episode with a UUID exists, and whether it is the group's: servers delete by UUID in any group.
func boltOwned(c *sdk.Call, route, gid, uuid string) (exists, mine bool, err error) {
	err = run(c, route, inGroup(gid).text("uuid", uuid).json(), func(i int, d *jsontext.Decoder) (err error) {
		if i != 0 {
			return d.Skip()
		}
		ours, err := d.Bool()
		mine = ours && (mine || !exists) // a UUID is not unique in the store: all that carry it must be ours
		exists = true
		return err
	})
	return exists, mine, err
}
