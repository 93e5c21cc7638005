package schema

import (
	"cmp"
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

// mistake is one mistake in a block, as a sentence.
type mistake struct {
	path []string
	// at is path as people write it.
	at      string
	text    string
	unknown bool // an unknown key: the likely cause of what is missing, so it is told first
}

func (m mistake) String() string {
	if m.at == "" {
		return "the config block: " + m.text
	}
	return m.at + ": " + m.text
}

// report makes the one error of all mistakes.
func report(found []mistake) *abi.Error {
	slices.SortStableFunc(found, func(a, b mistake) int {
		if a.unknown != b.unknown {
			if a.unknown {
				return -1
			}
			return 1
		}
		return cmp.Or(comparePaths(a.path, b.path), strings.Compare(a.text, b.text))
	})
	var lines []string
	for _, m := range found {
		if line := m.String(); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if more := len(lines) - maxListed; more > 0 {
		lines = append(lines[:maxListed], fmt.Sprintf("... and %d more", more))
	}
	return abi.NewError(abi.CodeInvalidArgument, strings.Join(lines, "\n"))
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

// mistakes reads the library's tree of errors about v.
func (s *Schema) mistakes(tree *jsonschema.ValidationError, v any) []mistake {
	r := reader{s: s, v: v}
	r.read(tree)
	return r.found
}

// english is the language of the library's own sentences.
var english = message.NewPrinter(language.English)

type reader struct {
	s     *Schema
	v     any
	found []mistake
}

func (r *reader) add(path []string, format string, args ...any) {
	r.found = append(r.found, mistake{path: slices.Clone(path), at: Path(path, r.v),
		text: fmt.Sprintf(format, args...)})
}

func (r *reader) read(e *jsonschema.ValidationError) {
	path := e.InstanceLocation
	part := r.s.at[e.SchemaURL]
	if part == nil { // not a place of this schema: what is wanted there is unknown
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
		r.add(append(slices.Clone(path), k.Property), "not allowed as a key here")
	case *kind.Not:
		r.not(path, part)
	case *kind.Contains:
		r.add(path, "want at least one element that is %s", describe(part.Contains))
	case *kind.MinProperties, *kind.MaxProperties, *kind.MinItems, *kind.MaxItems, *kind.UniqueItems, *kind.MinContains,
		*kind.MaxContains:
		r.add(path, "%s", k.LocalizedString(english))
	case *kind.Enum:
		r.enum(path, part)
	default:
		// Type, const, format, length, pattern, range: the whole description says more than the one keyword.
		r.add(path, "want %s, got %s", describe(part), r.got(path))
	}
}

func (r *reader) got(path []string) string {
	v := r.at(path)
	if m, ok := v.(map[string]any); ok && len(m) == 1 {
		if _, ok := m["file"].(string); ok {
			return "{file: PATH}, which is replaced by the file only in a configuration that memhost itself reads"
		}
	}
	return Show(path, v)
}

// at is the value at a path into the block.
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
			wish = ", want " + describe(p)
			if len(p.Examples) > 0 { // JSON is YAML: it can be pasted
				wish += fmt.Sprintf("; for example %s: %s", path[len(path)-1], Canonical(p.Examples[0]))
			}
			break
		}
	}
	r.add(path, "missing%s%s", where, wish)
}

func (r *reader) unknown(path []string, part *jsonschema.Schema) {
	key := path[len(path)-1]
	r.add(path, "%s", unknownKey(key, knownKeys(part)))
	r.found[len(r.found)-1].unknown = true
}

func knownKeys(part *jsonschema.Schema) []string {
	known := map[string]bool{}
	for _, n := range closure([]*jsonschema.Schema{part}) {
		for key, p := range n.Properties {
			if p.Bool == nil || *p.Bool {
				known[key] = true
			}
		}
	}
	return sortedKeys(known)
}

func unknownKey(key string, known []string) string {
	if near := abi.Nearest(key, known); near != "" {
		return fmt.Sprintf("unknown key, did you mean %q?", near)
	}
	switch {
	case len(known) == 0:
		return "unknown key; none is taken here"
	case len(known) > maxListed:
		return "unknown key; the keys are " + strings.Join(known[:maxListed], ", ") + ", ..."
	case len(known) == 1:
		return "unknown key; the only key is " + known[0]
	}
	return "unknown key; the keys are " + strings.Join(known, ", ")
}

// forbidden reads the error of the schema false, by the place where it stands.
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
		r.add(path, "want anything but %s, got %s", describe(no), r.got(path))
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
	r.add(path, "want %s, got %s%s", describe(part), r.got(path), more)
}

// branches reads an anyOf or oneOf of which no branch fits: it reports the branch that was probably meant.
func (r *reader) branches(e *jsonschema.ValidationError, part *jsonschema.Schema, keyword string) {
	path := e.InstanceLocation
	list := part.AnyOf
	if keyword == "oneOf" {
		list = part.OneOf
	}
	if keys := onlyRequired(list); keys != nil {
		r.add(path, "want %s", join(keys, "or"))
		return
	}
	var each [][]mistake
	for _, cause := range e.Causes {
		sub := reader{s: r.s, v: r.v}
		sub.read(cause)
		each = append(each, sub.found)
	}
	// A branch that wants another type, or another fixed word in one of its keys, was not meant.
	for deep := len(path); deep <= len(path)+1; deep++ {
		var left [][]mistake
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
	if w := describe(part); w != "" && !slices.ContainsFunc(list, func(n *jsonschema.Schema) bool {
		return isObject(n) && isObjectValue(r.at(path))
	}) {
		r.add(path, "want %s, got %s", w, r.got(path))
		return
	}
	if len(each) == 0 {
		r.add(path, "fits none of the allowed forms")
		return
	}
	fewest := slices.MinFunc(each, func(a, b []mistake) int { return cmp.Compare(len(a), len(b)) })
	for _, m := range fewest {
		m.text += fmt.Sprintf(" (in one of the %d forms that are allowed here)", len(list))
		r.found = append(r.found, m)
	}
}

// mode reads branches that all fail by one key, each wanting another word there: it lists the words.
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

// fixed finds the const or enum at a path of this length by which a branch fails.
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

// both reads a oneOf of which two branches fit.
func (r *reader) both(e *jsonschema.ValidationError, part *jsonschema.Schema, which []int) {
	if keys := onlyRequired(part.OneOf); keys != nil {
		r.add(e.InstanceLocation, "want only one of %s", join(keys, "and"))
		return
	}
	r.add(e.InstanceLocation, "fits two of the forms that are allowed (%d and %d), of which only one may hold",
		which[0]+1, which[1]+1)
}

// onlyRequired returns what branches ask for where they ask for nothing but keys to be there, else nil.
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
func (s *Schema) unknownAtTop(v map[string]any, told []mistake) []mistake {
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
		if !known && !slices.ContainsFunc(told, func(m mistake) bool { return len(m.path) == 1 && m.path[0] == key }) {
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
