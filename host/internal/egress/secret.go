package egress

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/schema"
	"github.com/memhost/memhost/internal/text/jsonpointer"
	"golang.org/x/net/http/httpguts"
)

// Secret is a credential of the operator.
type Secret struct {
	// Value reads the secret. Open calls it once.
	Value func() (string, error)
	// Origin is the only URL (scheme, host, port) that it may be sent to.
	Origin string
}

// shortestSecret is the minimum length of a secret in bytes: a shorter one would match unrelated text.
const shortestSecret = 4

// openSecrets reads the values of the secrets that the block refers to, and binds each to its origin and headers. It
// returns the manifest's names of those that are set.
func openSecrets(c Config, block any, origins map[string]*origin) ([]string, Redactor, error) {
	set := []string{}
	var values []string
	for _, decl := range c.Manifest.Secrets {
		value, ok := jsonpointer.Find(block, decl.From)
		if !ok || value == nil {
			if o := origins[decl.Origin]; o != nil {
				o.unset(decl)
			}
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

// readSecret reads the secret that a value of the block refers to. o is its origin, which may be nil.
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
		return "", wrong("secret %s is bound to %s, not to %s", name, secret.Origin, o.base).WithHint(fmt.Sprintf(
			"a secret goes to its origin alone: correct the backend's URL, or set secrets.%s.origin to %s://%s if the "+
				"secret is meant for that server", name, o.base.Scheme, o.base.Host))
	}
	text, err := secret.Value()
	if err != nil {
		// Most of these messages already name the secret.
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

// unset notes the headers of a secret that is declared and has no value.
func (o *origin) unset(decl abi.SecretDecl) {
	for _, header := range decl.Headers {
		header = strings.ToLower(header)
		o.missing[header] = append(o.missing[header], decl.Name)
	}
}

// withSecrets replaces {{secret:NAME}} in a header that the manifest declares for that secret. In a header that is
// declared for no secret it remains text.
//
// Errors: invalid_argument for a secret that is not declared for the header, or has no value.
func (o *origin) withSecrets(header, value string) (string, error) {
	for name, secret := range o.secrets[header] {
		value = strings.ReplaceAll(value, "{{secret:"+name+"}}", secret)
		if !httpguts.ValidHeaderFieldValue(value) {
			return "", abi.NewError(abi.CodeInvalidArgument,
				fmt.Sprintf("secret %s holds characters that no header may have", name))
		}
	}
	missing := o.missing[header]
	_, rest, left := strings.Cut(value, "{{secret:")
	if !left || len(o.secrets[header])+len(missing) == 0 {
		return value, nil
	}
	name, _, _ := strings.Cut(rest, "}}")
	if slices.Contains(missing, name) {
		return "", abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("header %s: the secret %q is not set", header, name)).
			WithHint("configure it in the provider's block, or have the plugin send the header only where it is set")
	}
	known := append(abi.SortedKeys(o.secrets[header]), missing...)
	e := abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("header %s: there is no secret %.64q; the manifest declares %s "+
		"for it", header, name, strings.Join(known, ", ")))
	if near := abi.Nearest(name, known); near != "" {
		e.Hint = fmt.Sprintf("did you mean {{secret:%s}}?", near)
	}
	return "", e
}
