//go:build load && unix

package loadtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"image/color"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/memhost/memhost/abi"
)

// opReset removes all memory of one person.
const opReset = "reset"

// soak is a long run at a steady rate: the resources that hosts and database use must not grow.
type soak struct {
	*load
	arm    *arm
	every  time.Duration // between samples
	rate   int           // requests a second
	series []*series
	// minute has the answers since the last sample, all those since the start.
	minute, all map[string]*vegeta.Metrics
	csv         *csv.Writer
}

// TestSoak runs three hosts on PostgreSQL at a steady rate, samples the resources that they use, and fails if something
// grew: see [series.flat].
//
// SOAK_TIME is the duration, SOAK_EVERY the time between samples, SOAK_RATE the requests per second, SOAK_PERSONAS the
// number of people, SOAK_OUT the folder of the report.
func TestSoak(t *testing.T) {
	whole, err := time.ParseDuration(setting("SOAK_TIME", "60m"))
	require.NoError(t, err, "SOAK_TIME")
	l := &load{t: t, out: setting("SOAK_OUT", t.TempDir())}
	l.personas, err = strconv.Atoi(setting("SOAK_PERSONAS", "1000"))
	require.NoError(t, err, "SOAK_PERSONAS")
	s := &soak{load: l, minute: map[string]*vegeta.Metrics{}, all: map[string]*vegeta.Metrics{}}
	s.every, err = time.ParseDuration(setting("SOAK_EVERY", "1m"))
	require.NoError(t, err, "SOAK_EVERY")
	require.GreaterOrEqual(t, whole, 3*s.every, "SOAK_TIME: want three samples at least")
	s.rate, err = strconv.Atoi(setting("SOAK_RATE", "30"))
	require.NoError(t, err, "SOAK_RATE")
	l.build()
	s.arm = l.onDatabase("three hosts, PostgreSQL", 3)
	l.fill(s.arm)

	file, err := os.Create(filepath.Join(l.out, "soak.csv"))
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	s.csv = csv.NewWriter(file)
	s.run(whole)
	require.NoError(t, s.csv.Error())
	require.NoError(t, s.report(whole))
	for _, x := range s.series {
		require.True(t, x.flat(), "%s is not flat: medians of the thirds are %.1f", x.name, x.thirds())
	}
	for op, m := range s.all {
		require.Equal(t, m.Requests, uint64(m.StatusCodes["200"]), "%s: %v", op, m.Errors)
	}
}

// run sends requests until the time is over, and samples.
func (s *soak) run(whole time.Duration) {
	attacker := vegeta.NewAttacker(vegeta.Timeout(30*time.Second), vegeta.MaxBody(0))
	results := attacker.Attack(s.target(), vegeta.Rate{Freq: s.rate, Per: time.Second}, whole, "soak")
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		select {
		case r, open := <-results:
			if !open {
				return
			}
			op := opRecord
			switch {
			case strings.HasSuffix(r.URL, "/v1/retrieve"):
				op = opRetrieve
			case strings.HasSuffix(r.URL, "/v1/scopes/reset"):
				op = opReset
			}
			for _, to := range []map[string]*vegeta.Metrics{s.minute, s.all} {
				if to[op] == nil {
					to[op] = &vegeta.Metrics{}
				}
				to[op].Add(r)
			}
		case <-tick.C:
			s.sample()
		}
	}
}

// target draws requests: of 30, 14 retrieve, 13 record, 2 repeat an earlier record, and 1 resets a person. So memory
// grows and shrinks, and after a while the number of events per person is about constant.
func (s *soak) target() vegeta.Targeter {
	draw := rand.New(rand.NewPCG(1, 2))
	header := http.Header{"Content-Type": {"application/json"}}
	recent := make([][]byte, 0, 100)
	sent := 0
	return func(t *vegeta.Target) error { // vegeta calls it from one goroutine
		sent++
		who := draw.IntN(s.personas)
		base := s.arm.hosts[sent%len(s.arm.hosts)].url
		*t = vegeta.Target{Method: http.MethodPost, Header: header}
		scope := abi.MemoryScope{RunID: "load", PersonaID: s.arm.persona(who)}
		switch n := draw.IntN(30); {
		case n == 0:
			t.URL, t.Body = base+"/v1/scopes/reset", abi.Marshal(&scope)
		case n <= 2 && len(recent) > 0:
			t.URL, t.Body = base+"/v1/events", recent[draw.IntN(len(recent))]
		case n%2 == 0:
			budget := int64(1000)
			t.URL, t.Body = base+"/v1/retrieve", abi.Marshal(&abi.RetrieveRequest{Query: "tea?", SessionID: "s", Scope: scope,
				Budget: abi.ContextBudget{MaxTokens: &budget}})
		default:
			t.URL, t.Body = base+"/v1/events", abi.Marshal(s.arm.next(who))
			if len(recent) < cap(recent) {
				recent = append(recent, t.Body)
			} else {
				recent[draw.IntN(len(recent))] = t.Body
			}
		}
		return nil
	}
}

// sample takes one sample of each series.
func (s *soak) sample() {
	var row []string
	next := 0
	add := func(name string, share, amount, value float64) {
		if next == len(s.series) {
			s.series = append(s.series, &series{name: name, share: share, amount: amount})
		}
		s.series[next].samples = append(s.series[next].samples, value)
		next++
		row = append(row, strconv.FormatFloat(value, 'f', 2, 64))
	}
	for i, h := range s.arm.hosts {
		m := h.metrics(s.t)
		add(fmt.Sprintf("memory of host %d, MiB", i+1), 0.1, 4, m["process_resident_memory_bytes"]/(1<<20))
		add(fmt.Sprintf("goroutines of host %d", i+1), 0.1, 5, m["go_goroutines"])
		add(fmt.Sprintf("descriptors of host %d", i+1), 0.1, 5, m["process_open_fds"])
	}
	d := askDatabase(s.t, s.arm.database)
	add("connections", 0.1, 3, d.connections)
	add("tables, bytes an event", 0.1, 0, (d.bytes-float64(s.arm.before))/float64(s.arm.events.Load()))
	add("dead rows, % of all", 0.1, 5, 100*d.dead/max(1, d.dead+d.live))
	for _, op := range []string{opRecord, opRetrieve, opReset} {
		m := s.minute[op]
		if m == nil {
			m = &vegeta.Metrics{}
		}
		m.Close()
		add(op+", p50 ms", 0.25, 1, ms(m.Latencies.P50))
		add(op+", p99 ms", 0.5, 5, ms(m.Latencies.P99))
	}
	clear(s.minute)
	if len(s.series[0].samples) == 1 {
		var names []string
		for _, x := range s.series {
			names = append(names, x.name)
		}
		_ = s.csv.Write(names)
	}
	_ = s.csv.Write(row)
	s.csv.Flush()
	s.t.Logf("%s: %d events, %s", time.Now().UTC().Format(time.TimeOnly), s.arm.events.Load(), strings.Join(row, " "))
}

// metrics returns the values in /metrics without labels.
func (p *process) metrics(t *testing.T) map[string]float64 {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/metrics", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	values := map[string]float64{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 2 {
			values[fields[0]], _ = strconv.ParseFloat(fields[1], 64)
		}
	}
	require.NotZero(t, values["go_goroutines"], "%s/metrics: no go_goroutines", p.url)
	return values
}

// database has a server's numbers about memhost's tables and connections.
type database struct{ connections, bytes, live, dead float64 }

func askDatabase(t *testing.T, url string) (d database) {
	conn, err := pgconn.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	results, err := conn.Exec(t.Context(), `SELECT
		(SELECT count(*) FROM pg_stat_activity WHERE application_name = 'memhost'),
		sum(pg_total_relation_size(relid)), sum(n_live_tup), sum(n_dead_tup)
		FROM pg_stat_user_tables WHERE schemaname = 'memhost'`).ReadAll()
	require.NoError(t, err)
	for i, to := range []*float64{&d.connections, &d.bytes, &d.live, &d.dead} {
		*to, err = strconv.ParseFloat(string(results[0].Rows[0][i]), 64)
		require.NoError(t, err)
	}
	return d
}

// report writes soak.md and soak.svg; soak.csv has already been written.
func (s *soak) report(whole time.Duration) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Three hosts, one PostgreSQL, %d requests a second for %v over %d people. Medians of the samples, "+
		"one each %v. Flat: the last third's is at most the second third's and what is allowed.\n\n", s.rate, whole,
		s.personas, s.every)
	b.WriteString("| | first third | second | last | largest | allowed | |\n|---|---|---|---|---|---|---|\n")
	for _, x := range s.series {
		of := x.thirds()
		verdict := "flat"
		if !x.flat() {
			verdict = "**not flat**"
		}
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %.1f | %.1f | +%.0f %% + %.0f | %s |\n", x.name, of[0], of[1], of[2],
			slices.Max(x.samples), 100*x.share, x.amount, verdict)
	}
	b.WriteString("\n| | requests | errors | p50 ms | p99 ms |\n|---|---|---|---|---|\n")
	var failures string
	for _, op := range []string{opRecord, opRetrieve, opReset} {
		m := s.all[op]
		if m == nil {
			continue
		}
		m.Close()
		fmt.Fprintf(&b, "| %s | %d | %d | %.2f | %.2f |\n", op, m.Requests, m.Requests-uint64(m.StatusCodes["200"]),
			ms(m.Latencies.P50), ms(m.Latencies.P99))
		if len(m.Errors) > 0 {
			failures += fmt.Sprintf("\nThe first error of %s: %s\n", op, m.Errors[0])
		}
	}
	b.WriteString(failures)
	s.t.Logf("%s", b.Bytes())
	if err := os.WriteFile(filepath.Join(s.out, "soak.md"), b.Bytes(), 0o644); err != nil {
		return err
	}
	return s.draw(filepath.Join(s.out, "soak.svg"))
}

// draw plots the series over time in minutes: one panel per quantity, one line per host or operation.
func (s *soak) draw(path string) error {
	panels := []struct{ title, of string }{ // of is a part of the names of its series
		{"memory of hosts 1 (blue), 2 (orange), 3 (green), MiB", "memory of"},
		{"goroutines of hosts 1, 2, 3", "goroutines of"},
		{"descriptors of hosts 1, 2, 3", "descriptors of"},
		{"connections", "connections"},
		{"tables, bytes an event", "tables"},
		{"dead rows, % of all", "dead rows"},
		{"p50 of record (blue), retrieve (orange), reset (green), ms", "p50"},
		{"p99 of record, retrieve, reset, ms", "p99"},
	}
	colours := []color.RGBA{{0x00, 0x72, 0xb2, 255}, {0xd5, 0x5e, 0x00, 255}, {0x00, 0x9e, 0x73, 255}}
	canvas := vgsvg.New(20*vg.Centimeter, vg.Length(len(panels))*5*vg.Centimeter)
	tiles := vgdraw.Tiles{Cols: 1, Rows: len(panels), PadY: 5 * vg.Millimeter, PadRight: 5 * vg.Millimeter}
	var plots [][]*plot.Plot
	for _, panel := range panels {
		p := plot.New()
		p.Title.Text, p.X.Label.Text, p.BackgroundColor, p.Y.Min = panel.title, "minutes", color.White, 0
		lines := 0
		for _, x := range s.series {
			if !strings.Contains(x.name, panel.of) {
				continue
			}
			points := make(plotter.XYs, len(x.samples))
			for i, value := range x.samples {
				points[i] = plotter.XY{X: float64(i+1) * s.every.Minutes(), Y: value}
			}
			line, err := plotter.NewLine(points)
			if err != nil {
				return err
			}
			line.Color, line.Width = colours[lines%len(colours)], vg.Points(1.2)
			lines++
			p.Add(line)
		}
		p.Y.Min, p.Y.Max = 0, 1.1*p.Y.Max
		plots = append(plots, []*plot.Plot{p})
	}
	for i, row := range plot.Align(plots, tiles, vgdraw.New(canvas)) {
		plots[i][0].Draw(row[0])
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
