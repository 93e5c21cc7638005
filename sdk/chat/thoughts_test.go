package chat

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestStripThoughts(t *testing.T) {
	for in, want := range map[string]string{"plain": "plain", "a < b": "a < b", "<think>x</think>Yes.": "Yes.",
		"<THINK>x</think> Yes.": "Yes.", "<thinking>never closed": "",
		"</think>Yes.": "Yes.", "Yes.</thought>": "Yes.", "Yes <think>x</think>and no": "Yes and no",
		"<think>x</think>": "", "Perhaps so, or not.\n</think>\n\nYes.": "Yes.", "<reasoning>x</reasoning>no": "no",
		"The tag </think> ends it.": "The tag </think> ends it.", "Write <think> first.": "Write <think> first."} {
		got, n := StripThoughts(in)
		assert.Equal(t, want, got, in)
		assert.Equal(t, in != want && in != "</think>Yes." && in != "Yes.</thought>", n > 0, in)
	}
}
