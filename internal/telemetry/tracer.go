// Package telemetry makes spans and sends them to a collector of OpenTelemetry, by OTLP over HTTP in JSON.
//
// What it sends is written by hand, not by OpenTelemetry's own packages: docs/dependencies.md has the figures.
// https://opentelemetry.io/docs/specs/otlp/#otlphttp
package telemetry

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/base/address"
	"github.com/memhost/memhost/internal/base/traceparent"
)

// Options configure a Tracer. The zero value of a field means its default.
type Options struct {
	// Endpoint is the collector's URL, http or https, to which /v1/traces is added: http://127.0.0.1:4318. Required.
	Endpoint string
	// Headers are sent with every request: credentials of the collector.
	Headers map[string]string
	// SamplePercent is the share of traces that are recorded, of those that begin here. A trace that began elsewhere is
	// recorded if its beginning is.
	SamplePercent int64
	// Host is the machine's name, Instance that of this process among all, Version the program's.
	Host, Instance, Version string
	// Every is how long a span waits for others; default 1 s.
	Every time.Duration
	// Logger is told once when the collector cannot be reached, and when it can again. Default: none.
	Logger hclog.Logger
}

// Bounds of what waits for the collector, in spans: one has a few hundred bytes.
const (
	queued    = 4096
	batchMost = 512
)

// Tracer is a host.Tracer that sends spans to a collector. It never waits for it: spans that find the queue full are
// counted as lost. Make one with New.
type Tracer struct {
	options Options
	url     string
	http    *http.Client
	queue   chan *span
	ending  chan struct{} // closed by Close
	ended   chan struct{}
	sending context.Context // of all requests
	abort   context.CancelFunc

	sent, lost atomic.Int64
	down       bool // the collector did not answer when it was last asked; of the sending goroutine
}

var _ host.Tracer = (*Tracer)(nil)

// New makes a tracer and begins to send. Close ends it.
func New(o Options) *Tracer {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.Every <= 0 {
		o.Every = time.Second
	}
	const dialTimeout = 5 * time.Second
	dialer := &net.Dialer{Timeout: dialTimeout, ControlContext: address.Refuse}
	transport := &http.Transport{DialContext: dialer.DialContext, Proxy: nil, TLSHandshakeTimeout: dialTimeout,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, MaxIdleConns: 1, IdleConnTimeout: 90 * time.Second,
		ForceAttemptHTTP2: true}
	t := &Tracer{options: o, url: strings.TrimSuffix(o.Endpoint, "/") + "/v1/traces",
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}, queue: make(chan *span, queued), ending: make(chan struct{}), ended: make(chan struct{})}
	t.sending, t.abort = context.WithCancel(context.Background())
	go t.run()
	return t
}

// Counts are how many spans the collector has taken, and how many it did not get.
func (t *Tracer) Counts() (sent, lost int64) { return t.sent.Load(), t.lost.Load() }

// Close sends what waits, for at most within, and ends sending. Later spans are dropped.
func (t *Tracer) Close(within time.Duration) {
	limit := time.AfterFunc(within, t.abort)
	close(t.ending)
	<-t.ended
	limit.Stop()
	t.abort()
	t.http.CloseIdleConnections()
}

// Traceparent implements host.Tracer.
func (t *Tracer) Traceparent(ctx context.Context) string { return traceparent.Of(ctx).String() }

// Begin implements host.Tracer. In a trace that is not sampled the context carries that, and nothing is recorded.
func (t *Tracer) Begin(ctx context.Context, start host.SpanStart) (context.Context, host.Span) {
	parent := traceparent.Of(ctx)
	if !parent.Present() && (start.Kind == host.SpanPart || start.Kind == host.SpanCall) {
		return ctx, host.NoSpan{}
	}
	if parent.Present() && !parent.Sampled {
		return ctx, host.NoSpan{}
	}
	s := &span{tracer: t, parent: parent, name: start.Name, kind: start.Kind, began: time.Now()}
	s.own = traceparent.Parent{Trace: parent.Trace, Sampled: true}
	if !parent.Present() {
		s.own.Trace = newTrace()
		s.own.Sampled = t.samples(s.own.Trace)
	}
	binary.BigEndian.PutUint64(s.own.Span[:], newID())
	ctx = traceparent.With(ctx, s.own)
	if !s.own.Sampled {
		return ctx, host.NoSpan{}
	}
	for _, header := range start.Causes {
		if cause, ok := traceparent.Parse(header); ok {
			s.causes = append(s.causes, cause)
		}
	}
	return ctx, s
}

// samples decides by the id, so that every host decides alike.
func (t *Tracer) samples(trace [16]byte) bool {
	const hundredth = 1<<63/100 + 1
	return int64(binary.BigEndian.Uint64(trace[8:])>>1)/hundredth < t.options.SamplePercent
}

func newTrace() (trace [16]byte) {
	binary.BigEndian.PutUint64(trace[:8], newID())
	binary.BigEndian.PutUint64(trace[8:], newID())
	return trace
}

// newID is random and not 0. Ids are no secrets.
func newID() uint64 {
	for {
		if id := rand.Uint64(); id != 0 {
			return id
		}
	}
}

// span is a span that is recorded.
type span struct {
	tracer     *Tracer
	own        traceparent.Parent
	parent     traceparent.Parent   // none at the beginning of a trace
	causes     []traceparent.Parent // links
	name       string
	kind       host.SpanKind
	began      time.Time
	took       time.Duration
	failure    string
	attributes []attribute
}

// attribute has a text, or a number where the text is "".
type attribute struct {
	key, text string
	number    int64
}

// SetName implements host.Span.
func (s *span) SetName(name string) { s.name = name }

// Text implements host.Span. An empty text is not sent.
func (s *span) Text(key, value string) {
	if value != "" {
		s.attributes = append(s.attributes, attribute{key: key, text: value})
	}
}

// Number implements host.Span.
func (s *span) Number(key string, value int64) {
	s.attributes = append(s.attributes, attribute{key: key, number: value})
}

// End implements host.Span.
func (s *span) End(failure string) {
	s.took, s.failure = time.Since(s.began), failure
	select {
	case s.tracer.queue <- s:
	default:
		s.tracer.lost.Add(1)
	}
}

// String names the collector, for messages.
func (t *Tracer) String() string {
	return fmt.Sprintf("%s, %d %% of traces", t.url, t.options.SamplePercent)
}
