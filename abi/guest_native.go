//go:build !wasm

package abi

// inGuest reports which side of the contract was compiled: here the host's.
const inGuest = false
