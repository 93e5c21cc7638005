// Package guest runs plugins: from a module's bytes to its answer. It passes a guest's requests to Powers, and knows
// nothing of what a slot promises.
//
// Reading order: powers.go (what a guest may ask), module.go (bytes to a checked Module), machine.go (Module to
// Program), interrupt.go and rewritten.go (how a guest is stopped), mh1.go (the engine of our own ABI), imports.go
// (host calls), instance.go and pool.go (Program to Instance to answer), call.go (one entry).
package guest
