package sdk

import (
	"github.com/memhost/memhost/abi"
)

// Call is one call of an operation: its scope and generation, its deadline, and access to the host.
type Call struct {
	// Op is the operation's name.
	Op string
	// Scope is empty in health.
	Scope abi.MemoryScope
	// Generation is the generation of the scope's memory, from 1. Every native id must contain it, because a reset
	// starts the next one.
	Generation int64
	// ReadOnly reports the mode. The host enforces it, so a plugin need not check.
	ReadOnly bool
	// DeadlineMS is the time that the call had left when it entered the plugin, in ms.
	DeadlineMS int64
	// Now is the host's clock, RFC 3339 in UTC. Under replay it is the recorded time.
	Now string
	// Resume is set to finish a partial write.
	Resume *abi.Resume
	// Again is set on a write whose event the backend received before without keeping anything of it.
	Again bool
	// AskItems is how many items the host would like a retrieval to request from the backend; 0: no preference.
	// ItemsFor uses it.
	AskItems int64

	host   Host
	body   []byte
	spare  []byte // memory given back by Reuse
	values []byte // values of the last page of state
}

// NewCall returns a call on a host. Serve uses it in a module; package sdktest uses it in unit tests.
func NewCall(host Host, e *abi.Envelope) *Call {
	return &Call{Op: e.Op, Scope: e.Scope, Generation: e.Generation, ReadOnly: e.Mode.ReadOnly,
		DeadlineMS: e.DeadlineMS,
		Now:        e.Now, Resume: e.Resume, Again: e.Again, AskItems: e.Items, host: host, body: e.Body}
}

// ItemsFor returns how many items a retrieval should request from its backend: the budget's max_items if set, else the
// number that the host derives from max_tokens (by the manifest's limit with tokens_per_item), else own, which is the
// provider's default.
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

// Body is the unparsed request, one JSON value. It is valid until the operation returns and must not be changed.
func (c *Call) Body() []byte { return c.body }

// Config returns the provider's name, kind and validated config block. It is read once per instance; the caller must
// not change it.
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

// Settings returns the configuration as parsed by parse, which runs once per instance, and again after an error. A
// module has one type T.
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

// Remaining is the time that the call has left, in ms; 0 after its deadline.
func (c *Call) Remaining() int64 { return c.host.Deadline() }

// Log writes to the host's log; level is one of abi.LogDebug to abi.LogError. The host limits the volume and removes
// secrets.
func (c *Call) Log(level int32, text string) { c.host.Log(level, []byte(text)) }

// take pulls a packed result. It decodes the JSON head into head and returns the body. An error object is returned as
// *abi.Error.
func (c *Call) take(packed uint64, head abi.Decodable) ([]byte, error) {
	bodyLen, headLen, isError := abi.Unpack(packed)
	n := int(headLen) + int(bodyLen)
	data := c.spare
	switch most := cap(data); {
	case n < most/8 || most == 0: // a short answer between two pages leaves the memory to the next page
		data = make([]byte, n)
	case n > most: // each use loses the head's bytes, which are not given back
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

// Reuse gives back the body of an answer that is no longer needed; the next answer is read into its memory. Call it
// after each page of a loop, because memory is otherwise freed only at the end of an operation. Strings decoded from
// the body refer to it, so copy whatever is kept, such as a cursor, first (strings.Clone).
func (c *Call) Reuse(body []byte) { c.spare = body[:0] }
