// Package guest runs plugins: from a module's bytes to its answer. It forwards a guest's host calls to Powers, and
// knows nothing about the guarantees of a slot.
//
// Reading order: powers.go (a guest's host calls), module.go (bytes to a checked Module), machine.go (Module to
// Program), interrupt.go and rewritten.go (how a guest is stopped), mh1.go (the engine of our own ABI), imports.go
// (host calls), instance.go and pool.go (Program to Instance to answer), call.go (one entry).
package guest
