package nanobot

import (
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// The update policies.
const (
	PolicyWindow  = "window"
	PolicyTokens  = "tokens"
	PolicyEvent   = "every_event"
	PolicySession = "after_accumulation_session"
	PolicyManual  = "manual"
)

// Head is what recording keeps of a session.
type Head struct {
	// ID is the session's.
	ID string
	// Messages counts all that were recorded, Tokens those of their texts.
	Messages, Tokens int64
	// Order is the scope's arrival number of the session's latest event.
	Order int64
	// Created and Updated are the times of the first and of the latest event; Arrived is the host's clock at the latest, in ms since 1970.
	Created, Updated string
	Arrived          int64
	// Want is how many messages there were when the policy last asked for work.
	Want int64
	// Archive: the messages before it are to be archived as a whole, because the session has ended.
	Archive int64
}

func (h *Head) fields() []field {
	return []field{word("key", &h.ID), number("messages", &h.Messages), number("tokens", &h.Tokens), number("order", &h.Order), word("created_at", &h.Created),
		word("updated_at", &h.Updated), number("arrived_ms", &h.Arrived), number("want", &h.Want), number("archive", &h.Archive)}
}

// Mark is what the work keeps of a session. Messages are counted from 0; Pointer is the first that is not summarised.
type Mark struct {
	Pointer int64
	// Base is the first message of the session as it stands: those before were archived and cleared.
	Base int64
	// Tokens of the messages before Pointer.
	Tokens int64
	// Checked is how many messages there were when the policy was last found satisfied.
	Checked int64
	// IdleTo: the messages before it are to be archived, because the session rests.
	IdleTo int64
	Failure
	// Summary is what the last archive said, Summarised the session's time then.
	Summary, Summarised string
	version             int64
}

// Failure is what went wrong last.
type Failure struct {
	// Failures since the last success; RetryAt is when the next try is due, in ms since 1970, 0 for at once.
	Failures, RetryAt int64
	// Code, Reason and Said tell of the last one.
	Code, Reason, Said string
}

func (f *Failure) fields() []field {
	return []field{number("failures", &f.Failures), number("retry_at_ms", &f.RetryAt), word("error", &f.Code), word("reason", &f.Reason), word("said", &f.Said)}
}

func (m *Mark) fields() []field {
	return append(m.Failure.fields(), number("last_consolidated", &m.Pointer), number("base", &m.Base), number("tokens", &m.Tokens), number("checked", &m.Checked), number("idle_to", &m.IdleTo),
		word("last_summary", &m.Summary), word("last_active", &m.Summarised))
}

// Session is one session of the scope.
type Session struct {
	Head
	Mark
	key string
}

// Open tells how many messages wait to be summarised.
func (s *Session) Open() int64 { return s.Messages - s.Pointer }

// Outstanding tells whether work waits. all: what the end of the session would bring, too.
func (s *Session) Outstanding(all bool) bool {
	return s.Archive > s.Pointer || s.IdleTo > s.Pointer || s.Want > s.Checked || all && s.Messages > s.Pointer
}

// Key is the session's name within the state.
func (s *Session) Key() string { return s.key }

// keyOf maps ids to keys; ids may be as long as a key may be.
func keyOf(id string) string {
	if len(id) > 400 {
		return "h/" + sdk.Digest256(id)
	}
	return "s/" + id
}

// FindSession reads a session. One that was never recorded has no messages.
func FindSession(c *sdk.Call, id string) (*Session, error) { return sessionAt(c, keyOf(id)) }

func sessionAt(c *sdk.Call, key string) (*Session, error) {
	s := &Session{key: key}
	if _, err := load(c, "head/"+key, s.Head.fields()); err != nil {
		return nil, err
	}
	version, err := load(c, "mark/"+key, s.Mark.fields())
	if err != nil {
		return nil, err
	}
	s.version = version
	if s.Base < 0 || s.Base > s.Messages {
		s.Base = 0
	}
	if s.Pointer < s.Base || s.Pointer > s.Messages {
		s.Pointer = s.Base
	}
	return s, nil
}

// Sessions are all of the scope, those whose last event came first in front.
func Sessions(c *sdk.Call) ([]*Session, error) {
	var list []*Session
	if err := eachSession(c, func(s *Session) error { list = append(list, s); return nil }); err != nil {
		return nil, err
	}
	sorted := make([]*Session, len(list))
	for i, at := range Order(len(list), func(i int) int64 { return list[i].Order }) {
		sorted[i] = list[at]
	}
	return sorted, nil
}

func eachSession(c *sdk.Call, f func(*Session) error) error {
	return c.Each(abi.StateListRequest{Prefix: "head/"}, func(item sdk.Item) error {
		s, err := sessionAt(c, item.Key[len("head/"):])
		if err != nil {
			return err
		}
		return f(s)
	})
}

// Order is the indexes below n, by a number of each, the smallest in front; equal ones stay in order. It sorts texts, for which the code is there already.
func Order(n int, by func(int) int64) []int {
	keys := make([]string, n)
	for i := range keys {
		number := strconv.FormatInt(by(i)+1<<62, 16)
		keys[i] = strings.Repeat("0", 16-len(number)) + number + sdk.Itoa(i+1<<30)
	}
	slices.Sort(keys)
	at := make([]int, n)
	for i, key := range keys {
		index, _ := strconv.Atoi(key[16:])
		at[i] = index - 1<<30
	}
	return at
}

// Save writes the mark, if nobody else has written it meanwhile.
func (s *Session) Save(c *sdk.Call) error {
	err := c.Put("mark/"+s.key, encodeFields(s.Mark.fields()), s.version)
	if err == nil {
		_, s.version, err = c.Get("mark/" + s.key)
	}
	return err
}

// Read returns the messages from one number to before another, and how many lines could not be read.
func (s *Session) Read(c *sdk.Call, from, to int64) (messages []Message, bad int64, err error) {
	for from < to {
		entries, _, err := c.Read(abi.StateReadRequest{Log: "messages/" + s.key, From: from + 1, Limit: min(1000, to-from)})
		if err != nil {
			return nil, 0, err
		}
		if len(entries) == 0 {
			break
		}
		for _, entry := range entries {
			m, err := DecodeMessage(entry.Data)
			if err != nil {
				bad++
				m = Message{}
			}
			messages = append(messages, m)
		}
		from = entries[len(entries)-1].Seq
	}
	return messages, bad, nil
}

// Done notes a success: all before end is summarised.
func (s *Session) Done(end int64, tokens int64) {
	if end > s.Pointer {
		s.Pointer = end
		s.Mark.Tokens += tokens
	}
	s.Failure = Failure{}
}

// retryFirst and retryMost bound the pause after a failure, in ms. It doubles with each.
const retryFirst, retryMost = 5000, 300_000

// Fail notes a failure of the session's work.
func (s *Session) Fail(c *sdk.Call, err error, retries int64) { s.note(c, err, retries) }

// note notes a failure. The next try is due at once where asking again may help and retries are left, otherwise after a pause; never before the time
// that the endpoint names.
func (f *Failure) note(c *sdk.Call, err error, retries int64) {
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
		f.RetryAt = NowMS(c) + pause
	}
}

// NowMS is the call's clock in ms since 1970.
func NowMS(c *sdk.Call) int64 {
	at, err := abi.ParseTime(c.Now)
	if err != nil {
		return 0
	}
	return at.UnixMilli()
}

// Add notes calls in the scope's counters.
func (u *Usage) Add(c *sdk.Call) error {
	if u.Calls == 0 {
		return nil
	}
	total, version, err := ReadUsage(c)
	if err != nil {
		return err
	}
	total.Calls += u.Calls
	total.Failures += u.Failures
	total.PromptTokens += u.PromptTokens
	total.CompletionTokens += u.CompletionTokens
	total.MS += u.MS
	return c.Put("usage", encodeFields(total.fields()), version)
}

// ReadUsage reads the scope's counters.
func ReadUsage(c *sdk.Call) (u Usage, version int64, err error) {
	version, err = load(c, "usage", u.fields())
	return u, version, err
}

func (u *Usage) fields() []field {
	return []field{number("llm_calls", &u.Calls), number("llm_failures", &u.Failures), number("prompt_tokens", &u.PromptTokens),
		number("completion_tokens", &u.CompletionTokens), number("llm_ms", &u.MS)}
}

// JSON is the counters as they stand in details of a trace.
func (u *Usage) JSON() abi.Raw { return encodeFields(u.fields()) }

func unreadable(key string) error {
	return abi.NewError(abi.CodeUnavailable, "the state under "+strconv.Quote(key)+" is not what was stored there").WithReason("state_io")
}

// Progress is how far work beside the sessions has come.
type Progress struct {
	// Cursor of the last entry that was worked off, Ran when, in ms since 1970.
	Cursor, Ran int64
	Failure
	version int64
}

// ReadProgress reads a progress by its key.
func ReadProgress(c *sdk.Call, key string) (p Progress, err error) {
	p.version, err = load(c, key, p.fields())
	return p, err
}

func (p *Progress) fields() []field {
	return append(p.Failure.fields(), number("cursor", &p.Cursor), number("ran_ms", &p.Ran))
}

// Save writes the progress, if nobody else has written it meanwhile.
func (p *Progress) Save(c *sdk.Call, key string) error {
	return c.Put(key, encodeFields(p.fields()), p.version)
}

// Fail notes a failure.
func (p *Progress) Fail(c *sdk.Call, err error, retries int64) { p.note(c, err, retries) }
