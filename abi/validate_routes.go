package abi

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi/wirejson"
)

func (x *ModuleManifest) checkRoutes() *Error {
	for i := range x.Routes {
		r := &x.Routes[i]
		at := "routes" + indexPath(i)
		if e := checkName(at+".name", r.Name); e != nil {
			return e
		}
		if slices.ContainsFunc(x.Routes[:i], func(o RouteDecl) bool { return o.Name == r.Name }) {
			return declaredTwice(at+".name", r.Name)
		}
		protocol, e := x.origin(at+".origin", r.Origin)
		if e != nil {
			return e
		}
		if protocol == ProtocolHTTP {
			e = r.checkHTTP()
			if e == nil {
				e = x.checkLists(r)
			}
		} else {
			e = r.checkBolt()
		}
		if e != nil {
			return prependPath(at, e)
		}
		if e := checkOneOf(at+".class", string(r.Class), string(ClassRead), string(ClassWrite),
			string(ClassAdmin)); e != nil {
			return e
		}
	}
	return nil
}

func (r *RouteDecl) checkHTTP() *Error {
	if r.Statement != "" {
		return invalid("statement", "not of an http origin, want method and path")
	}
	if !isToken(r.Method) || strings.ToUpper(r.Method) != r.Method {
		return invalid("method", wirejson.Quote(shortenString(r.Method))+" is no HTTP method in capitals")
	}
	if e := checkPath("path", r.Path); e != nil {
		return e
	}
	for _, pointer := range SortedKeys(r.Match) {
		at := joinPath("match", keyPath(pointer))
		if e := checkPointer(at, pointer); e != nil {
			return e
		}
		if e := checkRaw(at, r.Match[pointer]); e != nil {
			return e
		}
	}
	return nil
}

// checkLists checks a route's lists of headers and query keys.
func (x *ModuleManifest) checkLists(r *RouteDecl) *Error {
	if x.Manifest >= ManifestLists {
		switch {
		case r.Headers == nil:
			return invalid("headers", "missing, want the headers that the module may set, [] for none")
		case r.Query == nil:
			return invalid("query", "missing, want the query keys that the module may set, [] for none")
		}
	}
	hasSecret := slices.ContainsFunc(x.Secrets, func(s SecretDecl) bool { return s.Origin == r.Origin })
	for i, h := range r.Headers {
		at := "headers" + indexPath(i)
		switch {
		case !isToken(h):
			return invalid(at, wirejson.Quote(shortenString(h))+" is no header name")
		case HostHeader(h, hasSecret):
			return invalid(at, h+" is never a module's to set")
		}
	}
	for i, key := range r.Query {
		if e := checkWord("query"+indexPath(i), key); e != nil {
			return e
		}
	}
	return nil
}

// HostHeader reports whether a guest may never set this request header, in any case. These are headers that frame the
// message, control the connection, ask for a part of an answer, or replace the method or URL that the manifest
// declares. With hasSecret, Accept-Encoding is one too, because the size of a compressed answer can reveal the secret.
func HostHeader(name string, hasSecret bool) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-") // servers behind a gateway interface treat the two as one
	return slices.Contains(hostHeaders, name) || hasSecret && name == "accept-encoding"
}

var hostHeaders = []string{"host", "content-length", "connection", "keep-alive", "proxy-connection",
	"proxy-authorization", "proxy-authenticate",
	"te", "trailer", "transfer-encoding", "upgrade", "expect", "range", "if-range", "x-http-method",
	"x-http-method-override",
	"x-method-override", "x-original-method", "x-forwarded-method", "x-original-url", "x-original-uri",
	"x-original-path",
	"x-original-host",
	"x-rewrite-url", "x-rewrite-uri", "x-envoy-original-path", "x-forwarded-uri", "x-forwarded-url", "x-forwarded-path",
	"x-forwarded-prefix",
	"x-forwarded-host", "x-host"}

func (r *RouteDecl) checkBolt() *Error {
	switch {
	case r.Method != "":
		return invalid("method", "not of a bolt origin, want statement")
	case r.Path != "":
		return invalid("path", "not of a bolt origin, want statement")
	case len(r.Match) > 0:
		return invalid("match", "not of a bolt origin")
	case r.Headers != nil:
		return invalid("headers", "not of a bolt origin, which has none")
	case r.Query != nil:
		return invalid("query", "not of a bolt origin, which has none")
	}
	return checkWord("statement", r.Statement)
}
