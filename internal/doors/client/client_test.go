package client_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

func TestAddressesOfASlot(t *testing.T) {
	for _, c := range []struct{ base, want, complaint string }{
		{base: "127.0.0.1:7077", want: "http://127.0.0.1:7077"},
		{base: "localhost:7077", want: "http://localhost:7077"},
		{base: "localhost", want: "http://localhost:7077"},
		{base: "127.0.0.1", want: "http://127.0.0.1:7077"},
		{base: "[::1]", want: "http://[::1]:7077"},
		{base: "http://localhost", want: "http://localhost"},
		{base: "http://127.0.0.1:7077/", want: "http://127.0.0.1:7077"},
		{base: "https://mem.example.com/slot/", want: "https://mem.example.com/slot"},
		{base: "[::1]:7077", want: "http://[::1]:7077"},
		{base: "0.0.0.0:7077", want: "http://127.0.0.1:7077"},
		{base: "[::]:7077", want: "http://[::1]:7077"},
		{base: "http://0.0.0.0", want: "http://127.0.0.1"},
		{base: "", complaint: "names no host"},
		{base: ":7077", complaint: "names no host"},
		{base: "ftp://x", complaint: "neither http nor https"},
		{base: "http://u:p@x", complaint: "credentials"},
		{base: "http://x?a=b", complaint: "query"},
		{base: "http://x/#f", complaint: "fragment"},
		{base: "http://x:port", complaint: "no URL"},
		{base: "http://a b", complaint: "no URL"},
	} {
		t.Run(c.base, func(t *testing.T) {
			got, err := client.New(c.base, "")
			if c.complaint != "" {
				require.ErrorIs(t, err, &abi.Error{Code: abi.CodeInvalidArgument})
				require.ErrorContains(t, err, c.complaint)
				require.NotContains(t, err.Error(), "u:p")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got.Base())
		})
	}
	_, err := client.New("127.0.0.1:1", "a\nb")
	require.ErrorIs(t, err, &abi.Error{Code: abi.CodeInvalidArgument})
	require.NotContains(t, err.Error(), "a\nb")
}

func TestAnUntrustedCertificateIsToldAtOnce(t *testing.T) {
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.StartTLS()
	defer web.Close()
	c, err := client.New(web.URL, "")
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Capabilities(t.Context())
	e := abi.AsError(err)
	require.Equal(t, abi.CodeUnavailable, e.Code)
	require.Contains(t, e.Message, "does not trust the certificate")
	require.Contains(t, e.Hint, "SSL_CERT_FILE")
	require.Contains(t, e.Hint, "nothing was sent")
}

// at returns a client of a server that handles everything with h.
func at(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	c, err := client.New(web.URL, "secret")
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	c, err := client.New(l.Addr().String(), "")
	require.NoError(t, err)
	_, err = c.Health(context.Background())
	e := abi.AsError(err)
	require.Equal(t, abi.CodeUnavailable, e.Code)
	require.Equal(t, client.ReasonNoSlot, e.Reason)
	require.Equal(t, abi.OpHealth, e.Operation)
	require.Contains(t, e.Hint, "memhost run")
	require.True(t, e.Retryable)
}

func TestAnswersThatAreNotASlots(t *testing.T) {
	answer := func(status int, media, body string, headers ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	for _, c := range []struct {
		name   string
		h      http.HandlerFunc
		code   abi.Code
		reason string
		says   string
	}{
		{"a page instead of JSON", answer(200, "text/html", "<html>"), abi.CodeUnavailable, client.ReasonNotASlot,
			"text/html"},
		{"JSON that is cut short", answer(200, "application/json", `{"status":`), abi.CodeUnavailable,
			client.ReasonNotASlot, "not JSON"},
		{"JSON of another type", answer(200, "application/json", `{"status":7}`), abi.CodeUnavailable,
			client.ReasonNotASlot, "want a string"},
		{"no content", answer(204, "application/json", ""), abi.CodeUnavailable, client.ReasonNotASlot, "204"},
		{"a redirect", answer(302, "text/html", "", "Location", "http://elsewhere/"), abi.CodeUnavailable,
			client.ReasonNotASlot, "redirects are not followed"},
		{"a proxy's 502", answer(502, "text/html", "bad gateway"), abi.CodeUnavailable, client.ReasonNotASlot, "502"},
		{"a proxy's 401", answer(401, "text/html", ""), abi.CodeUnauthenticated, client.ReasonNotASlot, "401"},
		{"a proxy's 413", answer(413, "text/html", ""), abi.CodeTooLarge, client.ReasonNotASlot, "413"},
		{"a proxy's 504", answer(504, "", ""), abi.CodeTimeout, client.ReasonNotASlot, "504"},
		{"another server's 404", answer(404, "text/plain", ""), abi.CodeNotFound, client.ReasonNotASlot, "404"},
		{"a teapot", answer(418, "", ""), abi.CodeInvalidArgument, client.ReasonNotASlot, "418"},
		{"a problem of somebody else's", answer(400, "application/problem+json", `{"title":"x"}`),
			abi.CodeInvalidArgument, client.ReasonNotASlot, "400"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := at(t, c.h).Health(context.Background())
			e := abi.AsError(err)
			require.Equal(t, c.code, e.Code, e.Message)
			require.Equal(t, c.reason, e.Reason)
			require.Contains(t, e.Message, c.says)
			require.Equal(t, abi.OpHealth, e.Operation)
		})
	}
	_, err := at(t, answer(503, "text/html", "", "Retry-After", "7")).Health(context.Background())
	require.Equal(t, int64(7000), *abi.AsError(err).RetryAfterMS)
}

// A request is refused, and counts as an attempt if a slot watches its agents.
func TestAScopedTokenDoesNotAskForTheMode(t *testing.T) {
	c, err := client.New("127.0.0.1:1", wire.ScopedTokenPrefix+"e30.x")
	require.NoError(t, err)
	_, err = c.Mode(t.Context())
	require.Equal(t, abi.CodeDenied, abi.CodeOf(err), "without a connection: %v", err)
	require.Equal(t, "scoped_token", abi.AsError(err).Reason)
}

func TestTheTokenGoesNowhereElse(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	defer elsewhere.Close()
	c := at(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	_, err := c.RecordEvent(context.Background(), &abi.MemoryEvent{})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
}

func TestAProblemIsReadFieldByField(t *testing.T) {
	body := `{"type":"urn:memhost:error:rate_limited","title":"x","status":429,"detail":"slow down","code":"rate_limited","reason":"quota","message":"slow down",` +
		`"hint":"wait","retryable":true,"retry_after_ms":1500,"operation":"retrieve","route":"search","native":{"status":429,"body":"no"},"of_tomorrow":1}`
	_, err := at(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, body)
	}).Health(context.Background())
	ms, status := int64(1500), int64(429)
	require.Equal(t, &abi.Error{Code: abi.CodeRateLimited, Reason: "quota", Message: "slow down", Hint: "wait",
		Retryable: true, RetryAfterMS: &ms,
		Operation: abi.OpRetrieve, Route: "search", Native: &abi.NativeError{Status: &status, Body: "no"}}, err)
}

func TestTheConnectionBreaks(t *testing.T) {
	c := at(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "{")
		panic(http.ErrAbortHandler)
	})
	_, err := c.Retrieve(context.Background(), &abi.RetrieveRequest{})
	e := abi.AsError(err)
	require.Equal(t, abi.CodeUnavailable, e.Code)
	require.Equal(t, client.ReasonConnection, e.Reason)
	require.Contains(t, e.Hint, "safe")
}

func TestTheCallersContextEnds(t *testing.T) {
	reached := make(chan struct{}, 2)
	c := at(t, func(_ http.ResponseWriter, r *http.Request) {
		reached <- struct{}{}
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-reached; cancel() }()
	_, err := c.Health(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, &abi.Error{Code: abi.CodeTimeout})
	require.Equal(t, client.ReasonDeadline, abi.AsError(err).Reason)

	ctx, cancel = context.WithTimeout(context.Background(), 1)
	defer cancel()
	_, err = c.Health(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestAnAnswerThatIsTooLong(t *testing.T) {
	c := at(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		block := strings.Repeat(" ", 1<<20)
		for range 65 {
			if _, err := fmt.Fprint(w, block); err != nil {
				return
			}
		}
	})
	_, err := c.Health(context.Background())
	require.ErrorIs(t, err, &abi.Error{Code: abi.CodeTooLarge})
}

func TestLifeSigns(t *testing.T) {
	ctx := context.Background()
	slot := new(servertest.Slot)
	s, err := server.New(server.Options{Slot: slot, Token: "secret", Version: "1.2.3"})
	require.NoError(t, err)
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	c, err := client.New(web.URL, "") // neither needs a token
	require.NoError(t, err)
	defer c.Close()
	live, err := c.Healthz(ctx)
	require.NoError(t, err)
	require.Equal(t, "1.2.3", live.Version)
	require.NoError(t, c.Readyz(ctx))
	slot.Answer = func(context.Context, string, any) (any, error) {
		return nil, abi.NewError(abi.CodeUnavailable, "the slot is closed")
	}
	require.ErrorIs(t, c.Readyz(ctx), &abi.Error{Code: abi.CodeUnavailable})
	_, err = c.Manifest(ctx)
	require.ErrorIs(t, err, &abi.Error{Code: abi.CodeUnauthenticated})

	other := at(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"status":"ok"}`)
	})
	_, err = other.Healthz(ctx)
	require.Equal(t, client.ReasonNotASlot, abi.AsError(err).Reason)
}

// TestAnswersOfForeignJSONServersAreNoAnswers: an answer that lacks what the contract promises is not accepted as a
// slot's, whatever the request, and a receipt must be for the event that was sent.
func TestAnswersOfForeignJSONServersAreNoAnswers(t *testing.T) {
	ctx, event := context.Background(), &abi.MemoryEvent{EventID: "e1"}
	batch := &abi.EventBatch{Events: []abi.MemoryEvent{*event, {EventID: "e2"}}}
	asks := map[string]func(c *client.Client) error{
		"setup_scope":    func(c *client.Client) error { _, err := c.SetupScope(ctx, abi.MemoryScope{}); return err },
		"record_event":   func(c *client.Client) error { _, err := c.RecordEvent(ctx, event); return err },
		"record_events":  func(c *client.Client) error { _, err := c.RecordEvents(ctx, batch); return err },
		"retrieve":       func(c *client.Client) error { _, err := c.Retrieve(ctx, new(abi.RetrieveRequest)); return err },
		"format_context": func(c *client.Client) error { _, err := c.FormatContext(ctx, new(abi.FormatRequest)); return err },
		"reset_scope":    func(c *client.Client) error { _, err := c.ResetScope(ctx, abi.MemoryScope{}); return err },
		"health":         func(c *client.Client) error { _, err := c.Health(ctx); return err },
		"set_mode":       func(c *client.Client) error { _, err := c.SetMode(ctx, new(abi.AdapterMode)); return err },
		"mode":           func(c *client.Client) error { _, err := c.Mode(ctx); return err },
		"capabilities":   func(c *client.Client) error { _, err := c.Capabilities(ctx); return err },
		"manifest":       func(c *client.Client) error { _, err := c.Manifest(ctx); return err },
		"readiness":      func(c *client.Client) error { _, err := c.Readiness(ctx, new(abi.ReadinessRequest)); return err },
		"inventory":      func(c *client.Client) error { _, err := c.Inventory(ctx, new(abi.InventoryRequest)); return err },
		"provenance":     func(c *client.Client) error { _, err := c.Provenance(ctx, new(abi.ProvenanceRequest)); return err },
		"forget":         func(c *client.Client) error { _, err := c.Forget(ctx, new(abi.ForgetRequest)); return err },
		"events": func(c *client.Client) error {
			_, err := c.ListEvents(ctx, report.EventQuery{Scope: abi.MemoryScope{RunID: "r", PersonaID: "ann"}})
			return err
		},
		"scopes":  func(c *client.Client) error { _, err := c.ListScopes(ctx, report.ScopeQuery{}); return err },
		"healthz": func(c *client.Client) error { _, err := c.Healthz(ctx); return err },
		"readyz":  func(c *client.Client) error { return c.Readyz(ctx) },
		"archive": func(c *client.Client) error { _, err := c.ArchiveStats(ctx); return err },
	}
	for op, ask := range asks {
		for _, body := range []string{`{"ok":true}`, `{}`, `{"status":"ok"}`, `{"data":{"status":"committed"}}`} {
			t.Run(op+" "+body, func(t *testing.T) {
				err := ask(at(t, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprint(w, body)
				}))
				require.Error(t, err)
				require.Equal(t, client.ReasonNotASlot, abi.AsError(err).Reason)
			})
		}
	}
	whole := `{"event_id":"e1","status":%q,"native_ids":[],"native_ids_kind":"none","markers":[],"duplicate":false,"warnings":[],"latency_ms":1}`
	for body, says := range map[string]string{
		fmt.Sprintf(whole, "ok"): "none of the contract's",
		strings.Replace(fmt.Sprintf(whole, "committed"), "e1", "e7", 1):               `for event "e7", asked for "e1"`,
		strings.Replace(fmt.Sprintf(whole, "committed"), `"duplicate":false,`, "", 1): "without the field duplicate",
	} {
		_, err := at(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, body)
		}).RecordEvent(ctx, event)
		require.ErrorContains(t, err, says)
	}
}

func TestTheOtherOfHTTPAndHTTPSIsTold(t *testing.T) {
	plain, secure := httptest.NewServer(http.NotFoundHandler()), httptest.NewTLSServer(http.NotFoundHandler())
	defer plain.Close()
	defer secure.Close()
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	silent := silentTLS(t)
	for base, hint := range map[string]string{strings.Replace(plain.URL, "http:", "https:", 1): plain.URL,
		strings.Replace(secure.URL, "https:", "http:", 1): secure.URL, "http://" + silent: "https://" + silent} {
		c, err := client.New(base, "")
		require.NoError(t, err)
		_, err = c.Health(context.Background())
		require.Equal(t, client.ReasonNotASlot, abi.AsError(err).Reason, base)
		require.Contains(t, abi.AsError(err).Hint, "name it as "+hint)
		require.False(t, abi.AsError(err).Retryable)
		c.Close()
	}
}

// silentTLS returns the address of a server that silently closes a connection that does not start with a handshake.
func silentTLS(t *testing.T) string {
	secure := httptest.NewTLSServer(nil) // for its certificate
	config := secure.TLS.Clone()
	secure.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				first := make([]byte, 1)
				if _, err := io.ReadFull(conn, first); err != nil || first[0] != 22 {
					return
				}
				_ = tls.Server(&resumedConn{conn, bytes.NewReader(first)}, config).Handshake()
			}()
		}
	}()
	return l.Addr().String()
}

// resumedConn is a connection whose first bytes were already read.
type resumedConn struct {
	net.Conn
	read io.Reader
}

func (r *resumedConn) Read(p []byte) (int, error) { return io.MultiReader(r.read, r.Conn).Read(p) }
