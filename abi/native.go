package abi

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi/wirejson"
)

// MaxNativeSchema is the largest schema of a native query's or mutation's parameters, in bytes.
const MaxNativeSchema = 16 << 10

// ParamNames are the names of the parameters, in the order of the declaration, and those that may not be left out.
//
//	"query, limit?"  ->  [query limit], [query]
func (x *NativeDecl) ParamNames() (names, required []string) {
	if len(x.Schema) > 0 {
		return schemaNames(x.Schema)
	}
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

// schemaNames reads the names of a schema's properties and the required ones. A schema of another form has none.
func schemaNames(schema Raw) (names, required []string) {
	d := wirejson.DecodeBytes(schema)
	for o := openObject(d); o.next(); {
		switch {
		case o.key == "properties" && d.Next() == wirejson.Object:
			o.err = d.Obj(func(d *wirejson.Decoder, name string) error {
				names = append(names, name)
				return d.Skip()
			})
		case o.key == "required" && d.Next() == wirejson.Array:
			o.err = d.Arr(func(d *wirejson.Decoder) error {
				name, err := d.Str()
				required = append(required, name)
				return err
			})
		default:
			o.err = d.Skip()
		}
	}
	return names, required
}

// NativeCommand is the field Command of a NativeDecl, read.
type NativeCommand struct {
	// Words are those before the arguments: [ledger merge].
	Words []string
	// Args are the parameters that are arguments, in order.
	Args []NativeArg
	// Flags are the parameters that have a flag under another name than their own, by that flag: -n, --into.
	Flags map[string]string
}

// NativeArg is a parameter that is an argument of a command.
type NativeArg struct {
	Param    string
	Optional bool
	// File: the argument names a file, which holds the value as JSON.
	File bool
}

// ReadCommand reads the field Command: one or two words, then parameters, in capitals. What stands in brackets may be
// left out, @ is before the name of a file, and a flag before a parameter is another name for its flag.
//
//	ledger merge SOURCE [--into TARGET]
//	dream log [SHA]
//	ledger import @EXPORT
//
// Errors: invalid_argument.
func (x *NativeDecl) ReadCommand() (*NativeCommand, error) {
	c := &NativeCommand{Flags: map[string]string{}}
	names, _ := x.ParamNames()
	wrong := func(what string) error { return invalid("command", what+": "+wirejson.Quote(shortenString(x.Command))) }
	flag := ""
	for word := range strings.FieldsSeq(x.Command) {
		inner := strings.Trim(word, "[]")
		optional := inner != word
		switch name := strings.ToLower(strings.TrimPrefix(inner, "@")); {
		case strings.HasPrefix(inner, "-") && isNativeName(strings.TrimLeft(inner, "-")):
			flag = inner
		case inner == name && flag == "" && len(c.Args)+len(c.Flags) == 0 && isNativeName(name) && len(c.Words) < 2:
			c.Words = append(c.Words, name)
		case inner == name || !slices.Contains(names, name):
			return nil, wrong(wirejson.Quote(inner) + " is no parameter")
		case flag != "":
			c.Flags[flag], flag = name, ""
		default:
			c.Args = append(c.Args, NativeArg{name, optional, strings.HasPrefix(inner, "@")})
		}
	}
	if len(c.Words) == 0 || flag != "" {
		return nil, wrong("want one or two words, then parameters in capitals")
	}
	return c, nil
}

func checkNativeDecls(list string, decls []NativeDecl) *Error {
	for i := range decls {
		if e := decls[i].check(); e != nil {
			return under(list+indexPath(i), e)
		}
	}
	return nil
}

func (x *NativeDecl) check() *Error {
	if !isNativeName(x.Name) {
		return invalid("name", "want letters, digits, _ and -, found "+wirejson.Quote(shortenString(x.Name)))
	}
	place := "params"
	if len(x.Schema) > 0 {
		place = "schema.properties"
		switch {
		case x.Params != "":
			return invalid("params", "want schema or params, not both")
		case len(x.Schema) > MaxNativeSchema:
			return invalid("schema", "has "+itoa(len(x.Schema))+" bytes, more than "+itoa(MaxNativeSchema))
		case x.Schema[0] != '{':
			return invalid("schema", "want an object")
		}
		if e := checkRaw("schema", x.Schema); e != nil {
			return e
		}
	}
	names, _ := x.ParamNames()
	for _, name := range names {
		if !isNativeName(name) {
			return invalid(place, "want letters, digits, _ and - in a name, found "+wirejson.Quote(shortenString(name)))
		}
	}
	if x.Command != "" {
		if _, err := x.ReadCommand(); err != nil {
			return AsError(err)
		}
	}
	if x.Show != nil {
		if e := x.Show.check(); e != nil {
			return under("show", e)
		}
	}
	if x.Failed != nil {
		if e := checkPointer("failed.pointer", x.Failed.Pointer); e != nil {
			return e
		}
		if len(x.Failed.Equals) == 0 {
			return invalid("failed.equals", "missing")
		}
		if e := checkRaw("failed.equals", x.Failed.Equals); e != nil {
			return e
		}
	}
	if x.Pointer == "" {
		return nil
	}
	if e := checkPointer("pointer", x.Pointer); e != nil {
		return e
	}
	if len(x.Equals) > 0 {
		return checkRaw("equals", x.Equals)
	}
	return nil
}

func (x *ShowDecl) check() *Error {
	if e := checkOneOf("as", x.As, ShowTable, ShowList, ShowText, ShowFiles); e != nil {
		return e
	}
	if (x.As == ShowTable) != (len(x.Columns) > 0) {
		return invalid("columns", "want columns for a table, and for nothing else")
	}
	pointers := []struct{ at, pointer string }{{"at", x.At}, {"next", x.Next}}
	for i, c := range x.Columns {
		at := "columns" + indexPath(i)
		if e := checkWord(at+".title", c.Title); e != nil {
			return e
		}
		if c.Cut < 0 {
			return invalid(at+".cut", "negative")
		}
		pointers = append(pointers, struct{ at, pointer string }{at + ".at", c.At})
	}
	for i, p := range x.Below {
		pointers = append(pointers, struct{ at, pointer string }{"below" + indexPath(i), p})
	}
	for _, p := range pointers {
		if p.pointer == "" {
			continue
		}
		if e := checkPointer(p.at, p.pointer); e != nil {
			return e
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
