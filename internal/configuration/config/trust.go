package config

import (
	"path"
	"strconv"
	"strings"
	"time"
)

// Trust is a line of modules.trust: what lets a module that is not built in serve.
type Trust struct {
	// Line is as the configuration has it.
	Line string
	// SHA256 is that of the module's bytes in hex, for a line that names one. All else is empty then.
	SHA256 string
	// Modules is oci://HOST/NAME, or oci://HOST/PREFIX/* for all names below a prefix.
	Modules string
	// Key is the file of the public key that has to have signed them.
	Key string
	// Until is when the line ends, zero for never.
	Until time.Time
}

// trustForms is what a line may be.
const trustForms = "sha256:HEX of a module, or oci://HOST/NAME signed by KEY.pub, where NAME may end in /*; " +
	"until 2027-01-31 may follow"

// Names reports whether the line is about a module in a registry, oci://HOST/NAME without tag and digest.
func (t Trust) Names(module string) bool {
	if below, ok := strings.CutSuffix(t.Modules, "*"); ok {
		return strings.HasPrefix(module, below)
	}
	return t.Modules != "" && t.Modules == module
}

// readTrust reads a line; ok is false where it has none of the forms.
func readTrust(line string) (t Trust, ok bool) {
	t.Line = line
	if hex, found := strings.CutPrefix(line, "sha256:"); found {
		t.SHA256 = hex
		return t, len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
	}
	var rest string
	t.Modules, rest, ok = strings.Cut(line, " signed by ")
	t.Modules, t.Key = strings.TrimSpace(t.Modules), strings.TrimSpace(rest)
	if at := strings.LastIndex(rest, " until "); at >= 0 {
		t.Key = strings.TrimSpace(rest[:at])
		day, err := time.Parse(time.DateOnly, strings.TrimSpace(rest[at+len(" until "):]))
		if err != nil {
			return t, false
		}
		t.Until = day.AddDate(0, 0, 1) // the day counts
	}
	return t, ok && t.Key != "" && isTrustedName(t.Modules)
}

// isTrustedName wants a host and a name, of which * may be the last step.
func isTrustedName(modules string) bool {
	name, ok := strings.CutPrefix(modules, registryScheme)
	if !ok || strings.ContainsAny(name, "@ ") || path.Clean(name) != name {
		return false
	}
	host, name, ok := strings.Cut(name, "/")
	if !ok || host == "" || name == "" || strings.Contains(host, "*") || strings.Contains(name, ":") {
		return false
	}
	name, all := strings.CutSuffix(name, "*")
	return !strings.Contains(name, "*") && (!all || name == "" || strings.HasSuffix(name, "/"))
}

// finishTrust reads modules.trust.
func (l *loader) finishTrust() {
	for i, line := range l.config.Modules.Trust {
		at := []string{"modules", "trust", strconv.Itoa(i)}
		t, ok := readTrust(line)
		if !ok {
			l.problems.add(l.origin(at...), at, "found %q, want %s", line, trustForms)
			continue
		}
		if t.Key != "" {
			t.Key = l.resolve(l.folder(l.origin("modules", "trust")), t.Key)
		}
		l.config.trust = append(l.config.trust, t)
	}
}

// Trust are the lines of modules.trust. Without any, every module may serve.
func (c *Config) Trust() []Trust { return c.trust }
