package host

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/guest"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
)

// Options configure a Host. The zero value of a field means its default.
type Options struct {
	// DataDir is the folder of state, ledger and mode. Required. Only one process may own it at a time.
	DataDir string
	// CacheDir keeps compiled modules between runs. Default: "cache" inside DataDir.
	CacheDir string
	// Durability is "power" (the default: an acknowledged write survives power loss) or "process" (faster, but a write
	// survives only the end of the process).
	Durability string
	// OpenStore opens the store of state, ledger and mode for the data folder. Default: a file in the folder, which
	// makes this process its owner. Only packages of this module can provide another store. A store with a method
	// Sessions is shared by several hosts (package internal/state/fleet).
	OpenStore func(ctx context.Context, dir string) (state.Store, error)
	// KeepFormat refuses a data folder of an older format. By default the folder is upgraded and the upgrade logged; a
	// copy of the old state.db stays in the folder until Close.
	KeepFormat bool
	// Logger receives the log lines of host and guests. Default: no log.
	Logger hclog.Logger
	Limits Limits
	// LedgerRetention is how long the delivery ledger keeps the receipt of an event that has arrived; 0, the default,
	// means forever. If an event is recorded again after its receipt has expired, the provider looks it up in the
	// backend if it can; otherwise the event counts as new.
	LedgerRetention time.Duration
	// Archive keeps every accepted event verbatim in the data folder, where no provider can reach it. Default: off.
	Archive bool
	// ArchiveRetention is how long after archiving the archive keeps an event; 0, the default, means forever.
	ArchiveRetention time.Duration
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Pause waits between two looks at a backend that is not ready, or not done with a reset or a removal, until ctx
	// ends. Default: d passes in real time.
	Pause func(ctx context.Context, d time.Duration)
	// Observe is called at the end of every operation, for metrics. It must be quick and safe for concurrent use.
	Observe func(Observation)
	// Tracer receives a span of every operation and of its parts, for distributed tracing. Default: no tracing.
	Tracer Tracer
	// PropagateTrace sends the W3C header traceparent with every native call over HTTP. Default: off.
	PropagateTrace bool
	// OnStep is called after every step of Open and Swap, passed or failed. It must be quick.
	OnStep func(report.RunStep)
	// OnExchange is called at the end of every operation of a slot's contract, with its request and answer. It must be
	// quick and safe for concurrent use, and must not retain any part of the Exchange.
	OnExchange func(*Exchange)
	// HealthWarnings adds warnings of the embedding program to every health answer. Default: none.
	HealthWarnings func() []string
	// Run labels the run in the run manifest.
	Run RunLabels
	// OnManifest is called when the run manifest has changed: after each load, and when a scope was set up or reset. It
	// must be quick.
	OnManifest func()
	// FileCopies keeps copies of memories as files. Default: none.
	FileCopies FileCopies
	// NoReadinessPolls turns off polling for outstanding events: pending then ends only by Readiness, or by recording
	// an event again. Default: the host polls 1 s after the write, and then at intervals that double up to 60 s.
	NoReadinessPolls bool
	// Cassette records everything, for Replay. Default: no recording.
	Cassette *CassetteOptions
	// Intercept wraps every native call that policy and mode have allowed. It must be safe for concurrent use. Default:
	// none. See Interceptor.
	Intercept Interceptor
	// InterceptGuest wraps every operation of every guest, to test the checks of guests' answers. It must be safe for
	// concurrent use. Default: none. See GuestInterceptor.
	InterceptGuest GuestInterceptor
	// Engines run modules of ABIs other than mh1: package host/extism has one. Default: none.
	Engines []Engine
	// Version and Commit identify the program in the run manifest.
	Version, Commit string
}

// Engine runs modules of an ABI other than mh1.
type Engine = guest.Engine

// RunLabels distinguish a run from others. The host only copies them to the run manifest.
type RunLabels struct {
	Seed, Replicate string
	Labels          map[string]string
}

// Limits bound what one provider may use. The zero value of a field means its default.
type Limits struct {
	// MemoryBytes bounds a guest's linear memory and tables together; default 128 MiB. A module whose initial memory is
	// larger is rejected.
	MemoryBytes int64
	// HighWaterBytes is the memory size above which an instance is discarded after a call, because wasm memory never
	// shrinks; default 32 MiB.
	HighWaterBytes int64
	// ModuleBytes bounds the size of a module file; default 16 MiB.
	ModuleBytes int64
	// RequestBytes and ResponseBytes bound a request to the guest and its answer; default 16 MiB each.
	RequestBytes, ResponseBytes int64
	// BodyBytes bounds the body of one backend answer; default 16 MiB.
	BodyBytes int64
	// Rows bounds the rows of one Bolt answer, whose JSON is also bounded by BodyBytes; default 10,000. Further rows
	// are dropped, and the answer tells the guest so.
	Rows int64
	// StateValueBytes bounds one state value or log entry; default 16 MiB. StateBytes bounds all state of one scope;
	// default 1 GiB.
	StateValueBytes, StateBytes int64
	// StateWriteBytes bounds the state that one operation writes, where each write counts 64 bytes extra; default 32
	// MiB. Larger writes fail with too_large.
	StateWriteBytes int64
	// QueueBytes bounds the events that are queued for followers if no archive is kept; default 64 MiB. Beyond it the
	// oldest events are dropped: followers never get them, but count them.
	QueueBytes int64
	// LogBytes bounds a guest's log output in one call; default 64 KiB. The rest is dropped, and a line says so.
	LogBytes int64
	// Pool is the number of instances of a provider; default 4.
	Pool int
	// CallsInFlight bounds callers that run or wait for an instance; default 1024. Further calls fail with
	// rate_limited.
	CallsInFlight int
	// Deadline applies to operations whose manifest names none; default 30 s.
	Deadline time.Duration
	// ModeWait bounds how long SetMode waits for writes in progress when it turns read-only on; default 10 s.
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
	// Word is the configuration's word for the kind of provider: "backend" or "condition". Default: by the provider's
	// kind.
	Word string
	// Module is the content of the wasm file. Source says where it came from ("builtin", a path or oci://...), for the
	// manifest.
	Module []byte
	Source string
	// Signer is the signer whose signature the caller has verified, for the manifest; "" if unsigned.
	Signer string
	// Block is the provider's own configuration: a JSON object, validated against the module's schema. Empty means {}.
	Block abi.Raw
	// Profile is abi.ProfileBest (default) or abi.ProfileSourceDesign.
	Profile abi.Profile
	// Frame is how much a formatted context contains besides the memories' own words: abi.FrameFull, abi.FrameCompact
	// or abi.FrameMinimal. Empty means compact under abi.ProfileBest and full under abi.ProfileSourceDesign. A module
	// that predates frames ignores it.
	Frame abi.Frame
	// Namespace separates installations that share one backend.
	Namespace string
	// AgentScoped makes agent_id part of the scope.
	AgentScoped bool
	// TestSessions are patterns of session ids that are always read-only. * stands for any text and ? for any
	// character.
	TestSessions []string
	// ReadOnlyTestSessions declares that test sessions must be read-only. Without TestSessions the harness has to
	// arrange this with SetMode, and run manifest and mode warn about it.
	ReadOnlyTestSessions bool
	// Feedback enables apply_feedback. Default: off.
	Feedback bool
	// NoLookup skips the lookup in the backend that otherwise precedes sending an event that the data folder does not
	// know, in scopes that existed in the backend before the data folder was created.
	NoLookup bool
	// RetryEmpty is RetryOnce or RetryNever (the default). With RetryOnce, an event for which the backend stored
	// nothing is sent a second time if a caller records it again. A second attempt can duplicate what was partly
	// stored, and it costs extra model calls, which would skew a comparison.
	RetryEmpty string
	// Scope is a scope that a swap sets up before the provider serves. Nil: scopes are set up at their first use.
	Scope *abi.MemoryScope
	// Smoke says whether a swap tries the provider out before it serves: SmokeAuto if no verdict is stored for this
	// module, configuration and backend version; SmokeAlways; or SmokeNever, the default. A smoke test writes into two
	// throw-away scopes and erases them. If the backend uses an LLM, this costs model calls.
	Smoke string
	// SmokeWait bounds how long a smoke test waits for readiness; default 30 s. After that the verdict is pending; the
	// slot serves and reports it.
	SmokeWait time.Duration
	// Tokenizer is bytes4 (default), cl100k_base or o200k_base.
	Tokenizer string
	// Secrets are the operator's secrets by name; Block refers to them as {"secret": NAME}.
	Secrets map[string]Secret
}

const warnTestSessions = "test_sessions_empty: memory.read_only_test_sessions is true and memory.test_sessions names " +
	"no session: nothing is read-only by itself, the harness sets the mode before each test session (PUT /v1/mode, " +
	"memhost mode read-only)"

// Warnings lists likely mistakes in the configuration, each with its stable code.
func (c *ProviderConfig) Warnings() []string {
	if c.ReadOnlyTestSessions && len(c.TestSessions) == 0 {
		return []string{warnTestSessions}
	}
	return nil
}

// Secret is a credential that the host puts into headers, or uses to log on to a database. Guests never see it.
type Secret struct {
	// Value reads the secret. It is called once, when the provider is opened.
	Value func() (string, error)
	// Origin is the only URL (scheme, host, port) that it may be sent to.
	Origin string
}
