//go:build !wasm

// Command echo_extism is a guest for benchmarks: it exists as wasm only.
package main

func main() {}
