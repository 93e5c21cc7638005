package answercheck

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestContextIsOneElementWhateverIsTriedInsideIt(t *testing.T) {
	const open, end = "<memory-context backend=\"b\">", "</memory-context>"
	for _, inside := range []string{"", "text", "a < b", "<memory>", "<\\/memory-context>", "<\\memory-context>",
		"memory-context>", "ends with <\n"} {
		assert.Empty(t, NotOneElement(open+inside+end), "%q", inside)
	}
	for _, inside := range []string{"</memory-context>", "<memory-context>", "< / Memory-Context >",
		"<\t\n/MEMORY-CONTEXT", "<\u200b/memory-context>", "<\u00a0memory-context", "<\x7fmemory-context>",
		"<\x00/memory-context>"} {
		assert.NotEmpty(t, NotOneElement(open+inside+end), "%q", inside)
	}
	assert.Empty(t, NotOneElement(""))
	assert.NotEmpty(t, NotOneElement("x"+open+end))
	assert.NotEmpty(t, NotOneElement(open+end+"x"))
}
