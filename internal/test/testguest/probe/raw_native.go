//go:build !wasm

package main

func outside()               {}
func packText(string) uint64 { return 0 }
