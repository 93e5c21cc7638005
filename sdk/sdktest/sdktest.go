// Package sdktest runs a plugin's operations on standard Go, without wasm: it is the host of package sdk in memory.
//
//	h := sdktest.New(t, sdktest.Options{Provider: "notes", Config: `{"max_notes": 5}`})
//	receipt, err := sdktest.Do(h, abi.OpRecordEvent, scope, Record, event)
//
// State, tokens, log and errors behave as abi/ABI.md says. What only the real host does is left to its own tests:
// deadlines, network policy beyond the route table, the ledger, and the fields of a trace that the host fills in.
package sdktest

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/bytes4"
	"github.com/memhost/memhost/sdk"
)

// TB is what this package needs of a test: *testing.T, *testing.B and *rapid.T have it.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Options describe the host. The zero value is a control named "test" with an empty config block and no backend.
type Options struct {
	// Provider is the configured name; empty means "test".
	Provider string
	// Kind of the provider; empty means control.
	Kind      abi.ConditionKind
	Namespace string
	// Profile is abi.ProfileSourceDesign, or empty for best.
	Profile abi.Profile
	// Config is the provider's block, JSON; empty means {}. The schema's defaults are not laid under it.
	Config string
	// Secrets names the secrets that have a value.
	Secrets []string
	// Now is RFC 3339; empty means 2026-07-01T12:00:00Z.
	Now string
	// Counter counts tokens as the operator's tokenizer does. Nil means bytes4, the default of a slot.
	Counter Counter
	// Frame is what the configuration asks of formatted contexts; empty means full.
	Frame abi.Frame
	// DeadlineMS is what every call has; 0 means 30000.
	DeadlineMS int64
	// ReadOnly puts up the wall: state and routes that are not of class read answer read_only.
	ReadOnly bool
	// Resume asks record_event to finish a write that was partial.
	Resume *abi.Resume
	// AskItems is how many items a retrieval is to ask for; 0: the host says nothing.
	AskItems int64
	// PageLimit is the most that a page of state_list or state_read holds; 0 means 1000.
	PageLimit int64
	// PageBytes ends a page before its values exceed it, the first one excepted; 0 means 16 MiB.
	PageBytes int64
	// Manifest is the module's manifest.json. When it is given, only its routes can be sent, by their class and with
	// the headers and query keys that they list.
	Manifest []byte
	// HTTP is the backend. Nil means that every request is refused.
	HTTP func(Request) Reply
	// Bolt is the database behind the bolt routes. Nil means that every statement is refused.
	Bolt func(Query) Rows
}

// Counter counts tokens. max is the most tokens that Fit's prefix, of whole characters, may have.
type Counter interface {
	Name() string
	Count(text []byte) int64
	Fit(text []byte, max int64) (bytes int, count int64)
}

// Host is a host in memory. Its calls run one at a time.
type Host struct {
	Options
	// Logs is what the plugin logged.
	Logs []Line
	// Sent is every HTTP request that reached the backend.
	Sent []Request
	// Ran is every statement that reached the database.
	Ran []Query
	// ValueBytes counts the bytes of values and entries that the state gave out.
	ValueBytes int64
	// Reads counts the calls state_get, state_list and state_read. Over PostgreSQL each is a round trip.
	Reads int

	t           TB
	routes      map[string]abi.RouteDecl
	stores      map[storeKey]*store
	generations map[abi.MemoryScope]int64
	memo        sdk.Memo
}

// Reframe configures another frame, as for a new instance: the state stays.
func (h *Host) Reframe(frame abi.Frame) { h.Frame, h.memo = frame, sdk.Memo{} }

// Line is one line of the log.
type Line struct {
	Level int32
	Text  string
}

// New makes a host for one test.
func New(t TB, o Options) *Host {
	t.Helper()
	o.Provider = or(o.Provider, "test")
	o.Kind = or(o.Kind, abi.KindControl)
	o.Config = or(o.Config, "{}")
	o.Now = or(o.Now, "2026-07-01T12:00:00Z")
	o.DeadlineMS = or(o.DeadlineMS, 30_000)
	o.PageLimit = or(o.PageLimit, 1000)
	o.PageBytes = or(o.PageBytes, 16<<20)
	if o.Counter == nil {
		o.Counter = bytes4.Counter{}
	}
	h := &Host{Options: o, t: t, stores: map[storeKey]*store{},
		generations: map[abi.MemoryScope]int64{}}
	if o.Manifest != nil {
		h.routes = routesOf(t, o.Manifest, o.Config)
	}
	return h
}

// Call opens a call. What it writes to the state stays, whatever the operation says in the end: only Do drops it after
// an error.
func (h *Host) Call(op string, scope abi.MemoryScope) *sdk.Call {
	return sdk.NewCall(h.open(op, scope), h.envelope(op, scope, nil))
}

// Generation of the scope, from 1. A reset_scope run by Do that answers done starts the next one, with an empty state:
// as the real host, which removes the state itself.
func (h *Host) Generation(scope abi.MemoryScope) int64 { return h.generations[scope] + 1 }

// Keys lists the scope's keys, in byte order.
func (h *Host) Keys(scope abi.MemoryScope) []string {
	return append([]string(nil), h.store(scope).ordered()...)
}

// Find names the scope's keys and logs that have a text in their name or content, in byte order: after a forget or a
// reset none should.
func (h *Host) Find(scope abi.MemoryScope, text string) (names []string) {
	s := h.store(scope)
	for key, v := range s.keys {
		if strings.Contains(key, text) || bytes.Contains(v.data, []byte(text)) {
			names = append(names, key)
		}
	}
	for log, entries := range s.logs {
		if strings.Contains(log, text) || bytes.Contains(bytes.Join(entries, []byte("\n")), []byte(text)) {
			names = append(names, log)
		}
	}
	slices.Sort(names)
	return names
}

// message is a type of the contract.
type message[T any] interface {
	*T
	abi.Encodable
	abi.Decodable
}

// Do runs an operation as the host does: the request is validated and crosses the boundary as JSON, so does the answer,
// and after an error nothing that the operation wrote is left. An error is the *abi.Error that the host would get.
func Do[I, O any, In message[I], Out message[O]](h *Host, op string, scope abi.MemoryScope, operation func(*sdk.Call,
	In) (Out, error), in In) (Out, error) {
	h.t.Helper()
	if v, ok := any(in).(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return nil, err
		}
	}
	host := h.open(op, scope)
	envelope := abi.Marshal(h.envelope(op, scope, abi.Marshal(in)))
	answer, isError := sdk.Answer(nil, envelope, host, operation)
	out, failure := Out(new(O)), new(abi.Error)
	var err error
	if isError {
		host.store.rollBack()
		err = abi.Unmarshal(answer, failure)
	} else {
		host.store.commit()
		err = abi.Unmarshal(answer, out)
	}
	if err != nil {
		h.t.Fatalf("sdktest: %s answered what is not of the contract: %v\n%s", op, err, answer)
	}
	if isError {
		return nil, failure
	}
	if r, ok := any(out).(*abi.ResetReceipt); ok && op == abi.OpResetScope && r.Status == abi.ResetDone {
		h.generations[scope]++
	}
	return out, nil
}

func (h *Host) envelope(op string, scope abi.MemoryScope, body abi.Raw) *abi.Envelope {
	return &abi.Envelope{Op: op, Scope: scope, Generation: h.Generation(scope),
		Mode:       abi.EnvelopeMode{ReadOnly: h.ReadOnly},
		DeadlineMS: h.DeadlineMS, Now: h.Now, Resume: h.Resume, Items: h.AskItems,
		Body: body}
}

func (h *Host) open(op string, scope abi.MemoryScope) *call {
	s := h.store(scope)
	s.commit()
	return &call{Host: h, op: op, store: s}
}

// call is the host as one operation sees it.
type call struct {
	*Host
	op      string
	store   *store
	pending []byte // what Pull has not fetched yet
}

var _ sdk.Host = (*call)(nil)

// Pull implements sdk.Host, as all methods below.
func (c *call) Pull(dst []byte) int {
	n := copy(dst, c.pending)
	c.pending = c.pending[n:]
	return n
}

func (c *call) Config() uint64 {
	return c.answer(&abi.GuestConfig{Provider: c.Provider, Kind: c.Kind, Namespace: c.Namespace,
		Tokenizer: c.Counter.Name(),
		Profile:   c.Profile, Frame: c.Frame, Config: abi.Raw(c.Options.Config), Secrets: c.Secrets}, nil)
}

func (c *call) Deadline() int64 { return c.DeadlineMS }

func (c *call) Log(level int32, text []byte) {
	if !utf8.Valid(text) {
		c.t.Errorf("sdktest: a log line is not UTF-8: %q", text)
	}
	c.Logs = append(c.Logs, Line{level, string(text)})
}

func (c *call) TokensCount(text []byte) int64 { return c.Counter.Count(text) }

func (c *call) TokensFit(text []byte, max int32) uint64 {
	bytes, count := c.Counter.Fit(text, int64(max))
	return uint64(count)<<32 | uint64(bytes)
}

func (c *call) Memo() *sdk.Memo { return &c.memo }

func (c *call) answer(head abi.Encodable, body []byte) uint64 {
	data := abi.Marshal(head)
	n := len(data)
	c.pending = append(data, body...)
	return abi.Pack(uint32(len(body)), uint32(n), false)
}

func (c *call) refuse(code abi.Code, message string) uint64 {
	return c.refuseWith(abi.NewError(code, message))
}

func (c *call) refuseWith(e *abi.Error) uint64 {
	c.pending = abi.Marshal(e)
	return abi.Pack(0, uint32(len(c.pending)), true)
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}
