package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

// BenchmarkAddedTime measures record and retrieve through the host beside the same routes called directly with the same bodies, in turn, so that both see the
// same machine. It reports the ratio of the medians and the difference.
func BenchmarkAddedTime(b *testing.B) {
	for _, delay := range []time.Duration{0, 5 * time.Millisecond} {
		for _, durability := range []string{"power", "process"} {
			b.Run(fmt.Sprintf("record/backend=%v/durability=%s", delay, durability), func(b *testing.B) { benchRecord(b, delay, durability) })
		}
		b.Run(fmt.Sprintf("retrieve/backend=%v", delay), func(b *testing.B) { benchRetrieve(b, delay) })
	}
}

// canned is a server whose answers cost nothing but their delay: 12 results to a search, one row to an add.
type canned struct {
	delay time.Duration
	ids   scopeIDs
}

const cannedID = "a063983a-fa27-431e-b5df-90412b186bde"

func (c *canned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	if c.delay > 0 && (r.URL.Path == "/search" || strings.HasPrefix(r.URL.Path, "/memories")) {
		time.Sleep(c.delay)
	}
	item := `{"id":"` + cannedID + `","memory":"I moved to oat milk last week.","hash":"a57409bda7561acabbb295913f5da7b0","metadata":{"mh_event_id":"e-91","mh_context":"personal",` +
		`"mh_event_timestamp":"2025-03-10T09:30:00Z","mh_event_metadata":{"seed":4}},"score":0.33,"created_at":"2025-03-10T09:30:00+00:00","updated_at":"2025-03-10T09:30:00+00:00",` +
		`"user_id":"` + c.ids.user + `","run_id":"` + c.ids.run + `","attributed_to":"user","score_details":{"semantic_score":0.63,"bm25_score":0.03,"final_score":0.33}}`
	answer := `{}`
	switch key := r.Method + " " + r.URL.Path; {
	case key == "GET /configure":
		answer = `{"vector_store":{"provider":"pgvector","config":{"hnsw":false}}}`
	case key == "GET /memories":
		answer = `{"results":[]}`
	case key == "POST /memories":
		answer = `{"results":[{"id":"` + cannedID + `","memory":"I moved to oat milk last week.","event":"ADD"}]}`
	case key == "POST /search":
		answer = `{"results":[` + item + strings.Repeat(","+item, 11) + `]}`
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/memories/"):
		answer = item
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, answer)
}

func benchSlot(b *testing.B, delay time.Duration, durability string) (*host.Slot, string) {
	server := &canned{delay: delay, ids: idsOf(&abi.GuestConfig{Provider: "mem0"}, maria, 1)}
	url := serve(b, server)
	h, err := host.New(context.Background(), host.Options{DataDir: b.TempDir(), CacheDir: cache, Durability: durability})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, h.Close(context.Background())) })
	s, err := h.Open(context.Background(), providerOf(b, "mem0", url, `,"api":"oss"`))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close(context.Background())) })
	return s, url
}

// direct calls a route as a client without memhost would: send, read, parse.
func direct(b *testing.B, method, url, body string) {
	request, err := http.NewRequest(method, url, bytes.NewReader([]byte(body)))
	require.NoError(b, err)
	request.Header.Set("X-Api-Key", key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(b, err)
	var answer any
	require.NoError(b, json.NewDecoder(response.Body).Decode(&answer))
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}

func benchRecord(b *testing.B, delay time.Duration, durability string) {
	s, url := benchSlot(b, delay, durability)
	body := `{"messages":[{"role":"user","content":"I moved to oat milk last week."}],"user_id":"u","run_id":"r","infer":true,"metadata":{"mh_event_id":"e"}}`
	n := 0
	compare(b, func() {
		direct(b, "POST", url+"/memories", body)
		direct(b, "GET", url+"/memories/"+cannedID, "")
	}, func() {
		n++
		_, err := s.RecordEvent(context.Background(), turn("e"+strconv.Itoa(n), "I moved to oat milk last week."))
		require.NoError(b, err)
	})
}

func benchRetrieve(b *testing.B, delay time.Duration) {
	s, url := benchSlot(b, delay, "power")
	body := `{"query":"which milk?","top_k":20,"threshold":0.1,"explain":true,"filters":{"user_id":"u","run_id":"r"}}`
	compare(b, func() { direct(b, "POST", url+"/search", body) }, func() {
		_, err := s.Retrieve(context.Background(), &abi.RetrieveRequest{Query: "which milk?", Scope: maria, SessionID: "s"})
		require.NoError(b, err)
	})
}

// compare runs both in turn and reports their medians.
func compare(b *testing.B, alone, through func()) {
	alone()
	through()
	var bare, hosted []time.Duration
	for b.Loop() {
		began := time.Now()
		alone()
		half := time.Now()
		through()
		bare, hosted = append(bare, half.Sub(began)), append(hosted, time.Since(half))
	}
	slices.Sort(bare)
	slices.Sort(hosted)
	x, y := bare[len(bare)/2], hosted[len(hosted)/2]
	b.ReportMetric(float64(x.Microseconds()), "direct-us")
	b.ReportMetric(float64(y.Microseconds()), "hosted-us")
	b.ReportMetric(float64((y - x).Microseconds()), "added-us")
	b.ReportMetric(float64(y)/float64(x), "ratio")
	b.ReportMetric(0, "ns/op")
}
