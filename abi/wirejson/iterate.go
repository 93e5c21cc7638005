package wirejson

import "strings"

// ObjIter iterates over the fields of an object.
type ObjIter struct {
	d    *Decoder
	name string
	some bool
	err  error
}

// ObjIter enters an object. After each Next that returned true, the caller must read one value.
func (d *Decoder) ObjIter() (ObjIter, error) {
	err := d.enter('{')
	return ObjIter{d: d, err: err}, err
}

// Next advances to the next field. It returns false after the last one, or on an error.
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

// Name returns the field's name, for comparing. Without escapes it refers to the text, even if the Decoder is Copying.
func (o *ObjIter) Name() string { return o.name }

// Key returns the field's name in a form that may be kept; see Decoder.Keep.
func (o *ObjIter) Key() string {
	if o.d.copies {
		return strings.Clone(o.name)
	}
	return o.name
}

// Err returns the error that ended the iteration, if any.
func (o *ObjIter) Err() error { return o.err }

// ArrIter iterates over the elements of an array.
type ArrIter struct {
	d    *Decoder
	some bool
	err  error
}

// ArrIter enters an array. After each Next that returned true, the caller must read one value.
func (d *Decoder) ArrIter() (ArrIter, error) {
	err := d.enter('[')
	return ArrIter{d: d, err: err}, err
}

// Next advances to the next element. It returns false after the last one, or on an error.
func (a *ArrIter) Next() bool {
	if a.err != nil {
		return false
	}
	var more bool
	more, a.err = a.d.more(']', !a.some)
	a.some = true
	return more
}

// Err returns the error that ended the iteration, if any.
func (a *ArrIter) Err() error { return a.err }

// Obj reads an object and calls f for each field; f must read the field's value. Obj stops at the first error and
// returns it unchanged.
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

// Arr reads an array and calls f for each element; f must read the element. Arr stops at the first error and returns it
// unchanged.
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

// enter enters an array or object.
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

// more reports whether there is another element. It is called before the first element and after each one, and leaves
// the array or object after the last.
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
