//go:build load && unix

package loadtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/test/pgserver"
)

// rates are request rates per second, independent of how long the answers take. An arm gets no higher rate after one at
// which it is saturated.
var rates = []int{50, 100, 200, 400, 800, 1600, 3200}

// rounds is how often each rate is used, so that other load on the machine affects all arms equally.
const rounds = 2

// An arm is a set of hosts of one slot, over which the load is spread.
type arm struct {
	name    string
	hosts   []*process
	events  atomic.Int64
	persona func(i int) string
	// before is the size of its store in bytes without events, stored its present size.
	before int64
	stored func() int64
	// database is the URL of its server; empty for a file.
	database string
	// filled is how long it took to record the first event of each persona, in batches; known is the same for the
	// second event.
	filled, known time.Duration
	cells         []*cell
}

// cell is the result of one arm at one rate. The first index is the operation.
type cell struct {
	rate    int
	metrics map[string]*vegeta.Metrics
	// hostCPU and allCPU are how many cores its hosts and the whole machine used, summed over the rounds.
	hostCPU, allCPU float64
	rounds          int
}

// saturated reports whether the arm did not keep up: half of the requests took more than a second, or some failed.
func (c *cell) saturated() bool {
	for _, m := range c.metrics {
		m.Close()
		if m.Requests > 0 && (m.Latencies.P50 > time.Second || m.Success < 1) {
			return true
		}
	}
	return false
}

const (
	opRecord   = "record"
	opRetrieve = "retrieve"
)

// process is a running host.
type process struct {
	*exec.Cmd
	url string
}

// load is the configuration of the run, from its environment.
type load struct {
	t        *testing.T
	program  string
	out      string
	personas int
	each     time.Duration // duration of one round of one rate at one arm
}

// TestLoad drives all arms alternately with the same open-loop load and writes the report.
//
// LOAD_TIME is the total duration of the load, LOAD_OUT the folder of the report, LOAD_PERSONAS the number of people in
// the events.
func TestLoad(t *testing.T) {
	whole, err := time.ParseDuration(setting("LOAD_TIME", "4m"))
	require.NoError(t, err, "LOAD_TIME")
	l := &load{t: t, out: setting("LOAD_OUT", t.TempDir())}
	l.personas, err = strconv.Atoi(setting("LOAD_PERSONAS", "10000"))
	require.NoError(t, err, "LOAD_PERSONAS")
	l.build()
	arms := []*arm{l.onFile("one host, file", "power", t.TempDir()), l.onDatabase("one host, PostgreSQL", 1),
		l.onDatabase("three hosts, PostgreSQL", 3)}
	l.each = whole / time.Duration(len(arms)*len(rates)*rounds)
	require.GreaterOrEqual(t, l.each, time.Second, "LOAD_TIME: want %v at least", l.each*time.Duration(len(arms)*6))
	for _, a := range arms {
		l.fill(a)
		for _, rate := range rates {
			a.cells = append(a.cells, &cell{rate: rate,
				metrics: map[string]*vegeta.Metrics{opRecord: {}, opRetrieve: {}}})
		}
	}
	for round := range rounds {
		for i, rate := range rates {
			for j := range arms {
				a := arms[(j+round)%len(arms)] // no arm is always the first one
				if i > 0 && (a.cells[i-1].saturated() || a.cells[i-1].rounds <= round) {
					continue
				}
				l.drive(a, a.cells[i], uint64(1+round))
				t.Logf("round %d: %d requests/s at %s", round+1, rate, a.name)
			}
		}
	}
	for _, a := range arms { // a rate that only some rounds reached is beyond saturation
		for i := range a.cells {
			if a.cells[i].rounds < rounds {
				a.cells = a.cells[:i]
				break
			}
		}
	}
	require.NoError(t, l.report(arms))
	for _, a := range arms {
		require.NotEmpty(t, a.cells, "%s", a.name)
		for _, c := range a.cells {
			for op, m := range c.metrics {
				require.Positive(t, m.Requests, "%s at %d/s: no %s was sent", a.name, c.rate, op)
			}
		}
	}
}

// build builds the program and creates the folder of the report.
func (l *load) build() {
	require.NoError(l.t, os.MkdirAll(l.out, 0o755))
	l.program = filepath.Join(l.t.TempDir(), "memhost")
	build := exec.Command("go", "build", "-o", l.program, "./cmd/memhost")
	build.Dir = filepath.Join("..", "..")
	said, err := build.CombinedOutput()
	require.NoError(l.t, err, "%s", said)
}

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// onFile is one host with its state in a file in a folder.
func (l *load) onFile(name, durability, dir string) *arm {
	l.configure(dir, fmt.Sprintf("data: {durability: %s}\n", durability))
	a := l.open(name, dir)
	a.stored = func() (bytes int64) {
		err := filepath.WalkDir(filepath.Join(dir, "data"), func(_ string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || err == nil && entry.IsDir() {
				return nil // a segment that was merged
			}
			info, err := entry.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil {
				bytes += info.Size()
			}
			return err
		})
		require.NoError(l.t, err)
		return bytes
	}
	a.before = a.stored()
	return a
}

// onDatabase starts hosts with their own PostgreSQL server.
func (l *load) onDatabase(name string, hosts int) *arm {
	server := pgserver.Start(l.t)
	a := l.onServer(name, server.URL, "memhost", hosts)
	a.stored = func() int64 { return int64(askDatabase(l.t, server.URL).bytes) }
	a.before = a.stored()
	return a
}

// onServer starts hosts on a schema of a PostgreSQL server.
func (l *load) onServer(name, url, schema string, hosts int) *arm {
	var dirs []string
	for range hosts {
		dir := l.t.TempDir()
		l.configure(dir, fmt.Sprintf("store: {postgres: {url: %q, schema: %s}}\n", url, schema))
		dirs = append(dirs, dir)
	}
	migrate := exec.Command(l.program, "cluster", "migrate", "--config", filepath.Join(dirs[0], "memhost.yaml"))
	said, err := migrate.CombinedOutput()
	require.NoError(l.t, err, "%s", said)
	a := l.open(name, dirs...)
	a.database = url
	return a
}

func (l *load) configure(dir, store string) {
	text := "memory: {condition: full_history, smoke: never}\n" + store
	require.NoError(l.t, os.WriteFile(filepath.Join(dir, "memhost.yaml"), []byte(text), 0o600))
}

// open starts a host in each folder.
func (l *load) open(name string, dirs ...string) *arm {
	a := &arm{name: name, persona: func(i int) string { return fmt.Sprint("persona ", i%l.personas) }}
	for _, dir := range dirs {
		cmd := exec.Command(l.program, "run", "--config", filepath.Join(dir, "memhost.yaml"), "--data",
			filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--json")
		out, err := cmd.StdoutPipe()
		require.NoError(l.t, err)
		require.NoError(l.t, cmd.Start())
		l.t.Cleanup(func() {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		})
		var serving struct{ URL string }
		require.NoError(l.t, json.NewDecoder(out).Decode(&serving))
		a.hosts = append(a.hosts, &process{cmd, serving.URL})
	}
	return a
}

// fill records an event of each persona, and then another one, in batches.
func (l *load) fill(a *arm) {
	a.filled, a.known = l.record(a), l.record(a)
	l.t.Logf("%s: %d personas in %.1f s, and again in %.1f s", a.name, l.personas, a.filled.Seconds(), a.known.Seconds())
}

// record records an event of each persona, in batches, and returns how long that took.
func (l *load) record(a *arm) time.Duration {
	c, err := client.New(a.hosts[0].url, "")
	require.NoError(l.t, err)
	defer c.Close()
	began := time.Now()
	for first := 0; first < l.personas; first += 1000 {
		batch := &abi.EventBatch{}
		for i := first; i < min(first+1000, l.personas); i++ {
			batch.Events = append(batch.Events, *a.next(i))
		}
		receipts, err := c.RecordEvents(l.t.Context(), batch)
		require.NoError(l.t, err)
		for _, r := range receipts.Receipts {
			require.Nil(l.t, r.Error)
		}
	}
	return time.Since(began)
}

// next returns a new event of the i-th persona.
func (a *arm) next(i int) *abi.MemoryEvent {
	n := a.events.Add(1)
	text := fmt.Sprintf("Turn %d: I had a cup of tea and thought about the trip to the mountains that we planned.", n)
	return &abi.MemoryEvent{EventID: fmt.Sprint("e", n), RunID: "load", UserID: a.persona(i), SessionID: "s",
		TurnID: fmt.Sprint("t", n), Timestamp: time.Now().UTC().Format(time.RFC3339),
		Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}}
}

// drive sends one round of one rate: half of the requests record, half retrieve, each for a random persona, at the
// hosts in turn.
func (l *load) drive(a *arm, c *cell, seed uint64) {
	draw := rand.New(rand.NewPCG(seed, uint64(c.rate)))
	header := http.Header{"Content-Type": {"application/json"}}
	sent := 0
	var alone sync.Mutex
	target := func(t *vegeta.Target) error {
		alone.Lock()
		defer alone.Unlock()
		sent++
		who := draw.IntN(l.personas)
		base := a.hosts[sent%len(a.hosts)].url
		*t = vegeta.Target{Method: http.MethodPost, Header: header}
		if draw.IntN(2) == 0 {
			t.URL, t.Body = base+"/v1/events", abi.Marshal(a.next(who))
			return nil
		}
		budget := int64(1000)
		t.URL, t.Body = base+"/v1/retrieve", abi.Marshal(&abi.RetrieveRequest{Query: "tea?", SessionID: "s",
			Scope: abi.MemoryScope{RunID: "load", PersonaID: a.persona(who)}, Budget: abi.ContextBudget{MaxTokens: &budget}})
		return nil
	}
	began, hosts, all := time.Now(), a.cpu(), machineCPU()
	attacker := vegeta.NewAttacker(vegeta.Timeout(30*time.Second), vegeta.MaxBody(0), vegeta.MaxWorkers(2000))
	for r := range attacker.Attack(target, vegeta.Rate{Freq: c.rate, Per: time.Second}, l.each, a.name) {
		op := opRecord
		if strings.HasSuffix(r.URL, "/v1/retrieve") {
			op = opRetrieve
		}
		c.metrics[op].Add(r)
	}
	took := time.Since(began)
	c.hostCPU += float64(a.cpu()-hosts) / float64(took)
	c.allCPU += float64(machineCPU()-all) / float64(took)
	c.rounds++
}

// cpu is the CPU time of the arm's hosts.
func (a *arm) cpu() (used time.Duration) {
	for _, h := range a.hosts {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.Process.Pid))
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 12 {
			used += ticks(fields[11:13]) // user and system
		}
	}
	return used
}

// machineCPU is the CPU time that all processes have used.
func machineCPU() time.Duration {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 {
		return 0
	}
	return ticks(append(fields[1:4:4], fields[6:9]...)) // all but idle and waiting for the disk
}

// ticks adds numbers of hundredths of a second.
func ticks(fields []string) (sum time.Duration) {
	for _, field := range fields {
		n, _ := strconv.ParseInt(field, 10, 64)
		sum += time.Duration(n) * 10 * time.Millisecond
	}
	return sum
}

// resident is a host's memory in bytes; 0 if the system does not report it.
func (p *process) resident() int64 { return p.status("VmRSS:") }

// status reads a size from the system's table of the process, in bytes; 0 if the system does not report it.
func (p *process) status(name string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		return 0
	}
	lines := strings.Split(string(text), "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, name) })
	if at < 0 {
		return 0
	}
	kib, err := strconv.ParseInt(strings.Fields(lines[at])[1], 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}
