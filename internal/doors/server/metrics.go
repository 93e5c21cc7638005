package server

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
)

// Metrics holds the metrics at /metrics. They exist before the Host does, because host.Options.Observe feeds them.
//
// No label holds an id, a scope or any other value that a caller chooses: the number of series is bounded by providers,
// operations and routes of manifests.
type Metrics struct {
	registry       *prometheus.Registry
	operations     *prometheus.CounterVec
	seconds        *prometheus.HistogramVec
	backendSeconds *prometheus.HistogramVec
	pluginSeconds  *prometheus.HistogramVec
	nativeCalls    *prometheus.CounterVec
	requests       *prometheus.CounterVec
}

// NewMetrics registers the metrics, and those of the Go runtime and the process, with r; nil means a new registry.
//
// Errors: a metric is already registered.
func NewMetrics(r *prometheus.Registry) (*Metrics, error) {
	if r == nil {
		r = prometheus.NewRegistry()
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help,
			// From the host's own overhead to a backend that waits for a language model.
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}},
			[]string{"provider", "operation"})
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{registry: r,
		operations: counter("memhost_operations_total",
			"Operations of the contract that ended, by error code; ok for success, skipped_read_only where the wall kept out "+
				"at least one of the changes. origin is page for questions from the slot's page.", "provider", "operation", "code", "origin"),
		seconds:        histogram("memhost_operation_seconds", "How long operations took, as the host saw it."),
		backendSeconds: histogram("memhost_backend_seconds", "How much of an operation the backend's answers took."),
		pluginSeconds:  histogram("memhost_plugin_seconds", "How much of an operation the plugin itself took."),
		nativeCalls: counter("memhost_native_calls_total",
			"Calls that plugins made to their backends, by the backend's own status; 0 when there was no answer.",
			"provider", "route", "class", "status"),
		requests: counter("memhost_http_requests_total",
			"Requests to the HTTP door, those that it refused included.", "route", "status"),
	}
	for _, c := range []prometheus.Collector{m.operations, m.seconds, m.backendSeconds, m.pluginSeconds, m.nativeCalls,
		m.requests,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := r.Register(c); err != nil {
			return nil, abi.WrapError(abi.CodeInvalidArgument, "server: registering metrics: "+err.Error(), err)
		}
	}
	return m, nil
}

// TraceLog adds the numbers of lines that the log of the run has and lacks.
//
// Errors: they are already registered.
func (m *Metrics) TraceLog(counts func() (written, lost int64)) error {
	return m.twoCounts(counts, "memhost_trace_lines_total", "Lines written to the log of the run.",
		"memhost_trace_lost_total", "Lines that the log of the run lacks.")
}

// Spans adds the numbers of spans that the collector has and lacks.
//
// Errors: they are already registered.
func (m *Metrics) Spans(counts func() (sent, lost int64)) error {
	return m.twoCounts(counts, "memhost_spans_sent_total", "Spans that the OpenTelemetry collector has taken; absent without a collector.",
		"memhost_spans_lost_total", "Spans that the OpenTelemetry collector did not get; absent without a collector.")
}

// twoCounts registers two counters with their help texts.
func (m *Metrics) twoCounts(counts func() (a, b int64), nameA, helpA, nameB, helpB string) error {
	for _, c := range []prometheus.Collector{
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: nameA, Help: helpA},
			func() float64 { a, _ := counts(); return float64(a) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: nameB, Help: helpB},
			func() float64 { _, b := counts(); return float64(b) })} {
		if err := m.registry.Register(c); err != nil {
			return abi.WrapError(abi.CodeInvalidArgument, "server: registering metrics: "+err.Error(), err)
		}
	}
	return nil
}

// Host adds the host's counts of its store and, if several hosts share it, of the cluster.
//
// Errors: they are already registered.
func (m *Metrics) Host(counts func() report.Counts) error {
	if err := m.registry.Register(hostCounts(counts)); err != nil {
		return abi.WrapError(abi.CodeInvalidArgument, "server: registering metrics: "+err.Error(), err)
	}
	return nil
}

// hostCounts is the prometheus.Collector of a host's counts.
type hostCounts func() report.Counts

var (
	commits = prometheus.NewDesc("memhost_commits_total",
		"Transactions that write state, by outcome: ok; refused (another write came first, decided anew); failed; "+
			"uncertain.", []string{"outcome"}, nil)
	turnWaits = prometheus.NewDesc("memhost_turn_wait_seconds",
		"How often and how long writes waited for another host's write to the same scope; 0 if the store is a file.", nil, nil)
	takeOvers = prometheus.NewDesc("memhost_take_overs_total",
		"Scopes taken over from a host that had ended while it wrote to them; 0 if the store is a file.", nil, nil)
	lateWrites = prometheus.NewDesc("memhost_late_writes_total",
		"Native calls that left this host after its session had ended; each one needs a look. 0 if the store is a file.", nil, nil)
	uncertainEvents = prometheus.NewDesc("memhost_uncertain_events_total",
		"How often the outcome of sending an event was not known.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c hostCounts) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, to) }

// Collect implements prometheus.Collector.
func (c hostCounts) Collect(to chan<- prometheus.Metric) {
	n := c()
	count := func(d *prometheus.Desc, value int64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
	}
	count(commits, n.Commits, "ok")
	count(commits, n.CommitsRefused, "refused")
	count(commits, n.CommitsFailed, "failed")
	count(commits, n.CommitsUncertain, "uncertain")
	to <- prometheus.MustNewConstSummary(turnWaits, uint64(n.TurnWaits), n.TurnWaited.Seconds(), nil)
	count(takeOvers, n.TakeOvers)
	count(lateWrites, n.LateWrites)
	count(uncertainEvents, n.UncertainEvents)
}

// Store adds the store's content: open events, bytes, connections.
//
// Errors: it is already registered.
func (m *Metrics) Store(look func(context.Context) report.Store) error {
	if err := m.registry.Register(storeState(look)); err != nil {
		return abi.WrapError(abi.CodeInvalidArgument, "server: registering metrics: "+err.Error(), err)
	}
	return nil
}

// storeState is the prometheus.Collector of a host's store. It leaves out what cannot be read.
type storeState func(context.Context) report.Store

var (
	openEvents = prometheus.NewDesc("memhost_open_events",
		"Events whose delivery is not settled: queued (the backend works on it), pending (it may still arrive), lost (it "+
			"did not arrive).", []string{"state"}, nil)
	oldestOpenEvent = prometheus.NewDesc("memhost_oldest_open_event_seconds",
		"How long ago the oldest queued or pending event was sent; 0 without one, absent beyond 5,000 of them.", nil, nil)
	storeBytes = prometheus.NewDesc("memhost_store_bytes",
		"The size of the data file, or of the slot's tables with their indexes.", nil, nil)
	storeConnections = prometheus.NewDesc("memhost_store_connections",
		"Connections to the database: used by this host, the most that it opens, allowed to the user by the server.",
		[]string{"of"}, nil)
)

// Describe implements prometheus.Collector.
func (c storeState) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{openEvents, oldestOpenEvent, storeBytes, storeConnections} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c storeState) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	is := c(ctx)
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	if open := is.Open; open != nil {
		gauge(openEvents, float64(open.Queued), "queued")
		gauge(openEvents, float64(open.Pending), "pending")
		gauge(openEvents, float64(open.Lost), "lost")
		if open.Oldest != nil {
			gauge(oldestOpenEvent, open.Oldest.Seconds())
		}
	}
	if is.Bytes != nil {
		gauge(storeBytes, float64(*is.Bytes))
	}
	if n := is.Connections; n != nil {
		gauge(storeConnections, float64(n.Used), "used")
		gauge(storeConnections, float64(n.Max), "most")
		gauge(storeConnections, float64(n.Allowed), "allowed")
	}
}

// Followers adds the progress of the slot's followers.
//
// Errors: it is already registered.
func (m *Metrics) Followers(counts func(context.Context) ([]report.FollowerCounts, error)) error {
	if err := m.registry.Register(followerCounts(counts)); err != nil {
		return abi.WrapError(abi.CodeInvalidArgument, "server: registering metrics: "+err.Error(), err)
	}
	return nil
}

// slot adds the slot's state, for alerts.
//
// Errors: it is already registered.
func (m *Metrics) slot(s *Server) error {
	if err := m.registry.Register(slotState{s}); err != nil {
		return abi.WrapError(abi.CodeInvalidArgument, "server: registering metrics: "+err.Error(), err)
	}
	return nil
}

// slotState is the prometheus.Collector of a slot's state.
type slotState struct{ *Server }

var (
	slotInfo = prometheus.NewDesc("memhost_info", "1, with the version of the program.", []string{"version"}, nil)
	ready    = prometheus.NewDesc("memhost_ready", "1 while the slot serves, as /readyz says; 0 also while its store cannot "+
		"be reached.", nil, nil)
	readOnly = prometheus.NewDesc("memhost_read_only", "1 while the slot is read-only. It is absent while the store cannot "+
		"be reached.", nil, nil)
	callsUnderWay = prometheus.NewDesc("memhost_http_calls_in_flight",
		"Requests to the HTTP door that are under way, streams and this one included.", nil, nil)
	callMemory = prometheus.NewDesc("memhost_call_memory_bytes",
		"The memory that calls under way count for, and the most that they may (0: no bound).", []string{"of"}, nil)
)

// Describe implements prometheus.Collector.
func (c slotState) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{slotInfo, ready, readOnly, callsUnderWay, callMemory} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c slotState) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	truth := map[bool]float64{true: 1}
	gauge(slotInfo, 1, c.options.Version)
	gauge(ready, truth[c.ready(context.Background()) == nil])
	gauge(callsUnderWay, float64(c.calls.Load()))
	used, most := c.memory.state()
	gauge(callMemory, float64(used), "used")
	gauge(callMemory, float64(most), "most")
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	if mode, err := c.options.Slot.Mode(ctx); err == nil {
		gauge(readOnly, truth[mode.ReadOnly])
	}
}

// followerCounts is the prometheus.Collector of a slot's followers.
type followerCounts func(context.Context) ([]report.FollowerCounts, error)

// followerDesc describes a metric of a follower.
func followerDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("memhost_follower_"+name, help, []string{"role", "provider"}, nil)
}

var (
	followerQueue = followerDesc("queue_events", "Events that a shadow or the target of a backfill has not got yet. Refused ones are not in it: memhost shadow report and "+
		"memhost backfill list them.")
	followerLag   = followerDesc("lag_seconds", "How long ago the oldest event was recorded that the follower has not got yet.")
	followerGot   = followerDesc("delivered_total", "Events that the follower got since it began in this process.")
	followerFails = followerDesc("failed_total",
		"Deliveries of an event that were refused, did not reach it, or had an outcome that was not known.")
)

// Describe implements prometheus.Collector.
func (c followerCounts) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{followerQueue, followerLag, followerGot, followerFails} {
		to <- d
	}
}

// followersWithin bounds the time for reading the followers' queues.
const followersWithin = 5 * time.Second

// Collect implements prometheus.Collector. If the store cannot be read only these metrics are missing.
func (c followerCounts) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), followersWithin)
	defer cancel()
	list, err := c(ctx)
	if err != nil {
		return
	}
	for _, f := range list {
		show := func(d *prometheus.Desc, kind prometheus.ValueType, value float64) {
			to <- prometheus.MustNewConstMetric(d, kind, value, f.Role, f.Provider)
		}
		show(followerQueue, prometheus.GaugeValue, float64(f.Queue))
		show(followerLag, prometheus.GaugeValue, f.Lag.Seconds())
		show(followerGot, prometheus.CounterValue, float64(f.Delivered))
		show(followerFails, prometheus.CounterValue, float64(f.Failed))
	}
}

// Observe counts an operation; it is meant for host.Options.Observe.
func (m *Metrics) Observe(o host.Observation) {
	code := string(o.Code)
	switch {
	case code == "" && o.Skipped > 0:
		code = string(abi.StatusSkippedReadOnly)
	case code == "":
		code = "ok"
	case !slices.Contains(abi.Codes(), o.Code):
		code = other
	}
	m.operations.WithLabelValues(o.Provider, o.Operation, code, o.Origin).Inc()
	observe := func(h *prometheus.HistogramVec, d time.Duration) {
		h.WithLabelValues(o.Provider, o.Operation).Observe(d.Seconds())
	}
	observe(m.seconds, o.Latency)
	observe(m.backendSeconds, o.Backend)
	observe(m.pluginSeconds, o.Plugin)
	for _, io := range o.IO {
		m.nativeCalls.WithLabelValues(o.Provider, io.Route, io.Class, statusLabel(io.Status)).Inc()
	}
}

// other replaces values that a label must not have.
const other = "other"

func statusLabel(status int64) string {
	if status != 0 && (status < 100 || status > 599) {
		return other
	}
	return strconv.FormatInt(status, 10)
}

// handler serves the registry.
func (m *Metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: nil, EnableOpenMetrics: true})
}
