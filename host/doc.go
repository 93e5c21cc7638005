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
// This package has the promises; how they are kept below has packages of its own: internal/guest runs modules and
// passes on what they ask, internal/answercheck holds their answers to the contract, internal/archive keeps accepted
// events, internal/follow fills memories beside the serving one, internal/egress is the network policy, internal/opstate
// the state of one operation, internal/tape records and plays. Package extism is a second engine, which a program passes
// in Options.
//
// Reading order: options.go, host.go, module.go (bytes to Module), provider.go (Module and configuration), slot.go,
// operation.go (one operation), powers.go and network.go (what its guest asks), scope.go, readonly.go and mode.go,
// contract.go (the slot's outer border), read.go, listing.go, ledger.go, delivery.go, write.go, change.go, reset.go,
// readiness.go, pending.go and background.go (the contract), smoke.go, manifest.go, verify.go and swap.go, recording.go
// and replay.go; then follower.go, backfill.go and shadow.go (memories beside the serving one), turn.go, cluster.go and
// clusterserving.go (hosts that share a store).
package host
