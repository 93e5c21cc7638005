package server

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
)

// The memory of the process that a call takes while it runs, as measured with full_history (docs/operate.md): a body
// exists as bytes, decoded, in the guest and as committed state, and an answer in as many forms. For a context, most of
// it is the guest's own memory, which grows while the guest collects candidates.
const (
	bytesPerBodyByte = 13
	bytesPerToken    = 700
)

// memory limits the memory of all calls together. The zero value has no limit.
type memory struct {
	most int64 // bytes; 0: no bound

	mu   sync.Mutex
	used int64
}

// take reserves memory for a call. release frees it; it must be called once, even after an error.
//
// Errors: too_large for more than the total; rate_limited, with a time to wait, while other calls have it.
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

// state returns how much is reserved, and the limit.
func (m *memory) state() (used, most int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used, m.most
}

// reasonMemory is the reason of the errors of memory.take.
const reasonMemory = "memory"

// takeBody reserves memory for a request's body: its announced length, or the largest body.
func (s *Server) takeBody(r *http.Request) (release func(), err error) {
	n := r.ContentLength
	if n < 0 {
		n = s.options.MaxBody
	}
	return s.memory.take(n*bytesPerBodyByte, fmt.Sprintf("a body of %d bytes", n))
}

// tokensUnbounded is the number of tokens reserved for a retrieval without max_tokens.
const tokensUnbounded = 32 << 10

// takeBudget reserves memory for the context of a retrieval. A budget is a limit and not a target: one that is larger
// than all memory for calls reserves seven eighths of it, so that one such call runs at a time.
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
