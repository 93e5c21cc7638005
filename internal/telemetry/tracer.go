// Package telemetry creates spans with OpenTelemetry's SDK and sends them to a collector, by OTLP over HTTP.
//
// The SDK and its exporter are only configured here. By default they would read OTEL_* variables, but an agent that
// runs next to memhost may have some that are meant for the agent.
package telemetry

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/base/traceparent"
)

// Options configure a Tracer. The zero value of a field means its default.
type Options struct {
	// Endpoint is the collector's URL, http or https, to which /v1/traces is appended: http://127.0.0.1:4318. Required.
	Endpoint string
	// Headers are sent with every request, for example credentials for the collector.
	Headers map[string]string
	// SamplePercent is the percentage of traces that are recorded, among those that start here. A trace that started
	// elsewhere is recorded if its parent is.
	SamplePercent int64
	// Host is the machine's name, Instance a unique name of this process, Version the program's version.
	Host, Instance, Version string
	// Every is how long a span waits to be sent together with others; default 1 s.
	Every time.Duration
	// Logger gets one line when the collector becomes unreachable, and one when it is reachable again. Default: no log.
	Logger hclog.Logger
}

// Limits of the queue for the collector, in spans of one or two kilobytes.
const (
	queued    = 4096
	batchMost = 512
)

// Tracer is a host.Tracer that sends spans to a collector. It never blocks: spans that don't fit the queue are counted
// as lost. Create it with New.
type Tracer struct {
	options  Options
	url      string
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	ending   chan struct{} // closed by Close
	sending  context.Context
	abort    context.CancelFunc // of sending

	ended, sent, lost atomic.Int64 // spans
}

var _ host.Tracer = (*Tracer)(nil)

// New creates a tracer and starts sending. Call Close at the end.
func New(o Options) *Tracer {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.Every <= 0 {
		o.Every = time.Second
	}
	t := &Tracer{options: o, url: strings.TrimSuffix(o.Endpoint, "/") + "/v1/traces", ending: make(chan struct{})}
	t.sending, t.abort = context.WithCancel(context.Background())
	batches := sdktrace.NewBatchSpanProcessor(otlptrace.NewUnstarted(newClient(t)),
		sdktrace.WithMaxQueueSize(queued), sdktrace.WithMaxExportBatchSize(batchMost),
		sdktrace.WithBatchTimeout(o.Every), sdktrace.WithExportTimeout(0))
	const hundred = 100
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(queue{batches, t}),
		sdktrace.WithResource(resource.Empty()), // newClient has the resource
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(float64(o.SamplePercent)/hundred))),
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{AttributeValueLengthLimit: -1, AttributeCountLimit: -1,
			EventCountLimit: -1, LinkCountLimit: -1, AttributePerEventCountLimit: -1, AttributePerLinkCountLimit: -1}))
	t.tracer = t.provider.Tracer("memhost", trace.WithInstrumentationVersion(o.Version))
	return t
}

// Counts returns how many spans the collector has accepted, and how many were lost.
func (t *Tracer) Counts() (sent, lost int64) { return t.sent.Load(), t.lost.Load() }

// Close sends the waiting spans, for at most within, and stops sending. Later spans are dropped.
func (t *Tracer) Close(within time.Duration) {
	limit := time.AfterFunc(within, t.abort)
	close(t.ending)
	_ = t.provider.Shutdown(context.Background()) // ends soon after abort
	limit.Stop()
	t.abort()
}

func (t *Tracer) isEnding() bool {
	select {
	case <-t.ending:
		return true
	default:
		return false
	}
}

// Traceparent implements host.Tracer.
func (t *Tracer) Traceparent(ctx context.Context) string { return traceparent.Of(ctx).String() }

// Begin implements host.Tracer. In a trace that is not sampled, only the context is extended, and nothing is recorded.
func (t *Tracer) Begin(ctx context.Context, start host.SpanStart) (context.Context, host.Span) {
	parent := traceparent.Of(ctx)
	if !parent.Present() && (start.Kind == host.SpanPart || start.Kind == host.SpanCall) {
		return ctx, host.NoSpan{}
	}
	if parent.Present() && !parent.Sampled {
		return ctx, host.NoSpan{}
	}
	kind, remote := trace.SpanKindInternal, false
	switch start.Kind {
	case host.SpanRequest:
		kind, remote = trace.SpanKindServer, true
	case host.SpanCall:
		kind = trace.SpanKindClient
	}
	var links []trace.Link
	for _, header := range start.Causes {
		if cause, ok := traceparent.Parse(header); ok {
			links = append(links, trace.Link{SpanContext: spanContext(cause, true)})
		}
	}
	_, s := t.tracer.Start(trace.ContextWithSpanContext(context.Background(), spanContext(parent, remote)), start.Name,
		trace.WithSpanKind(kind), trace.WithLinks(links...))
	own := s.SpanContext()
	ctx = traceparent.With(ctx, traceparent.Parent{Trace: own.TraceID(), Span: own.SpanID(), Sampled: own.IsSampled()})
	if !own.IsSampled() {
		return ctx, host.NoSpan{}
	}
	return ctx, span{s}
}

func spanContext(p traceparent.Parent, remote bool) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: p.Trace, SpanID: p.Span,
		TraceFlags: trace.TraceFlags(0).WithSampled(p.Sampled), Remote: remote})
}

// span is a recorded span.
type span struct{ trace.Span }

// SetName implements host.Span.
func (s span) SetName(name string) { s.Span.SetName(name) }

// Text implements host.Span. An empty text is not sent.
func (s span) Text(key, value string) {
	if value != "" {
		s.SetAttributes(attribute.String(key, value))
	}
}

// Number implements host.Span.
func (s span) Number(key string, value int64) { s.SetAttributes(attribute.Int64(key, value)) }

// End implements host.Span.
func (s span) End(failure string) {
	if failure != "" {
		s.SetStatus(codes.Error, failure)
	}
	s.Span.End()
}

// String names the collector, for messages.
func (t *Tracer) String() string {
	return fmt.Sprintf("%s, %d %% of traces", t.url, t.options.SamplePercent)
}
