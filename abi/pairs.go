package abi

import (
	"github.com/memhost/memhost/abi/jsontext"
	"github.com/memhost/memhost/abi/words"
)

// Pairs is a JSON object of strings, in the order in which it stands: what a guest sends with every native call is one or two names, for which a map is more code
// than all the rest of a request's head.
type Pairs []Pair

// Pair is one name and its value.
type Pair struct{ Name, Value string }

// Get gives the value of the last pair of that name, "" if there is none.
func (p Pairs) Get(name string) string {
	value, _ := p.Find(name)
	return value
}

// Find is Get that tells whether there is one.
func (p Pairs) Find(name string) (value string, ok bool) {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i].Name == name {
			return p[i].Value, true
		}
	}
	return "", false
}

// Set gives the pair of that name a value, and adds one where there is none: an object has a name once.
func (p *Pairs) Set(name, value string) {
	for i := range *p {
		if (*p)[i].Name == name {
			(*p)[i].Value = value
			return
		}
	}
	*p = append(*p, Pair{name, value})
}

// Encode writes p as one JSON object.
func (p *Pairs) Encode(e *jsontext.Encoder) {
	e.ObjStart()
	for i := range *p {
		e.FieldStart((*p)[i].Name)
		e.Str((*p)[i].Value)
	}
	e.ObjEnd()
}

// Decode reads p from one JSON value.
func (p *Pairs) Decode(d *jsontext.Decoder, m Mode) error {
	*p = nil
	o := openObject(d)
	if o.none {
		return o.err
	}
	pairs := Pairs{}
	for o.next() {
		pairs = append(pairs, Pair{Name: words.View(d.Keep(o.fields.Key()))})
		o.err = readString(&pairs[len(pairs)-1].Value, d, m)
	}
	*p = pairs
	return o.err
}

// MarshalJSON is Encode, for encoding/json.
func (p Pairs) MarshalJSON() ([]byte, error) { return Marshal(&p), nil }

// UnmarshalJSON is Decode, for encoding/json.
func (p *Pairs) UnmarshalJSON(text []byte) error { return Unmarshal(text, p) }
