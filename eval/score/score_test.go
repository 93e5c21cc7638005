package score

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/run"
	"github.com/memhost/memhost/eval/simulate/simulatetest"
	"github.com/memhost/memhost/eval/stats"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { testcache.Run(m) }

// options resolve providers to built-in modules by name.
func options(t *testing.T, p *pack.Pack) run.Options {
	t.Helper()
	return run.Options{Now: time.Now, Logger: hclog.NewNullLogger(),
		Host: host.Options{CacheDir: testcache.Dir(), Version: "test"},
		Provider: func(entry *lab.Provider) (host.ProviderConfig, error) {
			m, ok := plugins.Find(entry.Name())
			require.True(t, ok, entry.Name())
			block := p.Conditions[entry.Name()]
			if block == nil {
				block = json.RawMessage("{}")
			}
			return host.ProviderConfig{Name: entry.Name(), Module: m.Wasm, Source: "builtin",
				Block: abi.Raw(block)}, nil
		}}
}

func labOf(t *testing.T, text string) *lab.Lab {
	t.Helper()
	l, err := lab.Parse([]byte("lab: 1\npack: synth.pack\ntokenizer: bytes4\n" + text))
	require.NoError(t, err)
	return l
}

// ran runs a lab to its end.
func ran(t *testing.T, text, path string, p *pack.Pack) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "run")
	r, err := run.Begin(folder, labOf(t, text), path, p, options(t, p))
	require.NoError(t, err)
	require.NoError(t, run.Go(t.Context(), folder, r, p, options(t, p)))
	return folder
}

// bytesOf returns metrics.json.
func bytesOf(t *testing.T, m *Metrics) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, m.WriteJSON(&b))
	return b.String()
}

// labs has local providers with a small budget and without a limit.
const labs = "providers: [full_history, no_memory, static_profile, oracle_ipas]\nbudgets: [200, 0]\nstability: 0.3\n" +
	"primary: {metric: answer_shown, budget: 200, reference: no_memory}"

// mean is an overall metric of a column.
func mean(t *testing.T, m *Metrics, label string, budget int64, metric string) float64 {
	t.Helper()
	for _, c := range m.Columns {
		for _, b := range c.Budgets {
			if c.Label == label && b.Budget == budget {
				require.Contains(t, b.Overall, metric)
				require.NotNil(t, b.Overall[metric].Value, "%s of %s: %s", metric, label, b.Overall[metric].Reason)
				return b.Overall[metric].Value.Mean
			}
		}
	}
	require.Fail(t, "no such column", "%s, budget %d", label, budget)
	return 0
}

func TestLocalProvidersAreScored(t *testing.T) {
	path, p := simulatetest.Synth(t, map[string]string{"personas": "6", "sessions": "4", "turns": "3"})
	m, timings, err := Score(ran(t, labs, path, p), p)
	require.NoError(t, err)

	assert.Equal(t, "pass", m.SelfTest.Verdict)
	assert.Equal(t, 6, m.SelfTest.Personas)
	assert.Equal(t, "works", m.LeakControl.Detector)
	assert.Empty(t, m.Notes)
	assert.True(t, m.Run.Complete)
	for _, c := range []struct {
		label  string
		budget int64
		metric string
		want   float64
	}{
		{"full_history", 0, "recall@tokens", 1}, {"full_history", 0, "content", 1}, {"full_history", 0, "answer_shown",
			1},
		{"full_history", 0, "stale_shown", 1}, {"full_history", 0, "stale_unflagged", 1}, {"full_history", 0,
			"current_first", 0},
		{"no_memory", 200, "recall@tokens", 0}, {"no_memory", 200, "answer_shown", 0}, {"no_memory", 200, "items", 0},
		{"oracle_ipas", 200, "answer_shown", 1}, {"oracle_ipas", 200, "current_first", 1}, {"oracle_ipas", 200,
			"stale_shown", 0},
		{"static_profile", 200, "current_shown", 0}, {"static_profile", 200, "stale_unflagged", 1},
		{"evidence", 200, "recall@tokens", 1}, {"evidence", 200, "content", 1}, {"evidence", 200, "answer_shown", 1},
		{"evidence", 0, "mrr", 1}, {"full_history", 0, "stability", 1},
	} {
		assert.InDelta(t, c.want, mean(t, m, c.label, c.budget, c.metric), 1e-12, "%s of %s at %d", c.metric, c.label,
			c.budget)
	}
	random := mean(t, m, "random", 200, "recall@tokens")
	assert.True(t, random > 0 && random < 1, "%v", random)
	assert.LessOrEqual(t, mean(t, m, "random", 200, "context_tokens"), 200.0)

	for _, c := range m.Columns[:4] {
		assert.True(t, c.Isolation.Measured)
		assert.Zero(t, c.Isolation.Leaking, "%v", c.Isolation.Finds)
		require.NotNil(t, c.Isolation.Bound)
		assert.InDelta(t, stats.ZeroOfN(6), *c.Isolation.Bound, 1e-12)
		assert.Zero(t, c.Wall.Breached+c.Wall.CanariesFound)
		assert.Equal(t, 24, c.Wall.CanariesSkipped)
		assert.False(t, c.Partial)
	}
	assert.Equal(t, "not measured: no item names 1 to 3 source events",
		m.Columns[3].Budgets[0].Overall["recall@10"].Reason)
	assert.Len(t, m.Primary.Comparisons, 3)
	assert.Equal(t, stats.CannotDecide, m.Primary.Comparisons[0].Verdict,
		"six clusters and three comparisons are too few")
	require.Len(t, timings.Columns, 4)
	assert.NotNil(t, timings.Columns[0].Latency)

	folder := t.TempDir()
	require.NoError(t, Write(folder, m, timings))
	again, err := Read(folder)
	require.NoError(t, err)
	assert.Equal(t, bytesOf(t, m), bytesOf(t, again))
}

func TestEvidenceThatDanglesIsNeverServed(t *testing.T) {
	path, _ := simulatetest.Synth(t, map[string]string{"personas": "2", "sessions": "2", "turns": "2"})
	p, err := pack.Open(path)
	require.NoError(t, err)
	where := filepath.Join(t.TempDir(), "dangling.pack")
	w, err := pack.Create(where, pack.Manifest{Name: "dangling"})
	require.NoError(t, err)
	for _, persona := range p.Manifest.Personas {
		w.Persona(persona.PersonaID, persona.Cluster)
		for e, err := range p.Events(persona.PersonaID) {
			require.NoError(t, err)
			require.NoError(t, w.Event(e))
		}
		for probe, err := range p.Probes(persona.PersonaID) {
			require.NoError(t, err)
			probe.Gold.Evidence, probe.Gold.Answerable = [][]string{{"nowhere"}}, true
			require.NoError(t, w.Probe(probe))
		}
	}
	require.NoError(t, w.Close(nil))
	dangling, err := pack.Open(where)
	require.NoError(t, err)
	m, _, err := Score(fabricate(t, labOf(t, "providers: [a]\nbudgets: [500]"), dangling, perfect), dangling)
	require.NoError(t, err)
	assert.Zero(t, m.Columns[0].Budgets[0].Overall["recall@tokens"].Value.Mean)
}
