package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Mistake is one mistake in a value.
type Mistake struct {
	// Path leads to the value, or to the unknown or missing key.
	Path []string
	// Text is the message, which follows the path.
	Text string
	// Unknown marks a key that the schema does not have. It is the likely cause of a missing key, so it is reported
	// first.
	Unknown bool
	// Missing is set if one or several required keys are missing.
	Missing bool

	at string // Path as people write it
}

func (m Mistake) String() string {
	if m.at == "" {
		return "the config block: " + m.Text
	}
	return m.at + ": " + m.Text
}

// report combines all mistakes into one error.
func report(found []Mistake) *abi.Error {
	var lines []string
	for _, m := range inOrder(found) {
		lines = append(lines, m.String())
	}
	if more := len(lines) - maxListed; more > 0 {
		lines = append(lines[:maxListed], fmt.Sprintf("... and %d more", more))
	}
	return abi.NewError(abi.CodeInvalidArgument, strings.Join(lines, "\n"))
}

// inOrder sorts mistakes: unknown keys first, then by path. Repeated messages are removed.
func inOrder(found []Mistake) []Mistake {
	slices.SortStableFunc(found, func(a, b Mistake) int {
		if a.Unknown != b.Unknown {
			if a.Unknown {
				return -1
			}
			return 1
		}
		return cmp.Or(comparePaths(a.Path, b.Path), strings.Compare(a.Text, b.Text))
	})
	return slices.CompactFunc(found, func(a, b Mistake) bool { return a.at == b.at && a.Text == b.Text })
}

func comparePaths(a, b []string) int {
	return slices.CompareFunc(a, b, func(x, y string) int {
		i, errI := strconv.Atoi(x)
		j, errJ := strconv.Atoi(y)
		if errI == nil && errJ == nil {
			return cmp.Compare(i, j)
		}
		return strings.Compare(x, y)
	})
}

// mistakes converts the library's tree of errors about v.
func (s *Schema) mistakes(tree *jsonschema.ValidationError, v any) []Mistake {
	r := reader{s: s, v: v}
	r.read(tree)
	return r.found
}

// english is the language of the library's own messages.
var english = message.NewPrinter(language.English)

type reader struct {
	s     *Schema
	v     any
	found []Mistake
}

func (r *reader) add(path []string, format string, args ...any) {
	r.found = append(r.found, Mistake{Path: slices.Clone(path), at: Path(path, r.v),
		Text: fmt.Sprintf(format, args...)})
}

func (r *reader) read(e *jsonschema.ValidationError) {
	path := e.InstanceLocation
	part := r.s.at[e.SchemaURL]
	if part == nil { // not a place of this schema, so what is accepted there is unknown
		part = new(jsonschema.Schema)
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		for _, cause := range e.Causes {
			r.read(cause)
		}
	case *kind.AnyOf:
		r.branches(e, part, "anyOf")
	case *kind.OneOf:
		if len(k.Subschemas) > 1 {
			r.both(e, part, k.Subschemas)
			return
		}
		r.branches(e, part, "oneOf")
	case *kind.Required:
		for _, key := range k.Missing {
			r.missing(append(slices.Clone(path), key), part, "")
		}
	case *kind.DependentRequired:
		for _, key := range k.Missing {
			r.missing(append(slices.Clone(path), key), part, fmt.Sprintf(" where %s is given", k.Prop))
		}
	case *kind.Dependency:
		for _, key := range k.Missing {
			r.missing(append(slices.Clone(path), key), part, fmt.Sprintf(" where %s is given", k.Prop))
		}
	case *kind.AdditionalProperties:
		for _, key := range k.Properties {
			r.unknown(append(slices.Clone(path), key), part)
		}
	case *kind.FalseSchema:
		r.forbidden(e)
	case *kind.PropertyNames:
		text := r.message(e)
		if text == "" {
			text = "not allowed as a key here"
		}
		r.add(append(slices.Clone(path), k.Property), "%s", text)
	case *kind.Not:
		if text := r.message(e); text != "" {
			r.say(path, text)
			return
		}
		r.not(path, part)
	case *kind.Contains:
		r.add(path, "want at least one element that is %s", r.s.describe(part.Contains))
	case *kind.MinProperties, *kind.MaxProperties, *kind.MinItems, *kind.MaxItems, *kind.UniqueItems, *kind.MinContains,
		*kind.MaxContains:
		r.add(path, "%s", k.LocalizedString(english))
	case *kind.Enum:
		if text := r.message(e); text != "" {
			r.say(path, text)
			return
		}
		r.enum(path, part)
	default:
		// Type, const, format, length, pattern, range: the whole description says more than the single keyword.
		r.wrong(path, part, r.message(e))
	}
}

// message is the schema's own message about a mistake: that of the part that rejected the value, or of a part within.
func (r *reader) message(e *jsonschema.ValidationError) string {
	text := r.s.messages[pointerOf(e.SchemaURL)]
	for _, cause := range e.Causes {
		if text == "" {
			text = r.message(cause)
		}
	}
	return text
}

// say adds a message of the schema's own.
func (r *reader) say(path []string, text string) {
	if strings.HasPrefix(text, "want ") {
		text = "found " + r.got(path) + ", " + text
	}
	r.add(path, "%s", text)
}

// wrong reports a value that does not match its part of the schema.
func (r *reader) wrong(path []string, part *jsonschema.Schema, message string) {
	if message != "" {
		r.say(path, message)
		return
	}
	v := r.at(path)
	if text, ok := v.(string); ok {
		if text == "" && part.MinLength != nil && len(path) > 0 && isObjectValue(r.at(path[:len(path)-1])) {
			r.add(path, "is empty: give it a value or remove it")
			return
		}
		if part.Format != nil {
			if f, own := r.s.formats[part.Format.Name]; own && f.Wrong(text) != "" {
				r.add(path, "%s", f.Wrong(text))
				return
			}
		}
		if r.fits(part, unquoted(text)) {
			r.add(path, "found the string %s, want %s: write it without quotes", Show(path, v), r.s.describe(part))
			return
		}
	}
	hint := ""
	if text, ok := quoted(v); ok && r.fits(part, text) {
		hint = ": put it in quotes"
		if _, element := r.at(path[:len(path)-1]).([]any); !element {
			hint += fmt.Sprintf(", %s: %q", path[len(path)-1], text)
		}
	}
	want := r.s.describe(part)
	if keys := r.s.keysOf(part); want == "an object" && len(keys) > 0 && len(keys) <= maxListed {
		want += " with the keys " + strings.Join(keys, ", ")
	}
	r.add(path, "found %s, want %s%s", r.got(path), want, hint)
}

// fits reports whether a value matches a part of the schema; nil never does.
func (r *reader) fits(part *jsonschema.Schema, v any) bool {
	return v != nil && newWork().count(part, v) == nil && validate(part, v) == nil
}

// unquoted returns the number or truth value that a text would be without quotes, nil for any other text.
func unquoted(text string) any {
	if len(text) > maxLiteral {
		return nil
	}
	v, err := Decode([]byte(text), nil)
	switch v.(type) {
	case json.Number, bool:
		if err == nil {
			return v
		}
	}
	return nil
}

// quoted is the text of a number or truth value.
func quoted(v any) (string, bool) {
	switch v := v.(type) {
	case json.Number:
		return string(v), true
	case Odd:
		return string(v), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

func (r *reader) got(path []string) string {
	v := r.at(path)
	if m, ok := v.(map[string]any); ok && len(m) == 1 {
		if _, ok := m["file"].(string); ok {
			return "{file: PATH}, which is replaced by the file only in a configuration that memhost itself reads"
		}
	}
	return Found(path, v)
}

// at returns the value at a path of the block.
func (r *reader) at(path []string) any {
	v := r.v
	for _, step := range path {
		switch c := v.(type) {
		case map[string]any:
			v = c[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(c) {
				return nil
			}
			v = c[i]
		default:
			return nil
		}
	}
	return v
}

func (r *reader) missing(path []string, part *jsonschema.Schema, where string) {
	wish := ""
	for _, n := range closure([]*jsonschema.Schema{part}) {
		if p := n.Properties[path[len(path)-1]]; p != nil {
			wish = ", want " + r.s.describe(p)
			if len(p.Examples) > 0 { // JSON is also YAML, so it can be pasted
				wish += fmt.Sprintf("; for example %s: %s", path[len(path)-1], Canonical(p.Examples[0]))
			}
			break
		}
	}
	r.add(path, "missing%s%s", where, wish)
	r.found[len(r.found)-1].Missing = true
}

func (r *reader) unknown(path []string, part *jsonschema.Schema) {
	key := path[len(path)-1]
	r.add(path, "%s", unknownKey(key, r.knownKeys(part)))
	r.found[len(r.found)-1].Unknown = true
}

// knownKeys lists the keys that a part of the schema has, in the order of its text.
func (r *reader) knownKeys(part *jsonschema.Schema) []string {
	var known []string
	for _, n := range closure([]*jsonschema.Schema{part}) {
		for _, key := range r.s.keysOf(n) {
			if !slices.Contains(known, key) {
				known = append(known, key)
			}
		}
	}
	return known
}

func unknownKey(key string, known []string) string {
	if near := abi.Nearest(key, known); near != "" {
		return fmt.Sprintf("unknown key, did you mean %q?", near)
	}
	const most = 30
	switch {
	case len(known) == 0:
		return "unknown key; none is taken here"
	case len(known) == 1:
		return "unknown key; there is only " + known[0]
	case len(known) > most:
		return "unknown key; there are " + strings.Join(known[:most], ", ") + ", ..."
	}
	return "unknown key; there are " + strings.Join(known, ", ")
}

// forbidden explains the error of the schema false, depending on where that schema is.
func (r *reader) forbidden(e *jsonschema.ValidationError) {
	path := e.InstanceLocation
	for _, keyword := range []string{"/unevaluatedProperties", "/additionalProperties"} {
		if parent, ok := strings.CutSuffix(e.SchemaURL, keyword); ok && len(path) > 0 && r.s.at[parent] != nil {
			r.unknown(path, r.s.at[parent])
			return
		}
	}
	if strings.HasSuffix(e.SchemaURL, "/unevaluatedItems") || strings.HasSuffix(e.SchemaURL, "/items") {
		r.add(path, "one element too many")
		return
	}
	r.add(path, "not allowed here")
}

func (r *reader) not(path []string, part *jsonschema.Schema) {
	no := part.Not
	switch {
	case no != nil && len(no.Required) == 1:
		r.add(append(slices.Clone(path), no.Required[0]), "not allowed here")
	case no != nil && len(no.Required) > 1:
		r.add(path, "%s cannot be given together", join(no.Required, "and"))
	case no != nil && (no.Enum != nil || no.Const != nil || no.Types != nil || no.Pattern != nil):
		r.add(path, "found %s, want anything but %s", r.got(path), r.s.describe(no))
	default:
		r.add(path, "has a form that is not allowed")
	}
}

func (r *reader) enum(path []string, part *jsonschema.Schema) {
	more := ""
	if text, ok := r.at(path).(string); ok {
		var words []string
		for _, v := range part.Enum.Values {
			if w, ok := v.(string); ok {
				words = append(words, w)
			}
		}
		if near := abi.Nearest(text, words); near != "" {
			more = fmt.Sprintf(", did you mean %q?", near)
		}
	}
	r.add(path, "found %s, want %s%s", r.got(path), r.s.describe(part), more)
}

// branches explains an anyOf or oneOf without a matching branch: it reports the branch that was probably meant.
func (r *reader) branches(e *jsonschema.ValidationError, part *jsonschema.Schema, keyword string) {
	path := e.InstanceLocation
	list := part.AnyOf
	if keyword == "oneOf" {
		list = part.OneOf
	}
	if keys := onlyRequired(list); keys != nil {
		r.add(path, "want %s", join(keys, "or"))
		r.found[len(r.found)-1].Missing = true
		return
	}
	var each [][]Mistake
	for _, cause := range e.Causes {
		sub := reader{s: r.s, v: r.v}
		sub.read(cause)
		each = append(each, sub.found)
	}
	// A branch that requires another type, or another constant in one of its keys, was not meant.
	for deep := len(path); deep <= len(path)+1; deep++ {
		var left [][]Mistake
		for i, cause := range e.Causes {
			if !r.rejects(cause, deep) {
				left = append(left, each[i])
			}
		}
		if len(left) == 1 {
			r.found = append(r.found, left[0]...)
			return
		}
	}
	if r.mode(e) {
		return
	}
	if w := r.s.describe(part); w != "" && !slices.ContainsFunc(list, func(n *jsonschema.Schema) bool {
		return isObject(n) && isObjectValue(r.at(path))
	}) {
		r.add(path, "found %s, want %s", r.got(path), w)
		return
	}
	if len(each) == 0 {
		r.add(path, "fits none of the allowed forms")
		return
	}
	fewest := slices.MinFunc(each, func(a, b []Mistake) int { return cmp.Compare(len(a), len(b)) })
	for _, m := range fewest {
		m.Text += fmt.Sprintf(" (in one of the %d forms that are allowed here)", len(list))
		r.found = append(r.found, m)
	}
}

// mode explains branches that all fail because of one key, each requiring another constant there: it lists the
// constants.
func (r *reader) mode(e *jsonschema.ValidationError) bool {
	var path []string
	var words []any
	for _, cause := range e.Causes {
		fixed := r.fixed(cause, len(e.InstanceLocation)+1)
		if fixed == nil || path != nil && !slices.Equal(path, fixed.InstanceLocation) {
			return false
		}
		path = fixed.InstanceLocation
		switch k := fixed.ErrorKind.(type) {
		case *kind.Const:
			words = append(words, k.Want)
		case *kind.Enum:
			words = append(words, k.Want...)
		}
	}
	if path == nil {
		return false
	}
	r.enum(path, &jsonschema.Schema{Enum: &jsonschema.Enum{Values: words}})
	return true
}

// fixed finds the const or enum at a path of this length that makes a branch fail.
func (r *reader) fixed(e *jsonschema.ValidationError, length int) *jsonschema.ValidationError {
	switch e.ErrorKind.(type) {
	case *kind.Const, *kind.Enum:
		if len(e.InstanceLocation) == length {
			return e
		}
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		for _, cause := range e.Causes {
			if f := r.fixed(cause, length); f != nil {
				return f
			}
		}
	}
	return nil
}

// rejects reports whether a branch fails by type, const or enum at a path of this length.
func (r *reader) rejects(e *jsonschema.ValidationError, length int) bool {
	switch e.ErrorKind.(type) {
	case *kind.Type, *kind.Const, *kind.Enum:
		return len(e.InstanceLocation) == length
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		return slices.ContainsFunc(e.Causes, func(c *jsonschema.ValidationError) bool { return r.rejects(c, length) })
	}
	return false
}

// both explains a oneOf with two matching branches.
func (r *reader) both(e *jsonschema.ValidationError, part *jsonschema.Schema, which []int) {
	if keys := onlyRequired(part.OneOf); keys != nil {
		r.add(e.InstanceLocation, "want only one of %s", join(keys, "and"))
		r.found[len(r.found)-1].Missing = true
		return
	}
	r.add(e.InstanceLocation, "fits two of the forms that are allowed (%d and %d), of which only one may hold",
		which[0]+1, which[1]+1)
}

// onlyRequired returns the keys that branches require if they require nothing else, nil otherwise.
func onlyRequired(list []*jsonschema.Schema) []string {
	var keys []string
	for _, n := range list {
		if len(n.Required) == 0 || n.Types != nil || n.Properties != nil || n.Ref != nil || n.AllOf != nil ||
			n.Not != nil {
			return nil
		}
		keys = append(keys, strings.Join(n.Required, " with "))
	}
	return keys
}

// unknownAtTop reports keys that the schema's top level neither knows nor allows. It gets the mistakes found so far, so
// that none is reported twice.
func (s *Schema) unknownAtTop(v map[string]any, earlier []Mistake) []Mistake {
	here := closure([]*jsonschema.Schema{s.root})
	for _, n := range here {
		more, isSchema := n.AdditionalProperties.(*jsonschema.Schema)
		open, isBool := n.AdditionalProperties.(bool)
		rest := n.UnevaluatedProperties
		if isBool && open || isSchema && !never(more) || rest != nil && !never(rest) {
			return nil
		}
	}
	r := reader{s: s, v: v}
	for _, key := range sortedKeys(v) {
		known := slices.ContainsFunc(here, func(n *jsonschema.Schema) bool {
			_, ok := n.Properties[key]
			for re := range n.PatternProperties {
				ok = ok || re.MatchString(key)
			}
			return ok
		})
		if !known && !slices.ContainsFunc(earlier, func(m Mistake) bool { return len(m.Path) == 1 && m.Path[0] == key }) {
			r.unknown([]string{key}, s.root)
		}
	}
	return r.found
}

func never(s *jsonschema.Schema) bool { return s.Bool != nil && !*s.Bool }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func itoa(i int) string { return strconv.Itoa(i) }

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// join writes a, b or c.
func join(words []string, conjunction string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + conjunction + " " + words[len(words)-1]
}
