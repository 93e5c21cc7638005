package abi

import (
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi/wirejson"
)

// The protocols of an origin.
const (
	ProtocolHTTP = "http"
	ProtocolBolt = "bolt"
)

// Validate checks that the manifest agrees with CONTRACT section 5 and with itself, and reports the first problem in
// the order of the fields. It leaves to the host what needs more than the manifest: whether config_schema is a JSON
// Schema, whether empty[].body is RE2, and whether the module has the exports that are named.
func (x *ModuleManifest) Validate() error {
	for _, check := range []func() *Error{x.checkHead, x.checkProviders, x.checkSchema, x.checkOrigins, x.checkSecrets, x.checkEmpty,
		x.checkLimits, x.checkRoutes, x.checkTimes, x.checkConformance} {
		if e := check(); e != nil {
			return e
		}
	}
	return nil
}

func (x *ModuleManifest) checkHead() *Error {
	if x.Manifest != ManifestVersion && x.Manifest != ManifestLists {
		return invalid("manifest", "version "+strconv.FormatInt(x.Manifest, 10)+", want "+itoa(ManifestVersion)+" or "+itoa(ManifestLists))
	}
	if e := checkName("name", x.Name); e != nil {
		return e
	}
	if e := checkWord("version", x.Version); e != nil {
		return e
	}
	if e := checkOneOf("abi", x.ABI, ABIMemhost, ABIExtism); e != nil {
		return e
	}
	if e := checkText("description", x.Description); e != nil {
		return e
	}
	return checkText("homepage", x.Homepage)
}

func (x *ModuleManifest) checkProviders() *Error {
	if len(x.Providers) == 0 {
		return invalid("providers", "want at least one provider")
	}
	for i, p := range x.Providers {
		at := "providers" + indexPath(i)
		if e := checkName(at+".name", p.Name); e != nil {
			return e
		}
		if slices.ContainsFunc(x.Providers[:i], func(o ProviderDecl) bool { return o.Name == p.Name }) {
			return declaredTwice(at+".name", p.Name)
		}
		if e := checkOneOf(at+".kind", string(p.Kind), string(KindArchitecture), string(KindControl)); e != nil {
			return e
		}
		if len(p.Preset) > 0 && !isObject(p.Preset) {
			return invalid(at+".preset", "want an object")
		}
		for j := range p.KindWhen {
			if e := p.KindWhen[j].check(); e != nil {
				return under(at+".kind_when"+indexPath(j), e)
			}
		}
	}
	return nil
}

func (r *KindRule) check() *Error {
	if e := checkPointer("pointer", r.Pointer); e != nil {
		return e
	}
	if len(r.Equals) == 0 {
		return invalid("equals", "missing")
	}
	if e := checkRaw("equals", r.Equals); e != nil {
		return e
	}
	return checkOneOf("kind", string(r.Kind), string(KindArchitecture), string(KindControl))
}

func (x *ModuleManifest) checkSchema() *Error {
	if !isObject(x.ConfigSchema) {
		return invalid("config_schema", "want an object")
	}
	return nil
}

func (x *ModuleManifest) checkOrigins() *Error {
	for i, o := range x.Origins {
		at := "origins" + indexPath(i)
		if e := checkName(at+".name", o.Name); e != nil {
			return e
		}
		if slices.ContainsFunc(x.Origins[:i], func(p OriginDecl) bool { return p.Name == o.Name }) {
			return declaredTwice(at+".name", o.Name)
		}
		if e := checkPointer(at+".from", o.From); e != nil {
			return e
		}
		if e := checkOneOf(at+".protocol", o.Protocol, ProtocolHTTP, ProtocolBolt); e != nil {
			return e
		}
		if e := checkBoltPointer(at+".database_from", o.DatabaseFrom, o.Protocol); e != nil {
			return e
		}
	}
	return nil
}

func (x *ModuleManifest) checkSecrets() *Error {
	for i, s := range x.Secrets {
		at := "secrets" + indexPath(i)
		if e := checkName(at+".name", s.Name); e != nil {
			return e
		}
		if slices.ContainsFunc(x.Secrets[:i], func(o SecretDecl) bool { return o.Name == s.Name }) {
			return declaredTwice(at+".name", s.Name)
		}
		if e := checkPointer(at+".from", s.From); e != nil {
			return e
		}
		for j, h := range s.Headers {
			if !isToken(h) {
				return invalid(at+".headers"+indexPath(j), wirejson.Quote(shortenString(h))+" is no header name")
			}
		}
		protocol, e := x.origin(at+".origin", s.Origin)
		if e != nil {
			return e
		}
		if e := checkBoltPointer(at+".user_from", s.UserFrom, protocol); e != nil {
			return e
		}
		if protocol != ProtocolBolt {
			continue
		}
		if len(s.Headers) > 0 {
			return invalid(at+".headers", "not of a bolt origin, which has none")
		}
		if slices.ContainsFunc(x.Secrets[:i], func(o SecretDecl) bool { return o.Origin == s.Origin }) {
			return invalid(at+".origin", "bolt origin "+wirejson.Quote(s.Origin)+" has a secret already")
		}
	}
	return nil
}

// checkBoltPointer checks an optional JSON Pointer that only a bolt origin has.
func checkBoltPointer(path, pointer, protocol string) *Error {
	switch {
	case pointer == "":
		return nil
	case protocol != ProtocolBolt:
		return invalid(path, "only of a bolt origin")
	}
	return checkPointer(path, pointer)
}

func (x *ModuleManifest) checkEmpty() *Error {
	for i, m := range x.Empty {
		at := "empty" + indexPath(i)
		if e := x.checkRouteName(at+".route", m.Route); e != nil {
			return e
		}
		if m.Status < 100 || m.Status > 599 {
			return invalid(at+".status", strconv.FormatInt(m.Status, 10)+" is no HTTP status")
		}
		if e := checkText(at+".body", m.Body); e != nil {
			return e
		}
	}
	return nil
}

func (x *ModuleManifest) checkLimits() *Error {
	for i, l := range x.Limits {
		at := "limits" + indexPath(i)
		if e := x.checkRouteName(at+".route", l.Route); e != nil {
			return e
		}
		if e := checkWord(at+".field", l.Field); e != nil {
			return e
		}
		switch {
		case l.Native < 0 || l.Native == 0 && l.Ceiling == 0:
			return invalid(at+".native", "want at least 1, or a ceiling in its place")
		case l.Ceiling < 0:
			return invalid(at+".ceiling", "negative")
		case l.TokensPerItem < 0:
			return invalid(at+".tokens_per_item", "negative")
		case (l.Pointer == "") != (len(l.Equals) == 0):
			return invalid(at+".equals", "want pointer and equals, or neither")
		}
		if e := checkWord(at+".because", l.Because); e != nil {
			return e
		}
	}
	return nil
}

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
			return under(at, e)
		}
		if e := checkOneOf(at+".class", string(r.Class), string(ClassRead), string(ClassWrite), string(ClassAdmin)); e != nil {
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

// checkLists checks what a route lets a guest set.
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

// HostHeader reports whether a request header, in any case, is never a guest's to set: it frames the message, steers the
// connection, asks for a part of an answer, or replaces the method or URL that the manifest declares. Accept-Encoding is one where
// the origin holds a secret, since the size of a compressed answer can give the secret away.
func HostHeader(name string, hasSecret bool) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-") // servers behind a gateway interface take both for one
	return slices.Contains(hostHeaders, name) || hasSecret && name == "accept-encoding"
}

var hostHeaders = []string{"host", "content-length", "connection", "keep-alive", "proxy-connection", "proxy-authorization", "proxy-authenticate",
	"te", "trailer", "transfer-encoding", "upgrade", "expect", "range", "if-range", "x-http-method", "x-http-method-override",
	"x-method-override", "x-original-method", "x-forwarded-method", "x-original-url", "x-original-uri", "x-original-path", "x-original-host",
	"x-rewrite-url", "x-rewrite-uri", "x-envoy-original-path", "x-forwarded-uri", "x-forwarded-url", "x-forwarded-path", "x-forwarded-prefix",
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

func (x *ModuleManifest) checkTimes() *Error {
	operations := append(RequiredOperations(), OptionalOperations()...)
	for _, op := range SortedKeys(x.DeadlinesMS) {
		at := joinPath("deadlines_ms", keyPath(op))
		if e := checkOperation(at, op, operations); e != nil {
			return e
		}
		if x.DeadlinesMS[op] <= 0 {
			return invalid(at, "want more than 0")
		}
	}
	if x.SettleMS < 0 {
		return invalid("settle_ms", "negative")
	}
	for i, b := range x.Background {
		at := "background" + indexPath(i)
		if e := checkOneOf(at+".export", b.Export, OpWaitUntilReady, OpReadiness); e != nil {
			return e
		}
		if b.IntervalMS <= 0 {
			return invalid(at+".interval_ms", "want more than 0")
		}
		if e := checkOneOf(at+".class", string(b.Class), string(ClassRead), string(ClassWrite)); e != nil {
			return e
		}
	}
	for i, op := range x.YieldsScope {
		// The writes of a scope keep their order, so that record_event, set-up and reset cannot let others pass.
		if e := checkOneOf("yields_scope"+indexPath(i), op, OpWaitUntilReady, OpApplyFeedback, OpNativeMutation); e != nil {
			return e
		}
	}
	return x.checkRequires()
}

func (x *ModuleManifest) checkRequires() *Error {
	optional := OptionalOperations()
	for i, r := range x.Requires {
		at := "requires" + indexPath(i)
		if !slices.Contains(optional, r.Export) {
			return invalid(at+".export", wirejson.Quote(shortenString(r.Export))+" is no capability"+didYouMean(r.Export, optional))
		}
		if e := checkPointer(at+".pointer", r.Pointer); e != nil {
			return e
		}
		if len(r.Equals) > 0 {
			if e := checkRaw(at+".equals", r.Equals); e != nil {
				return e
			}
		}
		if e := checkWord(at+".because", r.Because); e != nil {
			return e
		}
	}
	return nil
}

func (x *ModuleManifest) checkConformance() *Error {
	if x.Conformance == nil {
		return nil
	}
	const clauses = 13
	for i, n := range x.Conformance.NotApplicable {
		at := "conformance.not_applicable" + indexPath(i)
		if n.Clause < 1 || n.Clause > clauses {
			return invalid(at+".clause", "want 1 to "+itoa(clauses))
		}
		if e := checkWord(at+".because", n.Because); e != nil {
			return e
		}
		if n.Unless != "" {
			if e := checkPointer(at+".unless", n.Unless); e != nil {
				return e
			}
		}
		if n.Pointer != "" || len(n.Equals) > 0 {
			if e := checkPointer(at+".pointer", n.Pointer); e != nil {
				return e
			}
			if len(n.Equals) == 0 {
				return invalid(at+".equals", "missing")
			}
			if e := checkRaw(at+".equals", n.Equals); e != nil {
				return e
			}
		}
		if n.Part == "" && slices.Contains([]int64{3, 4, 6, 10, 11, 13}, n.Clause) {
			return invalid(at+".part", "missing: clause "+strconv.FormatInt(n.Clause, 10)+" cannot be left out as a whole")
		}
	}
	return nil
}

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

func didYouMean(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return ", did you mean " + wirejson.Quote(near) + "?"
	}
	return ""
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
	return invalid(path, wirejson.Quote(shortenString(value))+" is none of "+strings.Join(allowed, ", "))
}

// checkName checks names that stand in configuration, native ids and logs: ^[a-z][a-z0-9_]{0,63}$.
func checkName(path, name string) *Error {
	if isName(name) {
		return nil
	}
	if name == "" {
		return invalid(path, "missing or empty")
	}
	return invalid(path, wirejson.Quote(shortenString(name))+" is no name: want a small letter, then up to 63 small letters, digits and underscores")
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

// checkPointer checks an RFC 6901 JSON Pointer. The empty one, the whole value, is not of use where it is called.
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

// checkPath checks a route's path: from /, in the characters of a URL's path, with parameters as in /peers/{peer}.
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
			return invalid(path, wirejson.Quote("{"+shortenString(name)+"}")+" is no parameter: want small letters, digits and underscores")
		case slices.Contains(params, name):
			return invalid(path, "parameter {"+name+"} occurs twice")
		}
		params = append(params, name)
		rest = after
	}
	return nil
}

// isToken tells whether s is a token of RFC 9110: a method, or a header's name.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// isObject tells whether v is a JSON object.
func isObject(v Raw) bool {
	return ValidJSON(v) && wirejson.Raw(v).Type() == wirejson.Object
}
