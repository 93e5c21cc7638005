package main

import (
	"strconv"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// params are a native operation's; each read marks its name as known, and done refuses the others. The first thing that is wrong is kept.
type params struct {
	given map[string]abi.Raw
	known []string
	err   error
}

func (p *params) raw(name string, want jsontext.Type) jsontext.Raw {
	p.known = append(p.known, name)
	value := jsontext.Raw(p.given[name])
	if len(value) == 0 || value.Type() == jsontext.Null {
		return nil
	}
	if value.Type() != want {
		p.fail(name, "want "+want.String())
		return nil
	}
	return value
}

func (p *params) fail(name, what string) {
	if p.err == nil {
		p.err = wrong("params."+name, what)
	}
}

func (p *params) has(name string) bool {
	return len(p.given[name]) > 0 && string(p.given[name]) != "null"
}

func (p *params) text(name string) string {
	value := p.raw(name, jsontext.String)
	if value == nil {
		return ""
	}
	s, err := jsontext.DecodeBytes(value).Str()
	if err != nil {
		p.fail(name, err.Error())
	}
	return s
}

// must is text for one that is required.
func (p *params) must(name string) string {
	s := p.text(name)
	if s == "" {
		p.fail(name, "want a text, found none")
	}
	return s
}

func (p *params) flag(name string) bool {
	value := p.raw(name, jsontext.Bool)
	return value != nil && string(value) == "true"
}

func (p *params) number(name string, least, most, otherwise int64) int64 {
	value := p.raw(name, jsontext.Number)
	if value == nil {
		return otherwise
	}
	n, err := jsontext.DecodeBytes(value).Int64()
	if err != nil || n < least || n > most {
		p.fail(name, "want "+sdk.Itoa(least)+" to "+sdk.Itoa(most)+", found "+string(value))
	}
	return n
}

// share is a number from 0 to 1, in thousandths; 0.8 where it is not given.
func (p *params) share(name string) int64 {
	value := p.raw(name, jsontext.Number)
	if value == nil {
		return 800
	}
	n, err := readShare(jsontext.DecodeBytes(value))
	if err != nil {
		p.fail(name, "want a number from 0 to 1")
	}
	return n
}

// oneOf is text for one of some words; the first is meant where none is given.
func (p *params) oneOf(name string, words ...string) string {
	s := p.text(name)
	if s == "" {
		return words[0]
	}
	for _, w := range words {
		if s == w {
			return s
		}
	}
	what := "want one of"
	for _, w := range words {
		what += " " + w
	}
	p.fail(name, what+", found "+strconv.Quote(s))
	return s
}

// done is the first thing that is wrong, or a name that nobody asked for.
func (p *params) done() error {
	if p.err != nil {
		return p.err
	}
	for name := range p.given {
		found := false
		for _, k := range p.known {
			found = found || k == name
		}
		if !found {
			return wrong("params."+name, "unknown")
		}
	}
	return nil
}

// eachOf calls f with every item of a JSON array.
func eachOf(list []byte, f func(item []byte) error) error {
	d := jsontext.DecodeBytes(list)
	return d.Arr(func(d *jsontext.Decoder) error {
		item, err := d.Raw()
		if err != nil {
			return err
		}
		return f(item)
	})
}
