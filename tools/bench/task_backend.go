package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/fakes/graphiti"
	"github.com/memhost/memhost/internal/test/fakes/honcho"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/internal/test/fakes/memos"
	"github.com/memhost/memhost/plugins"
)

// backendCase is a plugin with a fake of its backend.
type backendCase struct {
	name, module string
	fake         func() http.Handler
	// block is the rest of the config block after url.
	block string
	// turns is how many turns are recorded before measuring; query asks for them.
	turns int
	say   func(i int) string
	query string
	// retrieveOnly means that a record only queues, so that it says nothing about the plugin.
	retrieveOnly bool
}

var backendCases = []backendCase{
	{name: "mem0", module: "mem0", fake: func() http.Handler {
		return mem0.New(mem0.Options{})
	}, block: `,"api":"oss"`, turns: 12,
		say: func(i int) string { return fmt.Sprintf("I like oat milk number %d.", i) }, query: "which milk?"},
	{name: "memos", module: "memos", fake: func() http.Handler {
		return memos.New(memos.Options{Flavour: memos.Community})
	}, block: `,"add_mode":"sync/fast"`, turns: 20,
		say: func(i int) string {
			return fmt.Sprintf("I always prefer an aisle seat on flight %d.", i)
		},
		query: "Which seat does the user prefer?"},
	{name: "honcho", module: "honcho", fake: func() http.Handler {
		return honcho.New(honcho.Options{Mood: honcho.Mood{Flush: true}})
	}, turns: 10,
		say: func(i int) string {
			return fmt.Sprintf("My cat number %d is called Zorvex%d.", i, i)
		}, query: "What is my cat called?"},
	{name: "graphiti, rest", module: "graphiti", fake: func() http.Handler {
		return graphiti.New(graphiti.Options{}).REST()
	}, block: `,"surface":"rest"`, turns: 10,
		say: func(i int) string { return fmt.Sprintf("I like window seats on trip%d.", i) }, query: "seats on trips"},
	{name: "graphiti, mcp", module: "graphiti", fake: func() http.Handler {
		return graphiti.New(graphiti.Options{}).MCP()
	}, block: `,"surface":"mcp"`, turns: 10,
		say: func(i int) string {
			return fmt.Sprintf("I like window seats on trip%d.", i)
		}, query: "seats on trips", retrieveOnly: true},
}

// The contestants in front of a backend.
const (
	byProcess = "memhost, durability process"
	byPower   = "memhost, durability power"
	byDirect  = "the same calls made directly"
	byUnread  = "the same calls made directly, answers not parsed"
	byCommits = "the same calls made directly and two commits"
)

// backendTasks compare the operations of every backend's plugin with the calls that they make, for a backend that
// answers at once and for one that takes 5 ms.
func backendTasks() []task {
	var list []task
	for _, c := range backendCases {
		for _, delay := range []time.Duration{0, 5 * time.Millisecond} {
			list = append(list, c.task(delay))
		}
	}
	return list
}

func (c backendCase) task(delay time.Duration) task {
	bar := Bar{Kind: Added, Over: byDirect, Limit: 500e3}
	when := "backend answers at once"
	if delay > 0 {
		bar = Bar{Kind: Ratio, Over: byDirect, Limit: 1.10}
		when = fmt.Sprintf("backend answers in %d ms", delay.Milliseconds())
	}
	name := fmt.Sprintf("backend/%s/%v", c.name, delay)
	retrieve, record := name+"/retrieve", name+"/record"
	rows := []Row{{ID: retrieve, What: c.name + ": retrieve, " + when, Unit: Nanoseconds,
		By: []string{byMemhost, byDirect, byUnread}, Bars: []Bar{bar}}}
	if !c.retrieveOnly {
		bar.Over = byCommits
		rows = append(rows, Row{ID: record, What: c.name + ": record, " + when, Unit: Nanoseconds,
			By: []string{byProcess, byPower, byCommits, byDirect, byUnread}, Bars: []Bar{bar}})
	}
	return task{name: name, rows: rows, round: func(ctx context.Context, e *env) (figures, error) {
		b, slots, err := c.open(ctx, e)
		if err != nil {
			return nil, err
		}
		direct := e.client()
		calls := func(s *script, read func([]byte) error) func() error {
			return func() error { return direct.again(ctx, b.url, s.calls, read) }
		}
		p := e.pace(pace{stretch: time.Microsecond, round: 150 * time.Millisecond, stretches: 60})
		search := func() error { return c.ask(ctx, slots[0]) }
		s, err := b.note(search)
		if err != nil {
			return nil, err
		}
		b.play(s, delay)
		f, err := turns(ctx, p, []contestant{by(retrieve, byMemhost, repeat(search)),
			by(retrieve, byDirect, repeat(calls(s, parse))), by(retrieve, byUnread, repeat(calls(s, nil)))})
		if err != nil || c.retrieveOnly {
			return f, err
		}
		n := 0
		write := func(s *host.Slot) func() error {
			return func() error { n++; return c.record(ctx, s, "m"+strconv.Itoa(n), 1000+n) }
		}
		b.play(&script{}, 0)
		if s, err = b.note(write(slots[0])); err != nil {
			return f, err
		}
		b.play(s, delay)
		commit, err := e.commits(ctx)
		if err != nil {
			return f, err
		}
		kept := calls(s, parse)
		g, err := turns(ctx, p, []contestant{by(record, byProcess, repeat(write(slots[0]))),
			by(record, byPower, repeat(write(slots[1]))),
			by(record, byCommits, repeat(func() error {
				return errors.Join(commit(), kept(), commit())
			})), by(record, byDirect, repeat(kept)),
			by(record, byUnread, repeat(calls(s, nil)))})
		maps.Copy(f, g)
		return f, err
	}}
}

// open starts the fake and two slots for it, with durability process and power. The first one has recorded turns, the
// second one only a scope.
func (c backendCase) open(ctx context.Context, e *env) (*backend, []*host.Slot, error) {
	b, err := e.serve(ctx, c.fake())
	if err != nil {
		return nil, nil, err
	}
	m, ok := plugins.Find(c.module)
	if !ok {
		return nil, nil, fmt.Errorf("module %s has not been built", c.module)
	}
	// Each slot has its own folder, but they share a scope in the backend. NoLookup keeps them from looking for each
	// other's events, so that both make the calls in the script.
	config := host.ProviderConfig{Name: c.module, Module: m.Wasm, Source: "builtin", Namespace: "bench",
		NoLookup: true,
		Block:    abi.Raw(fmt.Sprintf(`{"url":%q%s}`, b.url, c.block))}
	var slots []*host.Slot
	for _, durability := range []string{"process", "power"} {
		s, err := e.slot(ctx, host.Options{Durability: durability}, config)
		if err != nil {
			return nil, nil, err
		}
		slots = append(slots, s)
	}
	if err := c.record(ctx, slots[1], "first", 999); err != nil {
		return nil, nil, err
	}
	return b, slots, c.fill(ctx, slots[0], "e")
}

// fill records turns and waits until they can be found.
func (c backendCase) fill(ctx context.Context, s *host.Slot, prefix string) error {
	for i := range c.turns {
		if err := c.record(ctx, s, prefix+strconv.Itoa(i), i); err != nil {
			return err
		}
	}
	if _, err := s.Readiness(ctx, &abi.ReadinessRequest{Scope: scope, TimeoutMS: 5000}); err != nil &&
		abi.CodeOf(err) != abi.CodeUnsupported {
		return err
	}
	return c.ask(ctx, s)
}

// ask retrieves, and requires a result.
func (c backendCase) ask(ctx context.Context, s *host.Slot) error {
	result, err := s.Retrieve(ctx, ask(c.query))
	if err == nil && result.FormattedContext == "" {
		err = fmt.Errorf("%s found nothing", c.name)
	}
	return err
}

func (c backendCase) record(ctx context.Context, s *host.Slot, id string, i int) error {
	receipt, err := s.RecordEvent(ctx, turn(id, c.say(i)))
	if err == nil && receipt.Status != abi.StatusCommitted && receipt.Status != abi.StatusQueued {
		err = fmt.Errorf("%s: the receipt says %s %v", c.name, receipt.Status, receipt.Warnings)
	}
	return err
}

// turn is an event with one message.
func turn(id, text string) *abi.MemoryEvent {
	return &abi.MemoryEvent{EventID: id, RunID: scope.RunID, UserID: scope.PersonaID, SessionID: "s", TurnID: id,
		Timestamp: "2026-03-01T09:30:00Z",
		Messages:  []abi.Message{{Role: abi.RoleUser, Content: &text}}}
}
