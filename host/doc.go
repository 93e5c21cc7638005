// Package host is memhost as a library: it loads memory plugins, calls the contract, and keeps what it promises.
//
// Most callers need three lines: New makes a Host on a data folder, Host.Open loads one provider and gives the Slot
// behind which it sits, and the Slot's methods are the contract (package abi). Slot.Swap exchanges the provider while
// the slot serves.
//
//	h, err := host.New(ctx, host.Options{DataDir: "memory"})
//	slot, err := h.Open(ctx, host.ProviderConfig{Name: "full_history", Module: wasm})
//	receipt, err := slot.RecordEvent(ctx, event)
//
// Every error that comes back is an *abi.Error. A Host, its Slots and everything reached through them are safe for
// concurrent use.
//
// This package keeps the promises. The packages below it answer one question each: internal/guest runs modules and passes
// on what they ask, internal/answercheck holds their answers to the contract, internal/delivery knows whether an event was
// delivered, internal/wall whether it may be written now, internal/writelock who writes a scope, internal/budget how many
// items a budget asks for, internal/archive keeps accepted events, internal/follow fills memories beside the serving one,
// internal/egress is the network policy, internal/opstate the state of one operation, internal/tape records and plays.
// Package extism is a second engine, which a program passes in Options.
//
// Reading order: options.go, host.go, module.go (bytes to Module), provider.go (Module and configuration), slot.go; the
// way of an operation: contract.go, border.go (what stands around it), operation.go (one use of a provider, and its
// guest), powers.go and network.go (what the guest asks), commit.go; the way of a read: read.go, listing.go; the way of
// a write: write.go, which reads from top to bottom, gather.go, internal/delivery/decide.go (the contract of delivery, a
// table), settle.go, answers.go, batch.go; what both depend on: scope.go, writelock.go, readonly.go and mode.go, agreed.go; other operations:
// setup.go, change.go, reset.go, readiness.go, pending.go and background.go; loading: swap.go, smoke.go, manifest.go,
// verify.go; recording.go and replay.go; then followers.go, follower.go, backfill.go and shadow.go (memories beside the serving one),
// cluster.go and clusterserving.go (hosts that share a store).
package host
