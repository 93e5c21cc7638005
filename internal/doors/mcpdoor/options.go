package mcpdoor

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

// Slot calls do with the currently serving slot. It may connect first, and may call do again if the connection broke,
// because everything that the door does may be repeated.
type Slot func(ctx context.Context, do func(ctx context.Context, c host.Contract) error) error

// Of returns a slot that is always available.
func Of(c host.Contract) Slot {
	return func(ctx context.Context, do func(context.Context, host.Contract) error) error { return do(ctx, c) }
}

// The tools that a client gets only if Options.Allow names them.
const (
	AllowSetMode = "set_mode"
	AllowReset   = "reset"
	AllowForget  = "forget"
)

// Options configure a Door. The zero value of a field means its default.
type Options struct {
	// Slot is the slot behind the door. Required.
	Slot Slot
	// Scope is the one scope of the door. Required.
	Scope abi.MemoryScope
	// AgentID labels what is recorded; with memory.agent_scoped it is also in Scope.
	AgentID string
	// Session is the session id of everything that is recorded and asked. Default: a new one for this door.
	Session string
	// MaxTokens is the budget of a context; default 3500.
	MaxTokens int64
	// Query is the question behind the resource memhost://context. Default: "What is known about the user?".
	Query string
	// Allow names tools that are off by default: AllowSetMode, AllowReset, AllowForget.
	Allow []string
	// NativeTools names the provider's own queries and mutations that a client gets as tools; "*" means all. A name
	// that the serving provider does not declare is ignored.
	NativeTools []string
	// OneClient is set for a door that serves one client on a lasting stream, which is notified when the descriptions
	// of tools change.
	OneClient bool
	// CallTimeout bounds one call of a tool; default 3 min, which is more than the host gives any operation by default.
	CallTimeout time.Duration
	// SearchTimeout bounds a search, for which a user waits; default 20 s.
	SearchTimeout time.Duration
	// StatusWait is how long memory_status waits for provider and slot before it reports what it knows; default 4 s.
	StatusWait time.Duration
	// ProgressEvery is the time between two progress notifications to a client that asked for them; default 2 s.
	ProgressEvery time.Duration
	// ListWait is how long a list of tools waits for the slot to report whether it is read-only; default 1 s.
	ListWait time.Duration
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Tracer receives a span of each call of a tool and each read of a resource. Default: none.
	Tracer host.Tracer
	// Version is sent to clients.
	Version string
	// Logger receives a debug line for each request. Arguments and answers are never logged. Default: none.
	Logger hclog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.Slot == nil {
		return o, abi.NewError(abi.CodeInvalidArgument, "mcpdoor: Options.Slot is required")
	}
	if err := o.Scope.Validate(); err != nil {
		return o, err
	}
	for _, word := range o.Allow {
		if !slices.Contains([]string{AllowSetMode, AllowReset, AllowForget}, word) {
			return o, abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("mcpdoor: Options.Allow: found %q, want %s, %s or %s",
				word, AllowSetMode, AllowReset, AllowForget))
		}
	}
	if o.Session == "" {
		o.Session = "mcp-" + strings.ToLower(rand.Text()[:12])
	}
	if o.MaxTokens <= 0 {
		o.MaxTokens = 3500
	}
	if o.Query == "" {
		o.Query = "What is known about the user?"
	}
	if o.CallTimeout <= 0 {
		o.CallTimeout = 3 * time.Minute
	}
	if o.SearchTimeout <= 0 {
		o.SearchTimeout = 20 * time.Second
	}
	if o.StatusWait <= 0 {
		o.StatusWait = 4 * time.Second
	}
	if o.ProgressEvery <= 0 {
		o.ProgressEvery = 2 * time.Second
	}
	if o.ListWait <= 0 {
		o.ListWait = time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	return o, nil
}
