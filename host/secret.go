package host

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/memhost/memhost/abi"
)

// redactor removes the operator's secrets from whatever leaves the host: logs, traces, errors, and answers that reach a guest.
type redactor struct {
	secrets []string // what replace looks for
	replace *strings.Replacer
}

// redacted stands for a secret's value.
const redacted = "[secret removed]"

func newRedactor(values []string) redactor {
	var r redactor
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
		pairs = append(pairs, secret, redacted)
	}
	r.replace = strings.NewReplacer(pairs...)
	return r
}

// text looks first whether there is anything to remove: there hardly ever is, and a Replacer copies all that it goes through, byte by byte.
func (r redactor) text(s string) string {
	for _, secret := range r.secrets {
		if strings.Contains(s, secret) {
			return r.replace.Replace(s)
		}
	}
	return s
}

// bytes returns b itself where there is nothing to remove.
func (r redactor) bytes(b []byte) []byte {
	for _, secret := range r.secrets {
		if bytes.Contains(b, []byte(secret)) {
			return []byte(r.replace.Replace(string(b)))
		}
	}
	return b
}

// error returns a copy of e without secrets and with its native body cut to the limit.
func (r redactor) error(e *abi.Error) *abi.Error {
	clean := *e
	clean.Message, clean.Hint, clean.Reason = r.text(e.Message), r.text(e.Hint), r.text(e.Reason)
	if e.Native != nil {
		native := *e.Native
		native.Body = r.text(native.Body)
		if len(native.Body) > abi.NativeBodyLimit {
			native.Body = strings.ToValidUTF8(native.Body[:abi.NativeBodyLimit], "")
		}
		clean.Native = &native
	}
	return &clean
}
