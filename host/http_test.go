package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/logs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const testSecret = "sk-very-secret-12345"

// backend is a test server that echoes requests.
func backend(t testing.TB) (*httptest.Server, *atomic.Int64) {
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

// netSlot is a probe with an origin and a secret.
func netSlot(t testing.TB, url string, o Options) *Slot {
	t.Helper()
	return netSlotOn(t, open(t, o), url)
}

func netSlotOn(t testing.TB, h *Host, url string) *Slot {
	t.Helper()
	return openSlot(t, h, ProviderConfig{Name: "probe", Module: probeModule,
		Block:   abi.Raw(fmt.Sprintf(`{"url":%q,"api_key":{"secret":"K"}}`, url)),
		Secrets: map[string]Secret{"K": {Value: func() (string, error) { return testSecret, nil }, Origin: url}}})
}

func TestNativeCallIsSentAndAccountedFor(t *testing.T) {
	server, _ := backend(t)
	s := netSlot(t, server.URL, Options{})
	r, err := s.Retrieve(context.Background(), ask("http item id=a/b q:x=1&2"))
	require.NoError(t, err)
	var said string
	require.NoError(t, json.Unmarshal(r.Raw.Calls[0].Body, &said))
	assert.Contains(t, said, "GET /items/a%2Fb?x=1%262")
	require.Len(t, r.Trace.IO, 1)
	io := r.Trace.IO[0]
	assert.Equal(t, "item", io.Route)
	assert.Equal(t, "read", io.Class)
	assert.EqualValues(t, 200, io.Status)
	assert.Positive(t, io.BytesIn)
	assert.Positive(t, r.Trace.BackendMS)
	w, err := s.RecordEvent(context.Background(), event("e", `http post body={"a":1}`))
	require.NoError(t, err)
	assert.Contains(t, w.Markers[0], `POST /post key= auth= body={"a":1}`)
	assert.EqualValues(t, len(`{"a":1}`), w.Trace.IO[0].BytesOut)
}

func TestSecretReachesItsHeaderAndNothingElse(t *testing.T) {
	server, _ := backend(t)
	var log logs.Buffer
	s := netSlot(t, server.URL, Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Trace})})
	var seen string
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Get("Authorization")
		w.Header().Set("X-Echo", seen)
		fmt.Fprintf(w, "you sent %s and %s", seen, r.Header.Get("Prefer"))
	})
	said := retrieved(t, s, "http get h:authorization={{secret:api_key}} h:prefer={{secret:api_key}}; "+
		"log "+testSecret)[0]
	assert.Equal(t, testSecret, seen)
	assert.NotContains(t, said, testSecret, "a backend that echoes it does not give it to the guest")
	assert.Contains(t, said, "and {{secret:api_key}}", "elsewhere it stays text")
	retrieved(t, s, "log "+strings.Repeat("x", logLine-len(testSecret)/2)+testSecret)
	assert.NotContains(t, log.String(), testSecret[:len(testSecret)/2], "a line that is cut inside a secret")
	_, err := s.Retrieve(context.Background(), ask("panic "+testSecret))
	assert.NotContains(t, string(abi.Marshal(abi.AsError(err))), testSecret)
	assert.NotContains(t, log.String(), testSecret)
	m, err := s.Manifest(context.Background())
	require.NoError(t, err)
	assert.NotContains(t, string(abi.Marshal(m)), testSecret)
}

func TestSecretIsBoundToItsOrigin(t *testing.T) {
	h := open(t, Options{})
	_, err := h.Open(context.Background(), ProviderConfig{Name: "probe", Module: probeModule,
		Block: abi.Raw(`{"url":"http://127.0.0.1:9","api_key":{"secret":"K"}}`),
		Secrets: map[string]Secret{"K": {Value: func() (string, error) {
			return testSecret, nil
		}, Origin: "http://127.0.0.1:10"}}})
	e := requireCode(t, err, abi.CodeInvalidArgument, "bound to http://127.0.0.1:10")
	assert.Contains(t, e.Hint, "or set secrets.K.origin to http://127.0.0.1:9 if")
	assert.NotContains(t, e.Error(), testSecret)
}

func TestNativeErrorsComeBackAsTheyAre(t *testing.T) {
	server, _ := backend(t)
	s := netSlot(t, server.URL, Options{Limits: Limits{BodyBytes: 64 << 10}})
	said := retrieved(t, s, "http get q:do=404; http get q:do=500; http get q:do=redirect")
	assert.Contains(t, said[0], `"status":404`)
	assert.Contains(t, said[0], `"empty":true`, "the manifest declares that this means nothing there")
	assert.Contains(t, said[1], `"status":500`)
	assert.NotContains(t, said[1], `"empty"`)
	assert.Contains(t, said[2], `"status":307`, "a redirect is returned, never followed")
	for do, code := range map[string]abi.Code{"big": abi.CodeTooLarge, "drop": abi.CodeUnavailable,
		"hang": abi.CodeTimeout} {
		ctx, cancel := context.WithCancel(context.Background())
		if do == "hang" {
			ctx, cancel = context.WithTimeout(ctx, time.Second)
		}
		_, err := s.Retrieve(ctx, ask("http get q:do="+do))
		cancel()
		e := requireCode(t, err, code)
		assert.Equal(t, "get", e.Route, do)
		if do == "hang" {
			assert.Contains(t, e.Hint, "did not answer in time")
		}
	}
	requireUsable(t, s, "x")
}

func TestOutageIsAnErrorAndNoEmptyResult(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	s := netSlot(t, "http://"+address, Options{})
	_, err = s.Retrieve(context.Background(), ask("http get"))
	requireCode(t, err, abi.CodeUnavailable, "cannot be reached", "is the backend running")
}

// What an operator should do depends on why the connection failed.
func TestAnUnreachedBackendSaysWhatToDo(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // its handshakes fail on purpose
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for _, c := range []struct{ name, url, says string }{
		{"a certificate of an authority that is not known", secure.URL, "SSL_CERT_FILE"},
		{"https where there is none", strings.Replace(plain.URL, "http:", "https:", 1), "http instead of https"},
	} {
		_, err := netSlot(t, c.url, Options{}).Retrieve(context.Background(), ask("http get"))
		requireCode(t, err, abi.CodeUnavailable, "cannot be reached", c.says)
	}
}

func TestPolicyLetsNothingElseOut(t *testing.T) {
	server, calls := backend(t)
	s := netSlot(t, server.URL, Options{})
	for command, c := range map[string]struct {
		code abi.Code
		says string
	}{
		"http gett":                         {abi.CodeDenied, `did you mean "get"`},
		"http item":                         {abi.CodeInvalidArgument, "params.id"},
		"http item id=..":                   {abi.CodeInvalidArgument, "would change the path"},
		"http remove id=1":                  {abi.CodeDenied, "class admin"},
		"http get h:host=evil":              {abi.CodeDenied, "host alone"},
		`http mcp_search body={"method":1}`: {abi.CodeDenied, "manifest wants"},
		`http mcp_search body={"method":"tools/call","params":{"name":"add"}}`: {abi.CodeDenied, "/params/name"},
	} {
		_, err := s.Retrieve(context.Background(), ask(command))
		requireCode(t, err, c.code, c.says)
	}
	assert.Zero(t, calls.Load(), "nothing left the host")
	_, err := s.NativeMutation(context.Background(),
		&abi.NativeMutation{Scope: testScope, Name: "http remove id=1", Reason: "r"})
	require.NoError(t, err)
	assert.EqualValues(t, 1, calls.Load(), "admin is for mutations")
}

func TestReadWithSideEffectsIsFlagged(t *testing.T) {
	server, _ := backend(t)
	s := netSlot(t, server.URL, Options{})
	r, err := s.Retrieve(context.Background(), ask("http peek; http peek; http get"))
	require.NoError(t, err)
	assert.Equal(t, []string{"peek: counts as an access"}, r.Trace.ReadSideEffects)
}

func TestAPluginThatDoesNotNameItsNativeOperationHasItsRoutes(t *testing.T) {
	server, _ := backend(t)
	s := netSlot(t, server.URL, Options{})
	r, err := s.Retrieve(context.Background(), ask("http peek; http get; http peek"))
	require.NoError(t, err)
	assert.Equal(t, "peek get", r.Trace.NativeOperation)
	r, err = s.Retrieve(context.Background(), ask("log nothing"))
	require.NoError(t, err)
	assert.Empty(t, r.Trace.NativeOperation, "the backend was not asked")
}

func TestLinkLocalAddressIsRefusedWhateverNamedIt(t *testing.T) {
	s := openSlot(t, open(t, Options{}), probeConfig(`{"url":"http://169.254.169.254"}`))
	_, err := s.Retrieve(context.Background(), ask("http get"))
	requireCode(t, err, abi.CodeDenied, "always refused")
	for _, url := range []string{"http://[fe80::1]", "http://0.0.0.0:1", "http://[::ffff:169.254.169.254]"} {
		s := openSlot(t, open(t, Options{}), probeConfig(fmt.Sprintf(`{"url":%q}`, url)))
		_, err := s.Retrieve(context.Background(), ask("http get"))
		requireCode(t, err, abi.CodeDenied)
	}
}

func TestAmbientProxyIsNotUsed(t *testing.T) {
	server, calls := backend(t)
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	s := netSlot(t, strings.Replace(server.URL, "127.0.0.1", "localhost", 1), Options{})
	retrieved(t, s, "http get")
	assert.EqualValues(t, 1, calls.Load())
}

// If a backend closes a connection after reading a second request on it, a read is sent twice, and the trace says so.
func TestTraceCountsWhatWasSent(t *testing.T) {
	var arrived atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if arrived.Add(1) == 2 {
			c, _, _ := w.(http.Hijacker).Hijack()
			_ = c.Close()
		}
	}))
	defer server.Close()
	s := netSlot(t, server.URL, Options{})
	r, err := s.Retrieve(context.Background(), ask("http get; http get; http get"))
	require.NoError(t, err)
	assert.EqualValues(t, 4, arrived.Load())
	require.Len(t, r.Trace.IO, 3)
	for i, retries := range []int64{0, 1, 0} {
		assert.Equal(t, retries, r.Trace.IO[i].Retries)
	}
}
