package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

func TestAMountAnswersInPartsWhileItIsCounted(t *testing.T) {
	read := make(chan struct{})
	s, log := newServer(t, new(servertest.Slot), func(o *server.Options) {
		o.Mounts = map[string]http.Handler{"/parts": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusAccepted)
			w.WriteHeader(http.StatusTeapot) // too late
			_, _ = io.WriteString(w, "one,")
			w.(http.Flusher).Flush()
			select { // the first part arrives before the second is written
			case <-read:
			case <-r.Context().Done(): // it did not arrive
			}
			_, _ = io.WriteString(w, "two")
		})}
	})
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	r, err := web.Client().Get(web.URL + "/parts")
	require.NoError(t, err)
	defer r.Body.Close()
	require.Equal(t, http.StatusAccepted, r.StatusCode)
	first := make([]byte, len("one,"))
	_, err = io.ReadFull(r.Body, first)
	require.NoError(t, err)
	require.Equal(t, "one,", string(first))
	close(read)
	rest, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Equal(t, "two", string(rest))
	web.Close() // waits for the handler
	require.Contains(t, log.String(), "status=202 bytes=7")
	figures := ask(s.Handler(), "GET", wire.PathMetrics, "").Body.String()
	require.Contains(t, figures, `memhost_http_requests_total{route="/parts",status="202"} 1`)
}
