package telemetry

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/memhost/memhost/host"
)

// sendTimeout bounds one request, longestPause what is waited between two for the same spans.
const (
	sendTimeout  = 10 * time.Second
	longestPause = 30 * time.Second
)

// run sends spans until Close.
func (t *Tracer) run() {
	defer close(t.ended)
	due := time.NewTicker(t.options.Every)
	defer due.Stop()
	batch := make([]*span, 0, batchMost)
	for {
		var send bool
		select {
		case s := <-t.queue:
			batch = append(batch, s)
			send = len(batch) == batchMost
		case <-due.C:
			send = len(batch) > 0
		case <-t.ending:
			t.finish(batch)
			return
		}
		if send {
			if !t.deliver(batch) {
				t.finish(batch)
				return
			}
			clear(batch)
			batch = batch[:0]
		}
	}
}

// deliver sends a batch until the collector takes or refuses it, while newer spans wait in the queue. It reports false
// when Close was called before that.
func (t *Tracer) deliver(batch []*span) bool {
	for pause := time.Second; ; pause = min(2*pause, longestPause) {
		again, err := t.send(batch)
		t.tell(err)
		if !again {
			return true
		}
		select {
		case <-time.After(pause):
		case <-t.ending:
			return false
		}
	}
}

// finish sends what is left, once.
func (t *Tracer) finish(batch []*span) {
	for more := true; more; {
		select {
		case s := <-t.queue:
			batch = append(batch, s)
			if len(batch) < batchMost {
				continue
			}
		default:
			more = false
		}
		if len(batch) == 0 {
			return
		}
		again, err := t.send(batch)
		if again {
			t.lost.Add(int64(len(batch)))
		}
		t.tell(err)
		batch = batch[:0]
	}
}

// tell logs that the collector cannot be reached any more, or can again.
func (t *Tracer) tell(err error) {
	switch {
	case err != nil && !t.down:
		t.options.Logger.Warn("spans do not reach the collector; the slot works on, and this is not said again",
			"collector", t.url, "error", err)
	case err == nil && t.down:
		t.options.Logger.Info("spans reach the collector again", "collector", t.url, "lost", t.lost.Load())
	}
	t.down = err != nil
}

// send sends a batch once, and counts it unless it may be sent again.
func (t *Tracer) send(batch []*span) (again bool, err error) {
	ctx, cancel := context.WithTimeout(t.sending, sendTimeout)
	defer cancel()
	body, err := json.Marshal(t.request(batch))
	if err != nil {
		t.lost.Add(int64(len(batch)))
		return false, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		t.lost.Add(int64(len(batch)))
		return false, err
	}
	for name, value := range t.options.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "memhost/"+t.options.Version)
	response, err := t.http.Do(r)
	if err != nil {
		return true, errors.Unwrap(err) // without the URL
	}
	defer func() { _ = response.Body.Close() }()
	const most = 64 << 10
	text, _ := io.ReadAll(io.LimitReader(response.Body, most))
	switch status := response.StatusCode; {
	case status >= 200 && status < 300:
		rejected := rejectedOf(text)
		t.sent.Add(int64(len(batch)) - rejected)
		t.lost.Add(rejected)
		if rejected > 0 {
			return false, fmt.Errorf("the collector refused %d of %d spans", rejected, len(batch))
		}
		return false, nil
	case slices.Contains([]int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout}, status):
		return true, fmt.Errorf("the collector answered %s", response.Status)
	default:
		t.lost.Add(int64(len(batch)))
		return false, fmt.Errorf("the collector answered %s", response.Status)
	}
}

// rejectedOf is how many spans an answer says that the collector did not take.
func rejectedOf(answer []byte) int64 {
	var a struct {
		PartialSuccess struct {
			RejectedSpans json.RawMessage `json:"rejectedSpans"` // 3, or "3" as protobuf's JSON writes 64 bits
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &a) != nil {
		return 0
	}
	n, _ := strconv.ParseInt(string(bytes.Trim(a.PartialSuccess.RejectedSpans, `"`)), 10, 64)
	return n
}

// The messages of OTLP as protobuf's JSON has them: 64-bit numbers are texts, ids are hexadecimal.
type (
	traceRequest struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []keyValue `json:"attributes"`
	}
	scopeSpans struct {
		Scope struct {
			Name    string `json:"name"`
			Version string `json:"version,omitempty"`
		} `json:"scope"`
		Spans []wireSpan `json:"spans"`
	}
	keyValue struct {
		Key   string   `json:"key"`
		Value anyValue `json:"value"`
	}
	anyValue struct {
		Text   *string `json:"stringValue,omitempty"`
		Number string  `json:"intValue,omitempty"`
	}
	wireSpan struct {
		TraceID      string     `json:"traceId"`
		SpanID       string     `json:"spanId"`
		ParentSpanID string     `json:"parentSpanId,omitempty"`
		Flags        int        `json:"flags"`
		Name         string     `json:"name"`
		Kind         int        `json:"kind"`
		Start        string     `json:"startTimeUnixNano"`
		End          string     `json:"endTimeUnixNano"`
		Attributes   []keyValue `json:"attributes,omitempty"`
		Links        []wireLink `json:"links,omitempty"`
		Status       wireStatus `json:"status"`
	}
	wireLink struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
	}
	wireStatus struct {
		Code    int    `json:"code,omitempty"`
		Message string `json:"message,omitempty"`
	}
)

// The numbers of OTLP.
const (
	kindInternal = 1
	kindServer   = 2
	kindClient   = 3
	statusError  = 2
	flagSampled  = 1
)

func (t *Tracer) request(batch []*span) *traceRequest {
	o := t.options
	in := scopeSpans{Spans: make([]wireSpan, len(batch))}
	in.Scope.Name, in.Scope.Version = "memhost", o.Version
	for i, s := range batch {
		in.Spans[i] = s.wire()
	}
	about := []attribute{{key: "service.name", text: "memhost"}, {key: "service.version", text: o.Version},
		{key: "service.instance.id", text: o.Instance}, {key: "host.name", text: o.Host}}
	return &traceRequest{ResourceSpans: []resourceSpans{{Resource: resource{Attributes: wireAttributes(about)},
		ScopeSpans: []scopeSpans{in}}}}
}

func (s *span) wire() wireSpan {
	kinds := map[host.SpanKind]int{host.SpanRequest: kindServer, host.SpanCall: kindClient}
	w := wireSpan{TraceID: hex.EncodeToString(s.own.Trace[:]), SpanID: hex.EncodeToString(s.own.Span[:]),
		Flags: flagSampled, Name: s.name, Kind: kindInternal, Start: strconv.FormatInt(s.began.UnixNano(), 10),
		End: strconv.FormatInt(s.began.Add(s.took).UnixNano(), 10), Attributes: wireAttributes(s.attributes)}
	if kind, ok := kinds[s.kind]; ok {
		w.Kind = kind
	}
	if s.parent.Present() {
		w.ParentSpanID = hex.EncodeToString(s.parent.Span[:])
	}
	for _, cause := range s.causes {
		w.Links = append(w.Links, wireLink{hex.EncodeToString(cause.Trace[:]), hex.EncodeToString(cause.Span[:])})
	}
	if s.failure != "" {
		w.Status = wireStatus{statusError, s.failure}
	}
	return w
}

func wireAttributes(list []attribute) []keyValue {
	out := make([]keyValue, len(list))
	for i, a := range list {
		out[i].Key = a.key
		if a.text != "" {
			out[i].Value.Text = &list[i].text
		} else {
			out[i].Value.Number = strconv.FormatInt(a.number, 10)
		}
	}
	return out
}
