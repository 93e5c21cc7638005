//go:build !wasm

package main

func outside()   {}
func overrun()   {}
func say(string) {}
