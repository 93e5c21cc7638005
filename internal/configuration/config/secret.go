package config

import (
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
)

// Secret is a credential of the operator: its source and the one origin to which it may be sent. The configuration
// never holds the value; Resolve reads it when it is needed.
type Secret struct {
	Name string
	// Exactly one of Env, a variable's name, and File, a path, is set.
	Env, File string
	// Origin is scheme://host[:port][/path], without user, query and fragment.
	Origin string

	lookup func(string) (string, bool)
}

// maxSecret bounds a credential, in bytes.
const maxSecret = 64 << 10

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
		// It may be sent in an HTTP header, where a line break would start another header.
		return "", s.errorf("%s holds a line break or another control character, or is not UTF-8", where)
	}
	return value, nil
}

func (s Secret) errorf(format string, args ...any) error {
	return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("secret %s: ", s.Name)+fmt.Sprintf(format, args...))
}

func (l *loader) finishSecrets() {
	c := l.config
	c.Secrets = map[string]Secret{}
	all, _ := c.tree["secrets"].(map[string]any)
	look := func(name string) (string, bool) { return lookupEnv(l.Environ, name) }
	if l.processEnv {
		look = os.LookupEnv // so that a variable that is set later counts
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
