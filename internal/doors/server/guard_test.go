package server_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// untouchable is a slot that must not be reached.
func untouchable(t *testing.T) *servertest.Slot {
	return &servertest.Slot{Answer: func(_ context.Context, op string, _ any) (any, error) {
		t.Errorf("%s reached the slot", op)
		return nil, nil
	}}
}

func withToken(token string) func(o *server.Options) {
	return func(o *server.Options) { o.Token = token }
}

func TestOnLoopbackTheHostMustBeLoopback(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot))
	for host, allowed := range map[string]bool{
		"127.0.0.1:7077": true, "127.0.0.1": true, "localhost:7077": true, "LocalHost": true, "[::1]:7077": true,
		"[::1]": true, "127.8.9.1:1": true,
		"evil.example:7077": false, "localhost.evil.example": false, "127.0.0.1.evil.example:7077": false,
		"192.168.1.7:7077": false,
		"169.254.169.254":  false, "0.0.0.0:7077": false, "": false, "2130706433": false, "0x7f.1": false,
		"localhost@evil.example": false,
	} {
		w := ask(s.Handler(), "GET", wire.PathMode, "", "Host", host)
		if allowed {
			require.Equal(t, 200, w.Code, host)
			continue
		}
		require.Equal(t, 403, w.Code, host)
		e := problem(t, w)
		require.Equal(t, abi.CodeDenied, e.Code)
		require.Equal(t, "host", e.Reason)
	}
}

// A proxy on this machine sends a loopback Host from a loopback address for callers from anywhere.
func TestWithoutATokenAForwardedRequestIsRefused(t *testing.T) {
	forwarded := map[string]string{"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Host": "mem.example.com",
		"X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "/memory", "x-forwarded-anything": "x", "X-Real-IP": "203.0.113.9",
		"Forwarded": "for=203.0.113.9", "Via": "1.1 proxy", "CF-Connecting-IP": "203.0.113.9",
		"True-Client-IP": "203.0.113.9", "X-Forwarded-Port": "443"}
	closed, _ := newServer(t, untouchable(t))
	open, _ := newServer(t, new(servertest.Slot), withToken("secret"))
	for header, value := range forwarded {
		for path, method := range map[string]string{wire.PathMode: "PUT", wire.PathHealth: "GET", wire.PathMetrics: "GET",
			wire.PathReady: "GET", wire.PathDocs: "GET", "/": "GET", "/nothing": "GET"} {
			w := ask(closed.Handler(), method, path, `{"read_only": true}`, header, value)
			require.Equal(t, 403, w.Code, "%s %s", header, path)
			e := problem(t, w)
			require.Equal(t, "forwarded", e.Reason)
			require.Contains(t, e.Message, http.CanonicalHeaderKey(header))
			require.Contains(t, e.Hint, "MEMHOST_TOKEN")
		}
		require.Equal(t, 200, ask(open.Handler(), "GET", wire.PathMode, "", header, value, "Authorization",
			"Bearer secret").Code, header)
	}
}

// What nginx sends with proxy_pass alone: a loopback Host, HTTP/1.0, and no forwarding header.
func TestWithoutATokenTheDefaultsOfNginxAreRefused(t *testing.T) {
	for token, status := range map[string]int{"": 403, "secret": 200} {
		s, _ := newServer(t, new(servertest.Slot), withToken(token))
		r := httptest.NewRequest(http.MethodGet, wire.PathMode, nil)
		r.Host, r.Proto, r.ProtoMinor = "127.0.0.1:7077", "HTTP/1.0", 0
		r.Header.Set("Connection", "close")
		r.Header.Set("Authorization", "Bearer secret")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		require.Equal(t, status, w.Code)
		if status == 403 {
			require.Equal(t, "forwarded", problem(t, w).Reason)
		}
	}
}

func TestARebindingPageReachesNothing(t *testing.T) {
	s, _ := newServer(t, untouchable(t))
	for _, path := range []string{wire.PathMode, wire.PathLive, wire.PathReady, wire.PathMetrics, wire.PathOpenAPI,
		wire.PathDocs, "/nothing"} {
		require.Equal(t, 403, ask(s.Handler(), "GET", path, "", "Host", "rebound.example:7077").Code, path)
	}
}

func TestOnlyTheSlotsOwnPagesMayAsk(t *testing.T) {
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7077}
	for _, c := range []struct {
		origin, host string
		allowed      bool
	}{
		{"http://127.0.0.1:7077", "127.0.0.1:7077", true},
		{"http://localhost:7077", "127.0.0.1:7077", true},
		{"http://[::1]:7077", "localhost:7077", true},
		{"https://localhost:7077", "localhost:7077", true},
		{"http://localhost:8080", "localhost:8080", true}, // through a forwarded port
		{"http://localhost", "localhost", true},
		{"http://localhost:3000", "127.0.0.1:7077", false},
		{"http://evil.example", "127.0.0.1:7077", false},
		{"http://evil.example:7077", "127.0.0.1:7077", false},
		{"http://127.0.0.1.evil.example:7077", "127.0.0.1:7077", false},
		{"null", "127.0.0.1:7077", false},
		{"file://", "127.0.0.1:7077", false},
		{"chrome-extension://abc", "127.0.0.1:7077", false},
		{"http://user@127.0.0.1:7077", "127.0.0.1:7077", false},
		{"http://127.0.0.1:7077/", "127.0.0.1:7077", false},
		{"127.0.0.1:7077", "127.0.0.1:7077", false},
		{"http://%zz", "127.0.0.1:7077", false},
	} {
		for _, token := range []string{"", "secret"} {
			s, _ := newServer(t, new(servertest.Slot), withToken(token))
			r := httptest.NewRequest(http.MethodGet, wire.PathMode, nil)
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
			r.Host = c.host
			r.Header.Set("Origin", c.origin)
			r.Header.Set("Authorization", "Bearer secret")
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			if c.allowed {
				require.Equal(t, 200, w.Code, c)
				continue
			}
			require.Equal(t, 403, w.Code, c)
			require.Equal(t, "origin", problem(t, w).Reason)
		}
	}
	s, _ := newServer(t, untouchable(t))
	w := ask(s.Handler(), "GET", wire.PathMode, "", "Origin", "http://127.0.0.1:7077", "Origin", "http://evil.example")
	require.Equal(t, 403, w.Code, "of several origins each counts")
	require.Contains(t, problem(t, w).Hint, "programs, which send no Origin header, are served")
}

func TestBehindAProxyTheOriginIsThatOfTheRequest(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot), withToken("secret"))
	for origin, status := range map[string]int{"https://mem.example.com": 200, "https://mem.example.com:443": 200,
		"http://mem.example.com":       200,
		"https://mem.example.com:8443": 403, "https://evil.example.com": 403} {
		w := ask(s.Handler(), "GET", wire.PathMode, "", "Host", "mem.example.com", "Origin", origin, "Authorization",
			"Bearer secret")
		require.Equal(t, status, w.Code, origin)
	}
}

func TestWhatABrowserLoadsForAnotherPageIsRefused(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot))
	for site, allowed := range map[string]bool{"same-origin": true, "none": true, "cross-site": false,
		"same-site": false, "of-tomorrow": false} {
		require.Equal(t, allowed, ask(s.Handler(), "GET", wire.PathHealth, "", "Sec-Fetch-Site", site).Code == 200,
			site)
	}
	require.Equal(t, 200, ask(s.Handler(), "GET", wire.PathDocs, "", "Sec-Fetch-Site", "cross-site").Code,
		"a link to the page may be followed")
}

func TestAFormCannotPost(t *testing.T) {
	s, _ := newServer(t, untouchable(t))
	for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded",
		"multipart/form-data; boundary=x", "application/json-patch+json",
		"text/plain; application/json", "application/json; charset=latin1", "application", ";"} {
		for _, path := range []string{wire.PathEvents, wire.PathEventsBatch, wire.PathScopesReset, wire.PathSwap} {
			w := ask(s.Handler(), "POST", path, anEvent, "Content-Type", "", "Content-Type", media)
			require.Equal(t, 415, w.Code, media)
			e := problem(t, w)
			require.Equal(t, abi.CodeInvalidArgument, e.Code)
			require.Equal(t, "content_type", e.Reason)
		}
	}
	require.Equal(t, 415, ask(s.Handler(), "POST", wire.PathEvents, anEvent, "Content-Encoding", "gzip").Code)
	require.Equal(t, 405, ask(s.Handler(), "OPTIONS", wire.PathEvents, "").Code, "a preflight gets nothing")
}

func TestJSONMayNameItsCharset(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot))
	for _, media := range []string{"application/json", "application/json; charset=utf-8",
		"Application/JSON;charset=UTF-8"} {
		require.Equal(t, 200, ask(s.Handler(), "POST", wire.PathEvents, anEvent, "Content-Type", "", "Content-Type",
			media).Code, media)
	}
}

func TestWithATokenEveryoneShowsIt(t *testing.T) {
	closed, _ := newServer(t, untouchable(t), withToken("s3cret+/="))
	for _, c := range []struct{ name, header string }{
		{"none", ""}, {"wrong", "Bearer s3cret"}, {"longer", "Bearer s3cret+/=="}, {"no scheme", "s3cret+/="},
		{"basic", "Basic s3cret+/="}, {"empty", "Bearer "}, {"case", "Bearer S3CRET+/="},
	} {
		for _, path := range []string{wire.PathEvents, wire.PathHealth, wire.PathMetrics, wire.PathOpenAPI,
			wire.PathDocs, "/nothing", "/healthz/", "//healthz"} {
			method := "GET"
			if path == wire.PathEvents {
				method = "POST"
			}
			w := ask(closed.Handler(), method, path, anEvent, "Authorization", c.header)
			require.Equal(t, 401, w.Code, "%s %s", c.name, path)
			e := problem(t, w)
			require.Equal(t, abi.CodeUnauthenticated, e.Code)
			require.Equal(t, `Bearer realm="memhost"`, w.Header().Get("WWW-Authenticate"))
			require.NotContains(t, w.Body.String(), "s3cret")
		}
	}
	open, log := newServer(t, new(servertest.Slot), withToken("s3cret+/="))
	for _, header := range []string{"Bearer s3cret+/=", "bearer s3cret+/=", "Bearer  s3cret+/="} {
		require.Equal(t, 200, ask(open.Handler(), "POST", wire.PathEvents, anEvent, "Authorization", header).Code,
			header)
	}
	for _, path := range []string{wire.PathLive, wire.PathReady} {
		require.Equal(t, 200, ask(open.Handler(), "GET", path, "").Code, path)
	}
	require.Equal(t, 200, ask(open.Handler(), "GET", wire.PathMode, "", "Host", "mem.example.com", "Authorization",
		"Bearer s3cret+/=").Code, "under any name")
	require.NotContains(t, log.String(), "s3cret")
	require.NotContains(t, log.String(), "e-1", "bodies are not logged")
}

func TestOffLoopbackATokenIsRequired(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:7077", ":7077", "[::]:7077", "192.168.1.7:7077", "mem.example.com:80",
		"localhost.evil.example:80"} {
		_, err := server.New(server.Options{Slot: new(servertest.Slot), Listen: listen})
		e := abi.AsError(err)
		require.Equal(t, abi.CodeInvalidArgument, e.Code, listen)
		require.Equal(t, server.ReasonTokenRequired, e.Reason)
		require.Contains(t, e.Hint, "MEMHOST_TOKEN")
		require.Contains(t, e.Hint, "127.0.0.1")
		_, err = server.New(server.Options{Slot: new(servertest.Slot), Listen: listen, Token: "sixteen-letters."})
		require.NoError(t, err)
	}
	for _, listen := range []string{"", "127.0.0.1:0", "localhost:7077", "[::1]:7077", "127.3.2.1:80"} {
		_, err := server.New(server.Options{Slot: new(servertest.Slot), Listen: listen})
		require.NoError(t, err, listen)
	}
}

func TestHostileGuessOfAShortTokenOffLoopback(t *testing.T) {
	for _, token := range []string{"x", "fifteen-letters"} {
		_, err := server.New(server.Options{Slot: new(servertest.Slot), Listen: "0.0.0.0:7077", Token: token})
		for _, err := range []error{err, server.CheckListen("0.0.0.0:7077", token)} {
			e := abi.AsError(err)
			require.Equal(t, abi.CodeInvalidArgument, e.Code)
			require.Equal(t, server.ReasonTokenRequired, e.Reason)
			require.Contains(t, e.Message, "want at least 16")
			require.Contains(t, e.Hint, "openssl rand -hex 32")
		}
		require.NoError(t, server.CheckListen("127.0.0.1:7077", token))
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	for name, o := range map[string]server.Options{
		"no slot":             {},
		"no port":             {Slot: new(servertest.Slot), Listen: "127.0.0.1"},
		"a token of two":      {Slot: new(servertest.Slot), Token: "a b"},
		"a token with a line": {Slot: new(servertest.Slot), Token: "a\n"},
		"a token of nothing":  {Slot: new(servertest.Slot), Token: "="},
	} {
		_, err := server.New(o)
		require.ErrorIs(t, err, &abi.Error{Code: abi.CodeInvalidArgument}, name)
	}
}

func TestMountsStandBehindTheSameChecks(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot), withToken("secret"), func(o *server.Options) {
		o.Mounts = map[string]http.Handler{"/mcp": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(r.URL.Path))
		})}
	})
	require.Equal(t, 401, ask(s.Handler(), "POST", "/mcp", "").Code)
	require.Equal(t, 403, ask(s.Handler(), "POST", "/mcp", "", "Origin", "http://evil.example", "Authorization",
		"Bearer secret").Code)
	require.Equal(t, "/mcp", ask(s.Handler(), "POST", "/mcp", "", "Authorization", "Bearer secret").Body.String())
	require.Equal(t, "/mcp/x", ask(s.Handler(), "DELETE", "/mcp/x", "", "Authorization", "Bearer secret").Body.String())
}
