package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/fakes/memos"
)

// canned answers every request with what the fake answered to the first of its kind, after a pause: a backend whose time is known.
type canned struct {
	fake    http.Handler
	pause   time.Duration
	answers map[string][]byte
	last    map[string][]byte
}

func (c *canned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	key := r.Method + " " + r.URL.Path
	if c.answers[key] == nil || c.pause < 0 {
		inner := httptest.NewRecorder()
		r.Body = io.NopCloser(bytes.NewReader(body))
		c.fake.ServeHTTP(inner, r)
		c.answers[key], c.last[key] = inner.Body.Bytes(), body
	}
	if c.pause > 0 {
		time.Sleep(c.pause) // the backend's time, which is what the benchmark varies
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(c.answers[key])
}

// BenchmarkRetrieve and BenchmarkRecord put an operation beside the same HTTP calls made directly, one after the other in turns: the metrics are both medians, what
// was added, and their ratio.
func BenchmarkRetrieve(b *testing.B) {
	for _, pause := range []time.Duration{0, 5 * time.Millisecond} {
		b.Run("backend="+pause.String(), func(b *testing.B) {
			c, slot := benchSlot(b, pause, "process")
			direct := c.last["POST /product/search"]
			request := ask("Which seat does the user prefer?")
			compare(b, func() { c.post(b, "/product/search", direct) }, func(int) {
				_, err := slot.Retrieve(b.Context(), request)
				require.NoError(b, err)
			})
		})
	}
}

func BenchmarkRecord(b *testing.B) {
	for _, durability := range []string{"process", "power"} {
		for _, pause := range []time.Duration{0, 5 * time.Millisecond} {
			b.Run("durability="+durability+"/backend="+pause.String(), func(b *testing.B) {
				c, slot := benchSlot(b, pause, durability)
				add, look := c.last["POST /product/add"], c.last["POST /product/get_memory"]
				compare(b, func() { c.post(b, "/product/add", add); c.post(b, "/product/get_memory", look) }, func(i int) {
					_, err := slot.RecordEvent(b.Context(), said("e-"+strconv.Itoa(i), "I always prefer an aisle seat."))
					require.NoError(b, err)
				})
			})
		}
	}
}

// client is a server with a client of its own.
type client struct {
	*canned
	url  string
	http *http.Client
}

func (c *client) post(b *testing.B, path string, body []byte) {
	r, err := c.http.Post(c.url+path, "application/json", bytes.NewReader(body))
	require.NoError(b, err)
	_, err = io.Copy(io.Discard, r.Body)
	require.NoError(b, err)
	require.NoError(b, r.Body.Close())
}

// benchSlot is a slot with 20 facts behind it.
func benchSlot(b *testing.B, pause time.Duration, durability string) (*client, *host.Slot) {
	backend := &canned{fake: memos.New(memos.Options{Flavour: memos.Community}), pause: -1, answers: map[string][]byte{}, last: map[string][]byte{}}
	server := httptest.NewServer(backend)
	b.Cleanup(server.Close)
	h, err := host.New(b.Context(), host.Options{DataDir: b.TempDir(), Durability: durability})
	require.NoError(b, err)
	b.Cleanup(func() { _ = h.Close(b.Context()) })
	config := provider(b, server.URL, `"add_mode":"sync/fast"`)
	config.Namespace = "lab"
	slot, err := h.Open(b.Context(), config)
	require.NoError(b, err)
	b.Cleanup(func() { _ = slot.Close(b.Context()) })
	for i := range 20 {
		_, err := slot.RecordEvent(b.Context(), said("fact-"+strconv.Itoa(i), "I always prefer an aisle seat on flight "+strconv.Itoa(i)+"."))
		require.NoError(b, err)
	}
	result, err := slot.Retrieve(b.Context(), ask("Which seat does the user prefer?"))
	require.NoError(b, err)
	require.NotEmpty(b, result.Evidence)
	require.Equal(b, abi.ResultResults, result.Trace.ResultState)
	backend.pause = pause
	return &client{backend, server.URL, server.Client()}, slot
}

// compare runs both in turns and reports medians in microseconds.
func compare(b *testing.B, direct func(), through func(i int)) {
	var a, t []time.Duration
	i := 0
	for b.Loop() {
		began := time.Now()
		direct()
		middle := time.Now()
		through(i)
		a, t = append(a, middle.Sub(began)), append(t, time.Since(middle))
		i++
	}
	slices.Sort(a)
	slices.Sort(t)
	before, after := a[len(a)/2], t[len(t)/2]
	b.ReportMetric(float64(before.Nanoseconds())/1000, "direct-µs")
	b.ReportMetric(float64(after.Nanoseconds())/1000, "memhost-µs")
	b.ReportMetric(float64((after-before).Nanoseconds())/1000, "added-µs")
	b.ReportMetric(float64(after)/float64(before), "ratio")
	b.ReportMetric(0, "ns/op")
}
