package host

import (
	"context"
	"encoding/hex"
	"net/http"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/egress"
	"github.com/memhost/memhost/internal/base/traceparent"
)

// A span is a timed piece of work, as in distributed tracing. This file names the spans of a host; package
// internal/telemetry sends them to a collector.
//
//	POST /v1/events                    SpanRequest, opened by the door
//	  record_event                     SpanOperation: one for each use of a provider
//	    turn                           SpanPart: the wait for the scope's write lock
//	    plugin                         SpanPart: one entry of the guest, with its wait for an instance
//	      POST /memories               SpanCall: one native call
//	    commit                         SpanPart: one write to the store

// Tracer receives the spans of a host. It must be safe for concurrent use, and quick.
type Tracer interface {
	// Begin starts a span within that of ctx, and returns a context that carries it. A SpanPart or SpanCall without a
	// parent span is not recorded: Begin then returns ctx unchanged.
	Begin(ctx context.Context, start SpanStart) (context.Context, Span)
	// Traceparent is the W3C header traceparent of the span of ctx; "" if there is none.
	Traceparent(ctx context.Context) string
}

// SpanStart describes a span when it starts.
type SpanStart struct {
	Name string
	Kind SpanKind
	// Causes are the traceparent headers of spans that led to this one but are not its parents: for example the agent's
	// retrieval that is repeated at a shadow, or the recording of events that are delivered to a shadow.
	Causes []string
}

// SpanKind is a span's role in its trace.
type SpanKind int

const (
	// SpanRequest is a request to a door.
	SpanRequest SpanKind = iota
	// SpanOperation is an operation of a provider. Without a parent it starts a new trace.
	SpanOperation
	// SpanPart is a part of an operation.
	SpanPart
	// SpanCall is a native call to a backend.
	SpanCall
)

// Span is a started span. Only one goroutine may use it, until End.
type Span interface {
	// SetName replaces the name.
	SetName(name string)
	// Text and Number add an attribute.
	Text(key, value string)
	Number(key string, value int64)
	// End ends the span. failure is "" for success, otherwise a short word: an error's code or an HTTP status.
	End(failure string)
}

// NoSpan is a Span that is not recorded.
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

// span starts a span of the host.
func (h *Host) span(ctx context.Context, start SpanStart) (context.Context, Span) {
	if h.options.Tracer == nil {
		return ctx, NoSpan{}
	}
	return h.options.Tracer.Begin(ctx, start)
}

// part starts a part of the span of ctx.
func (h *Host) part(ctx context.Context, name string) (context.Context, Span) {
	return h.span(ctx, SpanStart{Name: name, Kind: SpanPart})
}

// traceparentOf is the traceparent header of the span of ctx, for work that it causes.
func (h *Host) traceparentOf(ctx context.Context) string {
	if h.options.Tracer == nil {
		return ""
	}
	return h.options.Tracer.Traceparent(ctx)
}

// beginSpan starts the operation's span. A follower's operations have their own traces, linked to what caused them.
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

// endSpan records how the operation ended. Spans contain no texts and no ids chosen by callers: the scope appears as
// its key in the store.
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

// endEntry records how an entry of the guest ended. The guest's own error is recorded in the operation's span.
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

// beginCall starts the span of a native call, and adds its traceparent header to the call if Options.PropagateTrace is
// set.
func (o *operation) beginCall(ctx context.Context, native *egress.Call) (context.Context, Span) {
	h, route := o.provider.host, native.Route // there is no slot while an instance starts
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

// endCall records the answer.
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
