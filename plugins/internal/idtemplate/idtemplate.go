// Package idtemplate makes native ids from templates such as {run_id}:{persona_id}, so that different scopes have
// different ids.
package idtemplate

import (
	"errors"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// The parts that a template can contain.
const (
	Run       = "run_id"
	Persona   = "persona_id"
	Agent     = "agent_id"
	Namespace = "namespace"
)

// Template is a parsed template: literals, with a part after each but the last.
type Template struct{ literals, parts []string }

const (
	separator = '_'
	escape    = 'z'
)

// rules write a part without the separator: lower-case letters and digits unchanged, every other byte as z and two hex
// digits, and an empty part as z. Graphiti, Honcho and MemOS accept such ids, and no index splits them into words.
var rules = sdk.IDRules{Plain: sdk.LowerNumeric, Escape: escape, Separator: separator}

// Parse parses a template, which must contain each of required.
//
// Errors: the problem with the template, without its name.
func Parse(text string, required ...string) (*Template, error) {
	t := &Template{}
	for {
		literal, rest, more := strings.Cut(text, "{")
		written := fixed(literal)
		if len(t.parts) > 0 && more && !strings.Contains(written, string(separator)) {
			return nil, errors.New("needs a character such as : between {" + t.parts[len(t.parts)-1] +
				"} and the next part, or two scopes could have the same id")
		}
		t.literals = append(t.literals, written)
		if !more {
			break
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || name != Run && name != Persona && name != Agent && name != Namespace {
			return nil, errors.New("knows {run_id}, {persona_id}, {agent_id} and {namespace}, not {" + name + "}")
		}
		t.parts, text = append(t.parts, name), after
	}
	for _, name := range required {
		if !t.names(name) {
			return nil, errors.New("leaves out {" + name + "}, so that two scopes would have the same id: add it")
		}
	}
	return t, nil
}

// fixed returns a literal as it appears in an id.
func fixed(literal string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && sdk.LowerNumeric(byte(r)) {
			return r
		}
		return separator
	}, literal)
}

func (t *Template) names(part string) bool {
	for _, name := range t.parts {
		if name == part {
			return true
		}
	}
	return false
}

// ID returns the id of a scope's generation. A namespace, an agent and a later generation that the template does not
// contain are appended as _nNAMESPACE, _aAGENT and _gGENERATION. An id longer than most bytes becomes zh and its
// SHA-256.
func (t *Template) ID(namespace string, scope abi.MemoryScope, generation int64, most int) string {
	id := t.text(namespace, scope)
	if namespace != "" && !t.names(Namespace) {
		id += "_n" + sdk.NativeID(rules, namespace)
	}
	if scope.AgentID != "" && !t.names(Agent) {
		id += "_a" + sdk.NativeID(rules, scope.AgentID)
	}
	if generation > 1 {
		id += "_g" + sdk.Itoa(generation)
	}
	return short(id, most)
}

// Name returns the id of something that several scopes share: the template's parts only.
func (t *Template) Name(namespace string, scope abi.MemoryScope, most int) string {
	return short(t.text(namespace, scope), most)
}

func (t *Template) text(namespace string, scope abi.MemoryScope) string {
	id := t.literals[0]
	for i, name := range t.parts {
		value := map[string]string{Run: scope.RunID, Persona: scope.PersonaID, Agent: scope.AgentID,
			Namespace: namespace}[name]
		id += sdk.NativeID(rules, value) + t.literals[i+1]
	}
	return id
}

func short(id string, most int) string {
	if len(id) > most {
		return string(escape) + "h" + sdk.Digest256(id)
	}
	return id
}
