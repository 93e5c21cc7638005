package sdk

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
)

func httpResponse(status int64, retryAfter string) *abi.HTTPResponse {
	head := &abi.HTTPResponse{Status: status}
	Put(&head.Headers, "retry-after", retryAfter)
	return head
}

func TestAFailureKeepsWhatTheBackendSaid(t *testing.T) {
	body := strings.Repeat("x", abi.NativeBodyLimit-1) + "\xff and more"
	e := Failure("search", httpResponse(429, "12"), []byte(body), "slow down")
	require.Equal(t, "rate_limited: search: the backend answered 429: slow down", e.Error())
	require.True(t, e.Retryable)
	require.Equal(t, "search", e.Route)
	require.Equal(t, int64(12000), *e.RetryAfterMS)
	require.Equal(t, int64(429), *e.Native.Status)
	require.Equal(t, strings.Repeat("x", abi.NativeBodyLimit-1)+"\uFFFD", e.Native.Body)

	e = Failure("search", httpResponse(500, ""), nil, "")
	require.Equal(t, "backend: search: the backend answered 500", e.Error())
	require.False(t, e.Retryable)
	require.Nil(t, e.RetryAfterMS)
}

func TestTheCodeOfAStatus(t *testing.T) {
	for status, want := range map[int64]abi.Code{
		400: abi.CodeInvalidArgument, 422: abi.CodeInvalidArgument, 401: abi.CodeUnauthenticated, 403: abi.CodeDenied,
		404: abi.CodeNotFound, 410: abi.CodeNotFound, 408: abi.CodeTimeout, 504: abi.CodeTimeout, 409: abi.CodeConflict,
		413: abi.CodeTooLarge, 429: abi.CodeRateLimited, 502: abi.CodeUnavailable, 503: abi.CodeUnavailable,
		301: abi.CodeBackend, 418: abi.CodeBackend, 500: abi.CodeBackend,
	} {
		require.Equal(t, want, CodeOfStatus(status), status)
	}
}

func TestRetryAfterIsWholeSeconds(t *testing.T) {
	for header, want := range map[string]int64{"0": 0, " 7 ": 7000, "86400": 86400000, "9999999999": 86400000} {
		require.Equal(t, want, *RetryAfter(httpResponse(429, header)), header)
	}
	for _, header := range []string{"", "-1", "1.5", "Wed, 21 Oct 2026 07:28:00 GMT", "99999999999999999999"} {
		require.Nil(t, RetryAfter(httpResponse(429, header)), header)
	}
}

func TestAnUnusableAnswer(t *testing.T) {
	e := Unusable("search", 200, []byte("<html>"), "is not JSON")
	require.Equal(t, "backend: search: the answer is not JSON", e.Error())
	require.Equal(t, ReasonUnusable, e.Reason)
	require.Equal(t, "<html>", e.Native.Body)
}

func TestTextsAreReadAndOtherValuesSkipped(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{`["a","b"]`, []string{"a", "b"}}, {`[]`, nil}, {`["a",1,null,{"b":[2]},""]`, []string{"a", ""}},
		{`"a"`, []string{"a"}}, {`""`, nil}, {`null`, nil}, {`{"a":1}`, nil},
	} {
		d := wirejson.DecodeBytes([]byte(c.in))
		got, err := ReadTexts(d)
		require.NoError(t, err)
		require.Equal(t, c.want, got, c.in)
		require.True(t, d.AtEnd(), c.in)
	}
	for _, in := range []string{`["a"`, `"a`, `[1`, `{`} {
		_, err := ReadTexts(wirejson.DecodeBytes([]byte(in)))
		require.Error(t, err, in)
	}
	text := "as it was"
	require.NoError(t, ReadText(wirejson.DecodeBytes([]byte(`7`)), &text))
	require.Equal(t, "as it was", text)
	require.NoError(t, ReadText(wirejson.DecodeBytes([]byte(`"new"`)), &text))
	require.Equal(t, "new", text)
}
