package host_test

import (
	"context"
	"fmt"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

// A memory slot inside a Go program: a turn is recorded, and the prompt of another session gets it.
func Example() {
	ctx, dir := context.Background(), folder()
	h := must(host.New(ctx, host.Options{DataDir: dir}))
	defer h.Close(ctx)
	slot := must(h.Open(ctx, host.ProviderConfig{Name: "full_history", Module: builtin("full_history")}))
	defer slot.Close(ctx)
	said := "My cat is called Zorvex."
	must(slot.RecordEvent(ctx, &abi.MemoryEvent{EventID: "e1", RunID: "run", UserID: "ann", SessionID: "monday",
		TurnID:    "t1",
		Timestamp: "2026-03-02T09:00:00+01:00", Messages: []abi.Message{{Role: abi.RoleUser, Content: &said}}}))
	result := must(slot.Retrieve(ctx, &abi.RetrieveRequest{Query: "Who is Zorvex?",
		Scope: abi.MemoryScope{RunID: "run", PersonaID: "ann"}, SessionID: "tuesday"}))
	fmt.Println(result.FormattedContext)
	// Output:
	// <memory-context backend="full_history" scope="run/ann" condition_kind="control" times="UTC">
	// m1 [2026-03-02 08:00] user: My cat is called Zorvex.
	// </memory-context>
}
