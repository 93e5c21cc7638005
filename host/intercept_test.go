package host_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInterceptorSeesACallAndDecidesWhatComesOfIt(t *testing.T) {
	server, calls := host.Backend(t)
	var seen []host.NativeCall
	answer := func(next func(context.Context) (host.NativeAnswer, error)) (host.NativeAnswer, error) {
		return next(context.Background())
	}
	s := host.NetSlot(t, server.URL, host.Options{Intercept: func(_ context.Context, c host.NativeCall,
		next func(context.Context) (host.NativeAnswer, error)) (host.NativeAnswer, error) {
		seen = append(seen, c)
		return answer(next)
	}})
	host.Retrieved(t, s, "http item id=a/b h:x-api-key={{secret:api_key}} q:x=1")
	require.Len(t, seen, 1)
	assert.Equal(t, host.NativeCall{Provider: "probe", Operation: abi.OpRetrieve, Scope: host.TestScope, Generation: 1,
		Route: "item", Origin: "api", Protocol: "http",
		Class: abi.ClassRead, Method: "GET", URL: server.URL + "/items/a%2Fb?x=1", Body: []byte{}}, seen[0],
		"the secret is in a header, which is not shown")

	answer = func(func(context.Context) (host.NativeAnswer, error)) (host.NativeAnswer, error) {
		return host.NativeAnswer{Status: 429, Header: map[string][]string{"Retry-After": {"7"}}, Body: []byte("slow down")},
			nil
	}
	said := host.Retrieved(t, s, "http get")[0]
	assert.Contains(t, said, `"status":429`)
	assert.Contains(t, said, `"retry-after":"7"`)
	assert.Contains(t, said, "slow down")

	answer = func(func(context.Context) (host.NativeAnswer, error)) (host.NativeAnswer, error) {
		return host.NativeAnswer{}, errors.New("cut off")
	}
	_, err := s.Retrieve(context.Background(), host.Ask("http get"))
	host.RequireCode(t, err, abi.CodeUnavailable, "cut off")
	assert.EqualValues(t, 1, calls.Load(), "nothing was sent that the interceptor kept")

	answer = func(next func(context.Context) (host.NativeAnswer, error)) (host.NativeAnswer, error) {
		if _, err := next(context.Background()); err != nil {
			return host.NativeAnswer{}, err
		}
		return next(context.Background())
	}
	assert.Contains(t, host.RunCommands(t, s, "e", `http post body={"a":1}`)[0], `body={"a":1}`,
		"a call can be made again, its body too")
	assert.EqualValues(t, 3, calls.Load())
}

func TestInterceptorNeverSeesWhatTheHostRefuses(t *testing.T) {
	server, _ := host.Backend(t)
	var seen atomic.Int64
	s := host.NetSlot(t, server.URL, host.Options{Intercept: func(ctx context.Context, _ host.NativeCall,
		next func(context.Context) (host.NativeAnswer, error)) (host.NativeAnswer, error) {
		seen.Add(1)
		return next(ctx)
	}})
	_, err := s.SetMode(context.Background(), &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	_, err = s.Retrieve(context.Background(), host.Ask("http post body={}"))
	host.RequireCode(t, err, abi.CodeReadOnly)
	assert.Zero(t, seen.Load())
}
