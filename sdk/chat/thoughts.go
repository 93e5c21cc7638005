package chat

import "strings"

// thoughtTags are the names of elements that contain a model's thoughts.
var thoughtTags = []string{"think", "thinking", "thought", "reasoning"}

// StripThoughts removes the elements that contain a model's thoughts, and counts them. It removes complete elements
// anywhere; an element that is open at the start, with everything after it; the text before a closing tag without an
// opening tag, since some endpoints omit that; and single closing tags at the edges. Text without any is returned
// unchanged.
func StripThoughts(text string) (words string, thoughts int) {
	if !strings.Contains(text, "<") {
		return text, 0
	}
	words = text
	for _, tag := range thoughtTags {
		var n int
		words, n = stripTag(words, "<"+tag+">", "</"+tag+">")
		thoughts += n
	}
	if words == text {
		return text, 0
	}
	return strings.TrimSpace(words), thoughts
}

func stripTag(text, open, closer string) (words string, n int) {
	for {
		at := IndexFold(text, open)
		if at < 0 {
			break
		}
		end := IndexFold(text[at:], closer)
		if end < 0 {
			if strings.TrimSpace(text[:at]) == "" {
				return "", n + 1
			}
			break
		}
		text = text[:at] + text[at+end+len(closer):]
		n++
	}
	for trimmed := strings.TrimSpace(text); ; trimmed = strings.TrimSpace(trimmed) {
		at := IndexFold(trimmed, closer)
		switch {
		case at == 0:
			trimmed = trimmed[len(closer):]
		case at > 0 && at+len(closer) == len(trimmed):
			trimmed = trimmed[:at]
		case at > 0 && n == 0 && IndexFold(trimmed, open) < 0 && trimmed[at-1] == '\n':
			trimmed, n = trimmed[at+len(closer):], n+1
		default:
			return text, n
		}
		text = trimmed
	}
}

// IndexFold is strings.Index ignoring the case of ASCII letters; part must be lower-case.
func IndexFold(text, part string) int {
	for i := 0; i+len(part) <= len(text); i++ {
		if text[i] == part[0] && strings.EqualFold(text[i:i+len(part)], part) {
			return i
		}
	}
	return -1
}
