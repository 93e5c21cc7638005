// Package host is memhost as a library: it loads memory plugins, calls the contract, and keeps what it promises.
//
// Most callers need three lines: New makes a Host on a data folder, Host.Open loads one provider and gives the Slot behind which it sits, and
// the Slot's methods are the contract (package abi). Slot.Swap exchanges the provider while the slot serves.
//
//	h, err := host.New(ctx, host.Options{DataDir: "memory"})
//	slot, err := h.Open(ctx, host.ProviderConfig{Name: "full_history", Module: wasm})
//	receipt, err := slot.RecordEvent(ctx, event)
//
// Every error that comes back is an *abi.Error. A Host, its Slots and everything reached through them are safe for concurrent use.
//
// Reading order: load.go (bytes to Module), interrupt.go (how a guest is stopped), provider.go and pool.go (Module and configuration to instances), call.go (one
// call end to end), the hostcall files (one per import), contract.go (the slot's outer border), scope.go, write.go, read.go and reset.go (the contract), swap.go,
// manifest.go; the tape files and replay.go (what is recorded, and played again).
package host
