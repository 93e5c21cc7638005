package picoclaw

import (
	"context"
	"encoding/json"
)

// The methods of this file are for a hook inside PicoClaw's own program: the same hook without the process.

// Context returns the text to append to a message of a request, and the message's index; "" means none. The request is
// PicoClaw's LLMHookRequest as JSON, the params of hook.before_llm.
func (h *Hook) Context(ctx context.Context, request json.RawMessage) (text string, message int) {
	h.guard("context is absent", func() {
		if m, found := h.contextFor(ctx, request); found != "" {
			text, message = "\n\n"+found, m.index
		}
	})
	return text, message
}

// Event handles a runtime event, the params of hook.runtime_event. A finished turn is on disk when it returns.
func (h *Hook) Event(event json.RawMessage) {
	h.guard("a turn was not recorded", func() { h.afterTurn(event) })
}

// Deliver delivers turns until ctx ends. Once end is closed it delivers what it can, for at most Options.Linger.
func (h *Hook) Deliver(ctx context.Context, end <-chan struct{}) { h.deliver(ctx, end) }
