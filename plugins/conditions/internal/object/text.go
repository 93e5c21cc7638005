package object

import (
	"strings"

	"github.com/memhost/memhost/abi/wirejson"
)

// Text reads any value as a text: a string unchanged, null as "", a list of parts as their texts joined by line ends,
// and any other value as compact JSON.
func Text(d *wirejson.Decoder) (string, error) {
	switch d.Next() {
	case wirejson.String:
		return d.Str()
	case wirejson.Null:
		return "", d.Null()
	}
	raw, err := d.Raw()
	if err != nil {
		return "", err
	}
	if text, ok := partsText(raw); ok {
		return text, nil
	}
	return Compact(raw)
}

// partsText joins the texts of a list of parts; false if the value is not such a list.
func partsText(raw wirejson.Raw) (string, bool) {
	if raw.Type() != wirejson.Array {
		return "", false
	}
	var texts []string
	ok := true
	err := wirejson.DecodeBytes(raw).Arr(func(d *wirejson.Decoder) error {
		switch d.Next() {
		case wirejson.String:
			text, err := d.Str()
			texts = append(texts, text)
			return err
		case wirejson.Object:
			return d.Obj(func(d *wirejson.Decoder, key string) error {
				if key != "text" || d.Next() != wirejson.String {
					return d.Skip()
				}
				text, err := d.Str()
				texts = append(texts, text)
				return err
			})
		}
		ok = false
		return d.Skip()
	})
	return strings.Join(texts, "\n"), ok && err == nil && len(texts) > 0
}

// Compact returns a JSON value without blanks, and with characters outside ASCII unescaped.
func Compact(raw []byte) (string, error) {
	var e wirejson.Encoder
	err := compact(wirejson.DecodeBytes(raw), &e)
	return e.String(), err
}

func compact(d *wirejson.Decoder, e *wirejson.Encoder) (err error) {
	switch d.Next() {
	case wirejson.Object:
		e.ObjStart()
		err = d.Obj(func(d *wirejson.Decoder, key string) error {
			e.FieldStart(key)
			return compact(d, e)
		})
		e.ObjEnd()
	case wirejson.Array:
		e.ArrStart()
		err = d.Arr(func(d *wirejson.Decoder) error { return compact(d, e) })
		e.ArrEnd()
	case wirejson.String:
		var text string
		text, err = d.Str()
		e.Str(text)
	default:
		var raw wirejson.Raw
		raw, err = d.Raw()
		if err == nil {
			e.Raw(raw)
		}
	}
	return err
}
