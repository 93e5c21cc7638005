package server_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// seeds are bodies that reach every branch of the decoders.
func seeds(f *testing.F) {
	for _, s := range []string{"", "null", "{}", "[]", anEvent, anEvent[:50], `{"events":[` + anEvent +
		`,{"event_id":"x","y":1},7]}`, `{"events":null}`, `{"events":[{"event_id":7}]}`,
		`{"backend":"mem0","config":{"a":[1]},"plugin":null}`, "{\"event_id\":\"\xff\"}", `{"a\u0000":1}`,
		`{"events":[`, "[[[[[[", `{"event_id":"\ud800"}`, `{"events":[],"events":[{}]}`} {
		f.Add([]byte(s))
	}
}

// fuzzRoute checks that any body is accepted or properly rejected.
func fuzzRoute(f *testing.F, path string) {
	seeds(f)
	s, _ := newServer(f, &servertest.Slot{Answer: recorder(new([][]string)).Answer})
	f.Fuzz(func(t *testing.T, body []byte) {
		w := ask(s.Handler(), "POST", path, string(body))
		switch w.Code {
		case 200:
			require.True(t, abi.ValidJSON(w.Body.Bytes()), "%q", w.Body)
		case 400, 501:
			problem(t, w)
		default:
			t.Fatalf("status %d for %q: %s", w.Code, body, w.Body)
		}
	})
}

func FuzzEvents(f *testing.F) { fuzzRoute(f, wire.PathEvents) }
func FuzzBatch(f *testing.F)  { fuzzRoute(f, wire.PathEventsBatch) }
func FuzzSwap(f *testing.F)   { fuzzRoute(f, wire.PathSwap) }
