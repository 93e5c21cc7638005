package host_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins"
)

// builtin is a module that comes with memhost.
func builtin(name string) []byte {
	module, ok := plugins.Find(name)
	if !ok {
		log.Fatalf("no module is called %s", name)
	}
	return module.Wasm
}

// must panics on errors, to keep the examples short.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// turn is an event with one message.
func turn(user, id, said string) *abi.MemoryEvent {
	return &abi.MemoryEvent{EventID: id, RunID: "run", UserID: user, SessionID: "monday", TurnID: id,
		Timestamp: "2026-03-02T09:00:00Z",
		Messages:  []abi.Message{{Role: abi.RoleUser, Content: &said}}}
}

// question is an agent's request before a turn.
func question(user, query string) *abi.RetrieveRequest {
	limit := int64(400)
	return &abi.RetrieveRequest{Query: query, Scope: abi.MemoryScope{RunID: "run", PersonaID: user}, SessionID: "tuesday",
		Budget: abi.ContextBudget{MaxTokens: &limit}}
}

// folder is a new data folder; cacheDir is for compiled modules, and is shared by all examples.
func folder() string   { return testcache.Folder() }
func cacheDir() string { return testcache.Dir() }

// The life of a slot: one process owns the folder; the provider can be replaced; slots must be closed before their
// host.
func ExampleHost_Open() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir := folder()

	h := must(host.New(ctx, host.Options{DataDir: dir, CacheDir: cacheDir()}))
	slot := must(h.Open(ctx, host.ProviderConfig{Name: "full_history", Module: builtin("full_history"),
		Source: "builtin"}))
	must(slot.RecordEvent(ctx, turn("ann", "e1", "I moved to Lyon.")))

	_, err := host.New(ctx, host.Options{DataDir: dir})
	fmt.Println("a second host:", abi.CodeOf(err), abi.AsError(err).Reason)

	manifest, err := slot.Swap(ctx, host.ProviderConfig{Name: "no_memory", Module: builtin("no_memory"),
		Source: "builtin"})
	if err != nil {
		log.Fatal(err) // the old provider serves on
	}
	fmt.Println("now serves:", manifest.Provider)

	if err := slot.Close(ctx); err != nil { // calls under way have until ctx ends
		log.Fatal(err)
	}
	_, err = slot.Retrieve(ctx, question("ann", "Where do I live?"))
	fmt.Println("a closed slot:", abi.CodeOf(err), abi.AsError(err).Reason)
	if err := h.Close(ctx); err != nil { // the folder is free
		log.Fatal(err)
	}

	h = must(host.New(ctx, host.Options{DataDir: dir, CacheDir: cacheDir()}))
	defer h.Close(ctx)
	slot = must(h.Open(ctx, host.ProviderConfig{Name: "full_history", Module: builtin("full_history"), Source: "builtin"}))
	defer slot.Close(ctx)
	result := must(slot.Retrieve(ctx, question("ann", "Where do I live?")))
	fmt.Println("after a restart:", len(result.Evidence), "turn")
	// Output:
	// a second host: unavailable folder_owned
	// now serves: no_memory
	// a closed slot: unavailable closed
	// after a restart: 1 turn
}

// Everything may be called from any goroutine. Writes of one scope run one after another; all else runs side by side.
func ExampleSlot_Retrieve() {
	ctx := context.Background()
	h := must(host.New(ctx, host.Options{DataDir: folder(), CacheDir: cacheDir()}))
	defer h.Close(ctx)
	slot := must(h.Open(ctx, host.ProviderConfig{Name: "full_history", Module: builtin("full_history")}))
	defer slot.Close(ctx)

	var agents sync.WaitGroup
	for _, user := range []string{"ann", "bob", "cat"} {
		agents.Go(func() {
			for i := range 5 {
				must(slot.RecordEvent(ctx, turn(user, fmt.Sprintf("%s-%d", user, i), "said by "+user)))
				must(slot.Retrieve(ctx, question(user, "What did I say?")))
			}
		})
	}
	agents.Wait()
	result := must(slot.Retrieve(ctx, question("bob", "What did I say?")))
	fmt.Println(len(result.Evidence), "turns of bob's")

	late, cancel := context.WithTimeout(ctx, 0) // how long this agent waits for its context
	defer cancel()
	_, err := slot.Retrieve(late, question("bob", "What did I say?"))
	fmt.Println(abi.CodeOf(err), errors.Is(err, context.DeadlineExceeded))
	// Output:
	// 5 turns of bob's
	// timeout true
}

// Every error has a code. What failed for now may be done again: the same event is delivered once.
func ExampleSlot_RecordEvent() {
	ctx := context.Background()
	h := must(host.New(ctx, host.Options{DataDir: folder(), CacheDir: cacheDir()}))
	defer h.Close(ctx)
	slot := must(h.Open(ctx, host.ProviderConfig{Name: "full_history", Module: builtin("full_history")}))
	defer slot.Close(ctx)

	record := func(event *abi.MemoryEvent) {
		receipt, err := slot.RecordEvent(ctx, event)
		e := abi.AsError(err)
		switch {
		case err == nil:
			fmt.Println(receipt.Status, "duplicate:", receipt.Duplicate)
		case errors.Is(err, &abi.Error{Code: abi.CodeConflict}):
			fmt.Println("recorded before with other content:", e.Reason)
		case e.Retryable: // unavailable, timeout, rate_limited: later, after e.RetryAfterMS if it is set
			fmt.Println("later:", e.Code)
		default: // e.Message says what is wrong, e.Hint what to do, e.Native what the backend answered
			fmt.Printf("%s: %s\n", e.Code, e.Message)
		}
	}
	record(turn("ann", "e1", "I moved to Lyon."))
	record(turn("ann", "e1", "I moved to Lyon."))
	record(turn("ann", "e1", "I moved to Nice."))
	record(turn("", "e2", "I moved to Nice."))
	// Output:
	// committed duplicate: false
	// committed duplicate: true
	// recorded before with other content: event_content
	// invalid_argument: user_id: missing or empty
}

// Host and modules write to one hclog.Logger.
func ExampleOptions_logger() {
	ctx, dir := context.Background(), folder()
	logger := hclog.New(&hclog.LoggerOptions{Name: "memory", Level: hclog.Warn, Output: os.Stdout, DisableTime: true})
	noon := func() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }

	for _, reason := range []string{"a test begins", ""} {
		h := must(host.New(ctx, host.Options{DataDir: dir, CacheDir: cacheDir(), Logger: logger, Now: noon}))
		slot := must(h.Open(ctx, host.ProviderConfig{Name: "full_history", Module: builtin("full_history")}))
		if reason != "" {
			must(slot.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: reason}))
		}
		if err := errors.Join(slot.Close(ctx), h.Close(ctx)); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// [WARN]  memory: the slot is read-only, as it was left: since=2026-03-02T12:00:00Z reason="a test begins"
}

// Observe is called at the end of every operation.
func ExampleOptions_metrics() {
	operations := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "memory_operations_total",
		Help: "Operations that ended."}, []string{"operation", "code"})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "memory_backend_seconds",
		Help: "What the backend took of them."}, []string{"operation"})
	registry := prometheus.NewRegistry()
	registry.MustRegister(operations, seconds)

	ctx := context.Background()
	h := must(host.New(ctx, host.Options{DataDir: folder(), CacheDir: cacheDir(), Observe: func(o host.Observation) {
		operations.WithLabelValues(o.Operation, string(o.Code)).Inc() // no code: success
		seconds.WithLabelValues(o.Operation).Observe(o.Backend.Seconds())
	}}))
	defer h.Close(ctx)
	slot := must(h.Open(ctx, host.ProviderConfig{Name: "full_history", Module: builtin("full_history")}))
	defer slot.Close(ctx)
	must(slot.RecordEvent(ctx, turn("ann", "e1", "I moved to Lyon.")))
	must(slot.RecordEvent(ctx, turn("ann", "e1", "I moved to Lyon.")))
	_, err := slot.RecordEvent(ctx, turn("ann", "e1", "I moved to Nice."))
	fmt.Println(abi.CodeOf(err))

	for _, family := range must(registry.Gather()) {
		for _, m := range family.GetMetric() {
			if c := m.GetCounter(); c != nil {
				fmt.Println(family.GetName(), m.GetLabel()[1].GetValue(), m.GetLabel()[0].GetValue(), c.GetValue())
			}
		}
	}
	// Output:
	// conflict
	// memory_operations_total health  1
	// memory_operations_total record_event  2
	// memory_operations_total setup_scope  1
	// memory_operations_total record_event conflict 1
}
