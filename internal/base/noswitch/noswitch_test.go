package noswitch

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestASwitchOfTheProtocolIsRefusedAndItsConnectionClosed(t *testing.T) {
	closed := make(chan error, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/plain" {
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			closed <- err
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_, err = io.Copy(io.Discard, conn)
		_ = conn.Close()
		closed <- err
	}))
	t.Cleanup(s.Close)
	c := &http.Client{Transport: Transport{http.DefaultTransport}}
	plain, err := c.Get(s.URL + "/plain")
	require.NoError(t, err)
	require.NoError(t, plain.Body.Close())

	_, err = c.Get(s.URL) //nolint:bodyclose // an error has no body
	require.ErrorIs(t, err, ErrSwitched)
	select {
	case err := <-closed:
		assert.NoError(t, err)
	case <-time.After(10 * time.Second):
		assert.Fail(t, "the connection is open")
	}
}
