package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

func TestWhatMetricsShow(t *testing.T) {
	m, err := server.NewMetrics(nil)
	require.NoError(t, err)
	require.NoError(t, m.Host(func() report.Counts {
		return report.Counts{Commits: 7, CommitsRefused: 6, CommitsFailed: 5, CommitsUncertain: 4, TurnWaits: 3,
			TurnWaited: 1500 * time.Millisecond, TakeOvers: 2, LateWrites: 1, UncertainEvents: 8}
	}))
	require.NoError(t, m.Followers(func(context.Context) ([]report.FollowerCounts, error) {
		return []report.FollowerCounts{{Role: report.RoleShadow, Provider: "bm25", Queue: 12, Lag: 2500 * time.Millisecond,
			Delivered: 11, Failed: 10}}, nil
	}))
	s, _ := newServer(t, new(servertest.Slot), func(o *server.Options) { o.Metrics = m })
	m.Observe(host.Observation{Provider: "mem0", Operation: abi.OpRetrieve, Latency: 30 * time.Millisecond,
		Backend: 20 * time.Millisecond, Plugin: 5 * time.Millisecond,
		IO: []abi.IO{{Route: "search", Class: "read", Status: 200}, {Route: "search", Class: "read", Status: 0},
			{Route: "search", Class: "read", Status: 1 << 40}}})
	m.Observe(host.Observation{Provider: "mem0", Operation: abi.OpRetrieve, Code: abi.CodeTimeout})
	m.Observe(host.Observation{Provider: "mem0", Operation: abi.OpRetrieve, Code: "made up"})
	m.Observe(host.Observation{Provider: "mem0", Operation: abi.OpRecordEvents, Skipped: 1})
	oldest, bytes := 90*time.Second, int64(40_960)
	require.NoError(t, m.Store(func(context.Context) report.Store {
		return report.Store{Open: &report.OpenEvents{Queued: 2, Pending: 3, Lost: 1, Oldest: &oldest}, Bytes: &bytes,
			Connections: &report.Connections{Used: 4, Max: 17, Allowed: 97}}
	}))
	ask(s.Handler(), "POST", wire.PathRetrieve, `{}`)
	ask(s.Handler(), "POST", wire.PathRetrieve, `{}`, "Host", "evil.example")
	ask(s.Handler(), "GET", "/some/secret/path", "")

	w := ask(s.Handler(), "GET", wire.PathMetrics, "")
	require.Equal(t, 200, w.Code)
	for _, line := range []string{
		`memhost_operations_total{code="ok",operation="retrieve",origin="",provider="mem0"} 1`,
		`memhost_operations_total{code="timeout",operation="retrieve",origin="",provider="mem0"} 1`,
		`memhost_operations_total{code="other",operation="retrieve",origin="",provider="mem0"} 1`,
		`memhost_operations_total{code="skipped_read_only",operation="record_events",origin="",provider="mem0"} 1`,
		`memhost_open_events{state="queued"} 2`,
		`memhost_open_events{state="pending"} 3`,
		`memhost_open_events{state="lost"} 1`,
		`memhost_oldest_open_event_seconds 90`,
		`memhost_store_bytes 40960`,
		`memhost_store_connections{of="used"} 4`,
		`memhost_store_connections{of="most"} 17`,
		`memhost_store_connections{of="allowed"} 97`,
		`memhost_operation_seconds_count{operation="retrieve",provider="mem0"} 3`,
		`memhost_operation_seconds_sum{operation="retrieve",provider="mem0"} 0.03`,
		`memhost_backend_seconds_sum{operation="retrieve",provider="mem0"} 0.02`,
		`memhost_plugin_seconds_sum{operation="retrieve",provider="mem0"} 0.005`,
		`memhost_native_calls_total{class="read",provider="mem0",route="search",status="200"} 1`,
		`memhost_native_calls_total{class="read",provider="mem0",route="search",status="0"} 1`,
		`memhost_native_calls_total{class="read",provider="mem0",route="search",status="other"} 1`,
		`memhost_http_requests_total{route="/v1/retrieve",status="200"} 1`,
		`memhost_http_requests_total{route="/v1/retrieve",status="403"} 1`,
		`memhost_http_requests_total{route="other",status="404"} 1`,
		`memhost_commits_total{outcome="ok"} 7`,
		`memhost_commits_total{outcome="refused"} 6`,
		`memhost_commits_total{outcome="failed"} 5`,
		`memhost_commits_total{outcome="uncertain"} 4`,
		"memhost_turn_wait_seconds_count 3",
		"memhost_turn_wait_seconds_sum 1.5",
		"memhost_take_overs_total 2",
		"memhost_late_writes_total 1",
		"memhost_uncertain_events_total 8",
		`memhost_follower_queue_events{provider="bm25",role="shadow"} 12`,
		`memhost_follower_lag_seconds{provider="bm25",role="shadow"} 2.5`,
		`memhost_follower_delivered_total{provider="bm25",role="shadow"} 11`,
		`memhost_follower_failed_total{provider="bm25",role="shadow"} 10`,
		"go_goroutines ",
	} {
		require.Contains(t, w.Body.String(), line)
	}
	require.NotContains(t, w.Body.String(), "secret")
}

// TestFollowersThatCannotBeRead leaves out their metrics only.
func TestFollowersThatCannotBeRead(t *testing.T) {
	m, err := server.NewMetrics(nil)
	require.NoError(t, err)
	require.NoError(t, m.Followers(func(context.Context) ([]report.FollowerCounts, error) {
		return nil, abi.NewError(abi.CodeUnavailable, "the store cannot be read")
	}))
	s, _ := newServer(t, new(servertest.Slot), func(o *server.Options) { o.Metrics = m })
	w := ask(s.Handler(), "GET", wire.PathMetrics, "")
	require.Equal(t, 200, w.Code)
	require.Contains(t, w.Body.String(), "go_goroutines ")
	require.NotContains(t, w.Body.String(), "memhost_follower_")
}

func TestCallersCannotMakeSeries(t *testing.T) {
	r := prometheus.NewRegistry()
	m, err := server.NewMetrics(r)
	require.NoError(t, err)
	s, _ := newServer(t, new(servertest.Slot), func(o *server.Options) { o.Metrics = m })
	series := func() int {
		families, err := r.Gather()
		require.NoError(t, err)
		n := 0
		for _, f := range families {
			if strings.HasPrefix(f.GetName(), "memhost_") {
				n += len(f.GetMetric())
			}
		}
		return n
	}
	before := series() // the slot's state
	for i := range 100 {
		ask(s.Handler(), "GET", fmt.Sprintf("/x/%d", i), "")
		ask(s.Handler(), fmt.Sprintf("M%d", i), "/", "")
		ask(s.Handler(), "POST", wire.PathScopes, fmt.Sprintf(`{"run_id":"%d","persona_id":"p"}`, i))
	}
	require.LessOrEqual(t, series(), before+3)
}

func TestMetricsThatAreThereAlready(t *testing.T) {
	r := prometheus.NewRegistry()
	_, err := server.NewMetrics(r)
	require.NoError(t, err)
	_, err = server.NewMetrics(r)
	require.ErrorIs(t, err, &abi.Error{Code: abi.CodeInvalidArgument})
}

// everyMetric returns /metrics of a slot that has counted one of everything.
func everyMetric(t *testing.T, more ...func(*server.Metrics) error) string {
	t.Helper()
	m, err := server.NewMetrics(nil)
	require.NoError(t, err)
	none := func() (int64, int64) { return 0, 0 }
	require.NoError(t, m.TraceLog(none))
	for _, add := range more {
		require.NoError(t, add(m))
	}
	require.NoError(t, m.Host(func() report.Counts { return report.Counts{} }))
	require.NoError(t, m.Store(func(context.Context) report.Store {
		return report.Store{Open: &report.OpenEvents{Oldest: new(time.Duration)}, Bytes: new(int64),
			Connections: new(report.Connections)}
	}))
	require.NoError(t, m.Followers(func(context.Context) ([]report.FollowerCounts, error) {
		return []report.FollowerCounts{{Role: report.RoleShadow, Provider: "bm25"}}, nil
	}))
	s, _ := newServer(t, new(servertest.Slot), func(o *server.Options) { o.Metrics = m })
	m.Observe(host.Observation{Provider: "mem0", Operation: abi.OpRetrieve,
		IO: []abi.IO{{Route: "search", Class: "read", Status: 200}}})
	ask(s.Handler(), "GET", wire.PathLive, "")
	return ask(s.Handler(), "GET", wire.PathMetrics, "").Body.String()
}

// TestTheMetricsPage: docs/reference/prometheus.md is generated from the help texts of the metrics. -update writes it.
func TestTheMetricsPage(t *testing.T) {
	const path = "../../../docs/reference/prometheus.md"
	var b strings.Builder
	b.WriteString("# Metrics of a slot\n\nGenerated from the metrics' own help texts. `go test ./internal/doors/server -run " +
		"TestTheMetricsPage -update` writes this page.\n\n`GET /metrics` is Prometheus text. No label holds an id or a scope, " +
		"and `go_*` and `process_*` are the runtime's own.\n\n| name | type | labels | |\n|---|---|---|---|\n")
	text := everyMetric(t, func(m *server.Metrics) error { return m.Spans(func() (int64, int64) { return 0, 0 }) })
	for _, m := range regexp.MustCompile(`(?m)^# HELP (memhost_\w+) (.*)\n# TYPE \w+ (\w+)$`).FindAllStringSubmatch(text, -1) {
		var labels []string
		series := regexp.MustCompile(`(?m)^` + m[1] + `(?:_count)?{(.*)}`).FindStringSubmatch(text)
		if series != nil {
			for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(series[1], -1) {
				labels = append(labels, label[1])
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m[1], m[3], strings.Join(labels, ", "), m[2])
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(page), "run go test ./internal/doors/server -run TestTheMetricsPage -update")
}

var metricName = regexp.MustCompile(`\b(?:memhost|go|process)_\w+`)

// TestTheAlertsNameMetricsThatThereAre also runs the rules with promtool if it is installed.
func TestTheAlertsNameMetricsThatThereAre(t *testing.T) {
	shown := everyMetric(t)
	text, err := os.ReadFile("../../../examples/operate/alerts.yaml")
	require.NoError(t, err)
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &rules))
	for _, rule := range rules.Groups[0].Rules {
		names := metricName.FindAllString(rule.Expr, -1)
		require.NotEmpty(t, append(names, regexp.MustCompile(`^up\b`).FindAllString(rule.Expr, -1)...), rule.Alert)
		for _, name := range names {
			require.Regexp(t, `(?m)^`+name+`[{ ]`, shown, "%s: %s", rule.Alert, name)
		}
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool, of Debian's package prometheus, is not installed: the rules are not tried")
	}
	command := exec.Command(promtool, "test", "rules", "alerts_test.yaml")
	command.Dir = "../../../examples/operate"
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestTheDashboardNamesMetricsThatThereAre also checks that it shows all of them.
func TestTheDashboardNamesMetricsThatThereAre(t *testing.T) {
	shown := everyMetric(t)
	text, err := os.ReadFile("../../../examples/operate/grafana.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	named := map[string]bool{}
	for _, p := range dashboard.Panels {
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			metrics := metricName.FindAllString(target.Expr, -1)
			require.NotEmpty(t, metrics, target.Expr)
			for _, name := range metrics {
				named[name] = true
				require.Regexp(t, `(?m)^`+name+`[{ ]`, shown, "%s: %s", p.Title, name)
			}
		}
	}
	for _, line := range strings.Split(shown, "\n") {
		if name, ok := strings.CutPrefix(line, "# TYPE memhost_"); ok {
			name, _, _ = strings.Cut(name, " ")
			found := false
			for metric := range named {
				found = found || strings.HasPrefix(metric, "memhost_"+name)
			}
			require.True(t, found, "no panel shows memhost_%s", name)
		}
	}
}

// TestTheSlotsStateIsShown also without requests and without the store.
func TestTheSlotsStateIsShown(t *testing.T) {
	for _, c := range []struct {
		err  error
		want []string
	}{
		{nil, []string{"memhost_ready 1", "memhost_info{version=", "memhost_http_calls_in_flight 1",
			`memhost_call_memory_bytes{of="most"} 1000`, "memhost_read_only "}},
		{abi.NewError(abi.CodeUnavailable, "the database is gone"), []string{"memhost_ready 0"}},
	} {
		s, _ := newServer(t, &servertest.Slot{Answer: func(_ context.Context, op string, _ any) (any, error) {
			return nil, c.err
		}}, func(o *server.Options) { o.CallMemory = 1000 })
		text := ask(s.Handler(), "GET", wire.PathMetrics, "").Body.String()
		for _, want := range c.want {
			require.Contains(t, text, want)
		}
		require.Equal(t, c.err == nil, strings.Contains(text, "memhost_read_only "))
	}
}
