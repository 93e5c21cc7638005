package host_test

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
	"github.com/memhost/memhost/host"
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

func smokeProvider(name, smoke string) host.ProviderConfig {
	m, _ := plugins.Find(name)
	return host.ProviderConfig{Name: name, Module: m.Wasm, Smoke: smoke, Scope: &host.TestScope}
}

func TestSmokeTriesTheProviderOutAndCleansUp(t *testing.T) {
	dir := t.TempDir()
	s := host.OpenSlot(t, host.Open(t, host.Options{DataDir: dir}), smokeProvider("full_history", host.SmokeAuto))
	m, err := s.Manifest(context.Background())
	require.NoError(t, err)
	verdicts, details := steps(m)
	for _, step := range []string{"setup_scope", "isolation_smoke", "write_read_smoke", "pending_gate"} {
		assert.Equal(t, "pass", verdicts[step], "%s: %s", step, details[step])
	}
	for _, table := range []state.Table{"scopes", "ledger", "unseen"} {
		records := host.Stored(t, s, table)
		for _, r := range records {
			assert.NotContains(t, string(r.Value), "mh_smoke", table)
		}
		assert.LessOrEqual(t, len(records), 1, "%s: the configured scope alone", table)
	}
	for _, next := range []struct{ smoke, verdict, says string }{{host.SmokeAuto, "skipped", "passed 2"},
		{host.SmokeAlways, "pass", ""}, {host.SmokeNever, "skipped", "not asked for"}} {
		m, err := s.Swap(context.Background(), smokeProvider("full_history", next.smoke))
		require.NoError(t, err)
		verdicts, details := steps(m)
		assert.Equal(t, next.verdict, verdicts["isolation_smoke"], next.smoke)
		assert.Contains(t, details["isolation_smoke"], next.says)
	}
}

func TestSmokeOfAProviderThatRetainsNothingPassesByFindingNothing(t *testing.T) {
	s := host.OpenSlot(t, host.Open(t, host.Options{}), smokeProvider("no_memory", host.SmokeAuto))
	m, err := s.Manifest(context.Background())
	require.NoError(t, err)
	verdicts, details := steps(m)
	assert.Equal(t, "pass", verdicts["write_read_smoke"])
	assert.Contains(t, details["write_read_smoke"], "retains nothing")
}

func TestSmokeThatFindsNothingIsInconclusive(t *testing.T) {
	c := host.ProbeConfig(`{}`)
	c.Smoke = host.SmokeAuto
	s := host.OpenSlot(t, host.Open(t, host.Options{}), c)
	m, err := s.Manifest(context.Background())
	require.NoError(t, err)
	verdicts, _ := steps(m)
	assert.Equal(t, "inconclusive", verdicts["isolation_smoke"],
		"B's own fact was not found: that A's was not proves nothing")
	m, err = s.Swap(context.Background(), c)
	require.NoError(t, err)
	verdicts, _ = steps(m)
	assert.Equal(t, "inconclusive", verdicts["isolation_smoke"], "only a pass is kept")
}

func TestNothingIsSmokedWhileReadOnly(t *testing.T) {
	s := host.OpenSlot(t, host.Open(t, host.Options{}), smokeProvider("full_history", host.SmokeNever))
	_, err := s.SetMode(context.Background(), &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	m, err := s.Swap(context.Background(), smokeProvider("full_history", host.SmokeAlways))
	require.NoError(t, err)
	verdicts, details := steps(m)
	assert.Equal(t, "skipped", verdicts["isolation_smoke"])
	assert.Contains(t, details["isolation_smoke"], "read-only")
}

func TestDryRunWalksTheFlowAndServesNothing(t *testing.T) {
	s := host.OpenSlot(t, host.Open(t, host.Options{}), smokeProvider("no_memory", host.SmokeNever))
	m, err := s.Try(context.Background(), smokeProvider("full_history", host.SmokeAlways))
	require.NoError(t, err)
	verdicts, _ := steps(m)
	assert.Equal(t, "pass", verdicts["write_read_smoke"])
	assert.NotContains(t, verdicts, "serve")
	serving, err := s.Manifest(context.Background())
	require.NoError(t, err)
	assert.Equal(t, "no_memory", serving.Provider)
}

func TestIdentityIsCheckedFirst(t *testing.T) {
	h := host.Open(t, host.Options{})
	for says, change := range map[string]func(*host.ProviderConfig){
		"exactly one must be active": func(c *host.ProviderConfig) { c.Name = "" },
		`"often" is not one of`:      func(c *host.ProviderConfig) { c.Smoke = "often" },
		"persona_id":                 func(c *host.ProviderConfig) { c.Scope = &abi.MemoryScope{RunID: "r"} },
	} {
		c := smokeProvider("no_memory", "")
		change(&c)
		_, err := h.Open(context.Background(), c)
		e := host.RequireCode(t, err, abi.CodeInvalidArgument, says)
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
			s := host.OpenSlot(t, host.Open(t, host.Options{}), smokeProvider("no_memory", host.SmokeNever))
			m, err := s.Swap(context.Background(),
				host.ProviderConfig{Name: "wrong", Module: testguest.Wrong(), Smoke: host.SmokeAuto,
					Block: abi.Raw(fmt.Sprintf(`{"url":%q}`, server.URL))})
			if want {
				require.NoError(t, err)
				verdicts, details := steps(m)
				assert.Equal(t, "pass", verdicts["isolation_smoke"], details["isolation_smoke"])
				assert.Equal(t, "pass", verdicts["write_read_smoke"], details["write_read_smoke"])
				return
			}
			host.RequireCode(t, err, abi.CodeIsolationBreach, "step isolation_smoke", "was found under persona",
				"still serves no_memory")
		})
	}
}
