// Package pages tests modules that read long lists with little memory: its server makes up the pages of one list, and
// passes every other request to a fake backend.
package pages

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Server is such a server.
type Server struct {
	URL  string
	sent int
}

// Serve starts one. page gives the body of a page; "" leaves the request to the fake, as do requests that are no page.
func Serve(t *testing.T, fake http.Handler, page func(r *http.Request, body []byte) string) *Server {
	t.Helper()
	s := new(Server)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		r.Body = io.NopCloser(bytes.NewReader(body))
		made := page(r, body)
		if made == "" {
			fake.ServeHTTP(w, r)
			return
		}
		n, err := io.WriteString(w, made)
		assert.NoError(t, err)
		s.sent += n
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// MoreThan checks that the pages came to more than twice the guest's memory: a guest that kept them would have failed.
func (s *Server) MoreThan(t *testing.T, memory int) {
	t.Helper()
	assert.Greater(t, s.sent, 2*memory)
}
