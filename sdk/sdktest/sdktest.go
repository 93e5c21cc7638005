// Package sdktest runs a plugin's operations on standard Go, without wasm. It implements the host of package sdk in
// memory.
//
//	h := sdktest.New(t, sdktest.Options{Provider: "notes", Config: `{"max_notes": 5}`})
//	receipt, err := sdktest.Do(h, abi.OpRecordEvent, scope, Record, event)
//
// State, tokens, log and errors behave as abi/ABI.md says. It does not implement deadlines, network policy beyond the
// route table, the ledger, or the fields of a trace that the host sets.
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

// TB is the part of testing.TB that this package needs: *testing.T, *testing.B and *rapid.T implement it.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Options configure the host. The zero value is a control named "test" with an empty config block and no backend.
type Options struct {
	// Provider is the configured name; empty means "test".
	Provider string
	// Kind is the provider's kind; empty means control.
	Kind      abi.ConditionKind
	Namespace string
	// Profile is abi.ProfileSourceDesign, or empty for best.
	Profile abi.Profile
	// Config is the provider's block, JSON; empty means {}. The schema's defaults are not merged into it.
	Config string
	// Secrets names the secrets that have a value.
	Secrets []string
	// Now is RFC 3339; empty means 2026-07-01T12:00:00Z.
	Now string
	// Counter counts tokens in place of the operator's tokenizer. Nil means bytes4, the default of a slot.
	Counter Counter
	// Frame is the configured frame of formatted contexts; empty means full.
	Frame abi.Frame
	// DeadlineMS is the time of every call, in ms; 0 means 30000.
	DeadlineMS int64
	// ReadOnly sets read-only mode: writes to state and routes whose class is not read return read_only.
	ReadOnly bool
	// Resume asks record_event to finish a partial write.
	Resume *abi.Resume
	// AskItems is how many items a retrieval should request; 0: no preference.
	AskItems int64
	// PageLimit is the maximum length of a page of state_list or state_read; 0 means 1000.
	PageLimit int64
	// PageBytes is the maximum size of a page's values, in bytes. A page always has at least one value. 0 means 16 MiB.
	PageBytes int64
	// Manifest is the module's manifest.json. If set, only its routes can be sent, subject to their class and with the
	// headers and query keys that they list.
	Manifest []byte
	// HTTP is the backend. Nil rejects every request.
	HTTP func(Request) Reply
	// Bolt is the database of the bolt routes. Nil rejects every statement.
	Bolt func(Query) Rows
}

// Counter counts tokens. Fit returns the longest prefix, of whole characters, with at most max tokens.
type Counter interface {
	Name() string
	Count(text []byte) int64
	Fit(text []byte, max int64) (bytes int, count int64)
}

// Host is a host in memory. Its calls run one at a time.
type Host struct {
	Options
	// Logs are the lines that the plugin logged.
	Logs []Line
	// Sent lists all HTTP requests that reached the backend.
	Sent []Request
	// Ran lists all statements that reached the database.
	Ran []Query
	// ValueBytes counts the bytes of values and entries that were read from the state.
	ValueBytes int64
	// Reads counts the calls state_get, state_list and state_read. Over PostgreSQL each is a round trip.
	Reads int

	t           TB
	routes      map[string]abi.RouteDecl
	stores      map[storeKey]*store
	generations map[abi.MemoryScope]int64
	memo        sdk.Memo
}

// Reframe configures another frame, as for a new instance. The state is kept.
func (h *Host) Reframe(frame abi.Frame) { h.Frame, h.memo = frame, sdk.Memo{} }

// Line is one line of the log.
type Line struct {
	Level int32
	Text  string
}

// New returns a host for one test.
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

// Call opens a call. Its writes to the state are kept even if the operation fails; only Do drops them after an error.
func (h *Host) Call(op string, scope abi.MemoryScope) *sdk.Call {
	return sdk.NewCall(h.open(op, scope), h.envelope(op, scope, nil))
}

// Generation returns the scope's generation, from 1. When a reset_scope that Do runs returns done, the next generation
// begins with an empty state, as with the real host, which removes the state itself.
func (h *Host) Generation(scope abi.MemoryScope) int64 { return h.generations[scope] + 1 }

// Keys returns the scope's keys, in byte order.
func (h *Host) Keys(scope abi.MemoryScope) []string {
	return append([]string(nil), h.store(scope).ordered()...)
}

// Find returns the names of the scope's keys and logs that contain a text in their name or content, in byte order.
// After a forget or a reset there should be none.
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

// Do runs an operation as the host does: it validates the request, passes request and answer as JSON, and drops the
// operation's writes after an error. An error is the *abi.Error that the host would get.
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

// call is the host during one operation.
type call struct {
	*Host
	op      string
	store   *store
	pending []byte // data that Pull has not fetched yet
}

var _ sdk.Host = (*call)(nil)

// Pull implements sdk.Host, as do all methods below.
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
