package server

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// DefaultListen is the slot's default address.
const DefaultListen = "127.0.0.1:7077"

// ReasonTokenRequired is the reason of the invalid_argument with which New and Serve refuse to listen off loopback
// without a token.
const ReasonTokenRequired = "token_required"

// Options configure a Server. The zero value of a field means its default.
type Options struct {
	// Slot is the slot to serve. Required.
	Slot host.Contract
	// Archive is the slot's archive. Default: none.
	Archive host.Archive
	// Swapper handles POST /v1/swap. Default: none, swapping is unsupported.
	Swapper Swapper
	// Backfiller handles POST /v1/backfill. Default: none, it is unsupported.
	Backfiller Backfiller
	// Eraser handles POST /v1/forget/persona. Default: none, the route is unsupported.
	Eraser func(ctx context.Context, request *report.PersonaRequest) (*report.PersonaReceipt, error)
	// Backup handles GET /v1/backup: it writes the data folder as of one moment (host.Backup). Default: none, the route
	// is unsupported.
	Backup func(ctx context.Context, w io.Writer) error
	// Listing handles GET /v1/scopes and POST /v1/events/list. Default: Slot, if it is a report.Listing; otherwise the
	// routes are unsupported.
	Listing report.Listing
	// Cluster handles GET /v1/cluster. Default: Slot's method Cluster, if it has one; otherwise the route is
	// unsupported.
	Cluster func(ctx context.Context) (*report.Cluster, error)
	// Operations is the source of GET /v1/operations. The caller passes its methods to the host's options. Default:
	// none, the stream is unsupported.
	Operations *Operations
	// Modules lists the modules at GET /v1/modules. Default: none, the route is unsupported.
	Modules func() []wire.Module
	// Runs are the evaluation runs of GET /v1/runs. Default: none, the routes are unsupported.
	Runs Runs
	// Importer handles /v1/import. Default: none, the routes are unsupported.
	Importer Importer
	// Compare handles POST /v1/compare: it asks other memories the same question. Default: none, the route is unsupported.
	Compare func(ctx context.Context, request *wire.CompareRequest) (*wire.Comparison, error)
	// Page is served below /page/, without a token, because its files contain nothing of memory. Default: none.
	Page Page
	// Token is the bearer token that callers must send. Default: none, which is allowed on loopback only.
	Token string
	// Listen is the configured address, HOST:PORT. It is validated, not opened: Serve gets the listener. Default:
	// DefaultListen.
	Listen string
	// PublicURL is the address of the slot behind a proxy, such as https://mem.example.com/memory. Pages of its origin
	// may make requests, and its path is removed from requests that have it. Default: none.
	PublicURL string
	// Scopes limits which scopes may be named. Default: any.
	Scopes ScopePolicy
	// DefaultScope is reported by GET /v1/scopes as the scope of commands that name none. Default: none is reported.
	DefaultScope *abi.MemoryScope
	// MaxBody bounds a request's body, in bytes; default 16 MiB.
	MaxBody int64
	// CallMemory limits the process memory of all calls together, in bytes, estimated from their bodies and budgets.
	// Further calls are rejected with a time to wait. Default: no limit.
	CallMemory int64
	// BodyTimeout is how long a client may take to send its body, WriteTimeout how long to receive an answer; default 1
	// min each.
	BodyTimeout, WriteTimeout time.Duration
	// Shutdown is how long Serve waits for calls in progress when it stops; default 30 s.
	Shutdown time.Duration
	// Logger receives a debug line per request, and errors. Bodies and tokens are never logged. Default: none.
	Logger hclog.Logger
	// Version is shown at /healthz and in the OpenAPI document.
	Version string
	// Metrics are served at /metrics. Default: new ones, which only count requests.
	Metrics *Metrics
	// Tracer receives a span of every request to a route of /v1, except streams. An admitted caller may name the trace
	// that its request belongs to in the header traceparent. Default: none.
	Tracer host.Tracer
	// Mounts are further handlers by path, such as "/mcp". They are behind the same checks of Host, Origin and token.
	Mounts map[string]http.Handler
}

func (o Options) withDefaults() (Options, error) {
	if o.Slot == nil {
		return o, abi.NewError(abi.CodeInvalidArgument, "server: Options.Slot is required")
	}
	if o.Listen == "" {
		o.Listen = DefaultListen
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 16 << 20
	}
	for _, d := range []struct {
		to    *time.Duration
		value time.Duration
	}{{&o.BodyTimeout, time.Minute}, {&o.WriteTimeout, time.Minute}, {&o.Shutdown, 30 * time.Second}} {
		if *d.to <= 0 {
			*d.to = d.value
		}
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.Listing == nil {
		o.Listing, _ = o.Slot.(report.Listing)
	}
	if slot, ok := o.Slot.(interface {
		Cluster(context.Context) (*report.Cluster, error)
	}); ok && o.Cluster == nil {
		o.Cluster = slot.Cluster
	}
	if o.Metrics == nil {
		m, err := NewMetrics(nil)
		if err != nil {
			return o, err
		}
		o.Metrics = m
	}
	return o, nil
}

// Page is the page that uses the door (package page).
type Page interface {
	http.Handler
	// Admits reports whether key, which a request sends in place of the token, was given out by the page, and why it
	// may not send the request; nil if it may.
	Admits(key, method, route string) (known bool, refused *abi.Error)
	// Hides returns why the page may not ask a route, whatever key it has; nil if it may.
	Hides(route string) *abi.Error
	// Offer serves a report once, for a minute, at the path that it returns, because a frame cannot send a token.
	Offer(open func() (io.ReadCloser, error)) (path string)
}

// Runs are evaluation runs with their reports.
type Runs interface {
	// List returns the runs, newest first.
	List() (*wire.RunList, error)
	// Report opens the report of a run by its name.
	//
	// Errors: not_found.
	Report(name string) (io.ReadCloser, error)
}

// Swapper exchanges the provider behind the slot. It finds and checks configuration and module.
type Swapper interface {
	// Swap returns the manifest of the new provider. If it fails, the old one keeps serving, and the error says so.
	Swap(ctx context.Context, request SwapRequest) (*report.RunManifest, error)
}

// SwapRequest is the body of POST /v1/swap.
type SwapRequest = wire.SwapRequest

// SwapperFunc makes a function a Swapper.
type SwapperFunc func(ctx context.Context, request SwapRequest) (*report.RunManifest, error)

var _ Swapper = SwapperFunc(nil)

// Swap calls f.
func (f SwapperFunc) Swap(ctx context.Context, request SwapRequest) (*report.RunManifest, error) {
	return f(ctx, request)
}
