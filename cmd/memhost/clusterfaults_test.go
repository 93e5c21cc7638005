//go:build unix

package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// network is a proxy between hosts and servers. It can drop all traffic in one direction, and keep connections open
// whose other end is closed.
type network struct {
	*toxiproxy.Proxy
	t *testing.T
}

func newNetwork(t *testing.T, name, to string) *network {
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	n := &network{toxiproxy.NewProxy(api, name, "127.0.0.1:0", to), t}
	require.NoError(t, n.Start())
	t.Cleanup(n.Stop)
	return n
}

// The directions of a network.
const (
	requests = "upstream"
	answers  = "downstream"
)

// swallow silently drops traffic in one direction, on open and new connections.
func (n *network) swallow(direction string) {
	n.add(fmt.Sprintf(`{"type": "timeout", "stream": %q, "attributes": {"timeout": 0}}`, direction))
}

// keepOpen hides the end of connections for a while.
func (n *network) keepOpen(d time.Duration) {
	for _, direction := range []string{requests, answers} {
		n.add(fmt.Sprintf(`{"type": "slow_close", "stream": %q, "attributes": {"delay": %d}}`, direction,
			d.Milliseconds()))
	}
}

func (n *network) add(toxic string) {
	if _, err := n.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		n.t.Errorf("a toxic: %s", err)
	}
}

// heal removes all faults. Connections with dropped traffic are closed.
func (n *network) heal() { n.Toxics.ResetToxics(context.Background()) }

// hostLink has a host's proxies to all servers of the database.
type hostLink []*network

func newLink(t *testing.T, name string, to []string) (l hostLink) {
	for _, address := range to {
		l = append(l, newNetwork(t, name+" "+address, address))
	}
	return l
}

// listen returns the addresses at which the host finds the servers.
func (l hostLink) listen() (addresses []string) {
	for _, n := range l {
		addresses = append(addresses, n.Listen)
	}
	return addresses
}

func (l hostLink) swallow(direction string) {
	for _, n := range l {
		n.swallow(direction)
	}
}

func (l hostLink) keepOpen(d time.Duration) {
	for _, n := range l {
		n.keepOpen(d)
	}
}

func (l hostLink) heal() {
	for _, n := range l {
		n.heal()
	}
}

// A fault is one kind of failure. make injects it and returns when it is over.
type fault struct {
	name string
	// on has the parts that must not have another fault at the same time.
	on   []string
	make func(random *rand.Rand)
}

// span draws a random duration.
func span(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)+1))
}

// faultInjector injects faults.
type faultInjector struct {
	mu     sync.Mutex
	busy   map[string]bool
	counts map[string]int
	now    []string // running faults
	pairs  map[string]int
}

// choose picks the least frequent kind of fault whose parts are free.
func (d *faultInjector) choose(kinds []fault, random *rand.Rand) (fault, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var best *fault
	for _, at := range random.Perm(len(kinds)) {
		k := &kinds[at]
		if slices.ContainsFunc(k.on, func(part string) bool { return d.busy[part] }) {
			continue
		}
		if best == nil || d.counts[k.name] < d.counts[best.name] {
			best = k
		}
	}
	if best == nil {
		return fault{}, false
	}
	for _, part := range best.on {
		d.busy[part] = true
	}
	for _, other := range d.now {
		pair := []string{other, best.name}
		slices.Sort(pair)
		d.pairs[strings.Join(pair, " + ")]++
	}
	d.now = append(d.now, best.name)
	d.counts[best.name]++
	return *best, true
}

func (d *faultInjector) over(f fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, part := range f.on {
		delete(d.busy, part)
	}
	d.now = slices.Delete(d.now, slices.Index(d.now, f.name), slices.Index(d.now, f.name)+1)
}

// String lists the kinds with their counts, and how many pairs overlapped.
func (d *faultInjector) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var text []string
	for _, name := range slices.Sorted(maps.Keys(d.counts)) {
		text = append(text, fmt.Sprintf("%s %d", name, d.counts[name]))
	}
	pairs := 0
	for _, n := range d.pairs {
		pairs += n
	}
	return fmt.Sprintf("%s; overlapping pairs %d, of %d kinds", strings.Join(text, ", "), pairs, len(d.pairs))
}

// work injects one fault after another until the end, with pauses.
func (d *faultInjector) work(kinds []fault, random *rand.Rand, rest time.Duration, end time.Time) {
	for time.Now().Before(end) {
		time.Sleep(min(span(random, rest/5, rest), time.Until(end)))
		if f, ok := d.choose(kinds, random); ok {
			f.make(random)
			d.over(f)
		}
	}
}

// faults returns the kinds for a cluster. If short is set, each lasts some seconds at most.
func (c *clusterHosts) faults(short bool) []fault {
	most := 40 * time.Second
	if short {
		most = 6 * time.Second
	}
	hold := func(random *rand.Rand, most time.Duration) { time.Sleep(span(random, time.Second, most)) }
	var kinds []fault
	for at := range c.machines {
		host, link := fmt.Sprint("host ", at), fmt.Sprint("link ", at)
		cut := func(direction string) func(*rand.Rand) {
			return func(random *rand.Rand) {
				c.links[at].swallow(direction)
				hold(random, most/2)
				c.links[at].heal()
			}
		}
		kinds = append(kinds,
			fault{"host killed", []string{host}, func(*rand.Rand) { c.restart(at) }},
			fault{"host stopped", []string{host}, func(random *rand.Rand) { c.pause(at, span(random, 5*time.Second, most)) }},
			fault{"database's requests cut", []string{link}, cut(requests)},
			fault{"database's answers cut", []string{link}, cut(answers)},
			fault{"database half-open", []string{link, "database"}, func(random *rand.Rand) {
				c.links[at].keepOpen(most)
				c.links[at].swallow(answers)
				c.database.crash()
				hold(random, most/2)
				c.links[at].heal()
			}})
	}
	cut := func(direction string) func(*rand.Rand) {
		return func(random *rand.Rand) {
			c.toBackend.swallow(direction)
			hold(random, 8*time.Second)
			c.toBackend.heal()
		}
	}
	return append(append(kinds, c.database.more(most)...),
		fault{"database killed", []string{"database"}, func(*rand.Rand) { c.database.crash() }},
		fault{"database stopped", []string{"database"}, func(random *rand.Rand) {
			c.database.stop(span(random, min(5*time.Second, most/2), most))
		}},
		fault{"backend's requests cut", []string{"backend"}, cut(requests)},
		fault{"backend's answers cut", []string{"backend"}, cut(answers)},
		fault{"backend half-open", []string{"backend"}, func(random *rand.Rand) {
			c.toBackend.keepOpen(20 * time.Second)
			c.toBackend.swallow(answers)
			c.backend.CloseClientConnections()
			hold(random, 8*time.Second)
			c.toBackend.heal()
		}})
}

// pause suspends a host, as a live migration or heavy swapping would.
func (c *clusterHosts) pause(at int, d time.Duration) {
	process := c.process(at)
	if process.Signal(syscall.SIGSTOP) == nil {
		time.Sleep(d)
		_ = process.Signal(syscall.SIGCONT)
	}
}
