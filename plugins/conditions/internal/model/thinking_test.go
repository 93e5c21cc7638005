package model

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestStripThinking(t *testing.T) {
	for in, want := range map[string]string{"plain": "plain", "a < b": "a < b", "<think>x</think>Yes.": "Yes.",
		"<THINK>x</think> Yes.": "Yes.", "<thinking>never closed": "",
		"</think>Yes.": "Yes.", "Yes.</thought>": "Yes.", "Yes <think>x</think>and no": "Yes and no",
		"<think>x</think>": ""} {
		assert.Equal(t, want, StripThinking(in), in)
	}
}
