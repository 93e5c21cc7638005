package host

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/guest"
	"github.com/memhost/memhost/internal/state"
)

// Options configure a Host. The zero value of a field means its default.
type Options struct {
	// DataDir is the folder of state, ledger and mode. Required. One process owns it at a time.
	DataDir string
	// CacheDir is where compiled modules are kept between runs. Default: "cache" inside DataDir.
	CacheDir string
	// Durability is "power" (default: an acknowledged write survives power loss) or "process" (survives the end of the
	// process only, faster).
	Durability string
	// OpenStore opens the store of state, ledger and mode for the data folder. Default: a file in the folder, which makes
	// this process its owner. Only packages of this module can name another store. Hosts share one whose method Sessions
	// says so (package internal/state/fleet).
	OpenStore func(ctx context.Context, dir string) (state.Store, error)
	// KeepFormat refuses a data folder of an older format. Default: it is upgraded, which the log says, and a copy of
	// the old state.db is kept in the folder until Close.
	KeepFormat bool
	// Logger receives the log lines of host and guests. Default: none.
	Logger hclog.Logger
	Limits Limits
	// LedgerRetention is how long the delivery ledger keeps the receipt of an event that has arrived; 0, the default,
	// means forever. A forgotten event is looked up in the backend if the provider can do that; otherwise it counts as
	// new.
	LedgerRetention time.Duration
	// Archive keeps every accepted event word for word in the data folder, out of reach of every provider. Default: off.
	Archive bool
	// ArchiveRetention is how long the archive keeps an event, by when it was archived; 0, the default, means for ever.
	ArchiveRetention time.Duration
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Observe is called with every operation when it ends, for metrics. It must be quick and safe for concurrent use.
	Observe func(Observation)
	// Tracer receives a span of every operation and of its parts, for distributed tracing. Default: none.
	Tracer Tracer
	// PropagateTrace sends the W3C header traceparent with every native call over HTTP. Default: backends get none.
	PropagateTrace bool
	// OnStep is called with every step of Open and Swap as it ends, passed or failed. It must be quick.
	OnStep func(abi.RunStep)
	// OnExchange is called with every operation of a slot's contract when it ends, with what was asked and answered. It
	// must be quick, safe for concurrent use, and may keep nothing of an Exchange.
	OnExchange func(*Exchange)
	// HealthWarnings adds warnings of the embedding program to every health answer. Default: none.
	HealthWarnings func() []string
	// Run is what the harness says of the run, for the run manifest.
	Run RunLabels
	// OnManifest is called when the run manifest has changed: after each load, and when a scope was set up or reset. It
	// must be quick.
	OnManifest func()
	// NoReadinessPolls: the host does not look for outstanding events of its own accord, so that pending ends only by
	// Readiness, or by recording an event again. Default: it looks, 1 s after the write and then at intervals that
	// double up to 60 s.
	NoReadinessPolls bool
	// Cassette records everything, for Replay. Default: nothing is recorded.
	Cassette *CassetteOptions
	// Intercept stands between the host and every backend: each native call that policy and mode let through passes it.
	// It must be safe for concurrent use. Default: none. See Interceptor.
	Intercept Interceptor
	// InterceptGuest stands between the host and every guest, for tests of what checks guests. It must be safe for
	// concurrent use. Default: none. See GuestInterceptor.
	InterceptGuest GuestInterceptor
	// Engines run modules of other ABIs than mh1: package host/extism has one. Default: none.
	Engines []Engine
	// Version and Commit name the program in the run manifest.
	Version, Commit string
}

// Engine runs modules of another ABI than mh1. A program takes one from its package and passes it on.
type Engine = guest.Engine

// RunLabels distinguish a run from others. The host writes them into the run manifest and does not use them.
type RunLabels struct {
	Seed, Replicate string
	Labels          map[string]string
}

// Limits bound what one provider may use. The zero value of a field means its default.
type Limits struct {
	// MemoryBytes bounds a guest's linear memory and tables together; default 128 MiB. A module that wants more at its
	// start is refused.
	MemoryBytes int64
	// HighWaterBytes: an instance whose memory has grown beyond it is thrown away after the call, since wasm memory
	// never shrinks; default 32 MiB.
	HighWaterBytes int64
	// ModuleBytes bounds the file; default 16 MiB.
	ModuleBytes int64
	// RequestBytes and ResponseBytes bound a request to the guest and its answer; default 16 MiB each.
	RequestBytes, ResponseBytes int64
	// BodyBytes bounds the body of one backend answer; default 16 MiB.
	BodyBytes int64
	// Rows bounds the rows of one Bolt answer, whose JSON BodyBytes bounds too; default 10,000. Further rows are cut,
	// and the guest is told.
	Rows int64
	// StateValueBytes bounds one state value or log entry; default 16 MiB. StateBytes bounds all state of one scope;
	// default 1 GiB.
	StateValueBytes, StateBytes int64
	// StateWriteBytes bounds the state that one operation writes, with 64 bytes for each write; default 32 MiB. More is
	// too_large.
	StateWriteBytes int64
	// QueueBytes bounds the events that wait for followers where no archive is kept; default 64 MiB. Beyond it the oldest
	// are dropped: a follower never gets them, and counts them.
	QueueBytes int64
	// LogBytes bounds what a guest may log in one call; default 64 KiB. The rest is dropped, and a line says so.
	LogBytes int64
	// Pool is the number of instances of a provider; default 4.
	Pool int
	// CallsInFlight bounds callers that run or wait for an instance; default 1024. One more is rate_limited.
	CallsInFlight int
	// Deadline is for an operation whose manifest names none; default 30 s.
	Deadline time.Duration
	// ModeWait bounds how long SetMode waits for writes under way when it goes read-only; default 10 s.
	ModeWait time.Duration
	// StartDeadline bounds the start of an instance; default 10 s.
	StartDeadline time.Duration
}

func (l Limits) withDefaults() Limits {
	or := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	or(&l.MemoryBytes, 128<<20)
	or(&l.HighWaterBytes, 32<<20)
	or(&l.ModuleBytes, 16<<20)
	or(&l.RequestBytes, 16<<20)
	or(&l.ResponseBytes, 16<<20)
	or(&l.BodyBytes, 16<<20)
	or(&l.Rows, 10_000)
	or(&l.StateValueBytes, 16<<20)
	or(&l.StateBytes, 1<<30)
	or(&l.StateWriteBytes, 32<<20)
	or(&l.QueueBytes, 64<<20)
	or(&l.LogBytes, 64<<10)
	if l.Pool == 0 {
		l.Pool = 4
	}
	if l.CallsInFlight == 0 {
		l.CallsInFlight = 1024
	}
	if l.Deadline == 0 {
		l.Deadline = 30 * time.Second
	}
	if l.ModeWait == 0 {
		l.ModeWait = 10 * time.Second
	}
	if l.StartDeadline == 0 {
		l.StartDeadline = 10 * time.Second
	}
	return l
}

// ProviderConfig chooses a provider and configures it. Name and Module are required.
type ProviderConfig struct {
	// Name is one of the module's providers.
	Name string
	// Word is how the configuration chose it: "backend" or "condition". Default: by the provider's kind.
	Word string
	// Module is the wasm file's bytes; Source says where they came from ("builtin", a path or oci://...), for the
	// manifest.
	Module []byte
	Source string
	// Signer is whose signature the caller has checked, for the manifest; "" for none.
	Signer string
	// Block is the provider's own configuration: a JSON object, validated against the module's schema. Empty means {}.
	Block abi.Raw
	// Profile is abi.ProfileBest (default) or abi.ProfileSourceDesign.
	Profile abi.Profile
	// Frame is how much a formatted context has beside the memories' own words: abi.FrameFull, abi.FrameCompact or
	// abi.FrameMinimal. Empty means compact under abi.ProfileBest and full under abi.ProfileSourceDesign. A module from
	// before there were frames writes what it always did.
	Frame abi.Frame
	// Namespace separates installations that share one backend.
	Namespace string
	// AgentScoped makes agent_id a part of the scope.
	AgentScoped bool
	// TestSessions are patterns of session ids (* and ? stand for any text and any character) that are always
	// read-only.
	TestSessions []string
	// ReadOnlyTestSessions says that test sessions are to be read-only. Without TestSessions the harness makes them so
	// with SetMode: run manifest and mode warn of that.
	ReadOnlyTestSessions bool
	// Feedback lets apply_feedback through. Default: off.
	Feedback bool
	// NoLookup sends an event that the data folder does not know without a look into the backend first, in scopes that
	// the backend had before the folder did.
	NoLookup bool
	// RetryEmpty is RetryOnce or RetryNever (the default). With RetryOnce an event for which the backend stored nothing
	// is sent a second time when a caller records it again. A second attempt can duplicate what was partly stored, and
	// it costs extra model calls, which would skew a comparison.
	RetryEmpty string
	// Scope is the scope that a swap makes ready before it serves. Nil: scopes are made ready at their first use.
	Scope *abi.MemoryScope
	// Smoke reports whether a swap tries the provider out before it serves: SmokeAuto when no verdict is stored for this
	// module, configuration and backend version, SmokeAlways, or SmokeNever, the default. A smoke writes into two
	// throw-away scopes and erases them; a backend that works with an LLM calls it for that.
	Smoke string
	// SmokeWait bounds how long a smoke waits for readiness; default 30 s. Then its verdict is pending, and the slot
	// serves and says so.
	SmokeWait time.Duration
	// Tokenizer is bytes4 (default), cl100k_base or o200k_base.
	Tokenizer string
	// Secrets are the operator's secrets by name; Block refers to them as {"secret": NAME}.
	Secrets map[string]Secret
}

const warnTestSessions = "test_sessions_empty: memory.read_only_test_sessions is true and memory.test_sessions names " +
	"no session: nothing is read-only by itself, the harness sets the mode before each test session (PUT /v1/mode, " +
	"memhost mode read-only)"

// Warnings are what is likely to be a mistake in the configuration, each with its stable code.
func (c *ProviderConfig) Warnings() []string {
	if c.ReadOnlyTestSessions && len(c.TestSessions) == 0 {
		return []string{warnTestSessions}
	}
	return nil
}

// Secret is a credential that the host puts into headers, or logs on to a database with; a guest never sees it.
type Secret struct {
	// Value reads it. It is called once, when the provider is opened.
	Value func() (string, error)
	// Origin is the URL (scheme, host, port) to which alone it may be sent.
	Origin string
}
