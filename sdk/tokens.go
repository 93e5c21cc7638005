package sdk

import (
	"github.com/memhost/memhost/abi"
)

// CountTokens counts the tokens of text with the configured tokenizer.
func (c *Call) CountTokens(text string) int64 { return c.host.TokensCount([]byte(text)) }

// FitTokens returns the longest prefix of text, ending between characters, that has at most max tokens, and its count.
func (c *Call) FitTokens(text string, max int64) (prefix string, tokens int64) {
	if max <= 0 {
		return "", 0
	}
	packed := c.host.TokensFit([]byte(text), int32(min(max, abi.MaxLength)))
	return text[:uint32(packed)], int64(packed >> 32)
}
