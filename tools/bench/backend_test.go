package main

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheSameCallsAreMadeDirectly(t *testing.T) {
	e, err := newEnv(true)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.end()) })
	var asked atomic.Int64
	b, err := e.serve(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %s %q %d", r.Method, r.URL.RequestURI(), r.Header.Get("X-Key"), text, asked.Add(1))
	}))
	require.NoError(t, err)
	c := e.client()
	first := []nativeCall{{method: "POST", uri: "/search?q=a", header: http.Header{"X-Key": {"k"}},
		body: []byte(`{"a":1}`)}, {method: "GET", uri: "/item"}}
	s, err := b.note(func() error { return c.again(t.Context(), b.url, first, nil) })
	require.NoError(t, err)
	require.Len(t, s.calls, 2)
	assert.Equal(t, "/search?q=a", s.calls[0].uri)
	assert.Equal(t, `{"a":1}`, string(s.calls[0].body))
	assert.Equal(t, "k", s.calls[0].header.Get("X-Key"))
	b.play(s, 0)
	require.NoError(t, c.again(t.Context(), b.url, s.calls, nil))
	assert.EqualValues(t, 2, asked.Load(), "what was noted is answered without the fake")
	require.NoError(t, c.again(t.Context(), b.url, []nativeCall{{method: "GET", uri: "/other"}}, nil))
	assert.EqualValues(t, 3, asked.Load(), "anything else is the fake's")

	_, err = b.note(func() error { return nil })
	require.Error(t, err, "an operation without a native call cannot be put beside its calls")
}

func TestAnswersAreParsed(t *testing.T) {
	for text, fine := range map[string]bool{`{"a":[1]}`: true, "": true, "event: message\ndata: {\"a\":1}\n\n": true,
		"event: message\ndata: {\n\n": false, "POST": false, `{"data: ":`: false} {
		if err := parse([]byte(text)); fine {
			assert.NoError(t, err, text)
		} else {
			assert.Error(t, err, text)
		}
	}
}
