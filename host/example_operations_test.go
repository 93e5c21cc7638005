package host_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/cassette"
	"github.com/memhost/memhost/host/report"
)

var (
	noon = func() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }
	ann  = abi.MemoryScope{RunID: "run", PersonaID: "ann"}
)

// memory returns a slot with a builtin provider on a new folder, and a function that closes it.
func memory(provider string, o host.Options) (slot *host.Slot, h *host.Host, done func()) {
	ctx := context.Background()
	o.DataDir, o.CacheDir, o.Now = folder(), cacheDir(), noon
	h = must(host.New(ctx, o))
	slot = must(h.Open(ctx, host.ProviderConfig{Name: provider, Module: builtin(provider), Source: "builtin"}))
	return slot, h, func() {
		if err := slot.Close(ctx); err != nil {
			panic(err)
		}
		if err := h.Close(ctx); err != nil {
			panic(err)
		}
	}
}

// A batch returns a receipt or an error for each event. An invalid event does not stop the others.
func ExampleSlot_RecordEvents() {
	slot, _, done := memory("full_history", host.Options{})
	defer done()
	batch := &abi.EventBatch{Events: []abi.MemoryEvent{*turn("ann", "e1", "I moved to Lyon."),
		*turn("", "e2", "Who said this?"), *turn("bob", "e3", "I live in Oslo.")}}
	for _, r := range must(slot.RecordEvents(context.Background(), batch)).Receipts {
		if r.Error != nil {
			fmt.Println(r.EventID, r.Error.Code, r.Error.Message)
		} else {
			fmt.Println(r.Receipt.EventID, r.Receipt.Status)
		}
	}
	// Output:
	// e1 committed
	// e2 invalid_argument events[1].user_id: missing or empty
	// e3 committed
}

// A result can be formatted again under another budget, without contacting the backend.
func ExampleSlot_FormatContext() {
	slot, _, done := memory("full_history", host.Options{})
	defer done()
	ctx := context.Background()
	must(slot.RecordEvent(ctx, turn("ann", "e1", "I moved to Lyon.")))
	result := must(slot.Retrieve(ctx, question("ann", "Where do I live?")))
	few := int64(5)
	short := must(slot.FormatContext(ctx, &abi.FormatRequest{Result: *result, Scope: ann,
		Budget: abi.ContextBudget{MaxTokens: &few}}))
	fmt.Printf("%q %d tokens, truncated: %v\n", short.FormattedContext, short.TokenCount, short.Truncated)
	// Output:
	// "" 0 tokens, truncated: true
}

// While the slot is read-only, writes are answered but nothing is recorded.
func ExampleSlot_SetMode() {
	slot, _, done := memory("full_history", host.Options{})
	defer done()
	ctx := context.Background()
	mode := must(slot.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "an evaluation"}))
	fmt.Println("read-only:", mode.ReadOnly, "in flight:", mode.InFlight) // 0: nothing can change the backend any more
	fmt.Println(must(slot.RecordEvent(ctx, turn("ann", "e1", "I moved to Lyon."))).Status)
	_, err := slot.ResetScope(ctx, ann)
	fmt.Println(abi.CodeOf(err))
	// Output:
	// read-only: true in flight: 0
	// skipped_read_only
	// read_only
}

// After a reset the scope is in its next generation, and the same event may be recorded again.
func ExampleSlot_ResetScope() {
	slot, _, done := memory("full_history", host.Options{})
	defer done()
	ctx := context.Background()
	must(slot.RecordEvent(ctx, turn("ann", "e1", "I moved to Lyon.")))
	receipt := must(slot.ResetScope(ctx, ann))
	fmt.Println(receipt.Status, receipt.OldGeneration, "to", receipt.NewGeneration)
	again := must(slot.RecordEvent(ctx, turn("ann", "e1", "I moved to Lyon.")))
	fmt.Println(again.Status, "duplicate:", again.Duplicate)
	// Output:
	// done 1 to 2
	// committed duplicate: false
}

// A forgotten event is removed from memory and archive, and is not recorded again.
func ExampleSlot_Forget() {
	slot, h, done := memory("full_history", host.Options{Archive: true})
	defer done()
	ctx := context.Background()
	must(slot.RecordEvent(ctx, turn("ann", "e1", "My PIN is 1234.")))
	receipt := must(slot.Forget(ctx, &abi.ForgetRequest{Scope: ann, EventIDs: []string{"e1"}, Reason: "a secret"}))
	fmt.Println(receipt.Status, receipt.Removed[host.NativeArchived])
	fmt.Println(must(h.Archive().ArchiveStats(ctx)).Events, "events in the archive")
	_, err := slot.RecordEvent(ctx, turn("ann", "e1", "My PIN is 1234."))
	fmt.Println(abi.CodeOf(err), abi.AsError(err).Reason)
	// Output:
	// done [e1]
	// 0 events in the archive
	// conflict forgotten
}

// A swap puts another provider behind the slot. Recorded events stay with the old one.
func ExampleSlot_Swap() {
	slot, _, done := memory("full_history", host.Options{})
	defer done()
	ctx := context.Background()
	must(slot.RecordEvent(ctx, turn("ann", "e1", "I moved to Lyon.")))
	manifest := must(slot.Swap(ctx, host.ProviderConfig{Name: "bm25", Module: builtin("bm25")}))
	fmt.Println(manifest.Provider, "is load", manifest.LoadGeneration)
	fmt.Println(len(must(slot.Retrieve(ctx, question("ann", "Where do I live?"))).Evidence), "turns")
	// Output:
	// bm25 is load 2
	// 0 turns
}

// A dry run goes through the steps of a swap with a provider that does not serve afterwards.
func ExampleHost_Try() {
	_, h, done := memory("no_memory", host.Options{})
	defer done()
	manifest := must(h.Try(context.Background(), host.ProviderConfig{Name: "bm25", Module: builtin("bm25")}))
	for _, step := range manifest.Steps[:4] {
		fmt.Println(step.Name, step.Verdict)
	}
	_, err := h.Try(context.Background(), host.ProviderConfig{Name: "bm26", Module: builtin("bm25")})
	fmt.Println(err)
	// Output:
	// identity pass
	// configure pass
	// load pass
	// health pass
	// invalid_argument in swap: step configure: module bm25 serves no provider "bm26", it serves [bm25 hybrid recall]
}

// Health checks the provider, and says what a caller can expect from it.
func ExampleSlot_Health() {
	slot, _, done := memory("full_history", host.Options{HealthWarnings: func() []string {
		return []string{"tunnel_down: the agent's VPN is down"}
	}})
	defer done()
	health := must(slot.Health(context.Background()))
	fmt.Println(health.Status, health.ConsistencyModel, health.Warnings)
	// Output:
	// ok immediate [tunnel_down: the agent's VPN is down]
}

// Capabilities lists what the provider can do beyond the required operations.
func ExampleSlot_Capabilities() {
	slot, _, done := memory("no_memory", host.Options{})
	defer done()
	ctx := context.Background()
	c := must(slot.Capabilities(ctx))
	fmt.Println(c.Provider, c.ConditionKind, c.Capabilities)
	_, err := slot.NativeQuery(ctx, &abi.NativeQuery{Scope: ann, Name: "nodes"})
	fmt.Println(abi.CodeOf(err))
	// Output:
	// no_memory control [readiness inventory]
	// unsupported
}

// The run manifest describes what serves, in enough detail to compare two runs.
func ExampleSlot_Manifest() {
	slot, _, done := memory("full_history", host.Options{Version: "1.2.3", Run: host.RunLabels{Replicate: "2"}})
	defer done()
	ctx := context.Background()
	must(slot.RecordEvent(ctx, turn("ann", "e1", "I moved to Lyon.")))
	m := must(slot.Manifest(ctx))
	fmt.Println(m.HostVersion, m.Provider, m.Profile, m.ServingSince, "replicate", m.Replicate)
	fmt.Println(m.Scopes[0].Scope.PersonaID, "generation", m.Scopes[0].Generation)
	// Output:
	// 1.2.3 full_history best 2026-03-02T12:00:00Z replicate 2
	// ann generation 1
}

// The ledger's list of events: what was recorded, and the state of each.
func ExampleSlot_ListEvents() {
	slot, _, done := memory("full_history", host.Options{})
	defer done()
	ctx := context.Background()
	for _, id := range []string{"e1", "e2", "e3"} {
		must(slot.RecordEvent(ctx, turn("ann", id, "said in "+id)))
	}
	for q := (report.EventQuery{Scope: ann, Limit: 2}); ; {
		page := must(slot.ListEvents(ctx, q))
		for _, e := range page.Events {
			fmt.Println(e.EventID, e.State, e.SessionID)
		}
		if q.After = page.Next; q.After == "" {
			break
		}
		fmt.Println("next page")
	}
	// Output:
	// e1 committed monday
	// e2 committed monday
	// next page
	// e3 committed monday
}

// The scopes of the serving provider, each with its outstanding events.
func ExampleSlot_ListScopes() {
	slot, _, done := memory("full_history", host.Options{})
	defer done()
	ctx := context.Background()
	must(slot.RecordEvent(ctx, turn("ann", "e1", "I moved to Lyon.")))
	for _, s := range must(slot.ListScopes(ctx, report.ScopeQuery{})).Scopes {
		fmt.Println(s.Scope.RunID, s.Scope.PersonaID, "pending:", s.Pending, "lost:", s.Lost)
	}
	// Output:
	// run ann pending: 0 lost: 0
}

// The archive keeps accepted events verbatim, where no provider can reach them.
func ExampleHost_Archive() {
	slot, h, done := memory("no_memory", host.Options{Archive: true})
	defer done()
	ctx := context.Background()
	must(slot.RecordEvent(ctx, turn("ann", "e1", "I moved to Lyon.")))
	page := must(h.Archive().ArchivePage(ctx, &report.ArchiveRequest{}))
	for _, e := range page.Events {
		fmt.Println(e.EventID, *e.Messages[0].Content)
	}
	// Output:
	// e1 I moved to Lyon.
}

// What a module's bytes show, before any of its code runs.
func ExampleInspect() {
	m := must(host.Inspect(builtin("full_history"), host.Limits{}))
	fmt.Println(m.Manifest.Name, m.Manifest.ABI, len(m.Manifest.Routes), "routes")
	_, err := host.Inspect([]byte("\x00asm\x01\x00\x00\x00"), host.Limits{})
	fmt.Println(abi.CodeOf(err))
	// Output:
	// full_history mh1 0 routes
	// invalid_argument
}

// An embedding program's own log of requests and answers. The origin says which part of the program made the request.
func ExampleWithOrigin() {
	slot, _, done := memory("full_history", host.Options{OnExchange: func(x *host.Exchange) {
		fmt.Printf("%s from %q, failed: %v\n", x.Operation, x.Origin, x.Error != nil)
	}})
	defer done()
	ctx := context.Background()
	must(slot.RecordEvent(ctx, turn("ann", "e1", "I moved to Lyon.")))
	must(slot.Retrieve(host.WithOrigin(ctx, "dashboard"), question("ann", "Where do I live?")))
	// Output:
	// record_event from "", failed: false
	// retrieve from "dashboard", failed: false
}

// A cassette repeats a run without a backend: with the same module, every answer is the same.
func ExampleReplay() {
	dir, err := os.MkdirTemp("", "cassette")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path, ctx := filepath.Join(dir, "run.cassette"), context.Background()
	slot, _, done := memory("full_history", host.Options{Cassette: &host.CassetteOptions{Path: path}})
	must(slot.RecordEvent(ctx, turn("ann", "e1", "I moved to Lyon.")))
	must(slot.Retrieve(ctx, question("ann", "Where do I live?")))
	done()

	report := must(host.Replay(ctx, host.ReplayOptions{Path: path, CacheDir: cacheDir(),
		Module: func(l cassette.Load) ([]byte, error) { return builtin(l.Provider), nil }}))
	fmt.Println(report.Operations, "operations, difference:", report.Difference)
	// Output:
	// 3 operations, difference: <nil>
}
