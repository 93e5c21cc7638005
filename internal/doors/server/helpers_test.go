package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
	"github.com/memhost/memhost/internal/test/logs"
)

// newServer makes a door in front of a slot, with a log that the test can read.
func newServer(t testing.TB, slot *servertest.Slot, change ...func(o *server.Options)) (*server.Server, *logs.Buffer) {
	t.Helper()
	log := new(logs.Buffer)
	o := server.Options{Slot: slot, Version: "test",
		Logger: hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Trace})}
	for _, f := range change {
		f(&o)
	}
	s, err := server.New(o)
	require.NoError(t, err)
	return s, log
}

// ask sends one request to a handler, as a program on this machine would. Headers may be changed; an empty value
// removes one.
func ask(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	return askFrom(h, method, path, strings.NewReader(body), headers...)
}

func askFrom(h http.Handler, method, path string, body io.Reader, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, body)
	r.Host = "127.0.0.1:7077"
	if method != http.MethodGet && method != http.MethodHead {
		r.Header.Set("Content-Type", wire.MediaJSON)
	}
	for i := 0; i < len(headers); i += 2 {
		switch name, value := headers[i], headers[i+1]; {
		case name == "Host":
			r.Host = value
		case value == "":
			r.Header.Del(name)
		default:
			r.Header.Add(name, value)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// problem decodes an error answer, and checks what every one must have.
func problem(t testing.TB, w *httptest.ResponseRecorder) *abi.Error {
	t.Helper()
	require.Equal(t, wire.MediaProblem, w.Header().Get("Content-Type"), w.Body)
	e := wire.DecodeProblem(w.Body.Bytes())
	require.NotNil(t, e, w.Body)
	var head struct {
		Type, Title, Detail string
		Status              int
	}
	require.NoError(t, unmarshal(w.Body.Bytes(), &head))
	require.Equal(t, "urn:memhost:error:"+string(e.Code), head.Type)
	require.NotEmpty(t, head.Title)
	require.Equal(t, w.Code, head.Status)
	require.Equal(t, e.Message, head.Detail)
	require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
	return e
}

const anEvent = `{"event_id":"e-1","run_id":"r","user_id":"u","session_id":"s","turn_id":"1","timestamp":"2026-03-01T09:30:00Z","messages":[{"role":"user","content":"hi"}]}`
