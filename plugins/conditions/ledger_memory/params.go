package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// params are the parameters of a native operation. Each read marks its name as known; done rejects the others. The
// first invalid one is the operation's error.
type params struct {
	l     *ledger
	given map[string]abi.Raw
	known []string
}

// raw returns a value of a type, nil if it is absent or null.
func (p *params) raw(name string, want wirejson.Type) wirejson.Raw {
	p.known = append(p.known, name)
	value := wirejson.Raw(p.given[name])
	if len(value) == 0 || value.Type() == wirejson.Null {
		return nil
	}
	if value.Type() != want {
		p.fail(name, "want "+want.String())
		return nil
	}
	return value
}

func (p *params) fail(name, what string) { p.l.Fail(wrong("params."+name, what)) }

func (p *params) text(name string) string {
	value := p.raw(name, wirejson.String)
	if value == nil {
		return ""
	}
	s, err := wirejson.DecodeBytes(value).Str()
	if err != nil {
		p.fail(name, err.Error())
	}
	return s
}

// must is text for a required parameter.
func (p *params) must(name string) string {
	s := p.text(name)
	if s == "" {
		p.fail(name, "want a text, found none")
	}
	return s
}

func (p *params) flag(name string) bool { return string(p.raw(name, wirejson.Bool)) == "true" }

func (p *params) number(name string, least, most, otherwise int64) int64 {
	value := p.raw(name, wirejson.Number)
	if value == nil {
		return otherwise
	}
	n, err := wirejson.DecodeBytes(value).Int64()
	if err != nil || n < least || n > most {
		p.fail(name, "want "+sdk.Itoa(least)+" to "+sdk.Itoa(most)+", found "+string(value))
	}
	return n
}

// share returns a number from 0 to 1; 0.8 if it is absent.
func (p *params) share(name string) share {
	n := sure
	if value := p.raw(name, wirejson.Number); value != nil && n.DecodeJSON(wirejson.DecodeBytes(value)) != nil {
		p.fail(name, "want a number from 0 to 1")
	}
	return n
}

// oneOf is text for one of some words; the first is the default.
func (p *params) oneOf(name string, words ...string) string {
	s := p.text(name)
	if s == "" {
		return words[0]
	}
	if !slices.Contains(words, s) {
		p.fail(name, "want one of "+strings.TrimSpace(strings.Join(words, " "))+", found "+strconv.Quote(s))
	}
	return s
}

// scope returns the parameter of that name, "" if it is absent.
func (p *params) scope() string { return p.oneOf("scope", "", permanent, session, temporary) }

// rejectUnknown rejects parameters that no read has marked as known.
func (p *params) rejectUnknown() {
	for name := range p.given {
		if !slices.Contains(p.known, name) {
			p.fail(name, "unknown")
		}
	}
}

// branch opens the branch named by the parameter branch, with its view. Call it after reading the other parameters.
func (p *params) branch() (*branch, *view) {
	name := p.text("branch")
	p.rejectUnknown()
	return p.l.onView(name)
}
