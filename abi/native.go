package abi

import (
	"strings"

	"github.com/memhost/memhost/abi/wirejson"
)

// ParamNames are the names in Params, and those that may not be left out.
//
//	"query, limit?"  ->  [query limit], [query]
func (x *NativeDecl) ParamNames() (names, required []string) {
	for name := range strings.SplitSeq(x.Params, ",") {
		name = strings.TrimSpace(name)
		may, optional := strings.CutSuffix(name, "?")
		if name == "" {
			continue
		}
		names = append(names, may)
		if !optional {
			required = append(required, may)
		}
	}
	return names, required
}

func checkNativeDecls(list string, decls []NativeDecl) *Error {
	for i, n := range decls {
		at := list + indexPath(i)
		if !isNativeName(n.Name) {
			return invalid(at+".name", "want letters, digits, _ and -, found "+wirejson.Quote(shortenString(n.Name)))
		}
		names, _ := n.ParamNames()
		for _, name := range names {
			if !isNativeName(name) {
				return invalid(at+".params", "want names with commas between them, found "+
					wirejson.Quote(shortenString(name)))
			}
		}
		if n.Pointer == "" {
			continue
		}
		if e := checkPointer(at+".pointer", n.Pointer); e != nil {
			return e
		}
		if len(n.Equals) > 0 {
			if e := checkRaw(at+".equals", n.Equals); e != nil {
				return e
			}
		}
	}
	return nil
}

// isNativeName reports whether a name can be part of the name of a tool everywhere.
func isNativeName(name string) bool {
	for _, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '_' && c != '-' {
			return false
		}
	}
	return name != "" && len(name) <= 64
}
