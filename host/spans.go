package host

import (
	"context"
	"encoding/hex"
	"net/http"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/egress"
	"github.com/memhost/memhost/internal/base/traceparent"
)

// A span is a part of the work with its beginning and end, as distributed tracing has it. This file names the spans of
// a host; package internal/telemetry sends them to a collector.
//
//	POST /v1/events                    the door's, of kind SpanRequest
//	  record_event                     SpanOperation: one for each use of a provider
//	    turn                           SpanPart: the wait for the scope's write lock
//	    plugin                         SpanPart: one entry of the guest, with its wait for an instance
//	      POST /memories               SpanCall: one native call
//	    commit                         SpanPart: one write to the store

// Tracer receives the spans of a host. It must be safe for concurrent use, and quick.
type Tracer interface {
	// Begin begins a span within that of ctx, and returns a context that carries it. A SpanPart or SpanCall without a
	// span around it is nobody's: then nothing is begun, and ctx returned.
	Begin(ctx context.Context, start SpanStart) (context.Context, Span)
	// Traceparent is the W3C header traceparent of the span of ctx; "" if there is none.
	Traceparent(ctx context.Context) string
}

// SpanStart is what is known of a span when it begins.
type SpanStart struct {
	Name string
	Kind SpanKind
	// Causes are the headers traceparent of spans that led to this one but are not around it, as an agent's question is
	// for the same question to a shadow, and the records of some events for their delivery to a shadow.
	Causes []string
}

// SpanKind says what a span is in its trace.
type SpanKind int

const (
	// SpanRequest is what a caller asks of a door.
	SpanRequest SpanKind = iota
	// SpanOperation is an operation of a provider. It may be nobody's part: then it begins a trace.
	SpanOperation
	// SpanPart is a part of an operation.
	SpanPart
	// SpanCall is a native call to a backend.
	SpanCall
)

// Span is a span that has begun. One goroutine uses it, until End.
type Span interface {
	// SetName replaces the name.
	SetName(name string)
	// Text and Number add an attribute.
	Text(key, value string)
	Number(key string, value int64)
	// End ends it. failure is "" for success, otherwise a short word: an error's code or an HTTP status.
	End(failure string)
}

// NoSpan is a span that is not recorded.
type NoSpan struct{}

var _ Span = NoSpan{}

// SetName implements Span.
func (NoSpan) SetName(string) {}

// Text implements Span.
func (NoSpan) Text(_, _ string) {}

// Number implements Span.
func (NoSpan) Number(string, int64) {}

// End implements Span.
func (NoSpan) End(string) {}

// span begins a span of the host's.
func (h *Host) span(ctx context.Context, start SpanStart) (context.Context, Span) {
	if h.options.Tracer == nil {
		return ctx, NoSpan{}
	}
	return h.options.Tracer.Begin(ctx, start)
}

// part begins a part of the span of ctx.
func (h *Host) part(ctx context.Context, name string) (context.Context, Span) {
	return h.span(ctx, SpanStart{Name: name, Kind: SpanPart})
}

// traceparentOf is the header of the span of ctx, for what it causes.
func (h *Host) traceparentOf(ctx context.Context) string {
	if h.options.Tracer == nil {
		return ""
	}
	return h.options.Tracer.Traceparent(ctx)
}

// beginSpan begins the operation's span. What a follower does has a trace of its own, with a link to what caused it.
func (o *operation) beginSpan(ctx context.Context) context.Context {
	start := SpanStart{Name: o.Op, Kind: SpanOperation}
	if f := o.slot.following; f != nil && o.slot.host.traceparentOf(ctx) == "" {
		if start.Causes = traceparent.CausesOf(ctx); start.Causes == nil && f.cause != "" {
			start.Causes = []string{f.cause}
		}
	}
	ctx, o.span = o.slot.host.span(ctx, start)
	return ctx
}

// endSpan says how the operation ended. No id of a caller's and no text is in it: the scope is its key in the store.
func (o *operation) endSpan(err error) {
	if o.slot.host.options.Tracer == nil {
		return
	}
	p, s := o.provider, o.span
	s.Text("memhost.operation", o.Op)
	s.Text("memhost.provider", p.name)
	s.Text("memhost.condition_kind", string(p.kind))
	s.Text("memhost.profile", string(p.config.Profile))
	mode := "write"
	if o.readOnly {
		mode = "read-only"
	}
	s.Text("memhost.mode", mode)
	if o.slot.following != nil {
		s.Text("memhost.follower", o.slot.following.origin)
	}
	if o.scope != nil {
		s.Text("memhost.scope", hex.EncodeToString(o.scope.key[:]))
		s.Number("memhost.generation", o.generation)
	}
	s.Number("memhost.native_calls", int64(len(o.IO)))
	s.Text("memhost.outcome", outcomeOf(err))
	s.End(string(abi.CodeOf(err)))
}

// endEntry says how an entry of the guest ended. What its own error means is in the operation's span.
func (o *operation) endEntry(s Span, isError bool, err error) {
	s.Number("memhost.queued_us", o.Queued.Microseconds())
	switch {
	case err != nil:
		s.End(string(abi.CodeOf(err)))
	case isError:
		s.End("plugin_error")
	default:
		s.End("")
	}
}

func outcomeOf(err error) string {
	if err == nil {
		return "ok"
	}
	return string(abi.CodeOf(err))
}

// beginCall begins the span of a native call, and lets the call carry its header where Options.PropagateTrace says so.
func (o *operation) beginCall(ctx context.Context, native *egress.Call) (context.Context, Span) {
	h, route := o.provider.host, native.Route // an instance that starts has no slot
	if h.options.Tracer == nil {
		return ctx, NoSpan{}
	}
	http := egress.ProtocolOf(&route.RouteDecl) == abi.ProtocolHTTP
	name := route.Name
	if http {
		name = route.Method + " " + route.Path
	}
	ctx, s := h.span(ctx, SpanStart{Name: name, Kind: SpanCall})
	if http {
		s.Text("http.request.method", route.Method)
		s.Text("url.template", route.Path)
	} else {
		s.Text("db.system.name", "neo4j")
	}
	s.Text("memhost.route", route.Name)
	s.Text("memhost.class", string(route.Class))
	s.Text("memhost.origin", route.Origin)
	if h.options.PropagateTrace {
		native.Traceparent = h.traceparentOf(ctx)
	}
	return ctx, s
}

// endCall says what came back.
func endCall(s Span, io *abi.IO) {
	s.Number("http.response.status_code", io.Status)
	s.Number("memhost.bytes_out", io.BytesOut)
	s.Number("memhost.bytes_in", io.BytesIn)
	s.Number("memhost.retries", io.Retries)
	switch {
	case io.Status == 0:
		s.End("no_answer")
	case io.Status >= http.StatusBadRequest:
		s.End(http.StatusText(int(io.Status)))
	default:
		s.End("")
	}
}
