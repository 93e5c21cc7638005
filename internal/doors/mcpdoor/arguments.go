package mcpdoor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
)

// arguments are those of one call, by name: only such as the tool has.
type arguments map[string]json.RawMessage

// arguments reads what a call says. The protocol's clients do not check it, and a model may say anything.
//
// Errors: denied with reason scope for an argument that names another scope than the door's; invalid_argument.
func (d *Door) arguments(t tool, text json.RawMessage) (arguments, error) {
	a := arguments{}
	if len(text) > 0 {
		if !utf8.Valid(text) {
			return nil, abi.NewError(abi.CodeInvalidArgument, "arguments: not valid UTF-8")
		}
		if err := json.Unmarshal(text, &a); err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "arguments: want an object").WithHint("want " + want(t))
		}
	}
	for _, name := range sortedNames(a) {
		if slices.Contains(t.fields, name) {
			if string(a[name]) == "null" { // the same as absent
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

// text is an argument that is a string, "" where it is absent.
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

// texts is an argument that is a list of strings, nil where it is absent. Models write a string for a list of one.
func (a arguments) texts(name string) ([]string, error) {
	if a[name] == nil {
		return nil, nil
	}
	var list []string
	if err := json.Unmarshal(a[name], &list); err == nil {
		return list, nil
	}
	one, err := a.text(name)
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, name+": want a list of strings")
	}
	return []string{one}, nil
}

// count is an argument that is a positive integer, nil where it is absent. Models write 5.0 and "5" for 5.
func (a arguments) count(name string) (*int64, error) {
	if a[name] == nil {
		return nil, nil
	}
	var n json.Number
	if err := json.Unmarshal(a[name], &n); err == nil {
		if f, err := n.Float64(); err == nil && f >= 1 && f <= 1e6 && f == float64(int64(f)) {
			i := int64(f)
			return &i, nil
		}
	}
	return nil, abi.NewError(abi.CodeInvalidArgument, name+": want an integer from 1 to 1000000")
}

// truth is an argument that is true or false.
func (a arguments) truth(name string) (bool, error) {
	var b bool
	if err := json.Unmarshal(a[name], &b); err != nil {
		return false, abi.NewError(abi.CodeInvalidArgument, name+": want true or false")
	}
	return b, nil
}

// fixed is what the operator has fixed under a name that an argument might have; ok reports whether the name is one of
// those.
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

// checkScope refuses a name of the scope with another value than the fixed one.
func (d *Door) checkScope(name, value string) *abi.Error {
	if mine, known := d.fixed(name); known && value != mine {
		return d.refused(name)
	}
	return nil
}

// checkScopeJSON is checkScope for an argument: a string, or an object of such as scope. known reports whether the
// argument is about the scope at all; what it says then is what holds anyway.
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
