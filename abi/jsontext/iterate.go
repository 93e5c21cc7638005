package jsontext

import "github.com/memhost/memhost/abi/words"

// ObjIter goes through the fields of an object.
type ObjIter struct {
	d    *Decoder
	key  []byte
	some bool
	err  error
}

// ObjIter goes into an object. After each Next that returned true the caller reads one value.
func (d *Decoder) ObjIter() (ObjIter, error) {
	err := d.enter('{')
	return ObjIter{d: d, err: err}, err
}

// Next goes to the next field; it returns false behind the last one, or at an error.
func (o *ObjIter) Next() bool {
	if o.err != nil {
		return false
	}
	// A name without escapes, behind a comma or at the beginning, its colon right behind it, here and not through six calls: most of what a module reads is names.
	d := o.d
	at := d.at
	if o.some && at < len(d.text) && d.text[at] == ',' {
		at++
	}
	if begin := at + 1; begin < len(d.text) && d.text[at] == '"' && o.some == (at > d.at) {
		if end := special(d.text, begin); end+1 < len(d.text) && d.text[end] == '"' && d.text[end+1] == ':' {
			o.key, d.at, o.some = d.text[begin:end], end+2, true
			return true
		}
	}
	var more bool
	if more, o.err = d.more('}', !o.some); !more {
		return false
	}
	o.some = true
	d.at = unblank(d.text, d.at)
	o.key, o.err = d.key()
	return o.err == nil
}

// Key is the field's name, good until the text changes.
func (o *ObjIter) Key() []byte { return o.key }

// Name is Key as a string, without a copy: good until the text changes, too.
func (o *ObjIter) Name() string { return words.View(o.key) }

// Err is what ended the iteration early.
func (o *ObjIter) Err() error { return o.err }

// ArrIter goes through the elements of an array.
type ArrIter struct {
	d    *Decoder
	some bool
	err  error
}

// ArrIter goes into an array. After each Next that returned true the caller reads one value.
func (d *Decoder) ArrIter() (ArrIter, error) {
	err := d.enter('[')
	return ArrIter{d: d, err: err}, err
}

// Next goes to the next element; it returns false behind the last one, or at an error.
func (a *ArrIter) Next() bool {
	if a.err != nil {
		return false
	}
	var more bool
	more, a.err = a.d.more(']', !a.some)
	a.some = true
	return more
}

// Err is what ended the iteration early.
func (a *ArrIter) Err() error { return a.err }

// Obj reads an object; f reads the value of each field. The first error ends it and is returned as it is.
func (d *Decoder) Obj(f func(d *Decoder, key string) error) error {
	o, err := d.ObjIter()
	if err != nil {
		return err
	}
	for o.Next() {
		key := o.Name()
		if d.copies {
			key = string(o.key)
		}
		if err := f(d, key); err != nil {
			return err
		}
	}
	return o.err
}

// Arr reads an array; f reads each element. The first error ends it and is returned as it is.
func (d *Decoder) Arr(f func(d *Decoder) error) error {
	a, err := d.ArrIter()
	if err != nil {
		return err
	}
	for a.Next() {
		if err := f(d); err != nil {
			return err
		}
	}
	return a.err
}
