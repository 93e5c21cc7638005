package model

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
)

// Usage counts calls to the model.
type Usage struct {
	Calls, Failures, PromptTokens, CompletionTokens, MS int64
}

// usageKey is the key of a scope's counters.
const usageKey = "usage"

// ReadUsage reads the scope's counters.
func ReadUsage(s *state.State) (u Usage, version int64) {
	version = s.Load(usageKey, u.members()...)
	return u, version
}

// Add notes calls in the scope's counters.
func (u *Usage) Add(s *state.State) {
	if u.Calls == 0 {
		return
	}
	total, version := ReadUsage(s)
	total.Calls += u.Calls
	total.Failures += u.Failures
	total.PromptTokens += u.PromptTokens
	total.CompletionTokens += u.CompletionTokens
	total.MS += u.MS
	s.Store(usageKey, version, total.members()...)
}

// read adds what an answer says of its tokens.
func (u *Usage) read(usage []byte) error {
	var in, out int64
	err := object.Decode(usage, object.Optional("prompt_tokens", &in), object.Optional("completion_tokens", &out))
	u.PromptTokens += in
	u.CompletionTokens += out
	return err
}

// JSON is the counters as they stand in details of a trace.
func (u *Usage) JSON() abi.Raw { return object.Encode(u.members()...) }

func (u *Usage) members() []object.Member {
	return []object.Member{object.Optional("llm_calls", &u.Calls), object.Optional("llm_failures", &u.Failures),
		object.Optional("prompt_tokens", &u.PromptTokens),
		object.Optional("completion_tokens", &u.CompletionTokens), object.Optional("llm_ms", &u.MS)}
}

// Failure is what went wrong last.
type Failure struct {
	// Failures since the last success; RetryAt is when the next try is due, in ms since 1970, 0 for at once.
	Failures, RetryAt int64
	// Code, Reason and Said describe the last one.
	Code, Reason, Said string
}

// Members are the failure as it is stored.
func (f *Failure) Members() []object.Member {
	return []object.Member{object.Optional("failures", &f.Failures), object.Optional("retry_at_ms", &f.RetryAt),
		object.Optional("error", &f.Code),
		object.Optional("reason", &f.Reason), object.Optional("said", &f.Said)}
}

// retryFirst and retryMost bound the pause after a failure, in ms. It doubles with each.
const retryFirst, retryMost = 5000, 300_000

// Note notes a failure. The next try is due at once where asking again may help and retries are left, otherwise after
// a pause; never before the time that the endpoint names.
func (f *Failure) Note(s *state.State, err error, retries int64) {
	e := abi.AsError(err)
	f.Failures++
	f.Code, f.Reason, f.Said = string(e.Code), e.Reason, clip(e.Message, 500)
	pause := int64(0)
	if !e.Retryable || f.Failures > retries {
		pause = retryFirst
		for n := f.Failures - retries; n > 1 && pause < retryMost; n-- {
			pause *= 2
		}
		pause = min(pause, retryMost)
	}
	if e.RetryAfterMS != nil {
		pause = max(pause, *e.RetryAfterMS)
	}
	f.RetryAt = 0
	if pause > 0 {
		f.RetryAt = s.NowMS() + pause
	}
}

// Progress is how far work has come that is not a session's.
type Progress struct {
	// Cursor of the last entry that was worked off, Ran when, in ms since 1970.
	Cursor, Ran int64
	// Shown is the cursor of the last entry that a model was shown, though its run did not come to an end.
	Shown int64
	Failure
	version int64
}

// ReadProgress reads a progress by its key.
func ReadProgress(s *state.State, key string) (p Progress) {
	p.version = s.Load(key, p.members()...)
	return p
}

// Save writes the progress, if it has not been written in the meantime.
func (p *Progress) Save(s *state.State, key string) { s.Store(key, p.version, p.members()...) }

func (p *Progress) members() []object.Member {
	return append(p.Members(), object.Optional("cursor", &p.Cursor), object.Optional("ran_ms", &p.Ran),
		object.Optional("shown", &p.Shown))
}
