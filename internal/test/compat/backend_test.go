package compat_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

// request is a native call as it reached the backend.
type request struct {
	At     time.Time `json:"at"`
	Method string    `json:"method"`
	URL    string    `json:"url"`
	Body   string    `json:"body"`
}

// backend answers native calls in the process, by a fake: it is for host.Options.Intercept.
type backend struct {
	// handler is nil if the provider makes no native calls.
	handler http.Handler

	clockMu sync.Mutex
	clock   func() time.Time

	mu sync.Mutex
	// requests are all calls so far, writes how many of them the module's manifest calls write.
	requests []request
	writes   int
	// loseAnswers has every call of class write arrive, and its answer get lost.
	loseAnswers bool
}

// newBackend starts the fake of a set-up, with its own clock, which is the host's too.
func newBackend(u providerSetup, at time.Time) *backend {
	b := &backend{clock: clock(at)}
	if u.backend != nil {
		b.handler = u.backend(b.now)
	}
	return b
}

func (b *backend) now() time.Time {
	b.clockMu.Lock()
	defer b.clockMu.Unlock()
	return b.clock()
}

// at sets the clock.
func (b *backend) at(at time.Time) {
	b.clockMu.Lock()
	defer b.clockMu.Unlock()
	b.clock = clock(at)
}

// stopAt sets the clock and stops it. What is sent again on a slow machine would otherwise be later than what comes
// after it.
func (b *backend) stopAt(at time.Time) {
	b.clockMu.Lock()
	defer b.clockMu.Unlock()
	b.clock = func() time.Time { return at }
}

// intercept is a host.Interceptor.
func (b *backend) intercept(
	_ context.Context, call host.NativeCall, _ func(context.Context) (host.NativeAnswer, error),
) (host.NativeAnswer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := request{At: b.now(), Method: call.Method, URL: call.URL, Body: string(call.Body)}
	b.requests = append(b.requests, r)
	answer := b.send(r)
	if call.Class == abi.ClassWrite {
		b.writes++
		if b.loseAnswers {
			return host.NativeAnswer{}, errors.New("connection reset by peer")
		}
	}
	return answer, nil
}

// send hands a request to the fake.
func (b *backend) send(r request) host.NativeAnswer {
	sent := httptest.NewRequest(r.Method, r.URL, bytes.NewReader([]byte(r.Body)))
	sent.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, sent)
	return host.NativeAnswer{Status: w.Code, Header: w.Header(), Body: w.Body.Bytes()}
}

// lose says whether answers of writes get lost from now on.
func (b *backend) lose(yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loseAnswers = yes
}

func (b *backend) wrote() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.writes
}

// clock is real time, moved: it says at when it is made.
func clock(at time.Time) func() time.Time {
	began := time.Now()
	return func() time.Time { return at.Add(time.Since(began)).UTC() }
}
