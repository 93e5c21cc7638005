package host

import (
	"encoding/json"
	"strings"

	"github.com/memhost/memhost/abi"
)

// redactor removes the operator's secrets from whatever leaves the host: logs, traces, errors, and answers that reach a guest.
type redactor struct{ replace *strings.Replacer }

// redacted stands for a secret's value.
const redacted = "[secret removed]"

func newRedactor(values []string) redactor {
	var pairs []string
	for _, v := range values {
		if v == "" {
			continue
		}
		pairs = append(pairs, v, redacted)
		if quoted, err := json.Marshal(v); err == nil && string(quoted[1:len(quoted)-1]) != v {
			pairs = append(pairs, string(quoted[1:len(quoted)-1]), redacted)
		}
	}
	if len(pairs) == 0 {
		return redactor{}
	}
	return redactor{strings.NewReplacer(pairs...)}
}

func (r redactor) text(s string) string {
	if r.replace == nil {
		return s
	}
	return r.replace.Replace(s)
}

func (r redactor) bytes(b []byte) []byte {
	if r.replace == nil {
		return b
	}
	return []byte(r.replace.Replace(string(b)))
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
