package talks

import (
	"regexp"
	"slices"
	"strings"
)

// leftOut takes a credential's place.
const leftOut = "[credential left out]"

// credentials are the forms that services give their keys, so that few other words look like one:
//
//	sk-ant-..., sk-proj-..., sk-...      Anthropic, OpenAI and others
//	ghp_..., github_pat_..., glpat-...   GitHub, GitLab
//	AKIA..., AIza..., ya29....           AWS, Google
//	xoxb-..., hf_..., npm_..., pypi-...  Slack, Hugging Face, package registries
//	eyJ....eyJ....                       a JSON Web Token
//	-----BEGIN ... PRIVATE KEY-----      up to its end, or to the end of the text
var credentials = regexp.MustCompile(
	`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)|` +
		`\b(?:sk-[A-Za-z0-9_-]{16,}|(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|` +
		`glpat-[A-Za-z0-9_-]{16,}|(?:AKIA|ASIA)[A-Z0-9]{16}\b|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}|` +
		`xox[abeoprs]-[A-Za-z0-9-]{10,}|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}|` +
		`(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)`)

// beginnings are in every text that credentials can match; to look for them is much faster.
func beginnings() []string {
	return []string{"PRIVATE KEY-----", "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "AKIA",
		"ASIA", "AIza", "ya29.", "xox", "hf_", "npm_", "pypi-", "_live_", "_test_", "eyJ"}
}

// named are values that a name, a header or an address calls a credential. Group 1 stays, group 2 goes.
var named = regexp.MustCompile(`(?i)(\b[a-z0-9_.-]*(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|` +
	`auth[_-]?token|access[_-]?token|private[_-]?key)["']?\s*(?::|=|:=)\s*["']?)([^\s"'` + "`" + `,;<>()\[\]{}$]{6,})|` +
	`(\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+)([A-Za-z0-9._~+/=-]{8,})|` +
	`(\b[a-z][a-z0-9+.-]*://[^\s:/@"'<>]*:)([^\s/@"'<>$]{3,})@`)

// hints is in every text that named can match. It is much faster than named, and few texts have it.
var hints = regexp.MustCompile(`(?i)pass|secret|key|token|authorization|://`)

// withoutCredentials replaces what looks like a credential, and says how many there were.
func withoutCredentials(text string) (string, int) {
	found := 0
	if slices.ContainsFunc(beginnings(), func(b string) bool { return strings.Contains(text, b) }) {
		text = credentials.ReplaceAllStringFunc(text, func(string) string {
			found++
			return leftOut
		})
	}
	if !hints.MatchString(text) {
		return text, found
	}
	var b strings.Builder
	end := 0
	for _, m := range named.FindAllStringSubmatchIndex(text, -1) {
		for group := 2; group <= 6; group += 2 { // the groups 2, 4 and 6 are the values
			from, to := m[2*group], m[2*group+1]
			if from < 0 || strings.Contains(text[from:to], "left out") || isProse(text[m[2*group-2]:from], text[from:to]) {
				continue
			}
			found++
			b.WriteString(text[end:from] + leftOut)
			end = to
		}
	}
	return b.String() + text[end:], found
}

// isProse tells a sentence, as in "the secret: patience", from a setting: a colon, a blank, and a word without a digit.
func isProse(before, value string) bool {
	return strings.HasSuffix(before, ": ") && !strings.ContainsAny(value, "0123456789") && !strings.Contains(before, `"`)
}
