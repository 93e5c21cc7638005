package run

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/host"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A memory that calls a model while it becomes ready costs as much as one that calls it in a record.
func TestModelCallsOfGettingReadyAreCounted(t *testing.T) {
	var asked atomic.Int64
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/chat/completions") {
			asked.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"finish_reason": "stop",
			"message": map[string]any{"role": "assistant", "content": "[]"}}}})
	}))
	defer model.Close()
	path, p := synthetic(t)
	o := options(t, p)
	builtin := o.Provider
	o.Provider = func(entry *lab.Provider) (host.ProviderConfig, error) {
		c, err := builtin(entry)
		c.Block = abi.Raw(fmt.Sprintf(`{"llm": {"base_url": %q, "model": "stub"}}`, model.URL+"/v1"))
		return c, err
	}
	run := filepath.Join(t.TempDir(), "run")
	r, err := Begin(run, labOf(t, "providers: [ledger_memory]\nbudgets: [200]"), path, p, o)
	require.NoError(t, err)
	require.NoError(t, Go(t.Context(), run, r, p, o))
	var counted int64
	for _, l := range lines(t, run, r.Cells[0]) {
		if l.Kind != journal.KindReadiness {
			continue
		}
		for _, route := range l.Readiness.Native {
			counted += route.Calls
			assert.Positive(t, route.BytesOut, route.Route)
		}
	}
	assert.Positive(t, counted)
	assert.Equal(t, asked.Load(), counted)
}
