package host

import (
	"fmt"
	"strings"

	"github.com/memhost/memhost/abi"
)

// checkContext holds a formatted context to what every plugin promises: it is empty or exactly one element, and it fits. It returns its tokens.
func (o *operation) checkContext(text string, budget abi.ContextBudget) (int64, error) {
	if err := oneElement(text); err != nil {
		return 0, o.provider.breach(o.call.op, "formatted_context "+err.Error())
	}
	count := int64(0)
	if text != "" {
		count = o.provider.tokens.Count([]byte(text))
	}
	if budget.MaxTokens != nil && count > *budget.MaxTokens {
		return 0, o.provider.breach(o.call.op, fmt.Sprintf("formatted_context has %d tokens (%s), max_tokens is %d", count, o.provider.tokens.Name(), *budget.MaxTokens))
	}
	return count, nil
}

// oneElement checks that text is empty, or one memory-context element with nothing around it and no such tag inside.
func oneElement(text string) error {
	if text == "" {
		return nil
	}
	const open, end = "<" + abi.ContextTag + " ", "</" + abi.ContextTag + ">"
	if !strings.HasPrefix(text, open) || !strings.HasSuffix(text, end) {
		return fmt.Errorf("does not begin with %q and end with %q", open, end)
	}
	inner := text[len(open) : len(text)-len(end)]
	for {
		i := strings.IndexByte(inner, '<')
		if i < 0 {
			return nil
		}
		inner = inner[i+1:]
		if abi.NamesContextTag(inner) {
			return fmt.Errorf("holds a second %s tag", abi.ContextTag)
		}
	}
}
