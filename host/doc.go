// Package host is memhost as a library: it loads memory plugins, runs the contract's operations on them, and enforces
// the contract's guarantees.
//
// Most callers need three calls: New creates a Host on a data folder, Host.Open loads a provider and returns its Slot,
// and the Slot's methods are the contract (package abi). Slot.Swap replaces the provider while the slot keeps serving.
//
//	h, err := host.New(ctx, host.Options{DataDir: "memory"})
//	slot, err := h.Open(ctx, host.ProviderConfig{Name: "full_history", Module: wasm})
//	receipt, err := slot.RecordEvent(ctx, event)
//
// Every error that comes back is an *abi.Error. A Host, its Slots and everything reached through them are safe for
// concurrent use.
//
// Each internal package has one job: guest runs modules and forwards their host calls, answercheck validates their
// answers against the contract, delivery decides whether an event was delivered, wall whether it may be written now,
// writelock which operation writes a scope, budget how many items a token budget allows, archive keeps accepted events,
// follow fills additional memories, egress enforces the network policy, opstate holds the state of one operation, and
// tape records and replays. Package extism is a second engine, which a program passes in Options.
//
// Reading order: options.go, host.go, module.go (bytes to Module), provider.go (Module and configuration), slot.go; the
// path of an operation: contract.go, border.go (the steps around it), operation.go (one use of a provider, and its
// guest), powers.go and network.go (the guest's host calls), commit.go; the path of a read: read.go, listing.go; the
// path of a write: write.go, which reads from top to bottom, gather.go, internal/delivery/decide.go (the contract of
// delivery, a table), settle.go, answers.go, batch.go; shared by reads and writes: scope.go, writelock.go, readonly.go
// and mode.go, agreed.go; other operations: setup.go, change.go, reset.go, readiness.go, pending.go and background.go;
// loading: swap.go, smoke.go, manifest.go, verify.go; recording.go and replay.go; then followers.go, follower.go,
// backfill.go and shadow.go (additional memories), cluster.go and clusterserving.go (hosts that share a store).
package host
