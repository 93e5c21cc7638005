package guest

import (
	"context"
	"crypto/rand"
	"io"
	"time"

	"github.com/memhost/memhost/abi"
)

// Powers is everything that a guest may ask of its host: one method for each import of abi/ABI.md. The host answers it
// for one call; what applies to some calls only, such as read-only, is a Powers around another one.
//
// Byte slices that are passed in are the guest's own memory: they are valid until the method returns, except where a
// comment says otherwise. Errors become error objects for the guest, never traps.
type Powers interface {
	// Config is the guest's configuration: abi.GuestConfig as JSON.
	Config() []byte
	// Left is what is left of the call's time, 0 when it is over.
	Left() time.Duration
	// Log writes a line. level is one of abi.LogDebug to abi.LogError.
	Log(level int32, text []byte)

	// CountTokens counts the tokens of a text. FitTokens finds its longest beginning of at most the given number of
	// tokens: its length in bytes, its tokens.
	CountTokens(text []byte) int64
	FitTokens(text []byte, most int64) (bytes int, tokens int64)

	// StateGet reads a value: version 0 when there is none.
	StateGet(ctx context.Context, key string) (value []byte, version int64, err error)
	// StatePut writes a value, which is copied, if the key has the expected version: abi.AnyVersion for any, 0 for
	// absent.
	StatePut(ctx context.Context, key string, value []byte, expected int64) (version int64, err error)
	// StateDelete removes all keys and logs under a prefix and counts values and entries.
	StateDelete(ctx context.Context, prefix string) (deleted int64, err error)
	// StateAppend adds an entry, which is copied, to a log and returns its sequence number, from 1.
	StateAppend(ctx context.Context, log string, entry []byte) (seq int64, err error)
	// StateList and StateRead page through keys and logs. The values follow the head in its order.
	StateList(ctx context.Context, request *abi.StateListRequest) (*abi.StateList, [][]byte, error)
	StateRead(ctx context.Context, request *abi.StateReadRequest) (*abi.StateEntries, [][]byte, error)

	// HTTP sends one request by a route of the manifest. body is the caller's to keep.
	HTTP(ctx context.Context, request *abi.HTTPRequest, body []byte) (*abi.HTTPResponse, []byte, error)
	// Bolt runs the statement of one route. The rows are JSON arrays, each followed by a newline.
	Bolt(ctx context.Context, request *abi.BoltRequest) (*abi.BoltResult, []byte, error)
}

// Senses are the powers that come with WASI instead of an import: clock and randomness. An instance has the same ones
// for all its calls, since WASI does not say for which call it asks. Read fills its argument with random bytes.
type Senses interface {
	// Now is the wall clock. Nano is a clock that never goes back, in ns since an arbitrary moment.
	Now() time.Time
	Nano() int64
	io.Reader
}

// RealSenses are the computer's own clock and randomness.
func RealSenses() Senses { return realSenses{} }

type realSenses struct{}

var started = time.Now()

func (realSenses) Now() time.Time             { return time.Now() }
func (realSenses) Nano() int64                { return int64(time.Since(started)) }
func (realSenses) Read(b []byte) (int, error) { return rand.Read(b) }
