package abi

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi/wirejson"
)

// MaxNativeSchema is the largest schema of a native query's or mutation's parameters, in bytes.
const MaxNativeSchema = 16 << 10

// ParamNames returns the names of all parameters, in the order of the declaration, and of the required ones.
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

// schemaNames returns the names of a schema's properties and of the required ones. It returns none if the schema has
// another form.
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

// NativeCommand is a parsed Command of a NativeDecl.
type NativeCommand struct {
	// Words are the words before the arguments: [ledger merge].
	Words []string
	// Args are the positional parameters, in order.
	Args []NativeArg
	// Flags maps flags to the parameters that they set, for flags that are not named after their parameter: -n, --into.
	Flags map[string]string
}

// NativeArg is a positional parameter of a command.
type NativeArg struct {
	Param    string
	Optional bool
	// File: the argument is the path of a file that holds the value as JSON.
	File bool
}

// ReadCommand parses the field Command: one or two words, then parameters in capitals. Brackets mark what is optional,
// and @ a parameter that is read from a file. A flag before a parameter is an additional name for the parameter's flag.
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
			return prependPath(list+indexPath(i), e)
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
			return prependPath("show", e)
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

// isNativeName reports whether a name can be part of a tool's name in every protocol.
func isNativeName(name string) bool {
	for _, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '_' && c != '-' {
			return false
		}
	}
	return name != "" && len(name) <= 64
}
