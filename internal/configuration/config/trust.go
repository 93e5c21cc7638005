package config

import (
	"path"
	"strconv"
	"strings"
	"time"
)

// Trust is a line of modules.trust: it admits a module that is not built in.
type Trust struct {
	// Line is the text in the configuration.
	Line string
	// SHA256 is the digest of the module's bytes in hex, for a line that names one. All other fields are empty then.
	SHA256 string
	// Modules is oci://HOST/NAME, or oci://HOST/PREFIX/* for all names below a prefix.
	Modules string
	// Key is the file of the public key that must have signed the modules, "" if an identity must have.
	Key string
	// Identity and Issuer describe a required keyless signature: an e-mail address or a URI, which may end in *, and
	// the URL of the identity provider.
	Identity, Issuer string
	// Until is when the line expires, zero for never.
	Until time.Time
}

// trustForms describes the forms of a line.
const trustForms = "sha256:HEX of a module, oci://HOST/NAME signed by KEY.pub, or oci://HOST/NAME signed by IDENTITY " +
	"issued by URL, where NAME may end in /* and an IDENTITY with :// in /* or @*; until 2027-01-31 may follow a signer"

// Names reports whether the line applies to a module in a registry, given as oci://HOST/NAME without tag and digest.
func (t Trust) Names(module string) bool {
	if below, ok := strings.CutSuffix(t.Modules, "*"); ok {
		return strings.HasPrefix(module, below)
	}
	return t.Modules != "" && t.Modules == module
}

// Ended reports whether the line has expired.
func (t Trust) Ended(now time.Time) bool { return !t.Until.IsZero() && !now.Before(t.Until) }

// readTrust parses a line; ok is false if it has none of the forms.
func readTrust(line string) (t Trust, ok bool) {
	t.Line = line
	if hex, found := strings.CutPrefix(line, "sha256:"); found {
		t.SHA256 = hex
		return t, len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
	}
	var rest string
	t.Modules, rest, ok = strings.Cut(line, " signed by ")
	if !ok {
		return t, false
	}
	t.Modules = strings.TrimSpace(t.Modules)
	if at := strings.LastIndex(rest, " until "); at >= 0 {
		day, err := time.Parse(time.DateOnly, strings.TrimSpace(rest[at+len(" until "):]))
		if err != nil {
			return t, false
		}
		rest, t.Until = rest[:at], day.AddDate(0, 0, 1) // the last day is included
	}
	signer, issuer, keyless := strings.Cut(rest+" ", " issued by ")
	signer, issuer = strings.TrimSpace(signer), strings.TrimSpace(issuer)
	if !keyless {
		t.Key = signer
		return t, signer != "" && isTrustedName(t.Modules)
	}
	t.Identity, t.Issuer = signer, issuer
	return t, isIdentity(signer) && issuer != "" && !strings.Contains(issuer, " ") && isTrustedName(t.Modules)
}

// isIdentity accepts a URI or an e-mail address. A URI may end in * after its last / or @, which for a workflow stands
// for any ref of one repository. In an e-mail address a * would stand for any domain.
func isIdentity(name string) bool {
	start, all := strings.CutSuffix(name, "*")
	if strings.ContainsAny(start, "* ") || !strings.ContainsAny(start, "/@") {
		return false
	}
	return !all || strings.Contains(start, "://") &&
		(strings.HasSuffix(start, "/") && !strings.HasSuffix(start, "//") || strings.HasSuffix(start, "@"))
}

// isTrustedName accepts a host and a name, whose last step may be *.
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

// finishTrust parses modules.trust.
func (l *loader) finishTrust() {
	if root := &l.config.Modules.SigstoreRoot; *root != "" {
		*root = l.resolve(l.folder(l.origin("modules", "sigstore_root")), *root)
	}
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
		if t.Identity != "" && l.config.Modules.SigstoreRoot == "" {
			l.problems.add(l.origin(at...), at, "found an identity, want modules.sigstore_root, too: the file "+
				"trusted_root.json that says which certificates and logs count")
		}
		l.config.trust = append(l.config.trust, t)
	}
}

// Trust returns the lines of modules.trust. Without any line, every module may serve.
func (c *Config) Trust() []Trust { return c.trust }
