package wirejson

import "strings"

// ObjIter goes through the fields of an object.
type ObjIter struct {
	d    *Decoder
	name string
	some bool
	err  error
}

// ObjIter goes into an object. After each Next that returned true the caller reads one value.
func (d *Decoder) ObjIter() (ObjIter, error) {
	err := d.enter('{')
	return ObjIter{d: d, err: err}, err
}

// Next goes to the next field; it returns false after the last one, or at an error.
func (o *ObjIter) Next() bool {
	if o.err != nil {
		return false
	}
	d := o.d
	more, err := d.more('}', !o.some)
	if !more {
		o.err = err
		return false
	}
	o.some = true
	inner, escaped, err := d.span()
	if err == nil {
		err = d.consume(':')
	}
	if err != nil {
		o.err = err
		return false
	}
	if escaped {
		inner = unescape(nil, inner)
	}
	o.name = view(inner)
	return true
}

// Name is the field's name. Without escapes it refers to the text, also where the Decoder is Copying: it is for
// comparing.
func (o *ObjIter) Name() string { return o.name }

// Key is Name as it may be kept.
func (o *ObjIter) Key() string {
	if o.d.copies {
		return strings.Clone(o.name)
	}
	return o.name
}

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

// Next goes to the next element; it returns false after the last one, or at an error.
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
		if err := f(d, o.Key()); err != nil {
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

// enter goes into an array or object.
func (d *Decoder) enter(open byte) error {
	if d.peek() != open {
		return d.unexpected()
	}
	if d.depth++; d.depth > d.limit {
		return &SyntaxError{At: d.at, What: nestedDeep}
	}
	d.at++
	return nil
}

// more is between two elements, or before the first: it reports whether there is a further one, and leaves the array or
// object where there is none.
func (d *Decoder) more(closing byte, first bool) (bool, error) {
	switch c := d.peek(); {
	case c == closing:
		d.at++
		d.depth--
		return false, nil
	case first:
		return true, nil
	case c == ',':
		d.at++
		return true, nil
	}
	return false, d.unexpected()
}
