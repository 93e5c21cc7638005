package egress

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/schema"
	"github.com/memhost/memhost/internal/text/jsonpointer"
	"golang.org/x/net/http/httpguts"
)

// Secret is a credential of the operator.
type Secret struct {
	// Value reads it. It is called once, by Open.
	Value func() (string, error)
	// Origin is the URL (scheme, host, port) to which alone it may be sent.
	Origin string
}

// shortestSecret is the least length of a secret in bytes: a shorter one would be found in text that has nothing to do
// with it.
const shortestSecret = 4

// openSecrets reads the values of the secrets that the block refers to and binds each to its origin and headers. It
// returns the manifest's names of those that are set.
func openSecrets(c Config, block any, origins map[string]*origin) ([]string, Redactor, error) {
	set := []string{}
	var values []string
	for _, decl := range c.Manifest.Secrets {
		value, ok := jsonpointer.Find(block, decl.From)
		if !ok || value == nil {
			continue
		}
		text, err := readSecret(decl, value, c.Secrets, origins[decl.Origin])
		if err != nil {
			return nil, Redactor{}, err
		}
		values, set = append(values, text), append(set, decl.Name)
		if err := origins[decl.Origin].bind(decl, text, block); err != nil {
			return nil, Redactor{}, err
		}
	}
	return set, NewRedactor(values), nil
}

// readSecret reads the secret that a value of the block refers to, for an origin, which may be nil.
func readSecret(decl abi.SecretDecl, value any, secrets map[string]Secret, o *origin) (string, error) {
	wrong := func(format string, args ...any) *abi.Error {
		return abi.NewError(abi.CodeInvalidArgument, inBlockAt(decl.From)+": "+fmt.Sprintf(format, args...))
	}
	name, ok := schema.SecretRef(value)
	if !ok {
		return "", wrong("want {secret: NAME}, a secret's value has no place in a config block")
	}
	secret, ok := secrets[name]
	if !ok {
		e := wrong("there is no secret %q under secrets", name)
		if near := abi.Nearest(name, abi.SortedKeys(secrets)); near != "" {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		return "", e
	}
	if o == nil {
		return "", wrong("its origin %s is not configured", decl.Origin)
	}
	if !sameOrigin(secret.Origin, o.base) {
		return "", wrong("secret %s is bound to %s, not to %s", name, secret.Origin, o.base)
	}
	text, err := secret.Value()
	if err != nil {
		// Most of these messages name the secret themselves.
		return "", wrong("secret %s: %s", name, strings.TrimPrefix(abi.AsError(err).Message, "secret "+name+": "))
	}
	if len(text) < shortestSecret {
		return "", wrong("secret %s has %d bytes; one that short cannot be kept out of logs", name, len(text))
	}
	return text, nil
}

// bind gives an origin a secret: as its password, or for the headers that the manifest declares.
func (o *origin) bind(decl abi.SecretDecl, value string, block any) error {
	if o.database != nil {
		user, err := optionalText(block, decl.UserFrom)
		if err != nil {
			return err
		}
		o.database.logOnAs(user, value)
	}
	for _, header := range decl.Headers {
		header = strings.ToLower(header)
		if o.secrets[header] == nil {
			o.secrets[header] = map[string]string{}
		}
		o.secrets[header][decl.Name] = value
	}
	return nil
}

// withSecrets replaces {{secret:NAME}} in a header that the manifest declares for that secret. Elsewhere it stays text.
func (o *origin) withSecrets(header, value string) (string, error) {
	for name, secret := range o.secrets[header] {
		value = strings.ReplaceAll(value, "{{secret:"+name+"}}", secret)
		if !httpguts.ValidHeaderFieldValue(value) {
			return "", abi.NewError(abi.CodeInvalidArgument,
				fmt.Sprintf("secret %s holds characters that no header may have", name))
		}
	}
	return value, nil
}

// Redacted replaces the value of a secret.
const Redacted = "[secret removed]"

// Redactor removes the operator's secrets from whatever leaves the host: logs, traces, errors, and answers that reach a guest.
type Redactor struct {
	secrets []string // what replace looks for
	replace *strings.Replacer
}

func NewRedactor(values []string) Redactor {
	var r Redactor
	for _, v := range values {
		if v == "" {
			continue
		}
		r.secrets = append(r.secrets, v)
		if quoted, err := json.Marshal(v); err == nil && string(quoted[1:len(quoted)-1]) != v {
			r.secrets = append(r.secrets, string(quoted[1:len(quoted)-1]))
		}
	}
	var pairs []string
	for _, secret := range r.secrets {
		pairs = append(pairs, secret, Redacted)
	}
	r.replace = strings.NewReplacer(pairs...)
	return r
}

// Text looks first whether there is anything to remove: there hardly ever is, and a Replacer copies all that it goes through, byte by byte.
func (r Redactor) Text(s string) string {
	for _, secret := range r.secrets {
		if strings.Contains(s, secret) {
			return r.replace.Replace(s)
		}
	}
	return s
}

// Bytes returns b itself where there is nothing to remove.
func (r Redactor) Bytes(b []byte) []byte {
	for _, secret := range r.secrets {
		if bytes.Contains(b, []byte(secret)) {
			return []byte(r.replace.Replace(string(b)))
		}
	}
	return b
}

// Error returns a copy of e without secrets and with its native body cut to the limit.
func (r Redactor) Error(e *abi.Error) *abi.Error {
	clean := *e
	clean.Message, clean.Hint, clean.Reason = r.Text(e.Message), r.Text(e.Hint), r.Text(e.Reason)
	if e.Native != nil {
		native := *e.Native
		native.Body = r.Text(native.Body)
		if len(native.Body) > abi.NativeBodyLimit {
			native.Body = strings.ToValidUTF8(native.Body[:abi.NativeBodyLimit], "")
		}
		clean.Native = &native
	}
	return &clean
}
