// Package declared reads what a module declares of its native queries and mutations, for every door: the parameters
// for flags and forms, and texts and schemas for models.
//
// A manifest is the words of a stranger. Text removes control characters and bounds a text, and Schema does so with a
// whole schema and keeps only what describes a value. A caller that shows the result to a model must say that it is the
// module's text.
package declared

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/memhost/memhost/abi"
)

// Kind is the form in which a person gives a parameter.
type Kind string

// The kinds. JSON is for lists and objects. Any is for what has no type: JSON, or else a text.
const (
	KindText    Kind = "text"
	KindInteger Kind = "integer"
	KindNumber  Kind = "number"
	KindBoolean Kind = "boolean"
	KindTexts   Kind = "texts"
	KindJSON    Kind = "JSON"
	KindAny     Kind = "any"
)

// Param is a parameter of a native query or mutation.
type Param struct {
	Name, About string
	Kind        Kind
	// Choices are the texts that the parameter can have; nil if it can have any.
	Choices  []string
	Required bool
}

const (
	// MaxAbout bounds the text about a query, a mutation or a parameter, in characters.
	MaxAbout = 300
	// maxSchema bounds a schema that Schema returns, in bytes.
	maxSchema = 8 << 10
)

// Text is a stranger's text in a line, without control characters and other marks that cannot be seen, and cut after n
// characters.
func Text(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if cut := []rune(s); len(cut) > n {
		s = strings.TrimSpace(string(cut[:n])) + "..."
	}
	return s
}

// Params are a declaration's parameters, in its order.
func Params(d *abi.NativeDecl) []Param {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(d.Schema, &schema) // without a schema, and with one of another form, parameters have no type
	names, required := d.ParamNames()
	list := make([]Param, len(names))
	for i, name := range names {
		list[i] = Param{Name: name, Kind: KindAny, Required: slices.Contains(required, name)}
		list[i].read(schema.Properties[name])
	}
	return list
}

// ParamList names the parameters in a line, ? behind those that may be left out: "query, limit?".
func ParamList(d *abi.NativeDecl) string {
	names, required := d.ParamNames()
	for i, name := range names {
		if !slices.Contains(required, name) {
			names[i] += "?"
		}
	}
	return strings.Join(names, ", ")
}

func (p *Param) read(text json.RawMessage) {
	var schema struct {
		Description string
		Type        any
		Enum        []any
		Items       struct{ Type any }
	}
	if json.Unmarshal(text, &schema) != nil {
		return
	}
	p.About = Text(schema.Description, MaxAbout)
	switch one(schema.Type) {
	case "object":
		p.Kind = KindJSON
	case "string":
		p.Kind = KindText
	case "integer":
		p.Kind = KindInteger
	case "number":
		p.Kind = KindNumber
	case "boolean":
		p.Kind = KindBoolean
	case "array":
		if p.Kind = KindJSON; one(schema.Items.Type) == "string" {
			p.Kind = KindTexts
		}
	}
	for _, value := range schema.Enum {
		if word, is := value.(string); is {
			p.Choices = append(p.Choices, Text(word, MaxAbout))
		}
	}
}

// one is the type that a schema names, "" if it names several. null in addition to another type does not count.
func one(types any) string {
	list, is := types.([]any)
	if !is {
		list = []any{types}
	}
	list = slices.DeleteFunc(slices.Clone(list), func(t any) bool { return t == "null" })
	if len(list) != 1 {
		return ""
	}
	name, _ := list[0].(string)
	return name
}

// Schema is the schema of the parameters for a model or a document: an object, bounded, with the texts as Text leaves
// them. Only keywords that describe a value are kept, so it may take more than the module's own schema, which the host
// checks. From a declaration without a schema it is made of the names.
func Schema(d *abi.NativeDecl) map[string]any {
	names, required := d.ParamNames()
	properties := map[string]any{}
	var given struct{ Properties map[string]any }
	_ = json.Unmarshal(d.Schema, &given) // as in Params
	for _, name := range names {
		property, _ := clean(given.Properties[name], 0).(map[string]any)
		if property == nil {
			property = map[string]any{}
		}
		properties[name] = property
	}
	schema := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	if text, err := json.Marshal(schema); err != nil || len(text) > maxSchema {
		for _, name := range names {
			properties[name] = map[string]any{} // of any type: the host checks it
		}
	}
	return schema
}

// describing are the keywords that Schema keeps.
var describing = []string{"type", "enum", "const", "items", "properties", "required", "additionalProperties", "minimum",
	"maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "format",
	"default", "description", "title"}

// clean is a schema, or a value in one, with bounded texts. It returns nil for what is too deep.
func clean(v any, depth int) any {
	if depth > 6 {
		return nil
	}
	switch v := v.(type) {
	case string:
		return Text(v, MaxAbout)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = clean(v[i], depth+1)
		}
		return list
	case map[string]any:
		kept := map[string]any{}
		for key, value := range v {
			properties, is := value.(map[string]any)
			switch {
			case !slices.Contains(describing, key):
			case key == "properties" && is:
				inside := map[string]any{}
				for name, property := range properties {
					inside[Text(name, MaxAbout)] = clean(property, depth+1)
				}
				kept[key] = inside
			default:
				if value = clean(value, depth+1); value != nil {
					kept[key] = value
				}
			}
		}
		return kept
	}
	return v
}

// About says what a query or mutation does, in the module's words. It is for readers who must not take them for
// memhost's.
func About(provider string, d *abi.NativeDecl) string {
	about := Text(d.About, MaxAbout)
	if about == "" {
		return "Declared by the module of " + Text(provider, MaxAbout) + ", which does not describe it."
	}
	return "Declared by the module of " + Text(provider, MaxAbout) + ", which describes it as: \"" +
		strings.ReplaceAll(about, `"`, `'`) + "\""
}
