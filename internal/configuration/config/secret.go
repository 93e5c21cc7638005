package config

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/schema"
)

// Secret is a credential of the operator: where it comes from and the one origin to which it may go. The value itself
// is nowhere in the configuration; Resolve reads it when it is needed.
type Secret struct {
	Name string
	// Exactly one of Env, a variable's name, and File, a path, is set.
	Env, File string
	// Origin is scheme://host[:port][/path], without user, query and fragment.
	Origin string

	lookup func(string) (string, bool)
}

const (
	// maxSecret bounds a credential, in bytes.
	maxSecret     = 64 << 10
	maxSecretName = 64
)

// Resolve returns the credential, without one newline at its end.
//
// Errors: invalid_argument, naming the variable or the file and never a value.
func (s Secret) Resolve() (string, error) {
	where := "environment variable " + s.Env
	var value string
	if s.Env != "" {
		look := s.lookup
		if look == nil {
			look = os.LookupEnv
		}
		v, ok := look(s.Env)
		if !ok {
			return "", s.errorf("%s is not set: export it before memhost starts", where)
		}
		value = v
	} else {
		where = "file " + s.File
		raw, err := readBounded(s.File, maxSecret)
		if err != nil {
			return "", s.errorf("cannot read %s: %v", where, err)
		}
		value = string(raw)
	}
	value = strings.TrimSuffix(value, "\n")
	value = strings.TrimSuffix(value, "\r")
	switch {
	case value == "":
		return "", s.errorf("%s is empty", where)
	case len(value) > maxSecret:
		return "", s.errorf("%s holds more than %d bytes", where, maxSecret)
	case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
		// It may go into an HTTP header, where a line break would begin another one.
		return "", s.errorf("%s holds a line break or another control character, or is not UTF-8", where)
	}
	return value, nil
}

func (s Secret) errorf(format string, args ...any) error {
	return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("secret %s: ", s.Name)+fmt.Sprintf(format, args...))
}

// secrets checks the section of that name in one layer; finishSecrets does what needs all layers.
func (c *checker) secrets(v any, p []string) (any, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		c.add(p, "found %s, want an object that maps names to {env: VARIABLE, origin: URL}", found(p, v))
		return nil, false
	}
	out := map[string]any{}
	for _, name := range c.inOrder(m, p) {
		at := append(slices.Clip(p), name)
		if !secretName(name) {
			c.add(at, "want a name of 1 to %d letters, digits, _ or -", maxSecretName)
			continue
		}
		s, ok := m[name].(map[string]any)
		if !ok {
			// The likeliest mistake is the credential itself.
			c.add(at, "want {env: VARIABLE, origin: URL} or {file: PATH, origin: URL}; the credential itself does "+
				"not belong into the configuration")
			continue
		}
		sound := map[string]any{}
		for _, key := range c.inOrder(s, at) {
			under := append(slices.Clip(at), key)
			text, isText := s[key].(string)
			switch {
			case !isOneOf(key, secretKeys()):
				c.add(under, "%s; the credential itself does not belong into the configuration",
					unknown("unknown key", key, secretKeys()))
			case s[key] == nil:
			case !isText || text == "" || len(text) > maxAny || strings.ContainsRune(text, 0) ||
				!utf8.ValidString(text):
				c.add(under, "want a string that is not empty")
			case key == "env" && !variableName(text):
				c.add(under, "want the name of an environment variable (letters, digits and _), not its value")
			case key == "origin" && badOrigin(text) != "":
				c.add(under, "found %q, %s", schema.BlankText(text), badOrigin(text))
			default:
				sound[key] = text
			}
		}
		out[name] = sound
	}
	return out, true
}

func secretName(name string) bool {
	return name != "" && len(name) <= maxSecretName && !strings.ContainsFunc(name, func(r rune) bool {
		return !nameRune(r)
	})
}

func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

func variableName(text string) bool {
	return len(text) <= maxID && !strings.ContainsFunc(text, func(r rune) bool {
		return r == '-' || !nameRune(r)
	}) && (text[0] < '0' || text[0] > '9')
}

func badOrigin(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme == "" || u.Host == "" || u.Hostname() == "":
		return "want scheme://host:port, like http://127.0.0.1:8000"
	case u.User != nil:
		return "want it without user and password: the secret is what names them"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(text, "#"):
		return "want it without query and fragment"
	}
	return ""
}

func (l *loader) finishSecrets() {
	c := l.config
	c.Secrets = map[string]Secret{}
	all, _ := c.tree["secrets"].(map[string]any)
	look := func(name string) (string, bool) { return lookupEnv(l.Environ, name) }
	if l.processEnv {
		look = os.LookupEnv // a variable that is set later counts
	}
	for _, name := range sortedKeys(all) {
		m, _ := all[name].(map[string]any)
		at := []string{"secrets", name}
		s := Secret{Name: name, lookup: look}
		s.Env, _ = m["env"].(string)
		s.File, _ = m["file"].(string)
		s.Origin, _ = m["origin"].(string)
		switch {
		case s.Env == "" && s.File == "":
			l.problems.add(l.origin(at...), at, "says not where the credential comes from: add env: VARIABLE or "+
				"file: PATH")
		case s.Env != "" && s.File != "":
			l.problems.add(l.origin(at...), at, "sets both env and file, want exactly one")
		case s.Origin == "":
			l.problems.add(l.origin(at...), at, "says not where the credential may go: add origin: URL, the scheme, "+
				"host and port of the backend")
		}
		if s.File != "" {
			s.File = l.resolve(l.folder(l.origin("secrets", name, "file")), s.File)
		}
		c.Secrets[name] = s
	}
}
