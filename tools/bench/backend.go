package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/memhost/memhost/internal/state"
)

// backend is a fake backend with a known response time: after a delay, it repeats the fake's first answer to each kind
// of call. It also records the calls that an operation makes, so that the same calls can be made directly.
type backend struct {
	url string

	mu   sync.Mutex
	fake http.Handler
	// delay is the duration of each call, except while recording.
	delay   time.Duration
	noting  bool
	calls   []nativeCall
	answers map[string]answer // nil: every call goes to the fake
}

// nativeCall is a call as the host sent it.
type nativeCall struct {
	method, uri string
	header      http.Header
	body        []byte
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

// serve serves the backend on its own port.
func (e *env) serve(ctx context.Context, fake http.Handler) (*backend, error) {
	b := &backend{fake: fake}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: b, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	e.later(server.Close)
	b.url = "http://" + listener.Addr().String()
	return b, nil
}

// ServeHTTP implements http.Handler.
func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	kind := r.Method + " " + r.URL.Path
	b.mu.Lock()
	fake, delay, noting := b.fake, b.delay, b.noting
	kept, found := b.answers[kind]
	if noting {
		b.calls = append(b.calls, nativeCall{r.Method, r.URL.RequestURI(), r.Header.Clone(), body})
	}
	b.mu.Unlock()
	if noting {
		delay = 0
	}
	if found = found && !noting; !found {
		recorder := httptest.NewRecorder()
		r.Body = io.NopCloser(bytes.NewReader(body))
		fake.ServeHTTP(recorder, r)
		kept = answer{recorder.Code, recorder.Header(), recorder.Body.Bytes()}
	}
	if noting && !bytes.Contains(body, []byte(`"jsonrpc"`)) { // MCP answers carry the id of their call
		b.mu.Lock()
		if _, ok := b.answers[kind]; !ok {
			b.answers[kind] = kept
		}
		b.mu.Unlock()
	}
	if delay > 0 {
		time.Sleep(delay) // the backend's own time, against which we measure
	}
	for name, values := range kept.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(kept.body)))
	w.WriteHeader(kept.status)
	_, _ = w.Write(kept.body)
}

// script has the calls that an operation makes to the backend.
type script struct {
	calls   []nativeCall
	answers map[string]answer
}

// note runs an operation and records the calls that it makes, with their answers.
func (b *backend) note(op func() error) (*script, error) {
	b.mu.Lock()
	b.noting, b.calls, b.answers = true, nil, map[string]answer{}
	b.mu.Unlock()
	err := op()
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &script{b.calls, b.answers}
	b.noting, b.calls, b.answers = false, nil, nil
	if err == nil && len(s.calls) == 0 {
		err = fmt.Errorf("the operation asked nothing of the backend")
	}
	return s, err
}

// play makes the backend answer from a script.
func (b *backend) play(s *script, delay time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.delay, b.answers = delay, s.answers
}

// replace replaces the fake.
func (b *backend) replace(fake http.Handler) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fake = fake
}

// client makes calls directly.
type client struct{ http.Client }

func (e *env) client() *client {
	transport := &http.Transport{MaxIdleConnsPerHost: 8, DisableCompression: true}
	e.later(func() error { transport.CloseIdleConnections(); return nil })
	return &client{http.Client{Transport: transport}}
}

// again makes the calls of a script, one after another, reads the answers and passes them to read, if it is not nil.
func (c *client) again(ctx context.Context, url string, calls []nativeCall, read func([]byte) error) error {
	for _, call := range calls {
		r, err := http.NewRequestWithContext(ctx, call.method, url+call.uri, bytes.NewReader(call.body))
		if err != nil {
			return err
		}
		for name, values := range call.header {
			if name != "Content-Length" {
				r.Header[name] = values
			}
		}
		answer, err := c.Do(r)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil {
			return err
		}
		if answer.StatusCode >= 300 {
			return fmt.Errorf("%s %s: %d %s", call.method, call.uri, answer.StatusCode,
				strings.TrimSpace(string(body[:min(200, len(body))])))
		}
		if read == nil {
			continue
		}
		if err := read(body); err != nil {
			return fmt.Errorf("%s %s: %w", call.method, call.uri, err)
		}
	}
	return nil
}

// parse does the minimum that is needed to understand a backend's answer. Of an event stream it parses the first event.
func parse(body []byte) error {
	if _, data, ok := bytes.Cut(body, []byte("data: ")); ok && !bytes.HasPrefix(body, []byte("{")) {
		body, _, _ = bytes.Cut(data, []byte("\n"))
	}
	if len(body) == 0 {
		return nil
	}
	var v any
	return json.Unmarshal(body, &v)
}

// commits returns a function that alternately commits what the delivery ledger stores about an event before it is sent
// and after its receipt, to its own data folder, with durability process.
func (e *env) commits(ctx context.Context) (func() error, error) {
	store, err := state.Open(e.folder(), state.Options{Durability: state.DurabilityProcess})
	if err != nil {
		return nil, err
	}
	e.later(store.Close)
	n, receipt := 0, bytes.Repeat([]byte("r"), receiptBytes)
	return func() error {
		size := ledgerBytes
		if n%2 == 1 {
			size = receiptBytes
		}
		var b state.Batch
		b.PutRecord("ledger", []byte("event"+strconv.Itoa(n/2)), receipt[:size])
		n++
		_, err := store.Commit(ctx, &b)
		return err
	}, nil
}

// What the host stores about an event before it is sent: a hash and a time; and afterwards the receipt, with the size
// of mem0's.
const (
	ledgerBytes  = 41
	receiptBytes = 400
)
