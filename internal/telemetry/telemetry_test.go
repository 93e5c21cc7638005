package telemetry_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/base/traceparent"
	"github.com/memhost/memhost/internal/telemetry"
	"github.com/memhost/memhost/internal/test/collector"
)

const (
	caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	other  = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

func tracer(c *collector.Collector, change func(*telemetry.Options)) *telemetry.Tracer {
	o := telemetry.Options{Endpoint: c.URL, SamplePercent: 100, Host: "a", Instance: "a/1", Version: "v1",
		Every: time.Millisecond}
	if change != nil {
		change(&o)
	}
	return telemetry.New(o)
}

func TestSpansComeAsTheyWere(t *testing.T) {
	c := collector.New(t)
	tr := tracer(c, func(o *telemetry.Options) { o.Headers = map[string]string{"Authorization": "Bearer s3cret"} })
	began := time.Now()
	ctx, request := tr.Begin(traceparent.Accept(context.Background(), caller),
		host.SpanStart{Name: "POST", Kind: host.SpanRequest})
	within, operation := tr.Begin(ctx, host.SpanStart{Name: "record_event", Kind: host.SpanOperation})
	_, call := tr.Begin(within, host.SpanStart{Name: "POST /memories", Kind: host.SpanCall})
	call.Number("http.response.status_code", 503)
	call.Number("memhost.retries", 0)
	call.End("Service Unavailable")
	operation.Text("memhost.provider", "mem0")
	operation.Text("memhost.empty", "")
	operation.End("")
	request.SetName("POST /v1/events")
	request.End("")
	_, caused := tr.Begin(context.Background(), host.SpanStart{Name: "retrieve", Kind: host.SpanOperation, Causes: []string{caller, other, "no header"}})
	caused.End("")
	tr.Close(10 * time.Second)

	spans := c.Spans()
	require.Len(t, spans, 4)
	door := collector.One(t, spans, "POST /v1/events")
	assert.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", door.Trace)
	assert.Equal(t, "00f067aa0ba902b7", door.Parent)
	assert.Equal(t, tracepb.Span_SPAN_KIND_SERVER, door.Kind)
	assert.Equal(t, map[string]any{"service.name": "memhost", "service.version": "v1", "service.instance.id": "a/1",
		"host.name": "a"}, door.Resource)
	assert.WithinRange(t, door.Start, began.Add(-time.Microsecond), time.Now())
	assert.False(t, door.End.Before(door.Start))

	record := collector.One(t, spans, "record_event")
	assert.Equal(t, door.ID, record.Parent)
	assert.Equal(t, tracepb.Span_SPAN_KIND_INTERNAL, record.Kind)
	assert.Equal(t, map[string]any{"memhost.provider": "mem0"}, record.Attributes)

	native := collector.One(t, spans, "POST /memories")
	assert.Equal(t, record.ID, native.Parent)
	assert.Equal(t, door.Trace, native.Trace)
	assert.Equal(t, tracepb.Span_SPAN_KIND_CLIENT, native.Kind)
	assert.Equal(t, "Service Unavailable", native.Failure)
	assert.Equal(t, map[string]any{"http.response.status_code": int64(503), "memhost.retries": int64(0)}, native.Attributes)

	linked := collector.One(t, spans, "retrieve")
	assert.Empty(t, linked.Parent)
	assert.NotEqual(t, door.Trace, linked.Trace)
	assert.Equal(t, []string{"4bf92f3577b34da6a3ce929d0e0e4736/00f067aa0ba902b7",
		"0af7651916cd43dd8448eb211c80319c/b7ad6b7169203331"}, linked.Links)
	assert.Equal(t, "Bearer s3cret", c.Headers()[0].Get("Authorization"))
	sent, lost := tr.Counts()
	assert.Equal(t, []int64{4, 0}, []int64{sent, lost})
}

func TestAPartOfNothingIsNotBegun(t *testing.T) {
	c := collector.New(t)
	tr := tracer(c, nil)
	ctx, part := tr.Begin(context.Background(), host.SpanStart{Name: "commit", Kind: host.SpanPart})
	part.End("")
	assert.Empty(t, tr.Traceparent(ctx))
	tr.Close(10 * time.Second)
	assert.Empty(t, c.Spans())
}

// TestAShareOfTraces: a trace is recorded completely or not at all, in the same way at every host, and a caller's
// decision is respected.
func TestAShareOfTraces(t *testing.T) {
	c := collector.New(t)
	tr := tracer(c, func(o *telemetry.Options) { o.SamplePercent = 25 })
	const traces = 2000
	for range traces {
		ctx, root := tr.Begin(context.Background(), host.SpanStart{Name: "root", Kind: host.SpanOperation})
		require.NotEmpty(t, tr.Traceparent(ctx))
		_, part := tr.Begin(ctx, host.SpanStart{Name: "part", Kind: host.SpanPart})
		part.End("")
		root.End("")
	}
	_, unsampled := tr.Begin(traceparent.Accept(context.Background(), strings.TrimSuffix(caller, "1")+"0"),
		host.SpanStart{Name: "unsampled", Kind: host.SpanRequest})
	unsampled.End("")
	_, sampled := tr.Begin(traceparent.Accept(context.Background(), caller),
		host.SpanStart{Name: "sampled", Kind: host.SpanRequest})
	sampled.End("")
	tr.Close(10 * time.Second)
	spans := c.Spans()
	assert.InDelta(t, traces/4, len(collector.Named(spans, "root")), 100)
	assert.Len(t, collector.Named(spans, "part"), len(collector.Named(spans, "root")))
	assert.Empty(t, collector.Named(spans, "unsampled"))
	assert.Len(t, collector.Named(spans, "sampled"), 1)
}

// TestACollectorThatIsDown: spans wait up to a limit, the rest is lost, the log says so once, and the waiting ones
// arrive when the collector is back.
func TestACollectorThatIsDown(t *testing.T) {
	c := collector.New(t)
	asked := make(chan struct{}, 1)
	c.Answer(func(w http.ResponseWriter) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		select {
		case asked <- struct{}{}:
		default:
		}
		return true
	})
	log := new(lines)
	tr := tracer(c, func(o *telemetry.Options) { o.Logger = hclog.New(&hclog.LoggerOptions{Output: log}) })
	one := func() {
		_, s := tr.Begin(context.Background(), host.SpanStart{Name: "s", Kind: host.SpanOperation})
		s.End("")
	}
	one()
	<-asked
	const waiting, more = 4096, 6000
	for range more {
		one()
	}
	_, lost := tr.Counts()
	assert.Equal(t, int64(1+more-waiting), lost)
	c.Answer(nil)
	c.Wait(t, func(spans []collector.Span) bool { return len(spans) == waiting })
	tr.Close(10 * time.Second)
	sent, _ := tr.Counts()
	assert.Equal(t, int64(waiting), sent)
	assert.Equal(t, int64(2), log.n.Load(), "down and up again, once each")
}

// TestAProcessEndsThoughTheCollectorHangs, whether or not a request is in progress.
func TestAProcessEndsThoughTheCollectorHangs(t *testing.T) {
	c := collector.New(t)
	hang, asked := make(chan struct{}), make(chan struct{}, 10)
	t.Cleanup(func() { close(hang) })
	c.Answer(func(http.ResponseWriter) bool { asked <- struct{}{}; <-hang; return true })
	for _, every := range []time.Duration{time.Hour, time.Millisecond} {
		tr := tracer(c, func(o *telemetry.Options) { o.Every = every })
		_, s := tr.Begin(context.Background(), host.SpanStart{Name: "s", Kind: host.SpanOperation})
		s.End("")
		if every < time.Hour {
			<-asked
		}
		began := time.Now()
		tr.Close(100 * time.Millisecond)
		assert.Less(t, time.Since(began), 9*time.Second)
		if every == time.Hour {
			<-asked
		}
		_, lost := tr.Counts()
		assert.Equal(t, int64(1), lost)
		_, s = tr.Begin(context.Background(), host.SpanStart{Name: "s", Kind: host.SpanOperation})
		s.End("") // it neither blocks nor panics
	}
}

// TestAProcessEndsThoughTheCollectorHoldsItsConnection, in every state of an answer.
func TestAProcessEndsThoughTheCollectorHoldsItsConnection(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n"
	for name, answer := range map[string]string{
		"another protocol": "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
		"no answer":        "",
		"half a header":    head,
		"half a body":      head + "Content-Length: 10\r\n\r\n1",
		"half a chunk":     head + "Transfer-Encoding: chunked\r\n\r\na\r\n1",
		"no trailer":       head + "Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\n",
		"early hints":      "HTTP/1.1 103 Early Hints\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan struct{})
			c := collector.New(t)
			t.Cleanup(func() { close(ended) })
			asked := make(chan struct{}, 10)
			c.Answer(func(w http.ResponseWriter) bool {
				conn, _, err := http.NewResponseController(w).Hijack()
				if !assert.NoError(t, err) {
					return true
				}
				defer func() { _ = conn.Close() }()
				_, _ = io.WriteString(conn, answer)
				asked <- struct{}{}
				<-ended
				return true
			})
			tr := tracer(c, nil)
			_, s := tr.Begin(context.Background(), host.SpanStart{Name: "s", Kind: host.SpanOperation})
			s.End("")
			<-asked
			closed := make(chan struct{})
			go func() { defer close(closed); tr.Close(100 * time.Millisecond) }()
			select {
			case <-closed:
			case <-time.After(9 * time.Second):
				t.Error("the tracer is not closed")
			}
		})
	}
}

func TestWhatTheCollectorRefusesIsLost(t *testing.T) {
	c := collector.New(t)
	for answer, lost := range map[string]int64{`{"partialSuccess":{"rejectedSpans":"1"}}`: 1,
		`{"partialSuccess":{"rejectedSpans":1}}`: 1, `{}`: 0, ``: 0, "status": 2} {
		c.Answer(func(w http.ResponseWriter) bool {
			if answer == "status" {
				w.WriteHeader(http.StatusBadRequest)
				return true
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(answer))
			return true
		})
		tr := tracer(c, func(o *telemetry.Options) { o.Every = time.Hour })
		for range 2 {
			_, s := tr.Begin(context.Background(), host.SpanStart{Name: "s", Kind: host.SpanOperation})
			s.End("")
		}
		tr.Close(10 * time.Second)
		_, n := tr.Counts()
		assert.Equal(t, lost, n, answer)
	}
}

// TestACollectorThatRefusesConnections: waiting spans arrive when it listens again.
func TestACollectorThatRefusesConnections(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	log := new(lines)
	tr := telemetry.New(telemetry.Options{Endpoint: "http://" + address, SamplePercent: 100, Every: time.Millisecond,
		Logger: hclog.New(&hclog.LoggerOptions{Output: log})})
	_, s := tr.Begin(context.Background(), host.SpanStart{Name: "s", Kind: host.SpanOperation})
	s.End("")
	require.Eventually(t, func() bool { return log.n.Load() == 1 }, 10*time.Second, time.Millisecond, "it is said once")
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	require.Eventually(t, func() bool { sent, _ := tr.Counts(); return sent == 1 }, 10*time.Second, time.Millisecond)
	tr.Close(10 * time.Second)
}

// TestOTelVariablesAreNotRead: they are meant for other programs. Only the configuration says what is sent, and where.
func TestOTelVariablesAreNotRead(t *testing.T) {
	c, stranger := collector.New(t), collector.New(t)
	file := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, []byte("no certificate"), 0o600))
	for name, value := range map[string]string{
		"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "none", "OTEL_TRACES_SAMPLER": "always_off",
		"OTEL_TRACES_SAMPLER_ARG": "0", "OTEL_SERVICE_NAME": "other", "OTEL_RESOURCE_ATTRIBUTES": "secret=s3cret",
		"OTEL_EXPORTER_OTLP_ENDPOINT": stranger.URL, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": stranger.URL,
		"OTEL_EXPORTER_OTLP_HEADERS": "x-key=s3cret", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x-key=s3cret",
		"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json",
		"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "gzip",
		"OTEL_EXPORTER_OTLP_TIMEOUT": "1", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "1",
		"OTEL_EXPORTER_OTLP_CERTIFICATE": file, "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE": file,
		"OTEL_EXPORTER_OTLP_INSECURE": "false", "OTEL_EXPORTER_OTLP_TRACES_INSECURE": "false",
		"OTEL_BSP_SCHEDULE_DELAY": "3600000", "OTEL_BSP_MAX_QUEUE_SIZE": "1", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "1",
		"OTEL_BSP_EXPORT_TIMEOUT": "1", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "0",
		"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "1", "OTEL_SPAN_LINK_COUNT_LIMIT": "0",
		"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "1", "HTTP_PROXY": stranger.URL, "http_proxy": stranger.URL,
	} {
		t.Setenv(name, value)
	}
	tr := tracer(c, nil)
	const spans = 3
	for range spans {
		_, s := tr.Begin(context.Background(), host.SpanStart{Name: "s", Kind: host.SpanOperation, Causes: []string{caller}})
		s.Text("memhost.provider", "mem0")
		s.End("")
	}
	c.Wait(t, func(came []collector.Span) bool { return len(came) == spans })
	tr.Close(10 * time.Second)
	for _, s := range c.Spans() {
		assert.Equal(t, map[string]any{"service.name": "memhost", "service.version": "v1", "service.instance.id": "a/1",
			"host.name": "a"}, s.Resource)
		assert.Equal(t, map[string]any{"memhost.provider": "mem0"}, s.Attributes)
		assert.Len(t, s.Links, 1)
	}
	for _, header := range c.Headers() {
		assert.Empty(t, header.Get("X-Key"))
		assert.Empty(t, header.Get("Content-Encoding"))
		assert.Equal(t, "memhost/v1", header.Get("User-Agent"))
	}
	assert.Empty(t, stranger.Spans())
}

// TestAMetadataServiceIsNoCollector: its address is refused, as for plugins.
func TestAMetadataServiceIsNoCollector(t *testing.T) {
	log := new(lines)
	tr := telemetry.New(telemetry.Options{Endpoint: "http://169.254.169.254", SamplePercent: 100,
		Logger: hclog.New(&hclog.LoggerOptions{Output: log})})
	_, s := tr.Begin(context.Background(), host.SpanStart{Name: "s", Kind: host.SpanOperation})
	s.End("")
	tr.Close(10 * time.Second)
	assert.Contains(t, log.text.Load(), "always refused")
}

// lines counts lines of a log.
type lines struct {
	n    atomic.Int64
	text atomic.Value
}

func (l *lines) Write(p []byte) (int, error) {
	l.n.Add(int64(strings.Count(string(p), "\n")))
	l.text.Store(string(p))
	return len(p), nil
}
