package host_test

import (
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
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/logs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNativeCallIsSentAndAccountedFor(t *testing.T) {
	server, _ := host.Backend(t)
	s := host.NetSlot(t, server.URL, host.Options{})
	r, err := s.Retrieve(context.Background(), host.Ask("http item id=a/b q:x=1&2"))
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
	w, err := s.RecordEvent(context.Background(), host.Event("e", `http post body={"a":1}`))
	require.NoError(t, err)
	assert.Contains(t, w.Markers[0], `POST /post key= auth= body={"a":1}`)
	assert.EqualValues(t, len(`{"a":1}`), w.Trace.IO[0].BytesOut)
}

func TestSecretReachesItsHeaderAndNothingElse(t *testing.T) {
	server, _ := host.Backend(t)
	var log logs.Buffer
	s := host.NetSlot(t, server.URL, host.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Trace})})
	var seen string
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Get("Authorization")
		w.Header().Set("X-Echo", seen)
		fmt.Fprintf(w, "you sent %s and %s", seen, r.Header.Get("Prefer"))
	})
	said := host.Retrieved(t, s, "http get h:authorization={{secret:api_key}} h:prefer={{secret:api_key}}; "+
		"log "+host.TestSecret)[0]
	assert.Equal(t, host.TestSecret, seen)
	assert.NotContains(t, said, host.TestSecret, "a backend that echoes it does not give it to the guest")
	assert.Contains(t, said, "and {{secret:api_key}}", "elsewhere it stays text")
	host.Retrieved(t, s, "log "+strings.Repeat("x", 8<<10-len(host.TestSecret)/2)+host.TestSecret)
	assert.NotContains(t, log.String(), host.TestSecret[:len(host.TestSecret)/2], "a line that is cut inside a secret")
	_, err := s.Retrieve(context.Background(), host.Ask("panic "+host.TestSecret))
	assert.NotContains(t, string(abi.Marshal(abi.AsError(err))), host.TestSecret)
	assert.NotContains(t, log.String(), host.TestSecret)
	m, err := s.Manifest(context.Background())
	require.NoError(t, err)
	assert.NotContains(t, string(abi.Marshal(m)), host.TestSecret)
}

func TestSecretIsBoundToItsOrigin(t *testing.T) {
	h := host.Open(t, host.Options{})
	_, err := h.Open(context.Background(), host.ProviderConfig{Name: "probe", Module: host.ProbeModule,
		Block: abi.Raw(`{"url":"http://127.0.0.1:9","api_key":{"secret":"K"}}`),
		Secrets: map[string]host.Secret{"K": {Value: func() (string, error) {
			return host.TestSecret, nil
		}, Origin: "http://127.0.0.1:10"}}})
	e := host.RequireCode(t, err, abi.CodeInvalidArgument, "bound to http://127.0.0.1:10")
	assert.Contains(t, e.Hint, "or set secrets.K.origin to http://127.0.0.1:9 if")
	assert.NotContains(t, e.Error(), host.TestSecret)
}

func TestNativeErrorsComeBackAsTheyAre(t *testing.T) {
	server, _ := host.Backend(t)
	s := host.NetSlot(t, server.URL, host.Options{Limits: host.Limits{BodyBytes: 64 << 10}})
	said := host.Retrieved(t, s, "http get q:do=404; http get q:do=500; http get q:do=redirect")
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
		_, err := s.Retrieve(ctx, host.Ask("http get q:do="+do))
		cancel()
		e := host.RequireCode(t, err, code)
		assert.Equal(t, "get", e.Route, do)
		if do == "hang" {
			assert.Contains(t, e.Hint, "did not answer in time")
		}
	}
	host.RequireUsable(t, s, "x")
}

func TestOutageIsAnErrorAndNoEmptyResult(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	s := host.NetSlot(t, "http://"+address, host.Options{})
	_, err = s.Retrieve(context.Background(), host.Ask("http get"))
	host.RequireCode(t, err, abi.CodeUnavailable, "cannot be reached", "is the backend running")
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
		_, err := host.NetSlot(t, c.url, host.Options{}).Retrieve(context.Background(), host.Ask("http get"))
		host.RequireCode(t, err, abi.CodeUnavailable, "cannot be reached", c.says)
	}
}

func TestPolicyLetsNothingElseOut(t *testing.T) {
	server, calls := host.Backend(t)
	s := host.NetSlot(t, server.URL, host.Options{})
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
		_, err := s.Retrieve(context.Background(), host.Ask(command))
		host.RequireCode(t, err, c.code, c.says)
	}
	assert.Zero(t, calls.Load(), "nothing left the host")
	_, err := s.NativeMutation(context.Background(),
		&abi.NativeMutation{Scope: host.TestScope, Name: "http remove id=1", Reason: "r"})
	require.NoError(t, err)
	assert.EqualValues(t, 1, calls.Load(), "admin is for mutations")
}

func TestReadWithSideEffectsIsFlagged(t *testing.T) {
	server, _ := host.Backend(t)
	s := host.NetSlot(t, server.URL, host.Options{})
	r, err := s.Retrieve(context.Background(), host.Ask("http peek; http peek; http get"))
	require.NoError(t, err)
	assert.Equal(t, []string{"peek: counts as an access"}, r.Trace.ReadSideEffects)
}

func TestAPluginThatDoesNotNameItsNativeOperationHasItsRoutes(t *testing.T) {
	server, _ := host.Backend(t)
	s := host.NetSlot(t, server.URL, host.Options{})
	r, err := s.Retrieve(context.Background(), host.Ask("http peek; http get; http peek"))
	require.NoError(t, err)
	assert.Equal(t, "peek get", r.Trace.NativeOperation)
	r, err = s.Retrieve(context.Background(), host.Ask("log nothing"))
	require.NoError(t, err)
	assert.Empty(t, r.Trace.NativeOperation, "the backend was not asked")
}

func TestLinkLocalAddressIsRefusedWhateverNamedIt(t *testing.T) {
	s := host.OpenSlot(t, host.Open(t, host.Options{}), host.ProbeConfig(`{"url":"http://169.254.169.254"}`))
	_, err := s.Retrieve(context.Background(), host.Ask("http get"))
	host.RequireCode(t, err, abi.CodeDenied, "always refused")
	for _, url := range []string{"http://[fe80::1]", "http://0.0.0.0:1", "http://[::ffff:169.254.169.254]"} {
		s := host.OpenSlot(t, host.Open(t, host.Options{}), host.ProbeConfig(fmt.Sprintf(`{"url":%q}`, url)))
		_, err := s.Retrieve(context.Background(), host.Ask("http get"))
		host.RequireCode(t, err, abi.CodeDenied)
	}
}

func TestAmbientProxyIsNotUsed(t *testing.T) {
	server, calls := host.Backend(t)
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	s := host.NetSlot(t, strings.Replace(server.URL, "127.0.0.1", "localhost", 1), host.Options{})
	host.Retrieved(t, s, "http get")
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
	s := host.NetSlot(t, server.URL, host.Options{})
	r, err := s.Retrieve(context.Background(), host.Ask("http get; http get; http get"))
	require.NoError(t, err)
	assert.EqualValues(t, 4, arrived.Load())
	require.Len(t, r.Trace.IO, 3)
	for i, retries := range []int64{0, 1, 0} {
		assert.Equal(t, retries, r.Trace.IO[i].Retries)
	}
}
