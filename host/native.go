package host

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/schema"
	"github.com/memhost/memhost/internal/declared"
)

// ReasonParams is the error reason for parameters that do not match the declaration of a native query or mutation. The
// module was not called.
const ReasonParams = "params"

// natives are the native queries, or the native mutations, that a provider offers with its configuration.
type natives struct {
	decls []abi.NativeDecl
	// schemas has the schemas of parameters, by name. A declaration without a schema has no entry.
	schemas map[string]*schema.Schema
}

// nativesOf returns the declarations that apply under an effective block, the first of each name, with their schemas.
func nativesOf(decls []abi.NativeDecl, block abi.Raw) (natives, error) {
	list, err := offered(decls, block)
	n := natives{list, map[string]*schema.Schema{}}
	for i := range list {
		if d := &list[i]; len(d.Schema) > 0 && err == nil {
			n.schemas[d.Name], err = schema.Compile(d.Schema)
		}
	}
	return n, err
}

// offered returns the declarations that apply under an effective block, the first of each name.
func offered(decls []abi.NativeDecl, block abi.Raw) (list []abi.NativeDecl, err error) {
	listed := map[string]bool{}
	for _, d := range decls {
		met := d.Pointer == ""
		if !met {
			if met, err = meets(block, d.Pointer, d.Equals); err != nil {
				return nil, err
			}
		}
		if met && !listed[d.Name] {
			listed[d.Name], d.Pointer, d.Equals = true, "", nil
			list = append(list, d)
		}
	}
	return list, nil
}

// Natives returns the native queries and mutations that the manifest declares for a configuration.
//
// Errors: those of Check.
func (m *Module) Natives(provider, word string, block abi.Raw) (queries, mutations []abi.NativeDecl, err error) {
	effective, err := m.Check(provider, word, block)
	if err != nil {
		return nil, nil, err
	}
	if queries, err = offered(m.Manifest.NativeQueries, effective); err != nil {
		return nil, nil, err
	}
	mutations, err = offered(m.Manifest.NativeMutations, effective)
	return queries, mutations, err
}

// declared returns the declaration with a name; nil if there is none.
func (n *natives) declared(name string) *abi.NativeDecl {
	at := slices.IndexFunc(n.decls, func(d abi.NativeDecl) bool { return d.Name == name })
	if at < 0 {
		return nil
	}
	return &n.decls[at]
}

// check validates parameters against the declaration's schema. Undeclared names are left to the module.
//
// Errors: invalid_argument, one line for each mistake, which begins with "params." and its path.
func (n *natives) check(name string, params map[string]abi.Raw) error {
	s := n.schemas[name]
	if s == nil {
		return nil
	}
	text, err := json.Marshal(params)
	if err != nil {
		return abi.WrapError(abi.CodeInvalidArgument, "params: "+err.Error(), err)
	}
	if _, err := s.Apply(nil, text); err != nil {
		return abi.AsError(n.explain(inBlock("params", err), name)).WithReason(ReasonParams)
	}
	return nil
}

// explain adds what the module declares to the error of a native query or mutation: the parameters of the one that was
// asked for, or the names that exist.
func (n *natives) explain(err error, name string) error {
	e := *abi.AsError(err)
	wrong := e.Code == abi.CodeInvalidArgument || e.Code == abi.CodeUnsupported
	d := n.declared(name)
	switch {
	case !wrong || len(n.decls) == 0:
		return err
	case d != nil && strings.HasPrefix(e.Message, "params"):
		e.Hint = joinHints(e.Hint, name+" takes "+cmp.Or(declared.ParamList(d), "no parameters"))
	case d == nil && strings.HasPrefix(e.Message, "name:") && e.Hint == "":
		var names []string
		for i := range n.decls {
			names = append(names, n.decls[i].Name)
		}
		e.Hint = "there are " + strings.Join(names, ", ")
	default:
		return err
	}
	return &e
}
