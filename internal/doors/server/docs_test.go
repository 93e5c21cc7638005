package server_test

import (
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

func TestThePageNeedsNothingFromElsewhere(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot))
	w := ask(s.Handler(), "GET", wire.PathDocs, "")
	require.Equal(t, 200, w.Code)
	require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
	page := w.Body.String()
	for _, element := range []string{"<script", "<link", "<img", "<iframe", "@import", "url("} {
		require.NotContains(t, page, element)
	}
	for _, m := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		require.True(t, strings.HasPrefix(m[1], "#") || m[1] == "openapi.json", m[1])
	}
	_, style, _ := strings.Cut(page, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	sum := sha256.Sum256([]byte(style))
	require.Contains(t, w.Header().Get("Content-Security-Policy"),
		"default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
}

func TestThePageShowsEveryRouteAndItsLinksLead(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot))
	page := ask(s.Handler(), "GET", wire.PathDocs, "").Body.String()
	for _, line := range table() {
		method, path, _ := strings.Cut(line, " ")
		require.Contains(t, page, "<h3><b>"+method+"</b> "+path+"</h3>")
	}
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		require.False(t, targets[m[1]], "id %s twice", m[1])
		targets[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(page, -1) {
		require.True(t, targets[m[1]], "#%s leads nowhere", m[1])
	}
}

func TestTheBareAddressLeadsSomewhere(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot))
	browser := ask(s.Handler(), "GET", "/", "", "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	require.Equal(t, 303, browser.Code)
	require.Equal(t, strings.TrimPrefix(wire.PathDocs, "/"), browser.Header().Get("Location"))

	curl := ask(s.Handler(), "GET", "/", "", "Accept", "*/*")
	require.Equal(t, 200, curl.Code)
	require.Equal(t, "text/plain; charset=utf-8", curl.Header().Get("Content-Type"))
	for _, m := range regexp.MustCompile(`(?m)^GET +(\S+)`).FindAllStringSubmatch(curl.Body.String(), -1) {
		require.Equal(t, 200, ask(s.Handler(), "GET", m[1], "").Code, m[1])
	}
	require.Equal(t, 405, ask(s.Handler(), "POST", "/", "{}").Code)
	require.NotContains(t, ask(s.Handler(), "GET", "/x", "").Body.String(), "did you mean /?")
	for path, want := range map[string]string{"/v1/reset": "/v1/scopes/reset", "/v1/query": "/v1/native-query",
		"/v2/events": "/v1/events", "/mcp": "`memhost run --mcp=http` serves it"} {
		require.Contains(t, ask(s.Handler(), "GET", path, "").Body.String(), want, path)
	}
}
