package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

func unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// failing is a slot that answers everything with err.
func failing(err error) *servertest.Slot {
	return &servertest.Slot{Answer: func(context.Context, string, any) (any, error) { return nil, err }}
}

func TestEveryCodeHasItsStatus(t *testing.T) {
	native := func(status int64) *abi.NativeError { return &abi.NativeError{Status: &status, Body: "no"} }
	for _, c := range []struct {
		err    *abi.Error
		status int
	}{
		{&abi.Error{Code: abi.CodeInvalidArgument}, 400},
		{&abi.Error{Code: abi.CodeUnauthenticated}, 401},
		{&abi.Error{Code: abi.CodeUnauthenticated, Native: native(401)}, 502},
		{&abi.Error{Code: abi.CodeUnauthenticated, Route: "search"}, 502},
		{&abi.Error{Code: abi.CodeDenied}, 403},
		{&abi.Error{Code: abi.CodeDenied, Native: native(403)}, 502},
		{&abi.Error{Code: abi.CodeDenied, Native: &abi.NativeError{Body: "what a guest said"}}, 403},
		{&abi.Error{Code: abi.CodeNotFound}, 404},
		{&abi.Error{Code: abi.CodeConflict}, 409},
		{&abi.Error{Code: abi.CodeReadOnly}, 409},
		{&abi.Error{Code: abi.CodeUnsupported}, 501},
		{&abi.Error{Code: abi.CodeTooLarge}, 413},
		{&abi.Error{Code: abi.CodeRateLimited}, 429},
		{&abi.Error{Code: abi.CodeUnavailable}, 503},
		{&abi.Error{Code: abi.CodeTimeout}, 504},
		{&abi.Error{Code: abi.CodeBackend, Native: native(500)}, 502},
		{&abi.Error{Code: abi.CodeIsolationBreach}, 502},
		{&abi.Error{Code: abi.CodeInternal}, 500},
		{&abi.Error{Code: "of_tomorrow"}, 500},
	} {
		t.Run(fmt.Sprintf("%s to %d", c.err.Code, c.status), func(t *testing.T) {
			c.err.Message, c.err.Hint, c.err.Operation = "what \"happened\"\n<b>", "what to do", abi.OpRecordEvent
			s, _ := newServer(t, failing(c.err))
			w := ask(s.Handler(), "POST", wire.PathEvents, anEvent)
			require.Equal(t, c.status, w.Code)
			require.Equal(t, c.err, problem(t, w))
			require.Equal(t, c.status == 401, w.Header().Get("WWW-Authenticate") != "")
		})
	}
	require.Len(t, abi.Codes(), 14, "a new code wants a line above")
}

func TestRetryAfterIsInWholeSecondsRoundedUp(t *testing.T) {
	for ms, want := range map[int64]string{0: "0", 1: "1", 1000: "1", 1001: "2", 90_000: "90", -5: "0"} {
		e := abi.NewError(abi.CodeRateLimited, "slow down")
		e.RetryAfterMS = &ms
		s, _ := newServer(t, failing(e))
		w := ask(s.Handler(), "GET", wire.PathHealth, "")
		require.Equal(t, want, w.Header().Get("Retry-After"))
		require.Equal(t, ms, *problem(t, w).RetryAfterMS)
	}
}

func TestTheOperationIsNamedAndASharedErrorStaysAsItIs(t *testing.T) {
	shared := abi.NewError(abi.CodeConflict, "x")
	s, _ := newServer(t, failing(fmt.Errorf("wrapped: %w", shared)))
	require.Equal(t, abi.OpRetrieve, problem(t, ask(s.Handler(), "POST", wire.PathRetrieve, `{}`)).Operation)
	require.Empty(t, shared.Operation)
}

func TestAForeignErrorIsLoggedAndNotTold(t *testing.T) {
	s, log := newServer(t, failing(errors.New("password hunter2")))
	w := ask(s.Handler(), "GET", wire.PathHealth, "", "X-Request-Id", "req-7")
	require.Equal(t, 500, w.Code)
	e := problem(t, w)
	require.Equal(t, abi.CodeInternal, e.Code)
	require.NotContains(t, w.Body.String(), "hunter2")
	require.Contains(t, e.Hint, "req-7")
	require.Contains(t, log.String(), "hunter2")
}

func TestAPanicIsLoggedWithItsStackAndNotTold(t *testing.T) {
	s, log := newServer(t, &servertest.Slot{Answer: func(context.Context, string, any) (any, error) {
		panic("hunter2")
	}})
	w := ask(s.Handler(), "POST", wire.PathRetrieve, `{}`)
	require.Equal(t, 500, w.Code)
	require.Equal(t, abi.CodeInternal, problem(t, w).Code)
	require.NotContains(t, w.Body.String(), "hunter2")
	require.Contains(t, log.String(), "hunter2")
	require.Contains(t, log.String(), "problem_test.go", "the stack is missing")
}

func TestAnAnswerThatHadBegunIsCutOff(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot), func(o *server.Options) {
		o.Mounts = map[string]http.Handler{
			"/begun": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte("half"))
				panic("x")
			}),
			"/abort": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		}
	})
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	for _, path := range []string{"/begun", "/abort"} {
		r, err := web.Client().Get(web.URL + path)
		if err == nil {
			_, err = io.ReadAll(r.Body)
			_ = r.Body.Close()
		}
		require.Error(t, err, path)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot))
	for _, path := range []string{"/v1", "/v1/event", "/v1/events/", "/V1/events", "/v1/%65vents/x"} {
		w := ask(s.Handler(), "GET", path, "")
		require.Equal(t, 404, w.Code, path)
		require.Equal(t, abi.CodeNotFound, problem(t, w).Code)
	}
	require.Contains(t, problem(t, ask(s.Handler(), "GET", "/v1/manifst", "")).Hint, "/v1/manifest?")
	for _, c := range []struct{ method, path, allow string }{
		{"GET", wire.PathEvents, "POST"}, {"DELETE", wire.PathMode, "GET, PUT"}, {"POST", wire.PathHealth, "GET"},
		{"POST", wire.PathMetrics, "GET"}, {"POST", wire.PathDocs, "GET"}, {"OPTIONS", wire.PathEvents, "POST"},
		{"BREW", wire.PathEvents, "POST"},
	} {
		w := ask(s.Handler(), c.method, c.path, "")
		require.Equal(t, 405, w.Code, c.path)
		require.Equal(t, c.allow, w.Header().Get("Allow"))
		e := problem(t, w)
		require.Equal(t, abi.CodeInvalidArgument, e.Code)
		require.Equal(t, "method", e.Reason)
	}
	require.Equal(t, 404, ask(s.Handler(), "BREW", "/coffee", "").Code)
}

func TestHeadAnswersAsGetDoes(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot))
	for _, path := range []string{wire.PathLive, wire.PathReady, wire.PathHealth, wire.PathOpenAPI, wire.PathDocs,
		wire.PathMetrics} {
		require.Equal(t, http.StatusOK, ask(s.Handler(), "HEAD", path, "").Code, path)
	}
}
