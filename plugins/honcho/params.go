package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/wire"
)

// params are the parameters of a native query or mutation. err keeps the first error.
type params struct {
	given map[string]abi.Raw
	err   error
}

// rejectUnknown rejects unknown parameters, which Honcho itself would silently ignore.
func (p *params) rejectUnknown(known ...string) {
	for _, name := range abi.SortedKeys(p.given) {
		if !slices.Contains(known, name) {
			p.wrong(name, "not a parameter of this call, which takes "+strings.Join(known, ", "))
		}
	}
}

func (p *params) wrong(name, what string) {
	p.fail(abi.NewError(abi.CodeInvalidArgument, "params."+name+": "+what))
}

func (p *params) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// read reads a parameter into its place; a value of another type is an error.
func (p *params) read(name string, place any) {
	if err := wire.Read(wire.Object{name, p.given[name]}.JSON(), name, place); err != nil {
		p.wrong(name, strings.TrimPrefix(err.Error(), name+": "))
	}
}

func (p *params) text(name string) (text string) {
	p.read(name, &text)
	return text
}

func (p *params) need(name string) string {
	text := p.text(name)
	if text == "" {
		p.wrong(name, "missing or empty")
	}
	return text
}

// integer returns an integer, 0 if it is not set.
func (p *params) integer(name string) (n int64) {
	p.read(name, &n)
	return n
}

// value returns a parameter of a type unchanged, nil if it is not set. Honcho checks its range.
func (p *params) value(name string, t wirejson.Type, what string) any {
	raw := p.given[name]
	switch wire.Kind(raw) {
	case t:
		return raw
	case wirejson.Invalid, wirejson.Null:
	default:
		p.wrong(name, "want "+what)
	}
	return nil
}
