package model

import "strings"

// thinkingTags are the names of the elements in which models think aloud.
var thinkingTags = []string{"think", "thinking", "thought"}

// StripThinking removes thinking blocks: whole ones anywhere, one that is open at the beginning with all behind it,
// closers that stand alone at the edges. What has none is returned as it is.
func StripThinking(text string) string {
	if !strings.Contains(text, "<") {
		return text
	}
	stripped := text
	for _, tag := range thinkingTags {
		stripped = stripTag(stripped, "<"+tag+">", "</"+tag+">")
	}
	if stripped == text {
		return text
	}
	return strings.TrimSpace(stripped)
}

func stripTag(text, open, closer string) string {
	for {
		at := IndexFold(text, open)
		if at < 0 {
			break
		}
		end := IndexFold(text[at:], closer)
		if end < 0 {
			if strings.TrimSpace(text[:at]) == "" {
				return ""
			}
			break
		}
		text = text[:at] + text[at+end+len(closer):]
	}
	for trimmed := strings.TrimSpace(text); ; trimmed = strings.TrimSpace(trimmed) {
		switch {
		case len(trimmed) >= len(closer) && strings.EqualFold(trimmed[:len(closer)], closer):
			trimmed = trimmed[len(closer):]
		case len(trimmed) >= len(closer) && strings.EqualFold(trimmed[len(trimmed)-len(closer):], closer):
			trimmed = trimmed[:len(trimmed)-len(closer)]
		default:
			return text
		}
		text = trimmed
	}
}

// IndexFold is strings.Index without regard to the case of ASCII letters; part is of lower case.
func IndexFold(text, part string) int {
	for i := 0; i+len(part) <= len(text); i++ {
		if text[i] == part[0] && strings.EqualFold(text[i:i+len(part)], part) {
			return i
		}
	}
	return -1
}
