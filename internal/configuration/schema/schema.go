// Package schema checks a native config block against the JSON Schema (draft 2020-12) in a module's manifest.
//
// Compile reads the schema. Schema.Apply merges an operator's block over the module's preset, fills in the defaults,
// validates, and returns the effective block; mistakes are sentences with the place and the nearest right word. The
// package also owns the canonical form of JSON, from which config hashes are computed, and blanks what looks like a
// credential.
//
// A schema comes from a module, and modules are not trusted: nothing is ever loaded for it, sizes are bounded, patterns
// are RE2, and the work of an Apply is counted before it is done.
package schema

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"

	"github.com/memhost/memhost/abi"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// MaxSchema is the largest schema that Compile reads, in bytes.
	MaxSchema = 256 << 10
	// maxValues bounds the JSON values in a schema, because compiling takes time proportional to their square.
	maxValues = 8000
	// maxPattern bounds the instructions of one compiled pattern.
	maxPattern = 2000
	// maxChain is the longest chain of schemas that refer to one another for the same value.
	maxChain = 100

	location = "memhost:config"
	draft    = "https://json-schema.org/draft/2020-12/schema"
)

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct {
	root *jsonschema.Schema
	// at finds a part of the schema by the location that errors name.
	at map[string]*jsonschema.Schema
	// formats are those that Compile was given. messages holds the texts of the keyword errorMessage by JSON Pointer.
	formats  map[string]Format
	messages map[string]string
	// order is the position of each value in the schema's text, by its JSON Pointer.
	order map[string]int
}

// Format is a named check of a text, for memhost's own schemas.
type Format struct {
	Name string
	// Wants describes the accepted texts, like "a string of 1 to 512 bytes".
	Wants string
	// Wrong describes what is wrong with a text, as the continuation of its path; "" if it is right.
	Wrong func(text string) string
}

// Compile reads a JSON Schema. Nil and {} stand for a module without configuration.
//
// Only references into the schema itself are followed ("#/$defs/..."); $id, anchors and dynamic references are
// rejected. "format" is enforced: the standard ones, and formats. The keyword "errorMessage" has the message for a
// value that does not match there; if it starts with "want", what was found is put before it.
//
// Errors: invalid_argument with a message that starts with "config_schema"; the schema is the module's, so the module
// is wrong.
func Compile(raw abi.Raw, formats ...Format) (*Schema, error) {
	if len(raw) > MaxSchema {
		return nil, refuse("has %d bytes, more than the %d that are read", len(raw), MaxSchema)
	}
	if len(raw) == 0 {
		raw = abi.Raw("{}")
	}
	order := map[string]int{}
	doc, err := Decode(raw, func(path []string, _ int) { order[pointer(path)] = len(order) })
	if err != nil {
		return nil, refuse("%v", err)
	}
	if len(order) > maxValues {
		return nil, refuse("has %d values, more than the %d that are read", len(order), maxValues)
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return nil, refuse("want an object, got %s", Show(nil, doc))
	}
	if given, ok := object["$schema"]; ok && given != draft && given != draft+"#" {
		return nil, refuse("$schema: want %s, got %s", draft, Show(nil, given))
	}
	delete(object, "$schema")
	// The schema's own $id does not matter here, and it would make "#/..." point elsewhere.
	delete(object, "$id")
	if err := onlyLocal(object, nil); err != nil {
		return nil, err
	}
	root, err := compile(object, formats)
	if err != nil {
		return nil, err
	}
	s := &Schema{root: root, at: map[string]*jsonschema.Schema{}, order: order, formats: map[string]Format{},
		messages: map[string]string{}}
	for _, f := range formats {
		s.formats[f.Name] = f
	}
	s.index(root)
	collectMessages(object, nil, s.messages)
	if err := s.endless(); err != nil {
		return nil, err
	}
	if err := s.checkDefaults(); err != nil {
		return nil, err
	}
	return s, nil
}

func refuse(format string, args ...any) *abi.Error {
	return abi.NewError(abi.CodeInvalidArgument, "config_schema: "+fmt.Sprintf(format, args...)).
		WithHint("this is a mistake of the module, not of the configuration: tell its author")
}

// onlyLocal rejects keywords that refer to something outside, or by dynamic names, anywhere in the document: even where
// no schema is expected, because a reference could point there.
func onlyLocal(v any, path []string) error {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if err := onlyLocal(e, append(path, strconv.Itoa(i))); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, e := range v {
			at := append(path, key)
			text, isText := e.(string)
			switch {
			case key == "$ref" && isText && text != "#" && !strings.HasPrefix(text, "#/"):
				return refuse("%s: only references into the schema itself are followed, like #/$defs/name; got %s",
					Path(at, nil), Show(nil, e))
			case isText && (key == "$id" || key == "$anchor" || key == "$dynamicRef" || key == "$dynamicAnchor" ||
				key == "$recursiveRef" || key == "$schema"):
				return refuse("%s: not supported here; use $ref with #/$defs/name", Path(at, nil))
			case key == "$vocabulary":
				return refuse("%s: not supported here", Path(at, nil))
			}
			if err := onlyLocal(e, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// compile runs the library on a checked document. The schema is untrusted, so a panic in the library means an unusable
// schema.
func compile(doc any, formats []Format) (s *jsonschema.Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, refuse("cannot be used: %v", p)
		}
	}()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.RegisterFormat(&jsonschema.Format{Name: "uri", Validate: checkURI})
	for _, f := range formats {
		c.RegisterFormat(&jsonschema.Format{Name: f.Name, Validate: func(v any) error {
			if text, ok := v.(string); ok && f.Wrong(text) != "" {
				return errors.New(f.Wrong(text))
			}
			return nil
		}})
	}
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(compilePattern)
	if err := c.AddResource(location, doc); err != nil {
		return nil, refuse("%v", err)
	}
	s, err = c.Compile(location)
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		return nil, refuse("is not a valid schema: %s", firstCause(invalid.Err))
	}
	if err != nil {
		return nil, refuse("%s", strings.ReplaceAll(err.Error(), location, ""))
	}
	return s, nil
}

// collectMessages collects each errorMessage that can be shown. A schema's author is not trusted.
func collectMessages(v any, path []string, into map[string]string) {
	const most = 1000 // bytes
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			collectMessages(e, append(path, strconv.Itoa(i)), into)
		}
	case map[string]any:
		if text, ok := v["errorMessage"].(string); ok && len(text) <= most && !strings.ContainsFunc(text, unicode.IsControl) {
			into[pointer(path)] = text
		}
		for key, e := range v {
			collectMessages(e, append(path, key), into)
		}
	}
}

// checkURI is the format "uri". It also rejects localhost:8000, which formally is a URI of the scheme "localhost".
func checkURI(v any) error {
	text, ok := v.(string)
	if !ok {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || !u.IsAbs() || u.Host == "" && u.Opaque != "" && u.Opaque[0] >= '0' && u.Opaque[0] <= '9' {
		return errors.New("not a whole URL")
	}
	return nil
}

// firstCause summarises the library's tree of errors on one line.
func firstCause(err error) string {
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return err.Error()
	}
	for len(v.Causes) > 0 {
		v = v.Causes[0]
	}
	lines := strings.Split(v.Error(), "\n")
	return strings.TrimPrefix(strings.ReplaceAll(lines[len(lines)-1], location, ""), "- ")
}

// noLoader prevents a schema from loading anything from disk or network.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s: nothing is loaded for a schema", url)
}

// pattern is a regular expression (RE2) with the cost of matching.
type pattern struct {
	*regexp.Regexp
	instructions int
}

var _ jsonschema.Regexp = (*pattern)(nil)

func compilePattern(s string) (jsonschema.Regexp, error) {
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%w (patterns are RE2: no look-around, no back-references)", err)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	if len(prog.Inst) > maxPattern {
		return nil, fmt.Errorf("the pattern compiles to %d instructions, more than %d", len(prog.Inst), maxPattern)
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, err
	}
	return &pattern{re, len(prog.Inst)}, nil
}

// pointerEscapes is made once: making it took a fifth of the time of a short command.
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func pointer(path []string) string {
	var b strings.Builder
	for _, step := range path {
		b.WriteByte('/')
		b.WriteString(pointerEscapes.Replace(step))
	}
	return b.String()
}

// pointerOf is the JSON Pointer within a location that the library names.
func pointerOf(loc string) string {
	_, fragment, _ := strings.Cut(loc, "#")
	p, err := url.PathUnescape(fragment)
	if err != nil {
		return fragment
	}
	return p
}

func (s *Schema) index(root *jsonschema.Schema) {
	queue := []*jsonschema.Schema{root}
	s.at[root.Location] = root
	add := func(n *jsonschema.Schema) {
		if _, seen := s.at[n.Location]; !seen {
			s.at[n.Location] = n
			queue = append(queue, n)
		}
	}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		eachHere(n, add)
		eachInside(n, add)
	}
}

// eachHere visits the schemas that a schema applies to the same value.
func eachHere(s *jsonschema.Schema, visit func(*jsonschema.Schema)) {
	for _, n := range []*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else} {
		if n != nil {
			visit(n)
		}
	}
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for _, n := range list {
			visit(n)
		}
	}
	for _, n := range s.DependentSchemas {
		visit(n)
	}
	for _, n := range s.Dependencies {
		if n, ok := n.(*jsonschema.Schema); ok {
			visit(n)
		}
	}
}

// eachInside visits the schemas that a schema applies to what a value holds.
func eachInside(s *jsonschema.Schema, visit func(*jsonschema.Schema)) {
	for _, n := range s.Properties {
		visit(n)
	}
	for _, n := range s.PatternProperties {
		visit(n)
	}
	for _, n := range s.PrefixItems {
		visit(n)
	}
	for _, n := range []*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.UnevaluatedItems, s.Items2020,
		s.Contains} {
		if n != nil {
			visit(n)
		}
	}
	if n, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		visit(n)
	}
}

// endless rejects a schema that applies itself to the same value again, directly or after a long chain.
func (s *Schema) endless() error {
	const under = -1
	height := map[*jsonschema.Schema]int{}
	var found *jsonschema.Schema
	var walk func(n *jsonschema.Schema) int
	walk = func(n *jsonschema.Schema) int {
		h := height[n]
		if h > 0 || found != nil {
			return h
		}
		if h == under {
			found = n
			return 0
		}
		height[n] = under
		eachHere(n, func(next *jsonschema.Schema) { h = max(h, walk(next)) })
		height[n] = h + 1
		if h+1 > maxChain {
			found = n
		}
		return h + 1
	}
	for _, loc := range sortedKeys(s.at) {
		walk(s.at[loc])
	}
	if found != nil {
		return refuse("the part at %q refers to itself, or passes on, without end", pointerOf(found.Location))
	}
	return nil
}

// checkDefaults rejects a default that its own schema rejects, because no operator could fix it.
func (s *Schema) checkDefaults() error {
	work := newWork()
	for _, loc := range sortedKeys(s.at) {
		n := s.at[loc]
		if n.Default == nil {
			continue
		}
		v, err := work.fill(n, copyValue(*n.Default), 0)
		if err != nil {
			return refuse("the default at %q: %v", pointerOf(n.Location), err)
		}
		if found, err := s.check(work, n, v); err != nil {
			return refuse("the default at %q: %v", pointerOf(n.Location), err)
		} else if len(found) > 0 {
			return refuse("the default at %q does not fit: %s", pointerOf(n.Location), found[0].String())
		}
	}
	return nil
}
