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

// Decode implements abi.Decodable. The events are views of the input, which must outlive the batch. An error says too
// little to be shown: that of abi.EventBatch names the field.
func (x *RawBatch) Decode(d *wirejson.Decoder, _ abi.Mode) error {
	*x = RawBatch{}
	if d.Next() != wirejson.Object {
		return errNoBatch
	}
	return d.Obj(func(d *wirejson.Decoder, key string) error {
		if key != "events" || d.Next() != wirejson.Array {
			return errNoBatch
		}
		x.Events = nil
		return d.Arr(func(d *wirejson.Decoder) error {
			event, err := d.Raw()
			x.Events = append(x.Events, abi.Raw(event))
			return err
		})
	})
}

var errNoBatch = abi.NewError(abi.CodeInvalidArgument, "want an object with events, an array")

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
