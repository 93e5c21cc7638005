package server

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
)

// What a call takes of the process's memory while it runs, as measured with full_history (docs/operate.md): a body
// exists as bytes, decoded, in the guest and as what is committed; an answer in as many forms. For a context the guest's
// own memory counts most: it grows while the guest collects what it may show.
const (
	bytesPerBodyByte = 13
	bytesPerToken    = 700
)

// memory bounds what all calls take together. The zero value bounds nothing.
type memory struct {
	most int64 // bytes; 0: no bound

	mu   sync.Mutex
	used int64
}

// take reserves memory for a call. release gives it back; it must be called once, also after an error.
//
// Errors: too_large for more than there is at all; rate_limited, with a time to wait, while other calls have it.
func (m *memory) take(bytes int64, what string) (release func(), err error) {
	if m.most == 0 || bytes == 0 {
		return func() {}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case bytes > m.most:
		return func() {}, abi.NewError(abi.CodeTooLarge, fmt.Sprintf("%s would take some %d MiB of memory, and this slot has "+
			"%d MiB for calls", what, bytes>>20, m.most>>20)).WithReason(reasonMemory).
			WithHint("ask for less at once, or give the process more memory (docs/operate.md, \"Memory\")")
	case m.used+bytes > m.most:
		soon := time.Second.Milliseconds()
		e := abi.NewError(abi.CodeRateLimited, fmt.Sprintf("%s would take some %d MiB of memory, and other calls have %d of "+
			"the %d MiB that this slot has for calls", what, bytes>>20, m.used>>20, m.most>>20)).WithReason(reasonMemory)
		e.RetryAfterMS = &soon
		return func() {}, e
	}
	m.used += bytes
	return sync.OnceFunc(func() {
		m.mu.Lock()
		m.used -= bytes
		m.mu.Unlock()
	}), nil
}

// state returns how much is taken, and how much may be.
func (m *memory) state() (used, most int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used, m.most
}

// reasonMemory is the reason of the errors of memory.take.
const reasonMemory = "memory"

// takeBody reserves memory for the body of a request: for its announced length, or for the largest body.
func (s *Server) takeBody(r *http.Request) (release func(), err error) {
	n := r.ContentLength
	if n < 0 {
		n = s.options.MaxBody
	}
	return s.memory.take(n*bytesPerBodyByte, fmt.Sprintf("a body of %d bytes", n))
}

// tokensUnbounded is what a retrieval without max_tokens counts for.
const tokensUnbounded = 32 << 10

// takeBudget reserves memory for the context that a retrieval asks for. A budget is a bound and not a wish: one that is
// larger than all memory for calls counts for seven eighths of it, so that one such call runs at a time.
func (s *Server) takeBudget(b abi.ContextBudget) (release func(), err error) {
	tokens := int64(tokensUnbounded)
	if b.MaxTokens != nil {
		tokens = max(*b.MaxTokens, 0)
	}
	bytes := s.memory.most / 8 * 7
	if tokens < bytes/bytesPerToken {
		bytes = tokens * bytesPerToken
	}
	return s.memory.take(bytes, fmt.Sprintf("a context of %d tokens", tokens))
}
