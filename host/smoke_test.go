package host

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/examples/tiny"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/test/testguest"
	"github.com/memhost/memhost/plugins"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// steps maps the steps of a manifest to their verdicts and details.
func steps(m *report.RunManifest) (verdicts, details map[string]string) {
	verdicts, details = map[string]string{}, map[string]string{}
	for _, s := range m.Steps {
		verdicts[s.Name], details[s.Name] = s.Verdict, s.Detail
	}
	return verdicts, details
}

func smoked(name, smoke string) ProviderConfig {
	m, _ := plugins.Find(name)
	return ProviderConfig{Name: name, Module: m.Wasm, Smoke: smoke, Scope: &testScope}
}

func TestSmokeTriesTheProviderOutAndCleansUp(t *testing.T) {
	dir := t.TempDir()
	s := openSlot(t, open(t, Options{DataDir: dir}), smoked("full_history", SmokeAuto))
	m, err := s.Manifest(context.Background())
	require.NoError(t, err)
	verdicts, details := steps(m)
	for _, step := range []string{"setup_scope", stepIsolation, stepWriteRead, stepGate} {
		assert.Equal(t, "pass", verdicts[step], "%s: %s", step, details[step])
	}
	for _, table := range []string{"scopes", "ledger", "unseen"} {
		records, err := s.host.store.Records(context.Background(), state.Table(table), nil, nil, 0)
		require.NoError(t, err)
		for _, r := range records {
			assert.NotContains(t, string(r.Value), "mh_smoke", table)
		}
		assert.LessOrEqual(t, len(records), 1, "%s: the configured scope alone", table)
	}
	for _, next := range []struct{ smoke, verdict, says string }{{SmokeAuto, "skipped", "passed 2"},
		{SmokeAlways, "pass", ""}, {SmokeNever, "skipped", "not asked for"}} {
		m, err := s.Swap(context.Background(), smoked("full_history", next.smoke))
		require.NoError(t, err)
		verdicts, details := steps(m)
		assert.Equal(t, next.verdict, verdicts[stepIsolation], next.smoke)
		assert.Contains(t, details[stepIsolation], next.says)
	}
}

func TestSmokeOfAProviderThatRetainsNothingPassesByFindingNothing(t *testing.T) {
	s := openSlot(t, open(t, Options{}), smoked("no_memory", SmokeAuto))
	m, err := s.Manifest(context.Background())
	require.NoError(t, err)
	verdicts, details := steps(m)
	assert.Equal(t, "pass", verdicts[stepWriteRead])
	assert.Contains(t, details[stepWriteRead], "retains nothing")
}

func TestSmokeThatFindsNothingIsInconclusive(t *testing.T) {
	c := probeConfig(`{}`)
	c.Smoke = SmokeAuto
	s := openSlot(t, open(t, Options{}), c)
	m, err := s.Manifest(context.Background())
	require.NoError(t, err)
	verdicts, _ := steps(m)
	assert.Equal(t, "inconclusive", verdicts[stepIsolation],
		"B's own fact was not found: that A's was not proves nothing")
	m, err = s.Swap(context.Background(), c)
	require.NoError(t, err)
	verdicts, _ = steps(m)
	assert.Equal(t, "inconclusive", verdicts[stepIsolation], "only a pass is kept")
}

func TestNothingIsSmokedWhileReadOnly(t *testing.T) {
	s := openSlot(t, open(t, Options{}), smoked("full_history", SmokeNever))
	_, err := s.SetMode(context.Background(), &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	m, err := s.Swap(context.Background(), smoked("full_history", SmokeAlways))
	require.NoError(t, err)
	verdicts, details := steps(m)
	assert.Equal(t, "skipped", verdicts[stepIsolation])
	assert.Contains(t, details[stepIsolation], "read-only")
}

func TestDryRunWalksTheFlowAndServesNothing(t *testing.T) {
	s := openSlot(t, open(t, Options{}), smoked("no_memory", SmokeNever))
	m, err := s.Try(context.Background(), smoked("full_history", SmokeAlways))
	require.NoError(t, err)
	verdicts, _ := steps(m)
	assert.Equal(t, "pass", verdicts[stepWriteRead])
	assert.NotContains(t, verdicts, "serve")
	serving, err := s.Manifest(context.Background())
	require.NoError(t, err)
	assert.Equal(t, "no_memory", serving.Provider)
}

func TestIdentityIsCheckedFirst(t *testing.T) {
	h := open(t, Options{})
	for says, change := range map[string]func(*ProviderConfig){
		"exactly one must be active": func(c *ProviderConfig) { c.Name = "" },
		`"often" is not one of`:      func(c *ProviderConfig) { c.Smoke = "often" },
		"persona_id":                 func(c *ProviderConfig) { c.Scope = &abi.MemoryScope{RunID: "r"} },
	} {
		c := smoked("no_memory", "")
		change(&c)
		_, err := h.Open(context.Background(), c)
		e := requireCode(t, err, abi.CodeInvalidArgument, says)
		assert.False(t, strings.Contains(e.Hint, "still serves"))
	}
}

// oneForAll makes a backend ignore scopes: all of them are the same.
func oneForAll(backend http.Handler) http.Handler {
	scope := regexp.MustCompile(`^/scopes/[^/]+`)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.URL.Path = scope.ReplaceAllString(r.URL.Path, "/scopes/one")
		r.URL.RawPath = ""
		backend.ServeHTTP(w, r)
	})
}

func TestSmokeFindsScopesThatAreNotKeptApart(t *testing.T) {
	for name, want := range map[string]bool{"kept apart": true, "not kept apart": false} {
		t.Run(name, func(t *testing.T) {
			var backend http.Handler = &tiny.Backend{}
			if !want {
				backend = oneForAll(backend)
			}
			server := httptest.NewServer(backend)
			t.Cleanup(server.Close)
			s := openSlot(t, open(t, Options{}), smoked("no_memory", SmokeNever))
			m, err := s.Swap(context.Background(),
				ProviderConfig{Name: "wrong", Module: testguest.Wrong(), Smoke: SmokeAuto,
					Block: abi.Raw(fmt.Sprintf(`{"url":%q}`, server.URL))})
			if want {
				require.NoError(t, err)
				verdicts, details := steps(m)
				assert.Equal(t, "pass", verdicts[stepIsolation], details[stepIsolation])
				assert.Equal(t, "pass", verdicts[stepWriteRead], details[stepWriteRead])
				return
			}
			requireCode(t, err, abi.CodeIsolationBreach, "step "+stepIsolation, "was found under persona",
				"still serves no_memory")
		})
	}
}
