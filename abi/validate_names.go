package abi

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi/wirejson"
)

// origin returns the protocol of the origin called name.
func (x *ModuleManifest) origin(path, name string) (protocol string, e *Error) {
	names := make([]string, 0, len(x.Origins))
	for _, o := range x.Origins {
		if o.Name == name {
			return o.Protocol, nil
		}
		names = append(names, o.Name)
	}
	return "", notDeclared(path, name, "origin", names)
}

func (x *ModuleManifest) checkRouteName(path, name string) *Error {
	names := make([]string, 0, len(x.Routes))
	for i := range x.Routes {
		if x.Routes[i].Name == name {
			return nil
		}
		names = append(names, x.Routes[i].Name)
	}
	return notDeclared(path, name, "route", names)
}

func notDeclared(path, name, what string, known []string) *Error {
	if name == "" {
		return invalid(path, "missing or empty")
	}
	return invalid(path, "no "+what+" "+wirejson.Quote(shortenString(name))+didYouMean(name, known))
}

func declaredTwice(path, name string) *Error {
	return invalid(path, wirejson.Quote(name)+" is declared twice")
}

func checkOperation(path, name string, known []string) *Error {
	if slices.Contains(known, name) {
		return nil
	}
	return invalid(path, wirejson.Quote(shortenString(name))+" is no operation"+didYouMean(name, known))
}

func checkOneOf(path, value string, allowed ...string) *Error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return invalid(path, wirejson.Quote(shortenString(value))+" is not one of "+strings.Join(allowed, ", "))
}

// checkName checks names that appear in configuration, native ids and logs: ^[a-z][a-z0-9_]{0,63}$.
func checkName(path, name string) *Error {
	if isName(name) {
		return nil
	}
	if name == "" {
		return invalid(path, "missing or empty")
	}
	return invalid(path, wirejson.Quote(shortenString(name))+
		" is no name: want a small letter, then up to 63 small letters, digits and underscores")
}

func isName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if letter := c >= 'a' && c <= 'z'; !letter && (i == 0 || c != '_' && !isDigit(c)) {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// checkPointer checks an RFC 6901 JSON Pointer. It rejects the empty pointer (the whole value), which no caller can
// use.
func checkPointer(path, s string) *Error {
	ok := strings.HasPrefix(s, "/")
	for i := range len(s) {
		if s[i] == '~' && (i+1 == len(s) || s[i+1] != '0' && s[i+1] != '1') {
			ok = false
		}
	}
	if !ok {
		return invalid(path, wirejson.Quote(shortenString(s))+" is no JSON Pointer, such as /url")
	}
	return checkText(path, s)
}

// checkPath checks a route's path: it starts with /, has only characters of a URL's path, and may contain parameters as
// in /peers/{peer}.
func checkPath(path, s string) *Error {
	if !strings.HasPrefix(s, "/") {
		return invalid(path, wirejson.Quote(shortenString(s))+" does not start with /")
	}
	var params []string
	for rest := s; rest != ""; {
		c := rest[0]
		if c != '{' {
			if c <= ' ' || c >= 0x7f || strings.IndexByte(`"#<>?\^`+"`|}", c) >= 0 {
				return invalid(path, wirejson.Quote(rest[:1])+" cannot stand in a path")
			}
			rest = rest[1:]
			continue
		}
		name, after, closed := strings.Cut(rest[1:], "}")
		switch {
		case !closed:
			return invalid(path, "{ without }")
		case !isName(name):
			return invalid(path, wirejson.Quote("{"+shortenString(name)+"}")+
				" is no parameter: want small letters, digits and underscores")
		case slices.Contains(params, name):
			return invalid(path, "parameter {"+name+"} occurs twice")
		}
		params = append(params, name)
		rest = after
	}
	return nil
}

// isToken reports whether s is a token of RFC 9110, as methods and header names are.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// isObject reports whether v is a JSON object.
func isObject(v Raw) bool {
	return ValidJSON(v) && wirejson.Raw(v).Type() == wirejson.Object
}
