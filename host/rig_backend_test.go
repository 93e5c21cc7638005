package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
)

const TestSecret = "sk-very-secret-12345"

// Backend is a test server that echoes requests.
func Backend(t testing.TB) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Query().Get("do") {
		case "404":
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "nothing here")
			return
		case "500":
			w.WriteHeader(http.StatusInternalServerError)
		case "redirect":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			return
		case "big":
			_, _ = w.Write(bytes.Repeat([]byte("x"), 1<<20))
			return
		case "hang":
			<-r.Context().Done()
			return
		case "drop":
			c, _, _ := w.(http.Hijacker).Hijack()
			_ = c.Close()
			return
		}
		fmt.Fprintf(w, "%s %s key=%s auth=%s body=%s", r.Method, r.URL.RequestURI(), r.Header.Get("X-Api-Key"),
			r.Header.Get("Authorization"), body)
	}))
	t.Cleanup(server.Close)
	return server, &calls
}

// NetSlot is a probe with an origin and a secret.
func NetSlot(t testing.TB, url string, o Options) *Slot {
	t.Helper()
	return netSlotOn(t, Open(t, o), url)
}

func netSlotOn(t testing.TB, h *Host, url string) *Slot {
	t.Helper()
	return OpenSlot(t, h, ProviderConfig{Name: "probe", Module: ProbeModule,
		Block:   abi.Raw(fmt.Sprintf(`{"url":%q,"api_key":{"secret":"K"}}`, url)),
		Secrets: map[string]Secret{"K": {Value: func() (string, error) { return TestSecret, nil }, Origin: url}}})
}

// Scripted is a backend whose answers are set by the test; the default is 200 "ok".
type Scripted struct {
	mu     sync.Mutex
	Post   func(part string) int // status; 0 drops the connection
	Find   string
	Ready  string
	posted []string
	Asked  []string // markers of the lookups
}

func (s *Scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/find":
		_, _ = w.Write([]byte(s.Find))
	case "/ready":
		s.Asked = append(s.Asked, r.URL.Query().Get("markers"))
		_, _ = w.Write([]byte(s.Ready))
	default:
		var body struct{ Event, Part string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		s.posted = append(s.posted, body.Event+"/"+body.Part)
		status := 200
		if s.Post != nil {
			status = s.Post(body.Part)
		}
		if status == 0 {
			c, _, _ := w.(http.Hijacker).Hijack()
			_ = c.Close()
			return
		}
		w.WriteHeader(status)
	}
}

// Set changes what the backend answers; Sent is what reached it.
func (s *Scripted) Set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *Scripted) Sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.posted)
}

// FakeClock is a clock that a test advances.
type FakeClock struct{ ms atomic.Int64 }

func (c *FakeClock) Now() time.Time {
	return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(c.ms.Load()) * time.Millisecond)
}

func (c *FakeClock) Add(d time.Duration) { c.ms.Add(d.Milliseconds()) }

func ScriptedSlot(t *testing.T, o Options) (*Slot, *Scripted, *FakeClock) {
	t.Helper()
	b, c := &Scripted{}, &FakeClock{}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	o.Now = c.Now
	return NetSlot(t, server.URL, o), b, c
}
