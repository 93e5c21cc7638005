package mcpdoor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
)

// arguments are those of one call, by name. All of them are known to the tool.
type arguments map[string]json.RawMessage

// arguments parses the arguments of a call. The protocol's clients do not check them, and a model may send anything.
//
// Errors: denied with reason scope for an argument that names another scope than the door's; invalid_argument.
func (d *Door) arguments(t tool, text json.RawMessage) (arguments, error) {
	a := arguments{}
	if len(text) > 0 {
		if !utf8.Valid(text) {
			return nil, abi.NewError(abi.CodeInvalidArgument, "arguments: not valid UTF-8")
		}
		if json.Unmarshal(text, &a) != nil && json.Unmarshal(unquoted(text), &a) != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "arguments: want an object").WithHint("want " + want(t))
		}
	}
	for _, name := range sortedNames(a) {
		if slices.Contains(t.fields, name) {
			if string(a[name]) == "null" { // null counts as absent
				delete(a, name)
			}
			continue
		}
		known, e := d.checkScopeJSON(name, a[name])
		if e != nil {
			return nil, e
		}
		if !known {
			e := abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("%s: %s has no such argument", name, t.name)).WithHint(
				"want " + want(t))
			if near := abi.Nearest(name, t.fields); near != "" {
				e.Hint = fmt.Sprintf("did you mean %s? %s", near, e.Hint)
			}
			return nil, e
		}
		delete(a, name)
	}
	for _, name := range t.required {
		if a[name] == nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, name+": missing").WithHint("want " + want(t))
		}
	}
	return a, nil
}

func sortedNames(a arguments) []string {
	names := make([]string, 0, len(a))
	for name := range a {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func want(t tool) string {
	if len(t.fields) == 0 {
		return "no arguments"
	}
	var perhaps []string
	for _, name := range t.fields {
		if !slices.Contains(t.required, name) {
			perhaps = append(perhaps, name)
		}
	}
	var parts []string
	if len(t.required) > 0 {
		parts = append(parts, strings.Join(t.required, ", "))
	}
	if len(perhaps) > 0 {
		parts = append(parts, "optional: "+strings.Join(perhaps, ", "))
	}
	return strings.Join(parts, "; ")
}

// Models write arguments in other shapes than the schema's. A shape with a single possible meaning is accepted, any
// other is rejected: an id that is mistaken for another one would be answered with a confident "nothing".

// unquoted returns the JSON inside a JSON string, and any other value unchanged.
func unquoted(value json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return value
	}
	return json.RawMessage(strings.TrimSpace(text))
}

// text returns an argument that is a string, "" if it is absent. Its words are kept as they are, so no other shape is
// accepted.
func (a arguments) text(name string) (string, error) {
	if a[name] == nil {
		return "", nil
	}
	var s string
	if err := json.Unmarshal(a[name], &s); err != nil {
		return "", abi.NewError(abi.CodeInvalidArgument, name+": want a string")
	}
	if strings.TrimSpace(s) == "" {
		return "", abi.NewError(abi.CodeInvalidArgument, name+": is empty")
	}
	return s, nil
}

// id returns an argument that names one thing, "" if it is absent. JSON text of a string, or of a list with one string,
// is read as that string.
func (a arguments) id(name string) (string, error) {
	ids, err := a.texts(name)
	if err != nil || len(ids) == 0 {
		return "", err
	}
	if len(ids) > 1 {
		return "", abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("%s: want one, found %d", name, len(ids)))
	}
	return ids[0], nil
}

// texts returns an argument that is a list of ids, nil if it is absent. A string is read as a list of one, unless it
// may be several; JSON text of a list is read as that list.
func (a arguments) texts(name string) ([]string, error) {
	if a[name] == nil {
		return nil, nil
	}
	wrong := func(found string) error {
		return abi.NewError(abi.CodeInvalidArgument, name+": want a list of strings, found "+found).
			WithHint(fmt.Sprintf(`write it as JSON: {%q: ["first", "second"]}`, name))
	}
	var list []string
	if json.Unmarshal(a[name], &list) != nil {
		one, err := a.text(name)
		if err != nil {
			return nil, wrong("something else")
		}
		inside := json.RawMessage(strings.TrimSpace(one))
		var quoted string
		switch {
		case json.Unmarshal(inside, &list) == nil && list != nil:
		case json.Unmarshal(inside, &quoted) == nil:
			list = []string{quoted}
		case strings.ContainsAny(one[:1], `[{"'`) || strings.ContainsAny(one, ",;\n"):
			return nil, wrong("a string that may be several")
		default:
			list = []string{one}
		}
	}
	for _, s := range list {
		if s = strings.TrimSpace(s); s == "" {
			return nil, wrong("an empty one")
		} else if s[0] == '[' && json.Valid([]byte(s)) {
			return nil, wrong("a list in a list")
		}
	}
	if len(list) == 0 {
		return nil, wrong("an empty list")
	}
	return list, nil
}

// count returns an argument that is a positive integer, nil if it is absent. Models write 5.0 and "5" for 5.
func (a arguments) count(name string) (*int64, error) {
	if a[name] == nil {
		return nil, nil
	}
	var n json.Number
	if err := json.Unmarshal(unquoted(a[name]), &n); err == nil {
		if f, err := n.Float64(); err == nil && f >= 1 && f <= 1e6 && f == float64(int64(f)) {
			i := int64(f)
			return &i, nil
		}
	}
	return nil, abi.NewError(abi.CodeInvalidArgument, name+": want an integer from 1 to 1000000")
}

// truth returns an argument that is true or false. Models write "true" for true.
func (a arguments) truth(name string) (bool, error) {
	var b *bool
	if err := json.Unmarshal(bytes.ToLower(unquoted(a[name])), &b); err != nil || b == nil {
		return false, abi.NewError(abi.CodeInvalidArgument, name+": want true or false")
	}
	return *b, nil
}

// fixed returns the operator's value for an argument that names part of the scope; ok is false for other arguments.
func (d *Door) fixed(name string) (value string, ok bool) {
	s := d.options.Scope
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name)) {
	case "run", "runid":
		return s.RunID, true
	case "user", "userid", "persona", "personaid":
		return s.PersonaID, true
	case "agent", "agentid":
		return d.options.AgentID, true
	case "namespace", "backendnamespace":
		return s.BackendNamespace, true
	case "session", "sessionid":
		return d.options.Session, true
	}
	return "", false
}

// checkScope rejects an argument that names another value than the fixed one.
func (d *Door) checkScope(name, value string) *abi.Error {
	if mine, known := d.fixed(name); known && value != mine {
		return d.refused(name)
	}
	return nil
}

// checkScopeJSON is checkScope for an argument that is a string, or an object with parts of the scope. known reports
// whether the argument is about the scope at all; it then has the fixed value.
func (d *Door) checkScopeJSON(name string, value json.RawMessage) (known bool, _ *abi.Error) {
	if strings.EqualFold(name, "scope") {
		var parts map[string]json.RawMessage
		if err := json.Unmarshal(value, &parts); err != nil {
			return true, d.refused(name)
		}
		for part, v := range parts {
			if known, e := d.checkScopeJSON(part, v); !known || e != nil {
				return true, d.refused(name + "." + part)
			}
		}
		return true, nil
	}
	if _, known = d.fixed(name); !known || string(value) == "null" {
		return known, nil
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return true, d.refused(name)
	}
	return true, d.checkScope(name, text)
}

func (d *Door) refused(name string) *abi.Error {
	return abi.NewError(abi.CodeDenied, fmt.Sprintf("%s: this memory is of run %q and user %q alone, and a call cannot "+
		"name another", name, d.options.Scope.RunID, d.options.Scope.PersonaID)).
		WithReason("scope").WithHint("leave " + name + " out; who started memhost has chosen the scope (memory.scope, " +
		"--run, --user)")
}
