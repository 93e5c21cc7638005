//go:build !tinygo && !extism

package sdk

// makeRoom is for TinyGo's heap only.
func makeRoom() {}

// Room is for TinyGo's heap only.
func Room(int) {}
