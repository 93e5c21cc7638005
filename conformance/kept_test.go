package conformance

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/examples/tiny"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/engine/wasmbin"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/internal/test/testguest"
)

// TestATurnThatIsAcceptedUnderAFaultAndLostIsFound: a receipt that warns does not excuse it, nor does a route that the
// manifest calls read. A provider that keeps the turn itself is plugins/conditions/bm25 with an embedder.
func TestATurnThatIsAcceptedUnderAFaultAndLostIsFound(t *testing.T) {
	for _, class := range []abi.Class{abi.ClassWrite, abi.ClassRead} {
		for _, warning := range []string{"", "embedder_failed: words find the turn"} {
			t.Run(fmt.Sprintf("%s, warning %q", class, warning), func(t *testing.T) {
				t.Parallel()
				report, err := Run(t.Context(), reference(t, class),
					Options{CacheDir: testcache.Dir(), Clauses: []int{7}, guest: accepts(warning)})
				require.NoError(t, err)
				for _, p := range report.Clauses[0].Parts {
					if p.Name == abi.OpRecordEvent {
						assert.Equal(t, Fail, p.Verdict, p.Reason)
						assert.Contains(t, p.Reason, "record_event under 400 came to the receipt committed")
					}
				}
			})
		}
	}
}

// TestATurnThatLeavesInReadsAndIsLostIsFound: clause 1 takes reads alone for right only if the turn is there.
func TestATurnThatLeavesInReadsAndIsLostIsFound(t *testing.T) {
	asks := func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
		if e.Op != abi.OpRecordEvent {
			return enter(e)
		}
		turn := new(abi.MemoryEvent)
		if err := abi.Unmarshal(e.Body, turn); err != nil {
			return nil, false, err
		}
		question := *e
		question.Op = abi.OpRetrieve
		question.Body = abi.Marshal(&abi.RetrieveRequest{Query: "cat", Scope: e.Scope, SessionID: turn.SessionID})
		if _, isError, err := enter(&question); err != nil || isError {
			return nil, false, fmt.Errorf("the question failed: %w", err)
		}
		r := inventedReceipt(turn)
		r.Trace = &abi.Trace{BackendName: "tiny", Consistency: "committed"}
		return abi.Marshal(r), false, nil
	}
	report, err := Run(t.Context(), reference(t, abi.ClassRead), Options{CacheDir: testcache.Dir(), Clauses: []int{1}, guest: asks})
	require.NoError(t, err)
	var said []string
	for _, p := range report.Clauses[0].Parts {
		if p.Verdict == Fail {
			said = append(said, p.Name+": "+p.Reason)
		}
	}
	assert.Contains(t, strings.Join(said, "\n"), "sent: committed, and the host saw reads only")
}

// reference is the right provider, with what a turn needs by routes of a class.
func reference(t *testing.T, class abi.Class) Target {
	t.Helper()
	module, err := host.Inspect(testguest.Wrong(), host.Limits{})
	require.NoError(t, err)
	manifest := *module.Manifest
	manifest.Routes = slices.Clone(manifest.Routes)
	for i := range manifest.Routes {
		if name := manifest.Routes[i].Name; name == "add" || name == "create" {
			manifest.Routes[i].Class = class
		}
	}
	wasm, err := wasmbin.SetCustom(testguest.Wrong(), abi.ManifestSection, abi.Marshal(&manifest))
	require.NoError(t, err)
	server := httptest.NewServer(&tiny.Backend{})
	t.Cleanup(server.Close)
	return Target{Provider: host.ProviderConfig{Name: "wrong", Module: wasm,
		Block: abi.Raw(fmt.Sprintf(`{"url":%q}`, server.URL))}}
}

// accepts answers a turn that could not be recorded with a receipt.
func accepts(warning string) host.GuestInterceptor {
	return func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
		answer, isError, err := enter(e)
		if e.Op != abi.OpRecordEvent || !isError || err != nil {
			return answer, isError, err
		}
		turn := new(abi.MemoryEvent)
		if err := abi.Unmarshal(e.Body, turn); err != nil {
			return nil, false, err
		}
		r := inventedReceipt(turn)
		r.Trace = &abi.Trace{BackendName: "tiny", Consistency: "committed"}
		if warning != "" {
			r.Warnings = []string{warning}
		}
		return abi.Marshal(r), false, nil
	}
}

// TestRawOfTheProvidersOwnState: beside native calls raw may be the provider's own state, and not a copy of an answer
// under another name.
func TestRawOfTheProvidersOwnState(t *testing.T) {
	result := &abi.RetrieveResult{Raw: abi.RawResult{Calls: []abi.RawCall{{Route: "state",
		Body: abi.Raw(`[{"id":"m1","text":"My cat is called Zorvexum."}]`)}}},
		Evidence: []abi.Evidence{{Text: "My cat is called Zorvexum."}}}
	answered := func(route, body string) []exchange {
		return []exchange{{call: host.NativeCall{Route: route}, answer: host.NativeAnswer{Status: 200, Body: []byte(body)}}}
	}
	assert.Equal(t, Pass, verbatim(result, answered("embeddings", `{"data":[{"embedding":[1,2]}]}`)).verdict)
	assert.Equal(t, Fail, verbatim(result, answered("search", `{"results":["My cat is called Zorvexum."]}`)).verdict)
	assert.Equal(t, Fail, verbatim(result, answered("state", `{"data":[{"embedding":[1,2]}]}`)).verdict)
}
