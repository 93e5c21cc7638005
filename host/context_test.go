package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestContextIsOneElementWhateverIsTriedInsideIt(t *testing.T) {
	const open, end = "<memory-context backend=\"b\">", "</memory-context>"
	for _, inside := range []string{"", "text", "a < b", "<memory>", "<\\/memory-context>", "<\\memory-context>",
		"memory-context>", "ends with <\n"} {
		assert.NoError(t, oneElement(open+inside+end), "%q", inside)
	}
	for _, inside := range []string{"</memory-context>", "<memory-context>", "< / Memory-Context >",
		"<\t\n/MEMORY-CONTEXT", "<\u200b/memory-context>", "<\u00a0memory-context", "<\x7fmemory-context>",
		"<\x00/memory-context>"} {
		assert.Error(t, oneElement(open+inside+end), "%q", inside)
	}
	assert.NoError(t, oneElement(""))
	assert.Error(t, oneElement("x"+open+end))
	assert.Error(t, oneElement(open+end+"x"))
}
