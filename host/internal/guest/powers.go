package guest

import (
	"context"
	"crypto/rand"
	"io"
	"time"

	"github.com/memhost/memhost/abi"
)

// Powers is everything that a guest may ask of its host: one method for each import in abi/ABI.md. An implementation
// serves one call; restrictions of some calls, such as read-only, are Powers that wrap other Powers.
//
// Byte slices that are passed in are the guest's own memory: they are valid until the method returns, unless a comment
// says otherwise. Errors become error objects for the guest, never traps.
type Powers interface {
	// Config is the guest's configuration: abi.GuestConfig as JSON.
	Config() []byte
	// Left is how much of the call's time is left; 0 when it is over.
	Left() time.Duration
	// Log writes a line. level is one of abi.LogDebug to abi.LogError.
	Log(level int32, text []byte)

	// CountTokens counts the tokens of a text. FitTokens finds its longest prefix with at most the given number of
	// tokens, and returns the prefix's length in bytes and in tokens.
	CountTokens(text []byte) int64
	FitTokens(text []byte, limit int64) (bytes int, tokens int64)

	// StateGet reads a value; version 0 means that there is none.
	StateGet(ctx context.Context, key string) (value []byte, version int64, err error)
	// StatePut writes a value, which is copied, if the key has the expected version: abi.AnyVersion means any, 0 means
	// absent.
	StatePut(ctx context.Context, key string, value []byte, expected int64) (version int64, err error)
	// StateDelete removes all keys and logs with a prefix, and counts the removed values and entries.
	StateDelete(ctx context.Context, prefix string) (deleted int64, err error)
	// StateAppend appends an entry, which is copied, to a log, and returns its sequence number, from 1.
	StateAppend(ctx context.Context, log string, entry []byte) (seq int64, err error)
	// StateList and StateRead page through keys and logs. The values are in the order of the head.
	StateList(ctx context.Context, request *abi.StateListRequest) (*abi.StateList, [][]byte, error)
	StateRead(ctx context.Context, request *abi.StateReadRequest) (*abi.StateEntries, [][]byte, error)

	// HTTP sends one request through a route of the manifest. The callee may keep body.
	HTTP(ctx context.Context, request *abi.HTTPRequest, body []byte) (*abi.HTTPResponse, []byte, error)
	// Bolt runs the statement of one route. The rows are JSON arrays, each followed by a newline.
	Bolt(ctx context.Context, request *abi.BoltRequest) (*abi.BoltResult, []byte, error)
}

// Senses are the powers that come through WASI instead of an import: clock and randomness. An instance has the same
// Senses for all its calls, because WASI does not say which call asks. Read fills its argument with random bytes.
type Senses interface {
	// Now is the wall clock. Nano is a monotonic clock, in ns since an arbitrary moment.
	Now() time.Time
	Nano() int64
	io.Reader
}

// RealSenses returns the computer's own clock and randomness.
func RealSenses() Senses { return realSenses{} }

type realSenses struct{}

var started = time.Now()

func (realSenses) Now() time.Time             { return time.Now() }
func (realSenses) Nano() int64                { return int64(time.Since(started)) }
func (realSenses) Read(b []byte) (int, error) { return rand.Read(b) }
