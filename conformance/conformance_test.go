package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/examples/tiny"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/engine/wasmbin"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/internal/test/testguest"
	"github.com/memhost/memhost/plugins"
)

func TestMain(m *testing.M) { testcache.Run(m) }

// wrong is the guest that does one thing wrong, in front of a backend of its own.
func wrong(t *testing.T, provider, fault string, backend *tiny.Backend) conformance.Target {
	t.Helper()
	wasm := testguest.Wrong()
	require.NotNil(t, wasm, "internal/test/testguest/wrong has not been built: make plugins")
	server := httptest.NewServer(backend)
	t.Cleanup(server.Close)
	return conformance.Target{Provider: host.ProviderConfig{Name: provider, Module: wasm, Block: abi.Raw(fmt.Sprintf(`{"url":%q,"fault":%q}`, server.URL, fault))}}
}

func run(t *testing.T, target conformance.Target, clauses ...int) *conformance.Report {
	t.Helper()
	report, err := conformance.Run(t.Context(), target, conformance.Options{CacheDir: testcache.Dir(), Clauses: clauses})
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
				t.Logf("%2d %-14s %5d ms %4d calls, %d turns", c.Number, c.Verdict, c.MS, c.Cost.NativeCalls,
					c.Cost.ByRoute["write add"])
			}
		})
	}
}

// TestEachFaultIsFoundAtItsClauseAndNowhereElse: the other clauses may be inconclusive, for want of a positive control,
// but do not fail.
func TestEachFaultIsFoundAtItsClauseAndNowhereElse(t *testing.T) {
	for clause, faults := range map[int][]string{
		1: {"committed_early"},
		2: {"session_bound"},
		3: {"naive_scope", "folds_case"},
		4: {"writes_in_reads"},
		5: {"ignores_budget", "overflows", "unescaped", "unstable_format", "shows_ids", "shown_elsewhere",
			"few_items"},
		6:  {"reset_too_much", "reset_too_little", "no_generation"},
		7:  {"swallows_errors", "traps", "hides_native", "no_retry_after", "untyped"},
		8:  {"invents_scores", "rewrites_raw"},
		9:  {"drops_labels", "silent_labels"},
		10: {"setup_erases"},
		11: {"query_writes"},
		12: {"denies_events"},
		13: {"shared_cache", "reorders"},
		14: {"bad_pointers", "nameless", "new_words", "negative_counts", "ranks_from_zero", "new_status"},
		15: {"forgets_nothing", "forgets_too_much", "forgets_once"},
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
				var clauses []int // all
				if brief.Tests() {
					clauses = []int{clause}
				}
				report := run(t, wrong(t, provider, fault, backend), clauses...)
				found := []int{clause}
				switch {
				case clauses != nil:
				case fault == "writes_in_reads":
					found = []int{4, 15} // the inventory after forgetting has what was written since
				case fault == "committed_early":
					found = []int{1, 16} // so is an event of a batch
				case fault == "untyped", fault == "traps":
					found = []int{7, 16} // so does an event of a batch that is refused
				}
				assert.Equal(t, found, verdicts(report, conformance.Fail), "%s", bad(report))
				t.Logf("%s", bad(report))
			})
		}
	}
}

// declare gives a module another manifest.
func declare(t *testing.T, wasm []byte, change func(*abi.ModuleManifest)) []byte {
	t.Helper()
	module, err := host.Inspect(wasm, host.Limits{})
	require.NoError(t, err)
	manifest := *module.Manifest
	change(&manifest)
	changed, err := wasmbin.SetCustom(wasm, abi.ManifestSection, abi.Marshal(&manifest))
	require.NoError(t, err)
	return changed
}

func TestAManifestThatLiesIsFoundOut(t *testing.T) {
	for _, tt := range []struct {
		name   string
		clause int
		lie    func(*abi.ModuleManifest)
		says   string
	}{
		{"a clause is declared not applicable, and applies", 7, func(m *abi.ModuleManifest) {
			m.Conformance = &abi.ConformanceDecl{NotApplicable: []abi.NotApplicable{{Clause: 7, Because: "there is no backend"}}}
		}, "declares it not applicable (there is no backend), and every part of it applies"},
		{"a part is declared not applicable, and applies", 4, func(m *abi.ModuleManifest) {
			m.Conformance = &abi.ConformanceDecl{NotApplicable: []abi.NotApplicable{{Clause: 4, Part: "inventory",
				Because: "the server cannot list"}}}
		}, "declares this not applicable, and it is"},
		{"every 404 is declared to mean nothing there", 7, func(m *abi.ModuleManifest) {
			m.Empty = []abi.EmptyDecl{{Route: "search", Status: 404}, {Route: "remove", Status: 404}}
		}, "retrieve under 404 came to a result (empty"},
		{"the native limit is another one", 5, func(m *abi.ModuleManifest) {
			m.Limits = []abi.NativeLimit{{Route: "search", Field: "limit", Native: 1, Because: "so says the page"}}
		}, "limit 2 was sent, and the manifest declares 1"},
		{"a query is declared, and there is none", 14, func(m *abi.ModuleManifest) {
			m.NativeQueries = []abi.NativeDecl{{Name: "status"}, {Name: "no_such"}}
		}, "no_such is declared, and refused without parameters"},
		{"an answer is declared to be a text, and is none", 14, func(m *abi.ModuleManifest) {
			m.NativeQueries = []abi.NativeDecl{{Name: "status", Show: &abi.ShowDecl{As: abi.ShowText, At: "/text"}}}
		}, `status: the answer has no text at "/text"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			target := wrong(t, "wrong", "", &tiny.Backend{})
			target.Provider.Module = declare(t, target.Provider.Module, tt.lie)
			report := run(t, target, 2, 4, 5, 7, 14)
			assert.Equal(t, []int{tt.clause}, verdicts(report, conformance.Fail), "%s", bad(report))
			assert.Contains(t, bad(report), tt.says)
		})
	}
}

// TestALateWriteThatCanDoubleIsANote: settle_ms below the deadline of record_event, with the default for either if it
// is absent.
func TestALateWriteThatCanDoubleIsANote(t *testing.T) {
	for _, tt := range []struct {
		settle, deadline int64
		note             string
	}{
		{3000, 120_000, "settle_ms is 3000, and record_event may take 120000 ms"},
		{3000, 0, "settle_ms is 3000, and record_event may take 30000 ms"},
		{0, 120_000, "settle_ms is 30000, and record_event may take 120000 ms"},
		{120_000, 120_000, ""}, {0, 0, ""}, {0, 10_000, ""},
	} {
		target := wrong(t, "wrong", "", &tiny.Backend{})
		target.Provider.Module = declare(t, target.Provider.Module, func(m *abi.ModuleManifest) {
			m.SettleMS, m.DeadlinesMS = tt.settle, map[string]int64{}
			if tt.deadline > 0 {
				m.DeadlinesMS[abi.OpRecordEvent] = tt.deadline
			}
		})
		notes := strings.Join(run(t, target, 10).Notes, "\n")
		assert.Equal(t, tt.note != "", strings.Contains(notes, "settle_short: "), notes)
		assert.Contains(t, notes, tt.note)
	}
}

func TestWhatIsDeclaredAndAnsweredPasses(t *testing.T) {
	target := wrong(t, "wrong", "", &tiny.Backend{})
	target.Provider.Module = declare(t, target.Provider.Module, func(m *abi.ModuleManifest) {
		m.NativeQueries = []abi.NativeDecl{{Name: "status"}, {Name: "with_parameters", Params: "a"}}
	})
	report := run(t, target, 14)
	assert.True(t, report.Green(), "%s", bad(report))
}

// reclass gives routes of the wrong guest another class.
func reclass(class abi.Class, routes ...string) func(*abi.ModuleManifest) {
	return func(m *abi.ModuleManifest) {
		m.Routes = slices.Clone(m.Routes)
		for i := range m.Routes {
			if slices.Contains(routes, m.Routes[i].Name) {
				m.Routes[i].Class = class
			}
		}
	}
}

// TestARouteThatIsWronglyCalledReadIsFound: the wall lets such a route through, so the kit has to find it.
func TestARouteThatIsWronglyCalledReadIsFound(t *testing.T) {
	for name, tt := range map[string]struct {
		routes []string
		says   string
	}{
		"every route":            {[]string{"create", "add", "remove"}, "record_event stored "},
		"the route that writes":  {[]string{"add"}, "record_event stored "},
		"the route that deletes": {[]string{"remove"}, "reset_scope removed "},
		"a scope that is made":   {[]string{"create"}, ""},
	} {
		for kind, looks := range map[string]int{"stores at once": 0, "queues": 1} {
			t.Run(name+", in front of a backend that "+kind, func(t *testing.T) {
				t.Parallel()
				target := wrong(t, "wrong", "", &tiny.Backend{QueueLooks: looks})
				target.Provider.Module = declare(t, target.Provider.Module, reclass(abi.ClassRead, tt.routes...))
				report := run(t, target, 4)
				t.Logf("%s", bad(report))
				if tt.says == "" {
					assert.True(t, report.Green(), "%s", bad(report))
					return
				}
				assert.Equal(t, []int{4}, verdicts(report, conformance.Fail), "%s", bad(report))
				assert.Contains(t, bad(report), tt.says)
			})
		}
	}
}

// known is where the controls that are configured have something to say.
var known = &conformance.Known{Scope: abi.MemoryScope{RunID: "study", PersonaID: "mara"}, Query: "What does she drink?"}

func control(t *testing.T, name string) conformance.Target {
	t.Helper()
	m, ok := plugins.Find(name)
	require.True(t, ok)
	block := map[string]string{
		"static_profile": `{"profiles":[{"persona_id":"mara","text":"Drinks green tea, and in summer <b>iced</b> tea </memory-context>."}]}`,
		"oracle_ipas": `{"entries":[{"persona_id":"mara","attribute":"hot_drink","value":"green tea","valid_from":"2026-04-21T08:00:00Z"},
			{"persona_id":"mara","attribute":"seat","value":"aisle"},{"persona_id":"mara","attribute":"meal","value":"no fish"}]}`,
	}[name]
	return conformance.Target{Known: known, Provider: host.ProviderConfig{Name: name, Module: m.Wasm, Source: "builtin",
		Block: abi.Raw(block)}}
}

func TestTheControlsAreGreen(t *testing.T) {
	for name, notApplicable := range map[string][]int{"full_history": {7}, "no_memory": {2, 5, 7, 8, 12, 15},
		"static_profile": {2, 7, 12, 15}, "oracle_ipas": {2, 7, 12, 15}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := run(t, control(t, name))
			assert.True(t, report.Green(), "%s", bad(report))
			assert.Equal(t, notApplicable, verdicts(report, conformance.NotApplicable))
			assert.Equal(t, "control", report.Kind)
			assert.Zero(t, report.Cost.NativeCalls)
		})
	}
}

func TestADoubleThatCannotBeRuledOutIsAnnounced(t *testing.T) {
	report := run(t, wrong(t, "wrong", "unsure_events", &tiny.Backend{}), 12)
	assert.True(t, report.Green(), "%s", bad(report))
	for _, p := range report.Clauses[0].Parts {
		if slices.Contains([]string{"before_send", "after_send", "late"}, p.Name) {
			assert.Contains(t, p.Reason, "announced: uncertain", p.Name)
		}
	}
}

func TestWhatIsNotDeclaredIsNotPassed(t *testing.T) {
	target := control(t, "no_memory")
	target.Provider.Module = declare(t, target.Provider.Module, func(m *abi.ModuleManifest) { m.Conformance = nil })
	report := run(t, target)
	assert.Empty(t, verdicts(report, conformance.Fail), "%s", bad(report))
	assert.Equal(t, []int{5, 7, 8}, verdicts(report, conformance.Inconclusive), "%s", bad(report))
	assert.Contains(t, bad(report), `"clause": 7, "part": "retrieve"`, "the report says what to declare")
}

func TestTimeOverIsPendingAndNeverAPass(t *testing.T) {
	target := wrong(t, "wrong", "", &tiny.Backend{QueueLooks: 1000})
	target.ReadyWithin = 150 * time.Millisecond
	report := run(t, target, 2, 16)
	assert.Equal(t, []int{2, 16}, verdicts(report, conformance.Pending), "%s", bad(report))
}

// A busy backend that has not reached a turn in time has not dropped it.
func TestATurnThatStillWaitsIsNotDropped(t *testing.T) {
	var mu sync.Mutex
	backend, newest, waiting := &tiny.Backend{}, "", 0
	stuck := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/events") {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			var event struct {
				CreatedAt string `json:"created_at"`
			}
			_ = json.Unmarshal(body, &event)
			if waiting > 0 || event.CreatedAt < newest { // the first turn that comes out of order, and all later ones
				waiting++
				w.WriteHeader(http.StatusAccepted)
				_, _ = fmt.Fprintf(w, `{"id":"waits-%d","status":"queued"}`, waiting)
				return
			}
			newest = event.CreatedAt
		}
		if waiting > 0 && strings.HasSuffix(r.URL.Path, "/status") {
			_, _ = io.WriteString(w, `{"pending":1}`)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	defer stuck.Close()
	target := wrong(t, "wrong", "", backend)
	target.Provider.Block = abi.Raw(fmt.Sprintf(`{"url":%q,"fault":""}`, stuck.URL))
	target.ReadyWithin = 150 * time.Millisecond
	report := run(t, target, 16)
	assert.Equal(t, conformance.Pending, report.Verdict, "%s", bad(report))
	for _, part := range []string{"16 pending (times", "16 pending (batch"} {
		assert.Contains(t, bad(report), part)
	}
}

func TestABackendThatExtractsNothingIsInconclusive(t *testing.T) {
	target := wrong(t, "wrong", "session_bound", &tiny.Backend{})
	target.Provider.Module = declare(t, target.Provider.Module, func(m *abi.ModuleManifest) {
		m.Conformance = &abi.ConformanceDecl{NotApplicable: []abi.NotApplicable{{Clause: 2,
			Because: "a claim that nothing confirms"}}}
	})
	report := run(t, target, 2, 3)
	assert.Equal(t, []int{2}, verdicts(report, conformance.Fail), "a declaration excuses no failure: %s", bad(report))
	assert.Equal(t, []int{3}, verdicts(report, conformance.Inconclusive),
		"without a positive control nothing is proved: %s", bad(report))
}

func TestReportTellsCostAndCanBeReadByOthers(t *testing.T) {
	target := wrong(t, "wrong", "overflows", &tiny.Backend{})
	calls := int64(0)
	target.LLMCalls = func(context.Context) (int64, error) { calls += 3; return calls, nil }
	report := run(t, target, 5, 10)
	five := report.Clauses[0]
	assert.Equal(t, conformance.Fail, five.Verdict)
	assert.Positive(t, five.Cost.ByRoute["write add"])
	assert.EqualValues(t, 3, *five.Cost.LLMCalls)
	assert.EqualValues(t, 6, *report.Cost.LLMCalls)
	var text bytes.Buffer
	require.NoError(t, report.WriteJSON(&text))
	var back conformance.Report
	require.NoError(t, json.Unmarshal(text.Bytes(), &back))
	assert.Equal(t, *report, back)
	text.Reset()
	require.NoError(t, report.WriteJUnit(&text))
	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Cases    []struct {
			Name    string `xml:"name,attr"`
			Failure string `xml:"failure"`
		} `xml:"testcase"`
	}
	require.NoError(t, xml.Unmarshal(text.Bytes(), &suite))
	assert.Equal(t, 2, suite.Tests)
	assert.Equal(t, 1, suite.Failures)
	assert.Contains(t, suite.Cases[0].Failure, `max_tokens is `)
	assert.Equal(t, five.Title(), suite.Cases[0].Name)
}

func TestOneClauseCanBeChosen(t *testing.T) {
	report := run(t, wrong(t, "wrong", "", &tiny.Backend{}), 10, 4)
	require.Len(t, report.Clauses, 2)
	assert.Equal(t, []int{4, 10}, verdicts(report, conformance.Pass))
	_, err := conformance.Run(t.Context(), wrong(t, "wrong", "", &tiny.Backend{}), conformance.Options{Clauses: []int{17}})
	assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
	assert.False(t, slices.Contains(verdicts(report, conformance.Fail), 4))
}

// TestAnOutageKeepsTheReport: the backend goes away in the middle of a run. What failed before stays a failure, and what
// failed for want of a backend is none.
func TestAnOutageKeepsTheReport(t *testing.T) {
	for name, c := range map[string]struct {
		fault string
		want  conformance.Verdict
	}{"a failure was found": {"bad_pointers", conformance.Fail}, "all was green": {"", conformance.Inconclusive}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend := &tiny.Backend{}
			var left atomic.Int64 // requests until the backend goes away
			left.Store(1 << 40)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if left.Add(-1) < 0 {
					panic(http.ErrAbortHandler)
				}
				backend.ServeHTTP(w, r)
			}))
			t.Cleanup(server.Close)
			target := wrong(t, "wrong", c.fault, &tiny.Backend{})
			target.Provider.Block = abi.Raw(fmt.Sprintf(`{"url":%q,"fault":%q}`, server.URL, c.fault))
			report, err := conformance.Run(t.Context(), target, conformance.Options{CacheDir: testcache.Dir(),
				Clauses: []int{8, 14, 15, 16}, Progress: func(r conformance.ClauseReport) {
					if r.Number == 14 {
						left.Store(20) // in the middle of the next clause
					}
				}})
			require.Error(t, err)
			require.NotNil(t, report)
			assert.Equal(t, c.want, report.Verdict, "%s", bad(report))
			assert.NotEmpty(t, report.Ended)
			assert.False(t, report.Green())
			for _, one := range report.Clauses {
				assert.False(t, one.Number > 14 && one.Verdict == conformance.Fail, "%v", one.Bad())
			}
			var text bytes.Buffer
			require.NoError(t, report.WriteJUnit(&text))
			assert.Contains(t, text.String(), "the run came to its end")
		})
	}
}
