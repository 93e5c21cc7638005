//go:build !wasm

package abi

// inGuest tells that this is a guest's side of the contract. It is the host's.
const inGuest = false
