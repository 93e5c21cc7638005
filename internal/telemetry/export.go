package telemetry

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/memhost/memhost/internal/base/address"
	"github.com/memhost/memhost/internal/base/noswitch"
)

// sendTimeout bounds one request; longestPause is the longest wait between two attempts for the same spans.
const (
	sendTimeout  = 10 * time.Second
	longestPause = 30 * time.Second
)

// client sends batches. OpenTelemetry's own client drops a batch if it cannot connect, for example while a collector
// restarts, and after a minute of retries. This one retries a batch until the collector accepts or rejects it, or the
// tracer is closed; newer spans wait, up to the limit of queue.
type client struct {
	otlptrace.Client
	tracer   *Tracer
	resource *resourcepb.Resource
	down     bool // the last request failed
}

// newClient sets every option that OTEL_* variables could set, because only memhost's configuration decides what to
// send and where to. The resource, for which there is no option, is set by UploadTraces.
func newClient(t *Tracer) *client {
	o := t.options
	const dialTimeout = 5 * time.Second
	dialer := &net.Dialer{Timeout: dialTimeout, ControlContext: address.Refuse}
	transport := &http.Transport{DialContext: dialer.DialContext, Proxy: nil, TLSHandshakeTimeout: dialTimeout,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, MaxIdleConns: 1, IdleConnTimeout: 90 * time.Second,
		ForceAttemptHTTP2: true}
	headers := map[string]string{"User-Agent": "memhost/" + o.Version}
	maps.Copy(headers, o.Headers)
	c := &client{tracer: t, resource: new(resourcepb.Resource)}
	c.Client = otlptracehttp.NewClient(
		otlptracehttp.WithEndpointURL(t.url),
		otlptracehttp.WithHeaders(headers),
		otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf),
		otlptracehttp.WithCompression(otlptracehttp.NoCompression),
		otlptracehttp.WithTLSClientConfig(nil),
		otlptracehttp.WithTimeout(sendTimeout),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: false}),
		otlptracehttp.WithHTTPClient(&http.Client{Transport: observer{noswitch.Transport{Base: transport}},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}))
	for _, a := range [][2]string{{"service.name", "memhost"}, {"service.version", o.Version},
		{"service.instance.id", o.Instance}, {"host.name", o.Host}} {
		c.resource.Attributes = append(c.resource.Attributes, &commonpb.KeyValue{Key: a[0],
			Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: a[1]}}})
	}
	return c
}

// UploadTraces implements otlptrace.Client. It counts and logs failures instead of returning them.
func (c *client) UploadTraces(_ context.Context, batch []*tracepb.ResourceSpans) error {
	var spans int64
	for _, of := range batch {
		of.Resource, of.SchemaUrl = c.resource, ""
		for _, in := range of.GetScopeSpans() {
			spans += int64(len(in.GetSpans()))
		}
	}
	t := c.tracer
	for pause := time.Second; ; pause = min(2*pause, longestPause) {
		ended := t.isEnding()
		again, err := c.send(batch)
		c.report(err)
		switch {
		case err == nil:
			t.sent.Add(spans)
			return nil
		case !again || ended:
			rejected := rejectedOf(err, spans)
			t.sent.Add(spans - rejected)
			t.lost.Add(rejected)
			return nil
		}
		select {
		case <-time.After(pause):
		case <-t.ending: // the last attempt
		}
	}
}

// send sends a batch once. again reports whether a failed batch may be retried.
func (c *client) send(batch []*tracepb.ResourceSpans) (again bool, err error) {
	ctx, cancel := context.WithTimeout(c.tracer.sending, sendTimeout)
	defer cancel()
	err = c.Client.UploadTraces(context.WithValue(ctx, againKey{}, &again), batch)
	return again, err
}

// rejected matches the client's error for a partial success, in which the collector rejected some spans.
var rejected = regexp.MustCompile(`OTLP partial success: .*\((\d+) spans? rejected\)`)

// rejectedOf returns how many of a batch's spans the collector rejected.
func rejectedOf(err error, spans int64) int64 {
	match := rejected.FindStringSubmatch(err.Error())
	if match == nil {
		return spans
	}
	n, _ := strconv.ParseInt(match[1], 10, 64)
	return min(n, spans)
}

// report logs when the collector becomes unreachable, and when it is reachable again.
func (c *client) report(err error) {
	t := c.tracer
	switch {
	case err != nil && !c.down:
		t.options.Logger.Warn("spans do not reach the collector; the slot works on, and this is not said again",
			"collector", t.url, "error", err)
	case err == nil && c.down:
		t.options.Logger.Info("spans reach the collector again", "collector", t.url, "lost", t.lost.Load())
	}
	c.down = err != nil
}

type againKey struct{}

// observer stores in the bool under againKey whether a request may be retried, which OTLP derives from the status.
type observer struct{ http.RoundTripper }

func (o observer) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := o.RoundTripper.RoundTrip(r)
	again := err != nil
	if err == nil {
		switch response.StatusCode {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			again = true
		}
	}
	*r.Context().Value(againKey{}).(*bool) = again
	return response, err
}

// queue is a span processor that limits how many spans wait for the collector, and counts those that don't fit. The
// next processor would drop them silently.
type queue struct {
	sdktrace.SpanProcessor
	tracer *Tracer
}

func (q queue) OnEnd(s sdktrace.ReadOnlySpan) {
	t := q.tracer
	if t.ended.Add(1)-t.sent.Load()-t.lost.Load() > queued {
		t.lost.Add(1)
		return
	}
	q.SpanProcessor.OnEnd(s)
}
