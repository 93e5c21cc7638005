package model

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// Usage counts calls to the model.
type Usage struct {
	Calls, Failures, PromptTokens, CompletionTokens, MS int64
	// Params are the parameters of the latest request: "max_completion_tokens, temperature".
	Params string
}

// usageKey is the key of a scope's counters.
const usageKey = "usage"

// ReadUsage reads the scope's counters.
func ReadUsage(s *state.State) (u Usage, version int64) {
	version = s.Load(usageKey, u.members()...)
	return u, version
}

// Add adds calls to the scope's counters.
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
	total.Params = u.Params
	s.Store(usageKey, version, total.members()...)
}

// JSON returns the counters for a trace's details.
func (u *Usage) JSON() abi.Raw { return object.Encode(u.members()...) }

func (u *Usage) members() []object.Member {
	return []object.Member{object.Optional("llm_calls", &u.Calls), object.Optional("llm_failures", &u.Failures),
		object.Optional("prompt_tokens", &u.PromptTokens),
		object.Optional("completion_tokens", &u.CompletionTokens), object.Optional("llm_ms", &u.MS),
		object.Optional("llm_params", &u.Params)}
}

// Failure describes the latest failures of some work.
type Failure struct {
	// Failures since the last success; RetryAt is when the next attempt is due, in ms since 1970, 0 for at once.
	Failures, RetryAt int64
	// Refused counts the latest consecutive failures in which the endpoint rejected the request itself. GaveUp is the
	// extent of the work when it was given up for that reason, 0 while it is retried: with more work, the request is a
	// different one.
	Refused, GaveUp int64
	// Code, Reason and Said, the error's message, describe the last failure.
	Code, Reason, Message string
}

// Members lists the failure's fields as they are stored.
func (f *Failure) Members() []object.Member {
	return []object.Member{object.Optional("failures", &f.Failures), object.Optional("retry_at_ms", &f.RetryAt),
		object.Optional("error", &f.Code),
		object.Optional("reason", &f.Reason), object.Optional("said", &f.Message),
		object.Optional("refused", &f.Refused), object.Optional("gave_up", &f.GaveUp)}
}

// maxRefused is how often in a row an endpoint may reject the same request before the work is given up.
const maxRefused = 5

// Waits reports whether the work must not be attempted now. extent measures how much work there is: a number that grows
// with it, such as the number of the latest message.
func (f *Failure) Waits(nowMS, extent int64) bool { return f.RetryAt > nowMS || f.GivenUp(extent) }

// GivenUp reports whether the work is given up until there is more of it.
func (f *Failure) GivenUp(extent int64) bool { return f.GaveUp > 0 && f.GaveUp >= extent }

// Story describes the failure in a warning, after the name of the work: "3 failures, nothing is lost: ...".
func (f *Failure) Story(extent int64) string {
	story := sdk.Itoa(f.Failures) + " failures, nothing is lost: " + f.Message
	if f.GivenUp(extent) {
		story += "; not tried again until there is something new, or somebody asks for it"
	}
	return story
}

// retryFirst and retryMost bound the pause after a failure, in ms. The pause doubles with each failure.
const retryFirst, retryMost = 5000, 300_000

// Note records a failure. The next attempt is due at once if a retry may help and retries are left, otherwise after a
// pause, but never before the time that the endpoint asks for. A request that the endpoint keeps rejecting is given up
// at this extent, unless extent is 0.
func (f *Failure) Note(s *state.State, err error, retries, extent int64) {
	e := abi.AsError(err)
	f.Failures++
	if f.Refused++; e.Reason != ReasonRefused {
		f.Refused = 0
	}
	f.GaveUp = 0
	if f.Refused > maxRefused {
		f.GaveUp = extent
	}
	f.Code, f.Reason, f.Message = string(e.Code), e.Reason, clip(e.Message, 500)
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

// Progress is the progress of work that does not belong to a session.
type Progress struct {
	// Cursor is the last processed entry, Ran when it was processed, in ms since 1970.
	Cursor, Ran int64
	// RanAt is the time of that entry, in ms since 1970; 0 if it is not known.
	RanAt int64
	// Shown is the cursor of the last entry that a model was shown, even if its run did not finish.
	Shown int64
	Failure
	version int64
}

// ReadProgress reads a progress by its key.
func ReadProgress(s *state.State, key string) (p Progress) {
	p.version = s.Load(key, p.members()...)
	return p
}

// Save writes the progress, unless another operation has written it since.
func (p *Progress) Save(s *state.State, key string) { s.Store(key, p.version, p.members()...) }

func (p *Progress) members() []object.Member {
	return append(p.Members(), object.Optional("cursor", &p.Cursor), object.Optional("ran_ms", &p.Ran),
		object.Optional("ran_at_ms", &p.RanAt),
		object.Optional("shown", &p.Shown))
}
