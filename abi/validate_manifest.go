package abi

import (
	"slices"
	"strconv"

	"github.com/memhost/memhost/abi/wirejson"
)

// The protocols of an origin.
const (
	ProtocolHTTP = "http"
	ProtocolBolt = "bolt"
)

// Validate checks that the manifest has the fields that ABI.md requires and is consistent. It reports the first problem
// in the order of the fields. The host checks the rest: that config_schema is a JSON Schema, that empty[].body is RE2,
// and that the module has the exports that the manifest names.
func (x *ModuleManifest) Validate() error {
	for _, check := range []func() *Error{x.checkHead, x.checkProviders, x.checkSchema, x.checkOrigins, x.checkSecrets,
		x.checkEmpty,
		x.checkLimits, x.checkRoutes, x.checkTimes, x.checkModelCalls, x.checkUnsourced, x.checkConformance} {
		if e := check(); e != nil {
			return e
		}
	}
	return nil
}

func (x *ModuleManifest) checkHead() *Error {
	if x.Manifest != ManifestVersion && x.Manifest != ManifestLists {
		return invalid("manifest", "version "+strconv.FormatInt(x.Manifest,
			10)+", want "+itoa(ManifestVersion)+" or "+itoa(ManifestLists))
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
				return prependPath(at+".kind_when"+indexPath(j), e)
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

// checkBoltPointer checks an optional JSON Pointer that only bolt origins may have.
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

func (x *ModuleManifest) checkModelCalls() *Error {
	operations := append(RequiredOperations(), OptionalOperations()...)
	for i, c := range x.ModelCalls {
		at := "model_calls" + indexPath(i)
		if e := checkOperation(at+".operation", c.Operation, operations); e != nil {
			return e
		}
		if e := checkOneOf(at+".model", c.Model, ModelEmbedding, ModelLanguage); e != nil {
			return e
		}
		if e := checkWord(at+".about", c.About); e != nil {
			return e
		}
		if c.Least < 0 {
			return invalid(at+".least", "want 0 or more")
		}
		if c.Pointer == "" {
			if len(c.Equals) > 0 {
				return invalid(at+".equals", "want a pointer, too")
			}
			continue
		}
		if e := checkPointer(at+".pointer", c.Pointer); e != nil {
			return e
		}
		if len(c.Equals) > 0 {
			if e := checkRaw(at+".equals", c.Equals); e != nil {
				return e
			}
		}
	}
	return nil
}

func (x *ModuleManifest) checkUnsourced() *Error {
	for i, u := range x.Unsourced {
		at := "unsourced" + indexPath(i)
		if e := checkWord(at+".about", u.About); e != nil {
			return e
		}
		for k, setting := range u.When {
			at := at + ".when" + indexPath(k)
			if e := checkPointer(at+".pointer", setting.Pointer); e != nil {
				return e
			}
			if len(setting.Equals) > 0 {
				if e := checkRaw(at+".equals", setting.Equals); e != nil {
					return e
				}
			}
		}
	}
	return nil
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
		// The writes of a scope keep their order, so other writes cannot overtake record_event, set-up and reset.
		if e := checkOneOf("yields_scope"+indexPath(i), op, OpWaitUntilReady, OpApplyFeedback, OpNativeMutation); e != nil {
			return e
		}
	}
	if e := x.checkRequires(); e != nil {
		return e
	}
	if e := checkNativeDecls("native_queries", x.NativeQueries); e != nil {
		return e
	}
	return checkNativeDecls("native_mutations", x.NativeMutations)
}

func (x *ModuleManifest) checkRequires() *Error {
	optional := OptionalOperations()
	for i, r := range x.Requires {
		at := "requires" + indexPath(i)
		if !slices.Contains(optional, r.Export) {
			return invalid(at+".export", wirejson.Quote(shortenString(r.Export))+" is no capability"+didYouMean(r.Export,
				optional))
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
	const clauses = 15
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
