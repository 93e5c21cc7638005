package egress

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

func TestRedirectIsReturnedNotFollowed(t *testing.T) {
	followed := false
	mux := http.NewServeMux()
	mux.HandleFunc("/from", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/to", http.StatusFound)
	})
	mux.HandleFunc("/to", func(http.ResponseWriter, *http.Request) { followed = true })
	server := httptest.NewServer(mux)
	defer server.Close()
	r := &Route{RouteDecl: abi.RouteDecl{Method: http.MethodGet, Path: "/from"}, origin: testOrigin(t, server.URL),
		bodyBytes: 1 << 20}
	call, err := r.HTTP(&abi.HTTPRequest{}, nil)
	require.NoError(t, err)
	answer, err := call.Send(t.Context())
	require.NoError(t, err)
	assert.Equal(t, http.StatusFound, answer.Status)
	assert.Equal(t, "/to", answer.Header.Get("Location"))
	assert.False(t, followed)
}

func TestHintForANameThatCannotBeFound(t *testing.T) {
	require.Contains(t, hintUnreached(&net.OpError{Op: "dial",
		Err: &net.DNSError{Err: "no such host", Name: "mem0.invalid", IsNotFound: true}}),
		"cannot find the backend's name")
}
