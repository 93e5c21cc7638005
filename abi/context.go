package abi

import "strings"

// ContextTag is the name of the element in which an agent gets its memory: <memory-context ...>...</memory-context>.
const ContextTag = "memory-context"

// TagName returns rest, which follows a "<", from where a tag's name would begin. Before it there may be blanks, controls, slashes and anything that is not
// ASCII: some of that is white space, or invisible. Who escapes text (sdk) and who checks that it was escaped (host) go by this.
func TagName(rest string) string {
	for len(rest) > 0 && (rest[0] <= ' ' || rest[0] == '/' || rest[0] >= 0x7f) {
		rest = rest[1:]
	}
	return rest
}

// NamesContextTag tells whether rest, which follows a "<", is an opening or closing tag of the element, in any case.
func NamesContextTag(rest string) bool {
	name := TagName(rest)
	return len(name) >= len(ContextTag) && strings.EqualFold(name[:len(ContextTag)], ContextTag)
}
