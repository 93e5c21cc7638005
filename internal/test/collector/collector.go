// Package collector is an OpenTelemetry collector for tests: it takes spans by OTLP over HTTP and keeps them.
package collector

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span as it came.
type Span struct {
	Trace, ID, Parent, Name string
	Kind                    tracepb.Span_SpanKind
	// Failure is "" for success. Links are trace and span, "TRACE/SPAN".
	Failure string
	Links   []string
	// Attributes and Resource have texts, or int64 for numbers.
	Attributes, Resource map[string]any
	Start, End           time.Time
}

// Collector is a running collector.
type Collector struct {
	// URL is its endpoint, without /v1/traces.
	URL string

	mu      sync.Mutex
	spans   []Span
	headers []http.Header
	came    chan struct{} // closed when spans come
	answer  func(w http.ResponseWriter) bool
}

// New runs a collector on loopback until the test ends.
func New(t testing.TB) *Collector {
	c := &Collector{came: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		answer := c.answer
		c.mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if answer != nil && answer(w) || err != nil {
			return
		}
		if r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			http.Error(w, "want protobuf at /v1/traces", http.StatusNotFound)
			return
		}
		data := new(tracepb.TracesData) // the message of a request has the same one field
		if err := proto.Unmarshal(body, data); err != nil {
			t.Errorf("the collector cannot read a request: %v\n%q", err, body)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.spans = append(c.spans, decode(data)...)
		c.headers = append(c.headers, r.Header)
		close(c.came)
		c.came = make(chan struct{})
	}))
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// Answer has requests answered by a function from now on, which returns false to let one be taken. Nil takes all.
func (c *Collector) Answer(answer func(w http.ResponseWriter) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = answer
}

// Spans are the spans that came.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Headers are those of the requests that were taken.
func (c *Collector) Headers() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.headers)
}

// Wait waits until what came satisfies enough.
func (c *Collector) Wait(t testing.TB, enough func([]Span) bool) []Span {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		c.mu.Lock()
		spans, came := slices.Clone(c.spans), c.came
		c.mu.Unlock()
		if enough(spans) {
			return spans
		}
		select {
		case <-came:
		case <-deadline:
			require.FailNow(t, "the spans did not come", "%+v", spans)
		}
	}
}

// Named are the spans of a name.
func Named(spans []Span, name string) []Span {
	return slices.DeleteFunc(slices.Clone(spans), func(s Span) bool { return s.Name != name })
}

// One is the one span of a name.
func One(t testing.TB, spans []Span, name string) Span {
	t.Helper()
	found := Named(spans, name)
	require.Len(t, found, 1, "spans called %s in %+v", name, spans)
	return found[0]
}

func decode(data *tracepb.TracesData) []Span {
	id := hex.EncodeToString
	var out []Span
	for _, of := range data.GetResourceSpans() {
		resource := map[string]any{}
		for _, a := range of.GetResource().GetAttributes() {
			resource[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, in := range of.GetScopeSpans() {
			for _, s := range in.GetSpans() {
				span := Span{Trace: id(s.GetTraceId()), ID: id(s.GetSpanId()), Parent: id(s.GetParentSpanId()),
					Name: s.GetName(), Kind: s.GetKind(), Failure: s.GetStatus().GetMessage(), Resource: resource,
					Attributes: map[string]any{}, Start: time.Unix(0, int64(s.GetStartTimeUnixNano())),
					End: time.Unix(0, int64(s.GetEndTimeUnixNano()))}
				for _, a := range s.GetAttributes() {
					span.Attributes[a.GetKey()] = value(a.GetValue())
				}
				for _, l := range s.GetLinks() {
					span.Links = append(span.Links, id(l.GetTraceId())+"/"+id(l.GetSpanId()))
				}
				out = append(out, span)
			}
		}
	}
	return out
}

func value(v *commonpb.AnyValue) any {
	if n, ok := v.GetValue().(*commonpb.AnyValue_IntValue); ok {
		return n.IntValue
	}
	return v.GetStringValue()
}
