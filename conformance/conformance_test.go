package conformance_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/fakes/tiny"
	"github.com/memhost/memhost/internal/testguest"
)

// compiled is the compilation cache that all tests share.
var compiled string

func TestMain(m *testing.M) {
	var err error
	if compiled, err = os.MkdirTemp("", "memhost-conformance-test"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(compiled)
	os.Exit(code)
}

// wrong is the guest that does one thing wrong, in front of a backend of its own.
func wrong(t *testing.T, provider, fault string, backend *tiny.Backend) conformance.Target {
	t.Helper()
	wasm := testguest.Wrong()
	require.NotNil(t, wasm, "internal/testguest/wrong has not been built: make plugins")
	server := httptest.NewServer(backend)
	t.Cleanup(server.Close)
	return conformance.Target{Provider: host.ProviderConfig{Name: provider, Module: wasm, Block: abi.Raw(fmt.Sprintf(`{"url":%q,"fault":%q}`, server.URL, fault))}}
}

func run(t *testing.T, target conformance.Target, clauses ...int) *conformance.Report {
	t.Helper()
	report, err := conformance.Run(t.Context(), target, conformance.Options{CacheDir: compiled, Clauses: clauses})
	require.NoError(t, err)
	return report
}

// verdicts are the clauses of a verdict.
func verdicts(r *conformance.Report, v conformance.Verdict) []int {
	numbers := []int{}
	for _, c := range r.Clauses {
		if c.Verdict == v {
			numbers = append(numbers, c.Number)
		}
	}
	return numbers
}

// bad is what a report holds against a provider.
func bad(r *conformance.Report) string {
	var lines []string
	for _, c := range r.Clauses {
		for _, line := range c.Bad() {
			lines = append(lines, fmt.Sprintf("%d %s", c.Number, line))
		}
	}
	return strings.Join(lines, "\n")
}

func TestARightProviderIsGreen(t *testing.T) {
	for name, backend := range map[string]*tiny.Backend{"that stores at once": {}, "that queues": {QueueLooks: 1}} {
		t.Run("in front of a backend "+name, func(t *testing.T) {
			t.Parallel()
			report := run(t, wrong(t, "wrong", "", backend))
			assert.True(t, report.Green(), "%s", bad(report))
			assert.Empty(t, backend.Scopes(), "the kit cleans up")
			for _, c := range report.Clauses {
				t.Logf("%2d %-14s %5d ms %4d calls", c.Number, c.Verdict, c.MS, c.Cost.NativeCalls)
			}
		})
	}
}

// TestEachFaultIsFoundAtItsClauseAndNowhereElse: the other clauses may be inconclusive, for want of a positive control, but do not fail.
func TestEachFaultIsFoundAtItsClauseAndNowhereElse(t *testing.T) {
	for clause, faults := range map[int][]string{
		1:  {"committed_early"},
		2:  {"session_bound"},
		3:  {"naive_scope", "folds_case"},
		4:  {"writes_in_reads"},
		5:  {"ignores_budget", "overflows", "unescaped", "unstable_format", "nameless"},
		6:  {"reset_too_much", "reset_too_little", "no_generation"},
		7:  {"swallows_errors", "traps", "hides_native", "no_retry_after", "untyped"},
		8:  {"invents_scores", "rewrites_raw", "bad_pointers"},
		9:  {"drops_labels", "silent_labels"},
		10: {"setup_erases"},
		11: {"query_writes"},
		12: {"denies_events"},
		13: {"shared_cache", "reorders"},
	} {
		for _, fault := range faults {
			t.Run(fmt.Sprintf("clause %d: %s", clause, fault), func(t *testing.T) {
				t.Parallel()
				backend := &tiny.Backend{}
				if fault == "committed_early" {
					backend.QueueLooks = 1
				}
				provider := "wrong"
				if clause == 11 {
					provider = "wrong_control"
				}
				report := run(t, wrong(t, provider, fault, backend))
				assert.Equal(t, []int{clause}, verdicts(report, conformance.Fail), "%s", bad(report))
				t.Logf("%s", bad(report))
			})
		}
	}
}

func TestOneClauseCanBeChosen(t *testing.T) {
	report := run(t, wrong(t, "wrong", "", &tiny.Backend{}), 10, 4)
	require.Len(t, report.Clauses, 2)
	assert.Equal(t, []int{4, 10}, verdicts(report, conformance.Pass))
	_, err := conformance.Run(t.Context(), wrong(t, "wrong", "", &tiny.Backend{}), conformance.Options{Clauses: []int{14}})
	assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
	assert.False(t, slices.Contains(verdicts(report, conformance.Fail), 4))
}
