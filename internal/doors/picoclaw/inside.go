package picoclaw

import (
	"context"
	"encoding/json"
)

// The methods of this file are for a hook that is a part of PicoClaw's own program: the same hook without the process.

// Context is the text that belongs at the end of a message of a request, and the message's index; "" is none. The
// request is PicoClaw's LLMHookRequest as JSON, the params of hook.before_llm.
func (h *Hook) Context(ctx context.Context, request json.RawMessage) (text string, message int) {
	h.guard("context is absent", func() {
		if m, found := h.contextFor(ctx, request); found != "" {
			text, message = "\n\n"+found, m.index
		}
	})
	return text, message
}

// Event takes a runtime event, the params of hook.runtime_event. A turn that has ended is on disk when it returns.
func (h *Hook) Event(event json.RawMessage) {
	h.guard("a turn was not recorded", func() { h.afterTurn(event) })
}

// Deliver delivers turns until ctx ends. When end is closed it delivers what it still can, for at most Options.Linger.
func (h *Hook) Deliver(ctx context.Context, end <-chan struct{}) { h.deliver(ctx, end) }
