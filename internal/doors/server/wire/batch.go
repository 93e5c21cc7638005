package wire

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
)

// RawBatch is an abi.EventBatch whose events are not decoded yet, so that an invalid event does not affect the others.
type RawBatch struct {
	Events []abi.Raw `json:"events"`
}

// Encode implements abi.Encodable.
func (x *RawBatch) Encode(e *wirejson.Encoder) {
	e.ObjStart()
	e.FieldStart("events")
	e.ArrStart()
	for _, event := range x.Events {
		e.Raw(event)
	}
	e.ArrEnd()
	e.ObjEnd()
}

// Decode implements abi.Decodable.
func (x *RawBatch) Decode(d *wirejson.Decoder, m abi.Mode) error {
	*x = RawBatch{}
	return readObject(d, m, []member{{"events", func(d *wirejson.Decoder) error {
		x.Events = nil
		if d.Next() == wirejson.Null {
			return d.Null()
		}
		if err := want(d, wirejson.Array, "an array"); err != nil {
			return err
		}
		return d.Arr(func(d *wirejson.Decoder) error {
			event, err := d.Raw() // a view of the body, which outlives the batch
			x.Events = append(x.Events, abi.Raw(event))
			return err
		})
	}}})
}

// EventIDOf returns the id of an event that does not decode, "" without an id that is a string.
func EventIDOf(event abi.Raw) string {
	id := ""
	d := wirejson.DecodeBytes(event)
	if d.Next() != wirejson.Object {
		return ""
	}
	_ = d.Obj(func(d *wirejson.Decoder, key string) error {
		if key != "event_id" || d.Next() != wirejson.String {
			return d.Skip()
		}
		var err error
		id, err = d.Str()
		return err
	})
	return id
}
