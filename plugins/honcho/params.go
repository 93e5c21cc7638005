package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
)

// params are the parameters of a native query or mutation. The first thing that is wrong with them stays in err.
type params struct {
	given map[string]abi.Raw
	err   error
}

// only refuses parameters that are not known: Honcho itself ignores them in silence.
func (p *params) only(known ...string) {
	for _, name := range abi.SortedKeys(p.given) {
		if !slices.Contains(known, name) {
			p.wrong(name, "not a parameter of this call, which takes "+strings.Join(known, ", "))
		}
	}
}

//go:noinline
func (p *params) wrong(name, what string) {
	if p.err == nil {
		p.err = abi.NewError(abi.CodeInvalidArgument, "params."+name+": "+what)
	}
}

// is tells whether a parameter is given; one of another type is wrong.
//
//go:noinline
func (p *params) is(name string, t jsontext.Type, what string) bool {
	raw, ok := p.given[name]
	if !ok || len(raw) == 0 || jsontext.Raw(raw).Type() == jsontext.Null {
		return false
	}
	if jsontext.Raw(raw).Type() != t {
		p.wrong(name, "want "+what)
		return false
	}
	return true
}

//go:noinline
func (p *params) text(name string) string {
	if !p.is(name, jsontext.String, "a string") {
		return ""
	}
	text, err := jsontext.DecodeBytes(p.given[name]).Str()
	if err != nil {
		p.wrong(name, err.Error())
	}
	return text
}

//go:noinline
func (p *params) need(name string) string {
	text := p.text(name)
	if text == "" {
		p.wrong(name, "missing or empty")
	}
	return text
}

func (p *params) texts(name string) (texts []string) {
	if !p.is(name, jsontext.Array, "a list of strings") {
		return nil
	}
	err := jsontext.DecodeBytes(p.given[name]).Arr(func(d *jsontext.Decoder) error {
		text, err := d.Str()
		texts = append(texts, text)
		return err
	})
	if err != nil {
		p.wrong(name, "want a list of strings")
	}
	return texts
}

// whole is an integer, 0 where it is not given.
//
//go:noinline
func (p *params) whole(name string) int64 {
	if !p.is(name, jsontext.Number, "an integer") {
		return 0
	}
	var n int64
	if err := readNumber(jsontext.DecodeBytes(p.given[name]), &n); err != nil {
		p.wrong(name, "want an integer")
	}
	return n
}

// copy writes given parameters of a type into an object as they are. Honcho checks their range.
//
//go:noinline
func (p *params) copy(e *jsontext.Encoder, t jsontext.Type, what string, names ...string) {
	for _, name := range names {
		if p.is(name, t, what) {
			e.FieldStart(name)
			e.Raw(jsontext.Raw(p.given[name]))
		}
	}
}
