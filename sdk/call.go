package sdk

import (
	"github.com/memhost/memhost/abi"
)

// Call is one entry into the plugin: whose memory, which generation of it, until when, and the host behind it.
type Call struct {
	// Op is the operation's name.
	Op string
	// Scope is empty in health.
	Scope abi.MemoryScope
	// Generation of the scope's memory, from 1. It belongs into every native id: a reset starts the next one.
	Generation int64
	// ReadOnly tells the mode. The host enforces it; a plugin need not ask.
	ReadOnly bool
	// DeadlineMS is what was left of the call's time when it entered, in ms.
	DeadlineMS int64
	// Now is the host's clock, RFC 3339 in UTC: virtual under replay.
	Now string
	// Resume is set when a write that was partial is to be finished.
	Resume *abi.Resume
	// Again is set on a write of an event of which the backend kept nothing the first time.
	Again bool
	// AskItems is the host's wish for the number of items that a retrieval asks the backend for; 0: it has none.
	// ItemsFor uses it.
	AskItems int64

	host   Host
	body   []byte
	spare  []byte // what was handed back
	values []byte // of the page of state that was listed last
}

// NewCall opens a call on a host. The wasm build does it in Serve, unit tests by package sdktest.
func NewCall(host Host, e *abi.Envelope) *Call {
	return &Call{Op: e.Op, Scope: e.Scope, Generation: e.Generation, ReadOnly: e.Mode.ReadOnly,
		DeadlineMS: e.DeadlineMS,
		Now:        e.Now, Resume: e.Resume, Again: e.Again, AskItems: e.Items, host: host, body: e.Body}
}

// ItemsFor is how many items a retrieval asks its backend for: the budget's max_items, else the number that the host
// derives from max_tokens (by the limit in the manifest that has tokens_per_item), else the provider's own.
//
//	max_items 5                          5
//	max_tokens 800, 40 tokens an item    20
//	neither                              own
func (c *Call) ItemsFor(budget abi.ContextBudget, own int64) int64 {
	switch {
	case budget.MaxItems != nil:
		return *budget.MaxItems
	case c.AskItems > 0:
		return c.AskItems
	}
	return own
}

// Body is the request as it came, one JSON value. It is valid until the operation returns and must not be changed.
func (c *Call) Body() []byte { return c.body }

// Config returns the provider's name, kind and validated config block. It is read once and stays the same for the life
// of an instance; the caller must not change it.
func (c *Call) Config() (*abi.GuestConfig, error) {
	m := c.host.Memo()
	if m.config == nil {
		config := new(abi.GuestConfig)
		if _, err := c.take(c.host.Config(), config); err != nil {
			return nil, err
		}
		m.config = config
	}
	return m.config, nil
}

// Settings returns the result of parse for the configuration. parse runs once in the life of an instance, or again if
// it failed; a module has one type T.
func Settings[T any](c *Call, parse func(*abi.GuestConfig) (*T, error)) (*T, error) {
	m := c.host.Memo()
	if kept, ok := m.settings.(*T); ok {
		return kept, nil
	}
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	settings, err := parse(config)
	if err != nil {
		return nil, err
	}
	m.settings = settings
	return settings, nil
}

// Remaining is what is left of the call's time, in ms; 0 when it is over.
func (c *Call) Remaining() int64 { return c.host.Deadline() }

// Log writes to the host's log: level is one of abi.LogDebug to abi.LogError. Volume is limited; secrets are removed by
// the host.
func (c *Call) Log(level int32, text string) { c.host.Log(level, []byte(text)) }

// take pulls a packed result: its JSON head goes into head, its body is returned. An error object is returned as
// *abi.Error.
func (c *Call) take(packed uint64, head abi.Decodable) ([]byte, error) {
	bodyLen, headLen, isError := abi.Unpack(packed)
	n := int(headLen) + int(bodyLen)
	data := c.spare
	switch most := cap(data); {
	case n < most/8 || most == 0: // a short answer between two pages leaves it to the next page
		data = make([]byte, n)
	case n > most: // each use costs the head's bytes, which are not handed back
		data, c.spare = make([]byte, n, 2*n), nil
	default:
		data, c.spare = data[:n], nil
	}
	if n := c.host.Pull(data); n != len(data) {
		return nil, abi.NewError(abi.CodeInternal, "the host gave fewer bytes than it announced")
	}
	var failure *abi.Error
	if isError {
		failure = new(abi.Error)
		head = failure
	}
	if err := abi.UnmarshalOwned(data[:headLen], head); err != nil {
		return nil, abi.WrapError(abi.CodeInternal, "the host's answer: "+err.Error(), err)
	}
	if isError {
		return nil, failure
	}
	return data[headLen:], nil
}

// Reuse gives back the body of an answer that is no longer needed; the next answer is read into its memory. A loop over
// pages calls it after each page, since memory is otherwise freed at the end of an operation. Strings decoded from the
// body refer to it, so whatever is kept, such as a cursor, must be copied first (strings.Clone).
func (c *Call) Reuse(body []byte) { c.spare = body[:0] }
