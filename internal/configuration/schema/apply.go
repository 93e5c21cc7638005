package schema

import (
	"errors"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// MaxBlock is the largest config block that Apply reads, in bytes.
	MaxBlock = 16 << 20
	// maxWork bounds the steps of one Apply. A step costs the validator up to a microsecond; a typical block takes a
	// few hundred, a list of 50,000 objects some 500,000.
	maxWork = 4_000_000
	// maxListed is the most mistakes that one error lists.
	maxListed = 20
)

var errWork = errors.New("checking it takes too many steps: the block is too large for this schema")

// Apply makes the effective config block: block laid over preset (objects key by key, everything else replaced),
// defaults filled in, validated.
//
// In:     both are objects; nil is an empty one. A key whose value is null and whose schema does not admit null counts
// as absent. Keys that the schema's top level does not know are mistakes even where it does not forbid them; to take
// any key, a schema says additionalProperties: true, or gives a schema there.
// Out: canonical JSON. Defaults come from "properties" (through $ref, allOf and items too), not from anyOf, oneOf, not
// and if, where it is open which holds; an absent object is not created for the sake of defaults inside it.
// Errors: invalid_argument. Its message has one line for each mistake, and each starts with the path inside the block.
// Values that may be credentials are not repeated.
func (s *Schema) Apply(preset, block abi.Raw) (effective abi.Raw, err error) {
	under, err := s.read("the module's preset", preset)
	if err != nil {
		return nil, err
	}
	over, err := s.read("the config block", block)
	if err != nil {
		return nil, err
	}
	work := newWork()
	if err := errors.Join(work.dropNulls([]*jsonschema.Schema{s.root}, under),
		work.dropNulls([]*jsonschema.Schema{s.root}, over)); err != nil {
		return nil, tooMuch(err)
	}
	v, err := work.fill(s.root, lay(under, over), 0)
	if err != nil {
		return nil, tooMuch(err)
	}
	found, err := s.check(work, s.root, v)
	if err != nil {
		return nil, tooMuch(err)
	}
	if found = append(found, s.unknownAtTop(v.(map[string]any), found)...); len(found) > 0 {
		return nil, report(found)
	}
	return Canonical(v), nil
}

func tooMuch(err error) error {
	return abi.NewError(abi.CodeInvalidArgument, "the config block: "+err.Error())
}

func (s *Schema) read(what string, raw abi.Raw) (map[string]any, error) {
	if len(raw) == 0 {
		return map[string]any{}, nil
	}
	if len(raw) > MaxBlock {
		return nil, abi.NewError(abi.CodeInvalidArgument, what+": more than 16 MiB")
	}
	v, err := Decode(raw, nil)
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, what+": "+err.Error())
	}
	if v == nil {
		return map[string]any{}, nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, abi.NewError(abi.CodeInvalidArgument, what+": want an object, got "+Show(nil, v))
	}
	if at := findNUL(m, nil); at != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, Path(at, m)+": holds a zero byte (U+0000)")
	}
	return m, nil
}

// findNUL returns the path of a string or key with U+0000, at which backends cut a text, or which they reject.
func findNUL(v any, path []string) []string {
	switch v := v.(type) {
	case string:
		if strings.ContainsRune(v, 0) {
			return slices.Clone(path)
		}
	case []any:
		for i, e := range v {
			if at := findNUL(e, append(path, itoa(i))); at != nil {
				return at
			}
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if at := append(path, key); strings.ContainsRune(key, 0) {
				return slices.Clone(at)
			} else if at := findNUL(v[key], at); at != nil {
				return at
			}
		}
	}
	return nil
}

// lay merges over on top of under and returns the result. Neither may be used afterwards.
func lay(under, over map[string]any) map[string]any {
	for key, v := range over {
		if m, ok := v.(map[string]any); ok {
			if below, ok := under[key].(map[string]any); ok {
				under[key] = lay(below, m)
				continue
			}
		}
		under[key] = v
	}
	return under
}

// work counts the steps of one Apply, so that a schema cannot block the host: with allOf and $ref a few hundred bytes
// can require an endless number of steps.
type work struct{ left int }

func newWork() *work { return &work{left: maxWork} }

func (w *work) spend(n int) error {
	if w.left -= n; w.left < 0 {
		return errWork
	}
	return nil
}

// dropNulls deletes keys whose value is null if every schema for them rejects null.
func (w *work) dropNulls(schemas []*jsonschema.Schema, v any) error {
	switch v := v.(type) {
	case map[string]any:
		here := closure(schemas)
		if err := w.spend(len(here) + len(v)); err != nil {
			return err
		}
		for key, e := range v {
			props, err := w.properties(here, key)
			if err != nil {
				return err
			}
			if e == nil {
				if len(props) > 0 && !slices.ContainsFunc(props, admitsNull) {
					delete(v, key)
				}
				continue
			}
			if err := w.dropNulls(props, e); err != nil {
				return err
			}
		}
	case []any:
		here := closure(schemas)
		if err := w.spend(len(here) + len(v)); err != nil {
			return err
		}
		for i, e := range v {
			if err := w.dropNulls(items(here, i), e); err != nil {
				return err
			}
		}
	}
	return nil
}

func admitsNull(s *jsonschema.Schema) bool { return validate(s, nil) == nil }

// closure returns the schemas together with all schemas that they may apply to the same value.
func closure(schemas []*jsonschema.Schema) []*jsonschema.Schema {
	var all []*jsonschema.Schema
	seen := map[*jsonschema.Schema]bool{}
	var add func(*jsonschema.Schema)
	add = func(s *jsonschema.Schema) {
		if !seen[s] {
			seen[s] = true
			all = append(all, s)
			eachHere(s, add)
		}
	}
	for _, s := range schemas {
		add(s)
	}
	return all
}

// properties returns the schemas that apply to a key.
func (w *work) properties(here []*jsonschema.Schema, key string) ([]*jsonschema.Schema, error) {
	var found []*jsonschema.Schema
	for _, s := range here {
		own := s.Properties[key]
		if own != nil {
			found = append(found, own)
		}
		for re, p := range s.PatternProperties {
			if err := w.spend(matchCost(re, key)); err != nil {
				return nil, err
			}
			if re.MatchString(key) {
				own = p
				found = append(found, p)
			}
		}
		if more, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && own == nil {
			found = append(found, more)
		}
	}
	return found, nil
}

// items returns the schemas that apply to a list's element.
func items(here []*jsonschema.Schema, i int) []*jsonschema.Schema {
	var found []*jsonschema.Schema
	for _, s := range here {
		if i < len(s.PrefixItems) {
			found = append(found, s.PrefixItems[i])
		} else if s.Items2020 != nil {
			found = append(found, s.Items2020)
		}
	}
	return found
}

// fill adds the defaults of s to v, in place if v is an object or a list, and returns it. depth is the depth of v: a
// default may contain an object that needs the same default again.
func (w *work) fill(s *jsonschema.Schema, v any, depth int) (any, error) {
	if depth > abi.MaxDepth {
		return nil, errors.New("with its defaults it nests too deep")
	}
	if err := w.spend(1); err != nil {
		return nil, err
	}
	var err error
	each := func(n *jsonschema.Schema, e any, set func(any)) {
		if err != nil || n == nil {
			return
		}
		if e, err = w.fill(n, e, depth+1); err == nil {
			set(e)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		// In order, so that defaults do not depend on the order of a map.
		for _, key := range sortedKeys(s.Properties) {
			n := s.Properties[key]
			e, present := v[key]
			if !present {
				d := defaultOf(n)
				if d == nil {
					continue
				}
				if err := w.spend(size(*d)); err != nil {
					return nil, err
				}
				e = copyValue(*d)
			}
			each(n, e, func(e any) { v[key] = e })
		}
		for _, key := range sortedKeys(v) {
			if s.Properties[key] != nil {
				continue
			}
			own := false
			for re, n := range s.PatternProperties {
				if err := w.spend(matchCost(re, key)); err != nil {
					return nil, err
				}
				if re.MatchString(key) {
					own = true
					each(n, v[key], func(e any) { v[key] = e })
				}
			}
			if more, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && !own {
				each(more, v[key], func(e any) { v[key] = e })
			}
		}
	case []any:
		for i := range v {
			n := s.Items2020
			if i < len(s.PrefixItems) {
				n = s.PrefixItems[i]
			}
			each(n, v[i], func(e any) { v[i] = e })
		}
	}
	for _, n := range append([]*jsonschema.Schema{s.Ref}, s.AllOf...) {
		if n != nil && err == nil {
			_, err = w.fill(n, v, depth)
		}
	}
	return v, err
}

// defaultOf returns the default of a schema or of the schema that it refers to.
func defaultOf(s *jsonschema.Schema) *any {
	if s.Default != nil {
		return s.Default
	}
	if s.Ref != nil {
		if d := defaultOf(s.Ref); d != nil {
			return d
		}
	}
	for _, n := range s.AllOf {
		if d := defaultOf(n); d != nil {
			return d
		}
	}
	return nil
}

// count uses up at least as many steps as the validator will take for s and v: it takes the same path without comparing
// anything.
func (w *work) count(s *jsonschema.Schema, v any) error {
	cost := 1
	if s.Enum != nil {
		cost += len(s.Enum.Values)
	}
	switch v := v.(type) {
	case string:
		cost += len(v) / 256
		if s.Pattern != nil {
			cost += matchCost(s.Pattern, v)
		}
	case map[string]any:
		cost += len(v)
	}
	if err := w.spend(cost); err != nil {
		return err
	}
	var err error
	visit := func(n *jsonschema.Schema, v any) {
		if err == nil && n != nil {
			err = w.count(n, v)
		}
	}
	eachHere(s, func(n *jsonschema.Schema) { visit(n, v) })
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			visit(s.Properties[key], e)
			visit(s.PropertyNames, key)
			visit(s.UnevaluatedProperties, e)
			for re, n := range s.PatternProperties {
				if err := w.spend(matchCost(re, key)); err != nil {
					return err
				}
				visit(n, e)
			}
			if n, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
				visit(n, e)
			}
		}
	case []any:
		for i, e := range v {
			if i < len(s.PrefixItems) {
				visit(s.PrefixItems[i], e)
			}
			visit(s.Items2020, e)
			visit(s.Contains, e)
			visit(s.UnevaluatedItems, e)
		}
	}
	return err
}

func matchCost(re jsonschema.Regexp, text string) int {
	p, ok := re.(*pattern)
	if !ok {
		return 1
	}
	return 1 + len(text)*p.instructions/256
}

// Check validates a value in the form that Decode returns, which may contain Odd numbers. It changes nothing and fills
// in nothing.
//
// Errors: the value is too large for this schema.
func (s *Schema) Check(v any) ([]Mistake, error) {
	found, err := s.checkAs(newWork(), s.root, withoutUnusual(v), v)
	return inOrder(found), err
}

// check validates v against s, a part of this schema.
func (s *Schema) check(w *work, part *jsonschema.Schema, v any) ([]Mistake, error) {
	return s.checkAs(w, part, v, v)
}

// checkAs validates v and reports the mistakes as those of shown.
func (s *Schema) checkAs(w *work, part *jsonschema.Schema, v, shown any) ([]Mistake, error) {
	if err := w.count(part, v); err != nil {
		return nil, err
	}
	err := validate(part, v)
	if err == nil {
		return nil, nil
	}
	var tree *jsonschema.ValidationError
	if !errors.As(err, &tree) {
		return []Mistake{{Text: err.Error()}}, nil
	}
	return s.mistakes(tree, shown), nil
}

// validate runs the library on an untrusted schema and recovers from a panic in it.
func validate(s *jsonschema.Schema, v any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("the schema cannot be used")
		}
	}()
	return s.Validate(v)
}

func copyValue(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = copyValue(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = copyValue(e)
		}
		return out
	}
	return v
}

// size counts the values in v.
func size(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n += size(e)
		}
	case map[string]any:
		for _, e := range v {
			n += size(e)
		}
	}
	return n
}
