//go:build linux

package main

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/memhost/memhost/internal/test/patroni"
)

// haDatabase is three servers under Patroni.
type haDatabase struct {
	*patroni.Cluster
	t *testing.T
}

func startPatroni(t *testing.T, home string) database {
	began := time.Now()
	h := haDatabase{patroni.Start(t, home), t}
	t.Logf("three nodes under Patroni after %s", time.Since(began).Round(time.Second))
	return h
}

func (h haDatabase) addresses() []string { return h.Addresses() }

func (h haDatabase) url(addresses []string) string {
	return "postgres://memhost@" + strings.Join(addresses, ",") +
		"/postgres?sslmode=disable&target_session_attrs=read-write&connect_timeout=2"
}

// leader returns the node that accepts writes. The test fails if there is none for a minute.
func (h haDatabase) leader() *patroni.Node {
	n := h.Leader()
	if n == nil {
		h.t.Error("no node takes writes for a minute")
	}
	return n
}

// crash kills the leader's PostgreSQL.
func (h haDatabase) crash() {
	if n := h.leader(); n != nil {
		n.KillPostgres()
	}
	h.leader()
}

// stop suspends the leader's node, PostgreSQL and Patroni. If it sleeps long enough, another node becomes leader, and
// the old primary wakes up next to it.
func (h haDatabase) stop(d time.Duration) {
	n := h.leader()
	if n == nil {
		return
	}
	n.Pause()
	time.Sleep(d)
	n.Continue()
	h.wait()
}

// wait waits until there are two standbys again: data would not survive a second fault before that.
func (h haDatabase) wait() {
	if !h.Whole() {
		h.t.Error("the nodes are not together again after 2 minutes")
	}
}

// more returns: the leader's whole node dies, and another one leads; one of three members of etcd dies, or is
// suspended. Two members are enough, but each Patroni has to find them before its lease in etcd expires.
func (h haDatabase) more(most time.Duration) []fault {
	return []fault{
		{"database's node killed", []string{"database"}, func(random *rand.Rand) {
			n := h.leader()
			if n == nil {
				return
			}
			n.Kill()
			time.Sleep(span(random, 25*time.Second, 40*time.Second)) // Patroni's ttl is 20 s
			n.Start()
			h.wait()
		}},
		{"etcd killed", []string{"etcd"}, func(random *rand.Rand) {
			m := h.Members()[random.IntN(3)]
			m.Kill()
			time.Sleep(span(random, 5*time.Second, most))
			m.Start()
			h.join(m)
		}},
		{"etcd stopped", []string{"etcd"}, func(random *rand.Rand) {
			m := h.Members()[random.IntN(3)]
			m.Pause()
			time.Sleep(span(random, 5*time.Second, most))
			m.Continue()
			h.join(m)
		}}}
}

// join waits until a member of etcd is back: without two of them there is no leader.
func (h haDatabase) join(m *patroni.Member) {
	if !m.Healthy() {
		h.t.Error("a member of etcd is not there again after a minute")
	}
}
