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
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/testguest"
	"github.com/memhost/memhost/internal/testkit/brief"
	"github.com/memhost/memhost/internal/testkit/pgserver"
)

// clusterTime is how long TestHostsOfOneSlotLoseAndDoubleNothing makes faults, by MEMHOST_CLUSTER_TIME. The test takes
// some 30 seconds more: what a dead host had sent is settled only after its session.
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

// keeper is a backend that keeps parts of events, and counts them.
type keeper struct {
	mu     sync.Mutex
	parts  []string // "event/part" in the order in which they came
	behind int      // those that came while the slot was read-only
	wall   bool
}

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/find" {
		k.mu.Lock()
		defer k.mu.Unlock()
		var missing []string
		id := r.URL.Query().Get("event")
		for _, part := range []string{"a", "b"} {
			if !slices.Contains(k.parts, id+"/"+part) {
				missing = append(missing, part)
			}
		}
		_, _ = w.Write([]byte([]string{"present", "partial " + strings.Join(missing, " "), "absent"}[len(missing)]))
		return
	}
	var body struct{ Event, Part string }
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		return
	}
	time.Sleep(rand.N(10 * time.Millisecond)) // the backend works, and whoever dies meanwhile does not know the outcome
	k.mu.Lock()
	k.parts = append(k.parts, body.Event+"/"+body.Part)
	if k.wall {
		k.behind++
	}
	k.mu.Unlock()
	time.Sleep(rand.N(10 * time.Millisecond))
	_, _ = w.Write([]byte("ok"))
}

// clusterHosts are the processes of one slot, each in a folder of its own.
type clusterHosts struct {
	t        *testing.T
	machines []memhost
	mu       sync.Mutex
	running  []*slotProcess
}

func (c *clusterHosts) url(at int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[at].url
}

// restart kills a host and starts it again.
func (c *clusterHosts) restart(at int) {
	c.mu.Lock()
	old := c.running[at]
	c.mu.Unlock()
	old.kill()
	next := c.machines[at].serve()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[at] = next
}

// counts is what the clients of a cluster saw.
type counts struct {
	mu                                  sync.Mutex
	recorded, found, retried, uncertain int
}

// TestHostsOfOneSlotLoseAndDoubleNothing: three processes serve one slot over one database. Clients record events, each
// call at any host, while hosts are killed and paused and the database is killed. In the end each event is in the
// backend once, in its scope's order.
func TestHostsOfOneSlotLoseAndDoubleNothing(t *testing.T) {
	server := pgserver.Start(t)
	k := &keeper{}
	backend := httptest.NewServer(k)
	t.Cleanup(backend.Close)
	cache := cacheHome(t)
	c := &clusterHosts{t: t}
	const hosts, clients = 3, 6
	for range hosts {
		m := memhost{t, t.TempDir(), cache, ""}
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, "probe.wasm"), testguest.Probe(), 0o600))
		yaml := fmt.Sprintf("memory:\n  condition: probe\n  plugin: ./probe.wasm\n  smoke: never\n  conditions:\n    "+
			"probe: {url: %s}\nstore: {postgres: {url: %q}}\nlimits: {mode_wait_ms: 20000}\n", backend.URL, server.URL)
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, "memhost.yaml"), []byte(yaml), 0o600))
		if len(c.machines) == 0 {
			_, code := m.run("cluster", "migrate")
			require.Zero(t, code)
		}
		c.machines, c.running = append(c.machines, m), append(c.running, m.serve())
	}
	t.Logf("three hosts serve over %s", server.URL)

	load, stop := context.WithCancel(t.Context())
	var n counts
	var wg sync.WaitGroup
	events := make([]int, clients)
	for client := range clients {
		wg.Go(func() {
			for ; load.Err() == nil; events[client]++ {
				if !n.record(t, c, client, events[client]) {
					return
				}
			}
		})
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 22))
	faults := map[string]int{}
	for end := time.Now().Add(clusterTime(t)); time.Now().Before(end); {
		time.Sleep(time.Duration(500+random.IntN(1500)) * time.Millisecond)
		at := random.IntN(hosts)
		switch kind := random.IntN(12); {
		case kind < 5:
			faults["host killed"]++
			c.restart(at)
		case kind < 7:
			faults["host paused for 1 s"]++
			c.pause(at, time.Second)
		case kind < 8:
			faults["host paused for 17 s"]++
			c.pause(at, 17*time.Second)
		case kind < 10:
			faults["database killed"]++
			server.Kill()
			server.Run()
		default:
			if c.raiseWall(k, at, random) {
				faults["wall raised"]++
			}
		}
		n.mu.Lock()
		t.Logf("%v: %d recorded, %d of them found after a doubt, %d calls tried again, %d uncertain receipts", faults,
			n.recorded, n.found, n.retried, n.uncertain)
		n.mu.Unlock()
	}
	stop()
	wg.Wait()

	// The wall: once the mode has answered nothing comes to the backend.
	out, code := c.machines[0].run("mode", "read-only", "--reason", "test", "--json")
	require.Zero(t, code, out)
	k.mu.Lock()
	defer k.mu.Unlock()
	count := map[string]int{}
	for _, part := range k.parts {
		count[part]++
	}
	lost, doubled, total := 0, 0, 0
	for client := range clients {
		for i := range events[client] {
			total++
			for _, part := range []string{"/a", "/b"} {
				switch got := count[eventID(client, i)+part]; {
				case got == 0:
					lost++
				case got > 1:
					doubled++
				}
			}
		}
	}
	t.Logf("recorded %d, found after a doubt %d, lost %d, doubled %d; %v", n.recorded, n.found, lost, doubled, faults)
	require.Equal(t, total, n.recorded)
	require.Zero(t, lost)
	require.Zero(t, doubled)
	named := c.lateWrites()
	t.Logf("behind the wall %d, late writes named %d", k.behind, named)
	require.LessOrEqual(t, k.behind, named, "each call behind the wall is named")
	requireOrdered(t, k.parts)
}

// requireOrdered wants each scope's parts in the order in which its events were recorded.
func requireOrdered(t *testing.T, parts []string) {
	t.Helper()
	last := map[string]string{}
	for _, part := range parts {
		client := part[:3]
		require.Less(t, last[client], part)
		last[client] = part
	}
}

func eventID(client, i int) string { return fmt.Sprintf("c%02d-%06d", client, i) }

// raiseWall makes the slot read-only, kills a host behind the wall, and makes the slot writable again. It reports whether
// the wall stood: a write of a host that was killed or paused may have been under way for too long.
func (c *clusterHosts) raiseWall(k *keeper, at int, random *rand.Rand) bool {
	stood := false
	receipt := new(abi.ModeReceipt)
	if err := c.setMode(at, true, receipt); err == nil && receipt.InFlight == 0 {
		stood = true
		k.raise(true)
		if random.IntN(2) == 0 {
			c.restart((at + 1) % len(c.machines))
		}
		time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond) // the clients go on trying
		k.raise(false)
	}
	require.Eventually(c.t, func() bool { return c.setMode(at, false, receipt) == nil }, time.Minute,
		100*time.Millisecond)
	return stood
}

func (k *keeper) raise(wall bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wall = wall
}

func (c *clusterHosts) setMode(at int, readOnly bool, receipt *abi.ModeReceipt) error {
	slot, err := client.New(c.url(at), "")
	if err != nil {
		return err
	}
	defer slot.Close()
	ctx, cancel := context.WithTimeout(c.t.Context(), 40*time.Second)
	defer cancel()
	got, err := slot.SetMode(ctx, &abi.AdapterMode{ReadOnly: readOnly, Reason: "test"})
	if err == nil {
		*receipt = *got
	}
	return err
}

// lateWrites counts the late writes that the hosts name.
func (c *clusterHosts) lateWrites() int {
	slot, err := client.New(c.url(0), "")
	require.NoError(c.t, err)
	defer slot.Close()
	state, err := slot.Cluster(c.t.Context())
	require.NoError(c.t, err)
	return len(state.LateWrites)
}

// pause stops a host for a while, as a machine does that is moved or swaps.
func (c *clusterHosts) pause(at int, d time.Duration) {
	c.mu.Lock()
	process := c.running[at].Process
	c.mu.Unlock()
	require.NoError(c.t, process.Signal(syscall.SIGSTOP))
	time.Sleep(d)
	require.NoError(c.t, process.Signal(syscall.SIGCONT))
}

// record records an event until it is committed, each time at any host. False when that takes too long.
func (n *counts) record(t *testing.T, c *clusterHosts, client, i int) bool {
	id := eventID(client, i)
	text := "deliver a b"
	body := abi.Marshal(&abi.MemoryEvent{EventID: id, RunID: "r", UserID: fmt.Sprintf("u%02d", client), SessionID: "s",
		TurnID: id, Timestamp: "2026-01-01T09:00:00Z", Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}})
	var last string
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		receipt, failure := post(c.url(rand.IntN(len(c.running))), body)
		n.mu.Lock()
		wait := 100 * time.Millisecond
		switch {
		case failure != "":
			n.retried++
			last = failure
		case receipt.Status == abi.StatusCommitted:
			n.recorded++
			if receipt.Duplicate || slices.ContainsFunc(receipt.Warnings, func(w string) bool {
				return len(w) > 14 && w[:14] == "delivery_found"
			}) {
				n.found++
			}
			n.mu.Unlock()
			return true
		case receipt.Status == abi.StatusSkippedReadOnly:
			last = string(receipt.Status)
		default:
			n.uncertain++
			last = fmt.Sprint(receipt.Status, receipt.Warnings)
			if receipt.RetryAfterMS != nil {
				wait = time.Duration(*receipt.RetryAfterMS) * time.Millisecond
			}
		}
		n.mu.Unlock()
		time.Sleep(wait)
	}
	t.Errorf("event %s did not come to its end: %s", id, last)
	return false
}

// post records an event once. failure says why there is no receipt.
func post(url string, body []byte) (receipt *abi.WriteReceipt, failure string) {
	client := http.Client{Timeout: 40 * time.Second}
	answer, err := client.Post(url+"/v1/events", "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	var text bytes.Buffer
	if _, err := text.ReadFrom(answer.Body); err != nil {
		return nil, err.Error()
	}
	receipt = new(abi.WriteReceipt)
	if answer.StatusCode/100 != 2 {
		return nil, answer.Status + " " + text.String()
	}
	if err := abi.Unmarshal(text.Bytes(), receipt); err != nil {
		return nil, err.Error()
	}
	return receipt, ""
}
