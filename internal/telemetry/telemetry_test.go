package telemetry_test

import (
	"context"
	"net/http"
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

// TestAShareOfTraces: a trace is recorded whole or not at all, at every host alike, and a caller's decision counts.
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

// TestACollectorThatIsDown: spans wait up to a bound, the rest is lost, the log says so once, and what waited comes when
// the collector is back.
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
	const more = 6000 // the queue has 4096
	for range more {
		one()
	}
	_, lost := tr.Counts()
	assert.Equal(t, int64(more-4096), lost)
	c.Answer(nil)
	c.Wait(t, func(spans []collector.Span) bool { return len(spans) == 1+4096 })
	tr.Close(10 * time.Second)
	sent, _ := tr.Counts()
	assert.Equal(t, int64(1+4096), sent)
	assert.Equal(t, int64(2), log.n.Load(), "down and up again, once each")
}

// TestAProcessEndsThoughTheCollectorHangs: whether a request is under way by then or not.
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

func TestWhatTheCollectorRefusesIsLost(t *testing.T) {
	c := collector.New(t)
	for answer, lost := range map[string]int64{`{"partialSuccess":{"rejectedSpans":"1"}}`: 1,
		`{"partialSuccess":{"rejectedSpans":1}}`: 1, `{}`: 0, ``: 0, "status": 2} {
		c.Answer(func(w http.ResponseWriter) bool {
			if answer == "status" {
				w.WriteHeader(http.StatusBadRequest)
				return true
			}
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

// TestAMetadataServiceIsNoCollector: its address is refused as for plugins.
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
