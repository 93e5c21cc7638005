//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/history"
	"github.com/memhost/memhost/internal/test/pgserver"
	"github.com/memhost/memhost/internal/test/testguest"
)

// clusterTime is how long TestHostsOfOneSlotLoseAndDoubleNothing injects faults, from MEMHOST_CLUSTER_TIME. The test
// takes some 30 seconds more, because what a dead host had sent is only settled after its session.
func clusterTime(t *testing.T) time.Duration {
	text := os.Getenv("MEMHOST_CLUSTER_TIME")
	if text == "" {
		if testing.Short() || brief.Tests() {
			return 5 * time.Second
		}
		return 20 * time.Second
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

// clusterSeed is the random seed of the faults, from MEMHOST_CLUSTER_SEED.
func clusterSeed(t *testing.T) uint64 {
	text := os.Getenv("MEMHOST_CLUSTER_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano())
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err)
	return seed
}

// keeper is a backend that stores parts of events, and records when each arrived.
type keeper struct {
	clock *history.Recorder
	mu    sync.Mutex
	parts []keptPart
	have  map[string][2]int // how often it has each part of an event
	// wall is set while the slot is read-only for all scopes except those in notReady.
	wall     bool
	notReady map[string]bool
	// held is an event whose parts wait for release; came is closed when the first part has arrived.
	held          string
	came, release chan struct{}
}

// hold makes the parts of an event wait.
func (k *keeper) hold(event string) (came <-chan struct{}, release chan<- struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held, k.came, k.release = event, make(chan struct{}), make(chan struct{})
	return k.came, k.release
}

// wait waits if the event is held.
func (k *keeper) wait(event string) {
	k.mu.Lock()
	held := event == k.held
	if held {
		k.held = ""
		close(k.came)
	}
	release := k.release
	k.mu.Unlock()
	if held {
		<-release
	}
}

// keptPart is a part of an event that arrived. behind means that the slot was read-only.
type keptPart struct {
	event  string
	part   int
	at     int64
	behind bool
}

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/find" {
		k.mu.Lock()
		have := k.have[r.URL.Query().Get("event")]
		k.mu.Unlock()
		var missing []string
		for part, n := range have {
			if n == 0 {
				missing = append(missing, partNames[part])
			}
		}
		_, _ = w.Write([]byte([]string{"present", "partial " + strings.Join(missing, " "), "absent"}[len(missing)]))
		return
	}
	var body struct{ Event, Part string }
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		return
	}
	k.wait(body.Event)
	time.Sleep(rand.N(10 * time.Millisecond)) // the backend is working, and a host that dies now does not know the outcome
	part := slices.Index(partNames, body.Part)
	k.mu.Lock()
	have := k.have[body.Event]
	have[part]++
	k.have[body.Event] = have
	k.parts = append(k.parts, keptPart{body.Event, part, k.clock.Now(), k.wall && !k.notReady[scopeOf(body.Event)]})
	k.mu.Unlock()
	time.Sleep(rand.N(10 * time.Millisecond))
	_, _ = w.Write([]byte("ok"))
}

// raise marks the slot as read-only for all scopes except some.
func (k *keeper) raise(wall bool, notReady ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wall, k.notReady = wall, map[string]bool{}
	for _, scope := range notReady {
		k.notReady[scope] = true
	}
}

var partNames = []string{"a", "b"}

// clusterClients is how many clients record, with two per scope at a time. A scope gets scopeEvents of each.
const (
	clusterClients = 24
	scopeEvents    = 20
)

// The name of an event has its client and its number there: "c03-000041". Client 3 shares its scopes with client 2:
// "s01-00002".
func eventID(client, i int) string { return fmt.Sprintf("c%02d-%06d", client, i) }

func scopeOf(event string) string {
	var client, i int
	if _, err := fmt.Sscanf(event, "c%d-%d", &client, &i); err != nil {
		return ""
	}
	return fmt.Sprintf("s%02d-%05d", client/2, i/scopeEvents)
}

// TestHostsOfOneSlotLoseAndDoubleNothing: three processes serve one slot with one database. Clients record and read,
// each call at any host. In that time hosts and the database are killed and suspended, the network between them and to
// the backend is cut, the slot becomes read-only and writable again, and its provider is swapped. In the end each event
// is in the backend once, and the clients' results are consistent with some sequential order.
func TestHostsOfOneSlotLoseAndDoubleNothing(t *testing.T) {
	brief.Leave(t)
	began := time.Now()
	seed := clusterSeed(t)
	t.Logf("seed %d (MEMHOST_CLUSTER_SEED)", seed)
	var db database
	if home := os.Getenv("MEMHOST_CLUSTER_HA"); home != "" {
		db = startPatroni(t, home)
	} else if mode := os.Getenv("MEMHOST_CLUSTER_POOLER"); mode != "" {
		server := pgserver.Start(t)
		db = pooledDatabase{plainDatabase{server}, server.Pooler(t, mode, "server_login_retry = 1")}
	} else {
		db = plainDatabase{pgserver.Start(t)}
	}
	c := startCluster(t, 3, db)

	load, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for team := range clusterClients / 2 {
		clients.Go(func() { c.playTeam(load, team) })
	}
	random := rand.New(rand.NewPCG(seed, 22))
	d := &faultInjector{busy: map[string]bool{}, counts: map[string]int{}, pairs: map[string]int{}}
	short := clusterTime(t) < time.Minute
	rest := 8 * time.Second // time for the clients to make progress
	if short {
		rest = time.Second
	}
	kinds := c.faults(short)
	end := time.Now().Add(clusterTime(t))
	var faults sync.WaitGroup
	for range 2 {
		own := rand.New(rand.NewPCG(random.Uint64(), 22))
		faults.Go(func() { d.work(kinds, own, rest, end) })
	}
	own := rand.New(rand.NewPCG(random.Uint64(), 22))
	faults.Go(func() { d.work(c.slotWide(), own, 2*rest, end) })
	for time.Now().Before(end) {
		time.Sleep(min(10*time.Second, time.Until(end)))
		c.noteLateWrites()
		t.Logf("%s: %s; %s", time.Since(began).Round(time.Second), c.n.line(), d)
	}
	faults.Wait()
	stop()
	clients.Wait()
	// If a fault or a client gave up, the test has failed, but still reports what the backend has.
	t.Logf("%s; the clients have ended after %s", d, time.Since(began).Round(time.Second))
	c.verify()
}

// clusterHosts are the processes of one slot, each with its own folder, and their environment.
type clusterHosts struct {
	t         *testing.T
	database  database
	links     []hostLink // from each host to the database
	backend   *httptest.Server
	toBackend *network
	keeper    *keeper
	history   *history.Recorder
	n         counts
	machines  []memhost

	mu      sync.Mutex
	running []*slotProcess
	late    map[string]bool // events that were reported as late writes
	swaps   swaps
}

// database is what the hosts share.
type database interface {
	// addresses returns the addresses of its servers, url the connection string of a host that reaches them at other
	// addresses.
	addresses() []string
	url(addresses []string) string
	// crash kills the server that accepts writes, and waits until there is one again.
	crash()
	// stop suspends it for a while.
	stop(d time.Duration)
	// more returns kinds of faults that only this database has, limited to those that fit into most.
	more(most time.Duration) []fault
}

// plainDatabase is a single server.
type plainDatabase struct{ *pgserver.Server }

func (p plainDatabase) addresses() []string        { return []string{fmt.Sprintf("127.0.0.1:%d", p.Port())} }
func (p plainDatabase) more(time.Duration) []fault { return nil }
func (p plainDatabase) url(addresses []string) string {
	return "postgres://memhost@" + addresses[0] + "/postgres?sslmode=disable"
}

func (p plainDatabase) crash() {
	p.Kill()
	p.Run()
}

func (p plainDatabase) stop(d time.Duration) {
	p.Pause()
	defer p.Continue()
	time.Sleep(d)
}

// pooledDatabase is a single server behind PgBouncer, in the mode MEMHOST_CLUSTER_POOLER.
type pooledDatabase struct {
	plainDatabase
	pooler *pgserver.Pooler
}

func (p pooledDatabase) addresses() []string {
	return []string{fmt.Sprintf("127.0.0.1:%d", p.pooler.Port())}
}

func (p pooledDatabase) more(most time.Duration) []fault {
	return []fault{
		{"pooler killed", []string{"database"}, func(*rand.Rand) {
			p.pooler.Kill()
			p.pooler.Run()
		}},
		{"pooler stopped", []string{"database"}, func(random *rand.Rand) {
			p.pooler.Pause()
			defer p.pooler.Continue()
			time.Sleep(span(random, min(5*time.Second, most/2), most))
		}}}
}

// startCluster starts hosts of one slot with a database and a backend.
func startCluster(t *testing.T, hosts int, db database) *clusterHosts {
	c := &clusterHosts{t: t, database: db, history: history.NewRecorder(), late: map[string]bool{}}
	c.keeper = &keeper{clock: c.history, have: map[string][2]int{}}
	c.backend = httptest.NewServer(c.keeper)
	t.Cleanup(c.backend.Close)
	c.toBackend = newNetwork(t, "backend", c.backend.Listener.Addr().String())
	cache := cacheHome(t)
	for at := range hosts {
		to := newLink(t, fmt.Sprint("database ", at), db.addresses())
		m := memhost{t, t.TempDir(), cache, ""}
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, "probe.wasm"), testguest.Probe(), 0o600))
		yaml := fmt.Sprintf("memory:\n  condition: probe\n  plugin: ./probe.wasm\n  smoke: never\n  conditions:\n    "+
			"probe: {url: %q}\nstore: {postgres: {url: %q}}\nlimits: {mode_wait_ms: 20000}\n", c.backendURL(),
			db.url(to.listen()))
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, "memhost.yaml"), []byte(yaml), 0o600))
		if at == 0 {
			_, code := m.run("cluster", "migrate")
			require.Zero(t, code)
		}
		c.machines, c.links, c.running = append(c.machines, m), append(c.links, to), append(c.running, m.serve())
	}
	t.Logf("%d hosts serve over %s", hosts, strings.Join(db.addresses(), ", "))
	return c
}

func (c *clusterHosts) backendURL() string { return "http://" + c.toBackend.Listen }

func (c *clusterHosts) url(at int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[at].url
}

func (c *clusterHosts) process(at int) *os.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[at].Process
}

// restart kills a host and starts it again, repeatedly if the database cannot be reached.
func (c *clusterHosts) restart(at int) {
	c.mu.Lock()
	old := c.running[at]
	c.mu.Unlock()
	_ = old.Process.Kill()
	_ = old.Wait()
	var said bytes.Buffer
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		m := c.machines[at]
		cmd := m.command("run", "--listen", "127.0.0.1:0", "--json")
		said.Reset()
		cmd.Stderr = &said
		out, err := cmd.StdoutPipe()
		if err != nil || cmd.Start() != nil {
			continue
		}
		late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		var serving struct{ URL string }
		if json.NewDecoder(out).Decode(&serving) != nil || serving.URL == "" {
			late.Stop()
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			continue
		}
		late.Stop()
		c.t.Cleanup(func() { _ = cmd.Process.Kill() })
		c.mu.Lock()
		c.running[at] = &slotProcess{cmd, c.t, serving.URL}
		c.mu.Unlock()
		return
	}
	seen, _ := os.ReadFile(filepath.Join(c.machines[at].dir, "data", "cluster.json"))
	c.t.Errorf("host %d did not start again within 3 minutes; it has seen %s and said: %s", at, seen,
		strings.ReplaceAll(said.String(), "\n", " | "))
}

// verify counts what the backend has and checks the history. No clients may be running.
func (c *clusterHosts) verify() {
	t := c.t
	out, code := c.machines[0].run("mode", "read-only", "--reason", "the end", "--json")
	require.Zero(t, code, out)
	c.noteLateWrites()
	k := c.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	lost, doubled, doubledUnnamed := 0, 0, 0
	c.n.mu.Lock()
	for _, event := range c.n.events {
		for _, n := range k.have[event] {
			switch {
			case n == 0:
				lost++
			case n > 1 && c.late[event]:
				doubled++
			case n > 1:
				doubled++
				doubledUnnamed++
				t.Logf("doubled: %s", event)
			}
		}
	}
	recorded, wrong := len(c.n.events), c.n.wrong
	c.n.mu.Unlock()
	behind, behindUnnamed := 0, 0
	for _, p := range k.parts {
		if p.behind {
			behind++
			if !c.late[p.event] {
				behindUnnamed++
				t.Logf("behind the wall: %s at %d ms", p.event, p.at/1e6)
			}
		}
		c.history.Add(history.Op{Kind: history.Post, Client: clusterClients, Scope: scopeOf(p.event), Event: p.event,
			Part: p.part, Call: p.at, Return: p.at, Late: c.late[p.event]})
	}
	t.Logf("%s", c.n.line())
	t.Logf("events %d: lost %d, doubled %d (unnamed %d), wrong provider %d, behind the wall %d (unnamed %d), events of "+
		"late writes, all named, %d", recorded, lost, doubled, doubledUnnamed, wrong, behind, behindUnnamed, len(c.late))
	began := time.Now()
	report, err := history.Check(c.history.Ops(), 2*time.Minute)
	t.Logf("history: %s, in %s", report, time.Since(began).Round(time.Millisecond))
	if folder := os.Getenv("MEMHOST_CLUSTER_OUT"); folder != "" {
		text, err := json.Marshal(c.history.Ops())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, "history.json"), text, 0o600))
	}
	require.NoError(t, err)
	require.Zero(t, lost)
	require.Zero(t, doubledUnnamed)
	require.Zero(t, wrong)
	require.Zero(t, behindUnnamed)
	requireOrdered(t, k.parts)
}

// requireOrdered requires that each client's parts arrived in the order in which its events were recorded.
func requireOrdered(t *testing.T, parts []keptPart) {
	t.Helper()
	last := map[string]string{}
	for _, part := range parts {
		client := part.event[:3]
		now := part.event + partNames[part.part]
		require.Less(t, last[client], now)
		last[client] = now
	}
}
