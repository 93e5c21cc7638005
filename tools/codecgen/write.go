package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"strings"
)

func (pkg *goPackage) writeStruct(b *bytes.Buffer, s goStruct) error {
	if err := pkg.writeEncode(b, s); err != nil {
		return err
	}
	return pkg.writeDecode(b, s)
}

func (pkg *goPackage) writeEncode(b *bytes.Buffer, s goStruct) error {
	fmt.Fprintf(b, "\n// Encode writes x as one JSON object.\nfunc (x *%s) Encode(e *wirejson.Encoder) "+
		"{\ne.ObjStart()\n", s.name)
	for _, f := range s.fields {
		code, err := pkg.codeOf(s, f)
		if err != nil {
			return err
		}
		write := fmt.Sprintf("e.FieldStart(%q)\n%s\n", f.key, code.write)
		switch {
		case f.omitZero:
			write = "if $ != nil {\n" + write + "}\n"
		case f.omitEmpty && code.some != "":
			write = fmt.Sprintf(code.some, f.key)
		case f.omitEmpty:
			write = fmt.Sprintf("if %s {\n%s}\n", code.present, write)
		case code.field != "":
			write = fmt.Sprintf(code.field, f.key)
		}
		if f.host {
			write = "if !inGuest {\n" + write + "}\n"
		}
		b.WriteString(strings.ReplaceAll(write, "$", "x."+f.name))
	}
	fmt.Fprint(b, "e.ObjEnd()\n}\n")
	return nil
}

func (pkg *goPackage) writeDecode(b *bytes.Buffer, s goStruct) error {
	fmt.Fprintf(b, `
// Decode reads x from one JSON value.
func (x *%s) Decode(d *wirejson.Decoder, m Mode) error {
	*x = %s{}
	o := openObject(d)
	for o.next() {
`, s.name, s.name)
	if len(s.fields) == 0 {
		fmt.Fprint(b, "o.unknown(d, m, \"\")\n}\nreturn o.err\n}\n")
		return nil
	}
	var known []string
	for _, f := range s.fields {
		known = append(known, f.key)
	}
	names := strings.Join(known, " ")
	fmt.Fprint(b, "switch o.key {\n")
	for _, f := range s.fields {
		code, err := pkg.codeOf(s, f)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "case %q:\no.err = %s\n", f.key, strings.ReplaceAll(code.read, "$", "x."+f.name))
	}
	fmt.Fprintf(b, "default:\no.unknown(d, m, %q)\n}\n}\nreturn o.err\n}\n", names)
	return nil
}

// code is how a type is written, read and tested for presence; $ stands for the field.
//
// field writes a field with its name, %q; some does the same unless it is empty. They are set if helper functions
// exist: a type has dozens of fields, and a call is a quarter of the size of the code that it replaces.
type code struct{ write, read, present, field, some string }

func (pkg *goPackage) codeOf(s goStruct, f field) (code, error) {
	c, ok := pkg.valueCode(f.typ)
	if !ok {
		return c, fmt.Errorf("%s.%s: no codec for its type", s.name, f.name)
	}
	if f.document {
		c.read = "readDocument(&$, d, m)"
	}
	return c, nil
}

// scalar maps a type to the suffix of its helpers.
func (pkg *goPackage) scalar(name string) (suffix, present string, ok bool) {
	switch name {
	case "string":
		return "String", `$ != ""`, true
	case "bool":
		return "Bool", "$", true
	case "int64":
		return "Int", "$ != 0", true
	case "float64":
		return "Float", "$ != 0", true
	case "Raw":
		return "Raw", "len($) > 0", true
	}
	return "", "", false
}

func (pkg *goPackage) valueCode(t ast.Expr) (code, bool) {
	switch t := t.(type) {
	case *ast.Ident:
		if suffix, present, ok := pkg.scalar(t.Name); ok {
			c := code{write: "write" + suffix + "($, e)", read: "read" + suffix + "(&$, d, m)", present: present}
			switch suffix {
			case "String":
				c.field, c.some = "writeStringField(%q, &$, e)\n", "writeSomeString(%q, &$, e)\n"
			case "Raw":
				c.some = "writeSomeRaw(%q, $, e)\n"
			default:
				c.field, c.some = "write"+suffix+"Field(%q, $, e)\n", "writeSome(%q, $, e, write"+suffix+")\n"
			}
			return c, true
		}
		if pkg.words[t.Name] {
			return code{write: "writeString(string($), e)", read: "readString((*string)(&$), d, m)", present: `$ != ""`,
					field: "writeStringField(%q, (*string)(&$), e)\n", some: "writeSomeString(%q, (*string)(&$), e)\n"},
				true
		}
		if pkg.coded[t.Name] {
			c := code{write: "$.Encode(e)", read: "$.Decode(d, m)", present: "$ != (" + t.Name + "{})"}
			if pkg.lists[t.Name] {
				c.present = "len($) > 0"
			}
			return c, true
		}
	case *ast.StarExpr:
		name := ident(t)
		if suffix, _, ok := pkg.scalar(name); ok {
			return code{write: "writePtr($, e, write" + suffix + ")", read: "readPtr(&$, d, m, read" + suffix + ")",
				present: "$ != nil",
				some:    "writeSomePtr(%q, $, e, write" + suffix + ")\n"}, true
		}
		if pkg.coded[name] {
			return code{write: "writeStructPtr($, e, (*" + name + ").Encode)", read: "readPtr(&$, d, m, (*" + name +
				").Decode)", present: "$ != nil"}, true
		}
	case *ast.ArrayType:
		return pkg.containerCode(t.Elt, "Slice", "Structs", t.Len == nil)
	case *ast.MapType:
		return pkg.containerCode(t.Value, "Map", "StructMap", ident(t.Key) == "string")
	}
	return code{}, false
}

func (pkg *goPackage) containerCode(elem ast.Expr, plain, ofStructs string, ok bool) (code, bool) {
	if list, is := elem.(*ast.ArrayType); is && ok && plain == "Map" && list.Len == nil && ident(list.Elt) == "string" {
		return code{write: "writeMap($, e, writeTexts)", read: "readMap(&$, d, m, readTexts)", present: "len($) > 0"},
			true
	}
	name := ident(elem)
	_, pointer := elem.(*ast.StarExpr)
	suffix, _, scalar := pkg.scalar(name)
	switch {
	case !ok || name == "":
		return code{}, false
	case scalar && pointer:
		suffix += "Ptr"
		fallthrough
	case scalar:
		return code{write: "write" + plain + "($, e, write" + suffix + ")", read: "read" + plain + "(&$, d, m, read" +
			suffix + ")", present: "len($) > 0",
			some: "writeSome" + plain + "(%q, $, e, write" + suffix + ")\n"}, true
	case pkg.coded[name] && !pointer && ofStructs != "":
		method := "(*" + name + ")"
		return code{write: "write" + ofStructs + "($, e, " + method + ".Encode)",
			read: "read" + plain + "(&$, d, m, " + method + ".Decode)", present: "len($) > 0"}, true
	}
	return code{}, false
}
