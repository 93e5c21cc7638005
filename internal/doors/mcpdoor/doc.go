// Package mcpdoor is the Model Context Protocol door of a memory slot: tools and a resource for one scope, by the
// official Go SDK.
//
//	door, err := mcpdoor.New(mcpdoor.Options{Slot: mcpdoor.Of(slot), Scope: scope})
//	err = door.ServeStdio(ctx, os.Stdin, os.Stdout, patience) // one client on a stream
//	handler := door.Handler(maxBody)                          // streamable HTTP, for server.Options.Mounts
//
// Two promises shape it. The scope is the operator's: no argument of a tool names one, and an argument that tries to is
// refused with denied, so that a model cannot leave it. And the protocol never waits for the slot: initialize and the
// lists are answered from what the door knows by itself; only tools and resources ask the slot, and they end in a
// readable error while there is none.
//
// A tool's error is a result with isError: its text begins with the code of the contract, its structured content holds
// the whole abi.Error.
//
// Reading order: options.go, door.go (what every request passes through), tools.go (the table), arguments.go (what a
// call may say), add.go, search.go, manage.go (what the tools do), answer.go (results and errors), stdio.go, http.go.
package mcpdoor
