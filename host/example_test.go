package host_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/plugins"
)

// A memory slot inside a Go program: record a turn, retrieve, exchange the provider while the slot serves.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "memory")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	h, err := host.New(ctx, host.Options{DataDir: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = h.Close(ctx) }()
	history, _ := plugins.Find("full_history")
	slot, err := h.Open(ctx, host.ProviderConfig{Name: "full_history", Module: history.Wasm, Source: "builtin"})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = slot.Close(ctx) }()

	said := "My cat is called Zorvex."
	receipt, err := slot.RecordEvent(ctx, &abi.MemoryEvent{EventID: "e1", RunID: "run", UserID: "ann", SessionID: "monday", TurnID: "t1",
		Timestamp: "2026-03-02T09:00:00+01:00", Messages: []abi.Message{{Role: abi.RoleUser, Content: &said}}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(receipt.Status)

	limit := int64(200)
	question := &abi.RetrieveRequest{Query: "What is my cat called?", Scope: abi.MemoryScope{RunID: "run", PersonaID: "ann"}, SessionID: "tuesday",
		Budget: abi.ContextBudget{MaxTokens: &limit}}
	result, err := slot.Retrieve(ctx, question)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.FormattedContext)

	nothing, _ := plugins.Find("no_memory")
	if _, err := slot.Swap(ctx, host.ProviderConfig{Name: "no_memory", Module: nothing.Wasm, Source: "builtin"}); err != nil {
		log.Fatal(err) // the old provider serves on
	}
	if result, err = slot.Retrieve(ctx, question); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %q\n", result.Trace.BackendName, result.FormattedContext)

	// Output:
	// committed
	// <memory-context backend="full_history" scope="run/ann" condition_kind="control">
	// [2026-03-02T09:00:00+01:00 | session monday | event e1]
	// user: My cat is called Zorvex.
	// </memory-context>
	// no_memory: ""
}
