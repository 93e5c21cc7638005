package schema

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// describe says what a part of the schema accepts, as the continuation of "want": an integer of at least 2.
func (s *Schema) describe(part *jsonschema.Schema) string {
	if w := s.describeIf(part, 0); w != "" {
		return w
	}
	return "another value"
}

// describeIf is describe, or "" if that takes more than a few words.
func (s *Schema) describeIf(part *jsonschema.Schema, depth int) string {
	const maxDescribed = 4 // more would not be read
	if part == nil || depth > maxDescribed {
		return ""
	}
	switch {
	case part.Enum != nil:
		return "one of " + values(part.Enum.Values)
	case part.Const != nil:
		return values([]any{*part.Const})
	case isSecretRef(part):
		return "{secret: NAME}, the name of a secret of the configuration"
	case part.Types != nil:
		var kinds []string
		for _, t := range part.Types.ToStrings() {
			if t != "null" {
				kinds = append(kinds, s.describeType(part, t, depth))
			}
		}
		if slices.Contains(part.Types.ToStrings(), "null") {
			kinds = append(kinds, "null")
		}
		return join(kinds, "or")
	case part.Ref != nil:
		return s.describeIf(part.Ref, depth+1)
	}
	for _, list := range [][]*jsonschema.Schema{part.AnyOf, part.OneOf} {
		var forms []string
		for _, n := range list {
			if w := s.describeIf(n, depth+1); w != "" && !slices.Contains(forms, w) {
				forms = append(forms, w)
			}
		}
		if len(forms) > 0 {
			return join(forms, "or")
		}
	}
	for _, n := range part.AllOf {
		if w := s.describeIf(n, depth+1); w != "" {
			return w
		}
	}
	switch {
	case part.Pattern != nil || part.MinLength != nil || part.MaxLength != nil || part.Format != nil:
		return s.describeType(part, "string", depth)
	case part.Minimum != nil || part.Maximum != nil || part.ExclusiveMinimum != nil || part.ExclusiveMaximum != nil ||
		part.MultipleOf != nil:
		return s.describeType(part, "number", depth)
	case part.Properties != nil || part.Required != nil:
		return s.describeType(part, "object", depth)
	case part.Items2020 != nil || part.PrefixItems != nil:
		return s.describeType(part, "array", depth)
	}
	return ""
}

func (s *Schema) describeType(part *jsonschema.Schema, t string, depth int) string {
	switch t {
	case "integer":
		return "an integer" + bounds(part)
	case "number":
		return "a number" + bounds(part)
	case "boolean":
		return "true or false"
	case "object":
		return "an object"
	case "array":
		w := s.describeIf(part.Items2020, depth+2)
		words, isEnum := strings.CutPrefix(w, "one of ")
		switch {
		case w == "":
			return "a list"
		case isEnum:
			return "a list of " + words
		case part.Items2020.Types != nil && slices.Equal(part.Items2020.Types.ToStrings(), []string{"string"}) &&
			part.Items2020.Pattern == nil:
			return "a list of strings"
		}
		return "a list, each " + w
	}
	return s.describeString(part)
}

func (s *Schema) describeString(part *jsonschema.Schema) string {
	text := "a string"
	if part.Format != nil {
		if f, own := s.formats[part.Format.Name]; own {
			if f.Wants == text && part.MinLength != nil && *part.MinLength == 1 {
				return "a non-empty string"
			}
			return f.Wants
		}
	}
	switch {
	case part.MinLength != nil && part.MaxLength != nil:
		text += " of " + itoa(*part.MinLength) + " to " + count(*part.MaxLength, "character")
	case part.MinLength != nil && *part.MinLength == 1:
		text = "a non-empty string"
	case part.MinLength != nil:
		text += " of at least " + count(*part.MinLength, "character")
	case part.MaxLength != nil:
		text += " of at most " + count(*part.MaxLength, "character")
	}
	if part.Format != nil {
		switch part.Format.Name {
		case "uri", "iri":
			text += " with a whole URL, scheme included"
		default:
			text += " in the form of a " + part.Format.Name
		}
	}
	if part.Pattern != nil {
		text += " that matches " + part.Pattern.String()
	}
	return text
}

func bounds(s *jsonschema.Schema) string {
	text := ""
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		text = " from " + rational(s.Minimum) + " to " + rational(s.Maximum)
	case s.Minimum != nil && s.ExclusiveMaximum == nil:
		text = " of at least " + rational(s.Minimum)
	case s.Maximum != nil && s.ExclusiveMinimum == nil:
		text = " of at most " + rational(s.Maximum)
	default:
		var parts []string
		for _, p := range []struct {
			word string
			n    *big.Rat
		}{{"of at least ", s.Minimum}, {"above ", s.ExclusiveMinimum}, {"of at most ", s.Maximum},
			{"below ", s.ExclusiveMaximum}} {
			if p.n != nil {
				parts = append(parts, p.word+rational(p.n))
			}
		}
		if len(parts) > 0 {
			text = " " + join(parts, "and")
		}
	}
	if s.MultipleOf != nil {
		text += ", a multiple of " + rational(s.MultipleOf)
	}
	return text
}

// rational writes a number of a schema as a person would.
func rational(r *big.Rat) string {
	if r.IsInt() {
		return canonicalNumber(r.Num().String())
	}
	f, _ := r.Float64()
	b, err := json.Marshal(f)
	if err != nil {
		return r.String()
	}
	return string(b)
}

// keysOf lists the keys of an object in the order in which the schema has them.
func (s *Schema) keysOf(part *jsonschema.Schema) []string {
	var keys []string
	for key, p := range part.Properties {
		if !never(p) {
			keys = append(keys, key)
		}
	}
	place := func(key string) int { return s.order[pointerOf(part.Properties[key].Location)] }
	slices.SortFunc(keys, func(a, b string) int { return place(a) - place(b) })
	return keys
}

// values lists what an enum allows, with words that need no quotes unquoted.
func values(list []any) string {
	var words []string
	if len(list) > 1 && !slices.ContainsFunc(list, func(v any) bool { return !plainWord(v) }) {
		for _, v := range list[:min(len(list), maxListed)] {
			words = append(words, v.(string))
		}
		if len(list) > maxListed {
			words = append(words, "...")
		}
		return strings.Join(words, ", ")
	}
	for i, v := range list {
		if i == maxListed {
			words = append(words, "...")
			break
		}
		switch v.(type) {
		case []any, map[string]any:
			words = append(words, cut(string(Canonical(v)), 60))
		default:
			words = append(words, cut(string(appendCanonical(nil, v)), 60))
		}
	}
	return strings.Join(words, ", ")
}

// plainWord reports whether v is a text that YAML reads as a text without quotes.
func plainWord(v any) bool {
	text, ok := v.(string)
	return ok && len(text) <= 60 && text != "" && (text[0] < '0' || text[0] > '9') && text[0] != '-' &&
		!slices.Contains([]string{"true", "false", "null"}, text) &&
		strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-/") == ""
}

func isSecretRef(s *jsonschema.Schema) bool {
	return len(s.Properties) == 1 && s.Properties["secret"] != nil && slices.Contains(s.Required, "secret")
}

func isObject(s *jsonschema.Schema) bool {
	return s.Properties != nil || s.Required != nil || s.Ref != nil || s.Types != nil &&
		slices.Contains(s.Types.ToStrings(), "object")
}

func isObjectValue(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// Field is one key of a block, as its schema describes it.
type Field struct {
	Name        string
	Title       string
	Description string
	// Wants describes the accepted values, like "an integer of at least 2".
	Wants    string
	Required bool
	// Secret is true for a key that takes {"secret": NAME}.
	Secret     bool
	Deprecated bool
	// Default and Example are canonical JSON, nil if the schema gives none. Example is the first of "examples", or the
	// first value that an enum or const allows.
	Default, Example abi.Raw
	// Fields are the keys of an object.
	Fields []Field
}

// Wants describes the accepted values at a path of keys, like "an integer of at least 2".
func (s *Schema) Wants(path ...string) string {
	at := s.root
	for _, key := range path {
		if at = at.Properties[key]; at == nil {
			return ""
		}
	}
	return s.describe(at)
}

// Fields lists all keys of the block in the schema's order.
func (s *Schema) Fields() []Field {
	const most = 1000
	left := most
	return s.fields(s.root, 0, &left)
}

// fields stops when left is used up: a schema may refer to itself in many places.
func (s *Schema) fields(part *jsonschema.Schema, depth int, left *int) []Field {
	const maxDepth = 3
	if depth == maxDepth {
		return nil
	}
	var list []Field
	var order []int
	var required []string
	for n := part; n != nil; n = n.Ref {
		required = append(required, n.Required...)
		for _, more := range n.AllOf {
			required = append(required, more.Required...)
		}
	}
	for _, n := range closure([]*jsonschema.Schema{part}) {
		for _, name := range sortedKeys(n.Properties) {
			p := n.Properties[name]
			if never(p) || slices.ContainsFunc(list, func(f Field) bool { return f.Name == name }) {
				continue
			}
			if *left--; *left < 0 {
				break
			}
			list = append(list, s.field(name, p, slices.Contains(required, name), depth, left))
			order = append(order, s.order[pointerOf(p.Location)])
		}
	}
	if len(list) == 0 {
		return nil
	}
	byOrder := make([]int, len(list))
	for i := range byOrder {
		byOrder[i] = i
	}
	slices.SortFunc(byOrder, func(a, b int) int { return order[a] - order[b] })
	sorted := make([]Field, len(list))
	for i, j := range byOrder {
		sorted[i] = list[j]
	}
	return sorted
}

func (s *Schema) field(name string, p *jsonschema.Schema, required bool, depth int, left *int) Field {
	f := Field{Name: name, Wants: s.describeIf(p, 0), Required: required}
	for _, n := range closure([]*jsonschema.Schema{p}) {
		if f.Title == "" {
			f.Title = n.Title
		}
		if f.Description == "" {
			f.Description = n.Description
		}
		if f.Example == nil && len(n.Examples) > 0 {
			f.Example = Canonical(n.Examples[0])
		}
		f.Secret = f.Secret || isSecretRef(n)
		f.Deprecated = f.Deprecated || n.Deprecated
	}
	if d := defaultOf(p); d != nil {
		f.Default = Canonical(*d)
	}
	if f.Example == nil {
		for _, n := range closure([]*jsonschema.Schema{p}) {
			if n.Enum != nil && len(n.Enum.Values) > 0 {
				f.Example = Canonical(n.Enum.Values[0])
				break
			}
			if n.Const != nil {
				f.Example = Canonical(*n.Const)
				break
			}
		}
	}
	if !f.Secret {
		f.Fields = s.fields(p, depth+1, left)
	}
	return f
}
