package conversations

import (
	"regexp"
	"slices"
	"strings"
)

// leftOut replaces a credential.
const leftOut = "[credential left out]"

// forms matches the key formats of well-known services, which few other words resemble:
//
//	ghp_..., github_pat_..., glpat-...           GitHub, GitLab
//	AKIA..., AIza..., ya29., GOCSPX-..., 1//0... AWS, Google
//	xoxb-..., xapp-..., https://hooks.slack...   Slack
//	hf_..., npm_..., pypi-..., rubygems_...      registries of models and packages
//	sk_live_..., shpat_..., sq0atp-..., SG....   Stripe, Shopify, Square, SendGrid, and similar services
//	eyJ....eyJ....                               a JSON Web Token
//	-----BEGIN ... PRIVATE KEY-----              up to its end, or to the end of the text
var forms = regexp.MustCompile(
	`(?s)-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|$)|` +
		`\b(?:(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|` +
		`gl(?:pat|dt|rt|ptt|ft|cbt|soat|agent|imt)-[A-Za-z0-9_-]{16,}|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b|` +
		`AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}|1//0[A-Za-z0-9_-]{30,}|` +
		`xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{20,}|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|` +
		`pypi-[A-Za-z0-9_-]{30,}|rubygems_[a-f0-9]{40,}|dckr_pat_[A-Za-z0-9_-]{20,}|` +
		`(?:sk|rk|pk|whsec)_(?:live_|test_)?[A-Za-z0-9]{24,}|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}|` +
		`shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}|sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}|EAAA[A-Za-z0-9_-]{56,}|` +
		`SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|key-[a-f0-9]{32}\b|AC[a-f0-9]{32}\b|SK[a-f0-9]{32}\b|` +
		`do[opr]_v1_[a-f0-9]{64}|dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9_.-]{32,}|(?:PMAK|NRAK|NRJS|NRII)-[A-Za-z0-9-]{24,}|` +
		`lin_api_[A-Za-z0-9]{32,}|secret_[A-Za-z0-9]{43}\b|ntn_[A-Za-z0-9]{40,}|figd_[A-Za-z0-9_-]{36,}|` +
		`sbp_[a-f0-9]{40}|vc[pikar]_[A-Za-z0-9]{24,}|tskey-[a-z]+-[A-Za-z0-9-]{16,}|hv[sbr]\.[A-Za-z0-9_-]{20,}|` +
		`gsk_[A-Za-z0-9]{40,}|r8_[A-Za-z0-9]{30,}|pplx-[A-Za-z0-9]{40,}|xai-[A-Za-z0-9]{40,}|nvapi-[A-Za-z0-9_-]{40,}|` +
		`tvly-[A-Za-z0-9-]{24,}|(?:fo1|fly)_[A-Za-z0-9+/=_-]{60,}|glsa_[A-Za-z0-9_]{32,}|glc_[A-Za-z0-9+/=]{32,}|` +
		`AGE-SECRET-KEY-1[A-Z0-9]{50,}|[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}|` +
		`eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)|` +
		`https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/]{30,}|` +
		`https://(?:ptb\.|canary\.)?discord(?:app)?\.com/api/webhooks/[0-9]+/[A-Za-z0-9_-]{40,}`)

// dashed matches keys in the format that OpenAI introduced. Locales, packages and file names look similar: isRandom
// distinguishes them.
var dashed = regexp.MustCompile(`\b(?:sk|rk|pk)-[A-Za-z0-9_-]{16,}`)

// beginnings has strings of which every text that forms or dashed match contains at least one. Searching for them is
// much faster.
var beginnings = []string{"PRIVATE KEY", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-",
	"glptt-", "glft-", "glcbt-", "glsoat-", "glagent-", "glimt-", "AKIA", "ASIA", "ABIA", "ACCA", "AIza", "ya29.", "GOCSPX-",
	"1//0", "xox", "xapp-", "hf_", "npm_", "pypi-", "rubygems_", "dckr_pat_", "sk_", "rk_", "pk_", "whsec_", "shp", "sq0",
	"EAAA", "SG.", "key-", "AC", "SK", "doo_", "dop_", "dor_", "dp.", "PMAK-", "NRAK-", "NRJS-", "NRII-", "lin_api_",
	"secret_", "ntn_", "figd_", "sbp_", "vc", "tskey-", "hvs.", "hvb.", "hvr.", "gsk_", "r8_", "pplx-", "xai-", "nvapi-",
	"tvly-", "fo1_", "fly_", "glsa_", "glc_", "AGE-SECRET-KEY-", ":AA", "eyJ", "hooks.slack.com", "discord", "sk-", "rk-",
	"pk-"}

// named matches values that a name, a header or an address identifies as a credential. Of the four groups of a match
// the first is kept, and the second, third or fourth is removed: a value in double quotes, in single quotes, or
// unquoted.
var named = regexp.MustCompile(`(?i)(\b[a-z0-9_.-]*(?:password|passwd|passphrase|pwd|secret|api[_-]?key|access[_-]?key|` +
	`secret[_-]?key|auth[_-]?token|access[_-]?token|refresh[_-]?token|bearer[_-]?token|private[_-]?key|client[_-]?secret|` +
	`account[_-]?key|encryption[_-]?key|signing[_-]?key|auth[_-]?key)["']?\s*(?::=|=>|:|=)\s*)` +
	`(?:"([^"\n]{6,200})"|'([^'\n]{6,200})'|([^\s"'` + "`" + `,;<>()\[\]{}$=&|]{6,}))`)

// headers matches credentials in HTTP headers.
var headers = regexp.MustCompile(`(?i)(\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token|apikey)\s+|` +
	`\b(?:x-api-key|api-key|x-auth-token|private-token)["']?\s*[:=]\s*["']?)([A-Za-z0-9._~+/=-]{8,})`)

// addresses matches URLs with a password.
var addresses = regexp.MustCompile(`(\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s:/@"'<>?#]*:)([^\s/@"'<>${}?#]{3,})@`)

// nameHints matches every text that one of these three can match.
var nameHints = regexp.MustCompile(`(?i)pass|pwd|secret|key|token|authorization|://`)

// withoutCredentials replaces what looks like a credential, and returns how many it replaced.
func withoutCredentials(text string) (string, int) {
	found := 0
	replaced := func(string) string {
		found++
		return leftOut
	}
	if slices.ContainsFunc(beginnings, func(b string) bool { return strings.Contains(text, b) }) {
		text = forms.ReplaceAllStringFunc(text, replaced)
		text = dashed.ReplaceAllStringFunc(text, func(key string) string {
			if !isRandom(key[3:]) {
				return key
			}
			return replaced(key)
		})
	}
	if !nameHints.MatchString(text) {
		return text, found
	}
	replace := func(pattern *regexp.Regexp, isSecret func(before, value, after string, quoted bool) bool) {
		var b strings.Builder
		end := 0
		for _, m := range pattern.FindAllStringSubmatchIndex(text, -1) {
			for group := 2; 2*group < len(m); group++ {
				from, to := m[2*group], m[2*group+1]
				if from < 0 || strings.Contains(text[from:to], "left out") ||
					!isSecret(text[m[2]:m[3]], text[from:to], text[to:], group < 4 && len(m) > 6) {
					continue
				}
				found++
				b.WriteString(text[end:from] + leftOut)
				end = to
			}
		}
		text = b.String() + text[end:]
	}
	replace(headers, func(_, value, _ string, _ bool) bool { return !isPlaceholder(value) })
	replace(addresses, func(_, value, _ string, _ bool) bool { return !isPlaceholder(value) })
	replace(named, isNamedSecret)
	return text, found
}

// isNamedSecret distinguishes a value from code, prose and examples. before is the name and what is between it and the
// value; after is what follows the value.
func isNamedSecret(before, value, after string, quoted bool) bool {
	digits := strings.ContainsAny(value, "0123456789")
	switch {
	case isPlaceholder(value), looksLikePath(value):
		return false
	case quoted:
		return !strings.ContainsAny(value, " \t{}<>") && !strings.Contains(value, "%s") && (digits || len(value) >= 8) &&
			!isName(value)
	}
	value = strings.TrimRight(value, ".:")
	switch next, blank := firstOf(after), strings.HasSuffix(before, " "); {
	case strings.ContainsRune("([{<$", next):
		return false // a call, an index, or a type literal
	case dottedName.MatchString(value) || isName(value):
		return false
	case len(value) < 6, value[0] == '!':
		return false
	case digits:
		return strings.ContainsAny(strings.ToLower(value), "abcdefghijklmnopqrstuvwxyz") || strings.Contains(strings.ToLower(before), "pass")
	case blank, strings.HasSuffix(before, "\t"):
		return !word.MatchString(value) && !plainName.MatchString(value)
	case !plainName.MatchString(value):
		return true
	}
	// As in a shell or an environment file: API_KEY=abcdefgh. In a program it would be a variable's name.
	name := strings.TrimRight(before, "=")
	return len(name) == len(before)-1 && name == strings.ToUpper(name) || strings.HasPrefix(before, "--")
}

func firstOf(text string) rune {
	for _, r := range text {
		return r
	}
	return 0
}

var (
	// dottedName matches an expression: process.env.SECRET, self.password, Config::secret, user->password.
	dottedName = regexp.MustCompile(`^[*&@]*[A-Za-z_][A-Za-z0-9_]*(?:(?:\.|::|->|\?\.)[A-Za-z_][A-Za-z0-9_]*)+[.!?]*$`)
	// plainName matches a possible name of a variable.
	plainName = regexp.MustCompile(`^[*&@-]*[A-Za-z_][A-Za-z_]*$`)
	word      = regexp.MustCompile(`^\PN*$`)
	// naming matches names of variables, fields and settings that hold credentials.
	naming = regexp.MustCompile(`(?i)pass(word|wd|phrase)?|secret|token|api_?key|_key|key_|credential|auth`)
	// algorithm matches names with digits that are not secrets.
	algorithm = regexp.MustCompile(`(?i)^(?:[a-z]+[_-])*(?:sha|md|aes|rsa|hs|rs|es|ps|ed|x|p|base|utf|oauth|argon|pbkdf|secp|curve|blake|ripemd|uint|int|float|latin|iso|ipv|http|s)[_-]?[0-9]{1,5}(?:[_-][a-z0-9]+)*$`)
	// placeholder matches values in examples.
	placeholder = regexp.MustCompile(`(?i)your|example\b|placeholder|change.?me|xxxx|\*\*\*|\.\.\.|…|dummy|redacted|insert|replace|` +
		`<[^>]*>|todo|foobar|hunter2$|^(?:password|passwd|pass|pwd|secret|token|string|boolean|number|required|optional|undefined|none|null|` +
		`true|false|default|hidden|protected|username|user|admin|root|postgres|guest|value|text|input|object|function|self|this|await|async|` +
		`return|import|unknown|invalid|missing|expired|incorrect|unset|empty|not_set|disabled|enabled|password123?|abc123|123456|test(?:ing)?|` +
		`secretref|vault|keychain|keyring|os\.getenv|getenv|env)$`)
	filePath = regexp.MustCompile(`(?i)^(?:\.{0,2}/|~/|[a-z]:\\|https?://|file:|env:|arn:|\w+://)|\.(?:pem|key|crt|json|ya?ml|txt|toml|env|py|js|ts|go|rb|java|ini|cfg|conf|pub)$`)
)

// isName reports whether a value is the name of something that holds a credential, or of an algorithm, rather than a
// credential.
func isName(value string) bool {
	if algorithm.MatchString(value) {
		return true
	}
	bare := strings.NewReplacer("_", "", "-", "", ".", "", ":", "").Replace(value)
	return naming.MatchString(value) && strings.IndexFunc(bare, func(r rune) bool {
		return r < 'A' || r > 'z' || r > 'Z' && r < 'a'
	}) < 0 || naming.MatchString(value) && plainWithDigits.MatchString(value)
}

// plainWithDigits matches a name with few digits: user2_password, apiKeyV2.
var plainWithDigits = regexp.MustCompile(`^[A-Za-z_]+[0-9]{1,2}[A-Za-z_]*$`)

func isPlaceholder(value string) bool {
	if slices.ContainsFunc([]string{"xxx", "..."}, func(s string) bool { return strings.HasPrefix(value, s) }) {
		return true
	}
	return placeholder.MatchString(value) || !strings.ContainsAny(value, "0123456789") && value == strings.ToUpper(value) &&
		naming.MatchString(value)
}

func looksLikePath(value string) bool { return filePath.MatchString(value) }

// isRandom distinguishes the random part of a key from words with dashes between them.
func isRandom(text string) bool {
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == '-' || r == '_' }) {
		digits := strings.ContainsAny(part, "0123456789")
		lower, upper := part != strings.ToUpper(part), part != strings.ToLower(part)
		if len(part) >= 16 && (digits || upper) || len(part) >= 8 && digits && (lower || upper) {
			return true
		}
	}
	return false
}
