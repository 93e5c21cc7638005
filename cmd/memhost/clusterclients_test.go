//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/doors/server/wire"
	"github.com/memhost/memhost/internal/test/history"
)

// counts is what the clients of a cluster have seen.
type counts struct {
	mu     sync.Mutex
	events []string // recorded events
	// found were settled after a doubt; retried are calls without a receipt; uncertain are receipts that say so.
	found, retried, uncertain, skipped, read int
	wrong                                    int // answers from a provider that no longer served when asked
}

func (n *counts) line() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return fmt.Sprintf("recorded %d, found after a doubt %d, calls tried again %d, uncertain receipts %d, skipped %d, "+
		"retrieved %d", len(n.events), n.found, n.retried, n.uncertain, n.skipped, n.read)
}

// swaps numbers the providers that serve one after another: their configurations have the number as a note.
type swaps struct {
	sync.Mutex
	last  int // last requested
	floor int // the latest one whose swap has returned
	open  map[int]bool
}

// least is the smallest number that an answer may have from now on. Swaps without an answer may still happen.
func (s *swaps) least() int {
	s.Lock()
	defer s.Unlock()
	return s.floor
}

// isOld reports whether the number in an answer belongs to a provider that had already been replaced.
func (s *swaps) isOld(provider, least int) bool {
	s.Lock()
	defer s.Unlock()
	return provider < least && !s.open[provider]
}

// longestStop is how long a call may be stuck in a suspended host after its client has given up.
const longestStop = 45 * time.Second

// playTeam makes two clients record into one scope after another, with resets of some of them in between.
func (c *clusterHosts) playTeam(load context.Context, team int) {
	for i := 0; load.Err() == nil; i += scopeEvents {
		scope := scopeOf(eventID(2*team, i))
		half := func(from, to int) {
			var wg sync.WaitGroup
			for _, client := range []int{2 * team, 2*team + 1} {
				wg.Go(func() {
					for j := i + from; j < i+to && load.Err() == nil; j++ {
						if !c.record(client, scope, eventID(client, j)) {
							return
						}
						if rand.IntN(4) == 0 {
							c.retrieve(client, scope)
						}
					}
				})
			}
			wg.Wait()
		}
		half(0, scopeEvents/2)
		if rand.IntN(3) == 0 && load.Err() == nil {
			c.reset(2*team, scope)
		}
		half(scopeEvents/2, scopeEvents)
		for range 20 {
			if c.retrieve(2*team, scope) {
				break
			}
		}
	}
}

// at calls any host, with a timeout as short or long as clients may have.
func (c *clusterHosts) at(use func(ctx context.Context, slot *client.Client) error) error {
	patience := []time.Duration{2 * time.Second, 5 * time.Second, 20 * time.Second}
	slot, err := client.New(c.url(rand.IntN(len(c.machines))), "")
	if err != nil {
		return err
	}
	defer slot.Close()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience[rand.IntN(len(patience))])
	defer cancel()
	return use(ctx, slot)
}

// record records an event until it is committed, each time at any host. It returns false if that takes too long.
func (c *clusterHosts) record(who int, scope, id string) bool {
	text := "deliver a b; config"
	event := &abi.MemoryEvent{EventID: id, RunID: "r", UserID: scope, SessionID: "s", TurnID: id,
		Timestamp: "2026-01-01T09:00:00Z", Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}}
	last := ""
	for end := time.Now().Add(4 * time.Minute); time.Now().Before(end); {
		op := history.Op{Kind: history.Record, Client: who, Scope: scope, Event: id, Call: c.history.Now()}
		least := c.swaps.least()
		var receipt *abi.WriteReceipt
		err := c.at(func(ctx context.Context, slot *client.Client) (err error) {
			receipt, err = slot.RecordEvent(ctx, event)
			return err
		})
		op.Return = c.history.Now()
		wait := 100 * time.Millisecond
		n := &c.n
		n.mu.Lock()
		switch {
		case err != nil:
			n.retried++
			op.Open = true
			last = err.Error()
		case receipt.Status == abi.StatusCommitted && receipt.Duplicate:
			op.Outcome = history.Repeated
			n.found++
		case receipt.Status == abi.StatusCommitted:
			op.Outcome, op.Generation = history.Fresh, receipt.Trace.Generation
			op.Provider = providerOf(receipt.Markers...)
			if c.swaps.isOld(op.Provider, least) {
				n.wrong++
			}
		case receipt.Status == abi.StatusSkippedReadOnly:
			op.Outcome = history.Skipped
			n.skipped++
			last = string(receipt.Status)
		default:
			op.Open = true
			n.uncertain++
			last = fmt.Sprint(receipt.Status, receipt.Warnings)
			if receipt.RetryAfterMS != nil {
				wait = time.Duration(*receipt.RetryAfterMS) * time.Millisecond
			}
		}
		committed := op.Outcome == history.Fresh || op.Outcome == history.Repeated
		if committed {
			n.events = append(n.events, id)
		}
		n.mu.Unlock()
		c.history.Add(op)
		if committed {
			return true
		}
		time.Sleep(wait)
	}
	c.t.Errorf("event %s did not come to its end: %s", id, last)
	return false
}

// providerOf returns the number of the provider that answered, from the result of the command "config".
func providerOf(said ...string) int {
	for _, text := range said {
		var config struct{ Note string }
		if json.Unmarshal([]byte(text), &config) == nil {
			var n int
			_, _ = fmt.Sscanf(config.Note, "provider %d", &n) // the first one has no note, and is 0
			return n
		}
	}
	return -1
}

// retrieve reads the events of a scope. It returns false if that failed.
func (c *clusterHosts) retrieve(who int, scope string) bool {
	op := history.Op{Kind: history.Retrieve, Client: who, Scope: scope, Call: c.history.Now()}
	least := c.swaps.least()
	var result *abi.RetrieveResult
	err := c.at(func(ctx context.Context, slot *client.Client) (err error) {
		result, err = slot.Retrieve(ctx, &abi.RetrieveRequest{Query: "read events; config", SessionID: "s",
			Scope: abi.MemoryScope{RunID: "r", PersonaID: scope}})
		return err
	})
	op.Return = c.history.Now()
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if err != nil {
		c.n.retried++
		return false
	}
	c.n.read++
	said := make([]string, len(result.Raw.Calls))
	for i, call := range result.Raw.Calls {
		_ = json.Unmarshal(call.Body, &said[i]) // not a text: ignored below
	}
	for _, entry := range strings.Fields(said[0]) {
		_, event, _ := strings.Cut(entry, "=")
		op.Events = append(op.Events, event)
	}
	op.Generation, op.Provider = result.Trace.Generation, providerOf(said[1:]...)
	if c.swaps.isOld(op.Provider, least) {
		c.n.wrong++
	}
	c.history.Add(op)
	return true
}

// reset starts a new generation of a scope whose clients are idle. It waits as long as record does, because a failover
// outlasts many rejections. It calls rarely, because the checker has to find a place for each call without an answer.
func (c *clusterHosts) reset(who int, scope string) {
	last := ""
	for end := time.Now().Add(4 * time.Minute); time.Now().Before(end); {
		op := history.Op{Kind: history.Reset, Client: who, Scope: scope, Call: c.history.Now()}
		err := c.at(func(ctx context.Context, slot *client.Client) error {
			receipt, err := slot.ResetScope(ctx, abi.MemoryScope{RunID: "r", PersonaID: scope})
			if err == nil {
				op.Generation = receipt.NewGeneration
			}
			return err
		})
		op.Return, op.Open = c.history.Now(), err != nil
		c.history.Add(op)
		if err == nil {
			return
		}
		last = err.Error()
		time.Sleep(2 * time.Second)
	}
	c.t.Errorf("scope %s could not be reset: %s", scope, last)
}

// slotWide returns the kinds of faults that affect all scopes.
func (c *clusterHosts) slotWide() []fault {
	return []fault{
		{"wall raised", nil, func(random *rand.Rand) { c.raiseWall(random) }},
		{"provider swapped", nil, func(*rand.Rand) { c.swap() }},
	}
}

// raiseWall makes the slot read-only, and writable again. If a write of a killed or suspended host was in progress for
// too long, the wall was not raised.
func (c *clusterHosts) raiseWall(random *rand.Rand) {
	receipt, err := c.setMode(true)
	if err == nil && receipt.InFlight == 0 {
		var notReady []string
		for _, scope := range receipt.NotReady {
			notReady = append(notReady, scope.PersonaID)
		}
		c.keeper.raise(true, notReady...)
		time.Sleep(span(random, 0, 2*time.Second)) // the clients keep trying
		c.keeper.raise(false)
	}
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if _, err := c.setMode(false); err == nil {
			return
		}
	}
	c.t.Error("the slot stays read-only")
}

func (c *clusterHosts) setMode(readOnly bool) (*abi.ModeReceipt, error) {
	op := history.Op{Kind: history.SetMode, Client: clusterClients + 1, ReadOnly: readOnly, Call: c.history.Now()}
	slot, err := client.New(c.url(rand.IntN(len(c.machines))), "")
	if err != nil {
		return nil, err
	}
	defer slot.Close()
	ctx, cancel := context.WithTimeout(c.t.Context(), 40*time.Second)
	defer cancel()
	receipt, err := slot.SetMode(ctx, &abi.AdapterMode{ReadOnly: readOnly, Reason: "test"})
	op.Return = c.history.Now()
	if err != nil {
		op.Open, op.Return = true, op.Return+int64(longestStop)
	} else {
		op.All = receipt.InFlight > 0
		for _, scope := range receipt.NotReady {
			op.NotReady = append(op.NotReady, scope.PersonaID)
		}
	}
	c.history.Add(op)
	return receipt, err
}

// swap replaces the provider by one with the next number.
func (c *clusterHosts) swap() {
	s := &c.swaps
	s.Lock()
	s.last++
	number := s.last
	if s.open == nil {
		s.open = map[int]bool{}
	}
	s.open[number] = true // until it returns
	s.Unlock()
	op := history.Op{Kind: history.Swap, Client: clusterClients + 1, Provider: number, Call: c.history.Now()}
	at := rand.IntN(len(c.machines))
	slot, err := client.New(c.url(at), "")
	if err != nil {
		return
	}
	defer slot.Close()
	ctx, cancel := context.WithTimeout(c.t.Context(), 40*time.Second)
	defer cancel()
	_, err = slot.Swap(ctx, wire.SwapRequest{Condition: "probe", Plugin: "./probe.wasm",
		Config: abi.Raw(fmt.Sprintf(`{"url": %q, "note": "provider %d"}`, c.backendURL(), number))})
	op.Return = c.history.Now()
	if err != nil {
		op.Open, op.Return = true, op.Return+int64(longestStop)
	} else {
		s.Lock()
		s.floor = number
		delete(s.open, number)
		s.Unlock()
	}
	c.history.Add(op)
}

// noteLateWrites reads which late writes the hosts report. A host shows the latest hundred.
func (c *clusterHosts) noteLateWrites() {
	var state *report.Cluster
	err := c.at(func(ctx context.Context, slot *client.Client) (err error) {
		state, err = slot.Cluster(ctx)
		return err
	})
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range state.LateWrites {
		for _, event := range w.EventIDs {
			c.late[event] = true
		}
	}
	if len(c.late) > 0 {
		c.t.Logf("late writes: %v", slices.Sorted(maps.Keys(c.late)))
	}
}
